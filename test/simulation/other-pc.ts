import type { ReusableDatabase } from '../support/reusable-database.js';
import { type SimulatedDaemon, startDaemon } from './daemon.js';
import { settle, useSpares } from './settle.js';
import type { World } from './world.js';

export type OtherPc = ReturnType<typeof createOtherPc>;

/** Another PC that files into the same notebook, with an instrument of the same name, for the same or another account. */
export function createOtherPc(first: World, database: ReusableDatabase) {
  const random = first.events.get('second') ?? first.random;
  const userid = first.kind.keepsTitle === false || random.chance(0.5) ? 3 : 1;
  const pc = { runs: 'other', journal: '22222222', userid };
  const world: World = { ...first, database, pc, remaps: undefined, poisoned: undefined, note: undefined };
  let daemon: SimulatedDaemon | undefined;
  let added = 0;
  return {
    world,
    added: () => added,
    /** Starts it, and adds runs. */
    async start(): Promise<void> {
      daemon = await startDaemon(world);
      for (let n = 0; n < added; n++) await daemon.add(n);
      for (let more = random.below(3); more > 0; more--) await daemon.add(added++);
    },
    end(): void {
      if (random.chance(0.5)) daemon?.failPower();
      else daemon?.kill();
    },
    /** Runs it until nothing is left to do. */
    async settle(): Promise<void> {
      if (!daemon) return;
      const running = daemon;
      await settle(world, running);
      await useSpares(world, async () => {
        await running.add(added++);
        await settle(world, running);
      });
      running.kill();
    },
  };
}
