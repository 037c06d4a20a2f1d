import type { ReusableDatabase } from '../support/reusable-database.js';
import { type SimulatedDaemon, startDaemon } from './daemon.js';
import { recoverJournal } from './recover.js';
import { isHalted, settle, useSpares } from './settle.js';
import type { World } from './world.js';

export type OtherPc = ReturnType<typeof createOtherPc>;

/** Another PC that files into the same notebook, with an instrument of the same name, for the same or another account. */
export function createOtherPc(first: World, database: ReusableDatabase) {
  const random = first.events.get('second') ?? first.random;
  const userid = random.chance(0.5) ? 3 : 1;
  if (userid === 1 && first.kind.keepsTitle === false) first.isShared = true;
  const pc = { runs: 'other', journal: '22222222', userid };
  const world: World = {
    ...first,
    database,
    pc,
    remaps: undefined,
    changedFiles: undefined,
    poisoned: undefined,
    note: undefined,
  };
  let daemon: SimulatedDaemon | undefined;
  let added = 0;
  let isRecovered = false;
  /** Runs it until nothing is left to do, with one `recover` if it was halted. */
  const settleAll = async (): Promise<void> => {
    if (daemon) await settle(world, daemon);
    if (!daemon || isRecovered || !isHalted(world)) return;
    isRecovered = true;
    daemon.kill();
    await recoverJournal(world);
    daemon = await startDaemon(world);
    await settle(world, daemon);
  };
  return {
    world,
    added: () => added,
    /** Starts it, and adds runs. */
    async start(): Promise<void> {
      daemon = await startDaemon(world);
      for (let n = 0; n < added; n++) await daemon.add(n);
      // What was restored is noticed with the next run.
      const more = Math.max(random.below(3), Number(world.isRestored));
      for (const end = added + more; added < end; added++) await daemon.add(added);
    },
    end(): void {
      if (random.chance(0.5)) daemon?.failPower();
      else daemon?.kill();
    },
    async settle(): Promise<void> {
      await settleAll();
      await useSpares(world, async () => {
        await daemon?.add(added++);
        await settleAll();
      });
      daemon?.kill();
    },
  };
}
