import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../support/until.js';
import type { Lab, Pc } from './lab.js';

/** What needs a person afterwards: nothing is sent until `labfeed recover`. */
export const HALTS: Readonly<Record<string, (lab: Lab) => Promise<void>>> = {
  restoredServer,
  lostJournal: (lab) => journalTrouble(lab, 'lost'),
  restoredJournal: (lab) => journalTrouble(lab, 'restored'),
};

const HALTED = 'delivery is halted until `labfeed recover` has run';

/** More than the grace period of eLabFTW, on a busy machine. */
const WITHIN_MS = 300_000;

/** An administrator puts an older state of the notebook back, and people continue to work there. */
async function restoredServer(lab: Lab): Promise<void> {
  const { control, random, pcs } = lab;
  if (!lab.saved) await copyEverything(lab);
  await fileOne(lab);
  for (const pc of pcs) if (random.chance(0.5)) await pc.kill();
  const before = await Promise.all(pcs.map((pc) => pc.jobs()));
  const ours = new Map(control.experiments().map((one) => [one.id, one.title]));
  await lab.restore();
  const left = new Map(control.experiments().map((one) => [one.id, one.title]));
  const isGone = (id: number | undefined): boolean => id !== undefined && ours.has(id) && left.get(id) !== ours.get(id);
  const affected = pcs.filter((_, n) =>
    [...(before[n]?.values() ?? [])].some(({ state, experiment }) => state === 'done' && isGone(experiment)),
  );
  // They get the ids of some of our experiments, or of all.
  const colleague = control.as('colleague');
  for (let n = random.below(2 * Math.max(1, ours.size - left.size)); n > 0; n--)
    lab.people.created.set(colleague.create({ title: 'their work' }), 'their work');
  for (const pc of pcs) {
    pc.start();
    pc.drop();
  }
  await Promise.all(affected.map(expectHalt));
  for (const pc of pcs) {
    const isHalted = pc.daemon?.lines.some(({ msg }) => msg === HALTED) === true;
    await pc.stop();
    if (isHalted) await recover(lab, pc);
  }
  // Journals and notebook would no longer go together.
  await copyEverything(lab);
}

async function journalTrouble(lab: Lab, what: 'lost' | 'restored'): Promise<void> {
  const pc = lab.pcs[lab.random.below(2)] as Pc;
  await fileOne(lab);
  // The note beside the journal is at most a second old.
  if (lab.random.chance(0.5) && existsSync(`${pc.site.journal}.seen`)) await pc.kill();
  else await pc.stop();
  for (const title of [...lab.people.deleted, ...lab.people.edited.values()]) lab.disputed.add(title);
  if (what === 'lost') pc.loseJournal();
  else pc.restoreJournal();
  pc.start();
  pc.drop();
  await expectHalt(pc);
  await pc.stop();
  await recover(lab, pc);
}

/** Copies that a later halt puts back. */
export async function copyEverything(lab: Lab): Promise<void> {
  await fileOne(lab);
  await lab.save();
  for (const pc of lab.pcs) await pc.backUp();
}

/** Both PCs file a run, so that the journals and the notebook are newer than their copies. */
async function fileOne({ pcs }: Lab): Promise<void> {
  for (const pc of pcs) {
    pc.start();
    pc.drop();
  }
  await Promise.all(
    pcs.map(async (pc) => {
      await pc.start().logged('ready', WITHIN_MS);
      const wanted = pc.titles.at(-1) ?? '';
      const isFiled = async (): Promise<boolean> => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        return (await pc.jobs()).get(wanted)?.state === 'done';
      };
      return until(`${wanted} is filed`, isFiled, WITHIN_MS);
    }),
  );
}

const expectHalt = (pc: Pc): Promise<unknown> | undefined => pc.daemon?.logged(HALTED, WITHIN_MS);

/** What a person does then. Runs whose experiments the server has lost are filed again, but not those that it refuses. */
async function recover({ people, disputed, withoutComments, story, random }: Lab, pc: Pc): Promise<void> {
  // An entry that the server fails to show is repaired, or known not to be ours.
  const skips = random.chance(0.5);
  if (!skips) people.unreadable.clear();
  const { status, stdout, stderr } = await pc.command('recover', '--json', ...(skips ? ['--skip-unreadable'] : []));
  expect({ status, stderr }).toMatchObject({ status: 0 });
  story.push(`recover on ${pc.name}: ${stdout.replace(/\s+/g, ' ')}`);
  const result = JSON.parse(stdout) as Readonly<Record<'gone' | 'withoutComments', readonly number[]>>;
  for (const id of result.withoutComments) withoutComments.add(id);
  const jobs = [...(await pc.jobs())];
  const lost = result.gone.filter((run) => {
    const [title] = jobs.find(([, { id }]) => id === run) ?? [''];
    // What a person deleted may be back: the server was restored to a state before that.
    return pc.titles.includes(title) && !people.deleted.has(title) && !disputed.has(title);
  });
  if (lost.length > 0) expect(await pc.command('refile', ...lost.map(String))).toMatchObject({ status: 0 });
}
