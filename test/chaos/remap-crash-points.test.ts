import { expect, test } from 'vitest';
import { type Scene, setUp } from '../daemon/scene.js';
import { AFTER, asAfter, asBefore, BEFORE, fileBefore, filed, readAs, retry, shown } from '../processes/remapping.js';
import { type CrashPoint, startCrashing, startDaemon } from '../support/daemon-process.js';

/** From one comment to two: the first is revised, the second posted. */
const GROWING: readonly CrashPoint[] = [
  { when: 'before', kind: 'described' },
  { when: 'after', kind: 'described' },
  { when: 'before', kind: 'commentRevised' },
  { when: 'after', kind: 'commentRevised' },
  { when: 'after', kind: 'commentIntended' },
  { when: 'before', kind: 'commented' },
  { when: 'after', kind: 'commented' },
  { when: 'before', kind: 'finished' },
  { when: 'after', kind: 'finished' },
];

/** From two comments to one: the second is deleted. */
const SHRINKING: readonly CrashPoint[] = [
  { when: 'before', kind: 'commentDropped' },
  { when: 'after', kind: 'commentDropped' },
];

/** Longer than the grace period of eLabFTW. */
const GRACE_MS = 200_000;

async function remapThroughCrash(scene: Scene, run: number, point: CrashPoint): Promise<void> {
  expect((await retry(scene, String(run), '--remap')).status).toBe(0);
  const dying = startCrashing(scene.site.config, run, point);
  await dying.ended;
  if (dying.child.signalCode !== 'SIGKILL')
    throw new Error(`the crash ${point.when} ${point.kind} was not reached:\n${dying.output()}`);
  const daemon = startDaemon(scene.site.config);
  // The last comment and the end of the run are stored together.
  const isOver = point.when === 'after' && (point.kind === 'finished' || point.kind === 'commented');
  await (isOver ? daemon.logged('ready') : filed(daemon, run, GRACE_MS));
  expect(await daemon.stop()).toBe(0);
}

test.each(['v2', 'elabftw'] as const)(
  'killed at any step of a remap, the daemon continues there after a restart (%s)',
  async (dialect) => {
    const scene = await setUp(dialect);
    await fileBefore(scene, GROWING.length, dialect);
    readAs(scene, AFTER);
    for (const [index, point] of GROWING.entries()) await remapThroughCrash(scene, index + 1, point);
    const all = Array.from(GROWING, (_, index) => `w${index}`);
    expect(shown(scene)).toEqual(all.map(asAfter));
    readAs(scene, BEFORE);
    for (const [index, point] of SHRINKING.entries()) await remapThroughCrash(scene, index + 1, point);
    // Files that arrive together are numbered in arbitrary order.
    const titles = shown(scene).map(({ title }) => title);
    const back = all.filter((stem) => titles.includes(asBefore(stem).title));
    expect(back).toHaveLength(SHRINKING.length);
    const expected = all.map((stem) => (back.includes(stem) ? asBefore(stem) : asAfter(stem)));
    expect(shown(scene)).toEqual(expected);
  },
);
