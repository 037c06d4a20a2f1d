import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Source, setUp } from '../daemon/disposal-scene.js';
import { Died, faults, resetFaults } from '../support/disk-faults.js';
import { tempFolder } from '../support/temp-folder.js';

/** On another file system than the temporary folder, if there is one. */
function otherFileSystem(): string | undefined {
  try {
    const folder = mkdtempSync('/dev/shm/labfeed-');
    onTestFinished(() => rmSync(folder, { recursive: true }));
    return statSync(folder).dev === statSync(tempFolder()).dev ? undefined : folder;
  } catch {
    return undefined;
  }
}

const FILES = { 'r/a.csv': 'one', 'r/b.csv': 'two' };
const NAMES = Object.keys(FILES);

const noLinks = (call: string): string | undefined => (call === 'link' ? 'EPERM' : undefined);

interface Scenario {
  readonly files?: Readonly<Record<string, string>>;
  readonly source?: Source;
  readonly isElsewhere?: boolean;
  readonly fail?: typeof faults.fail;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a move': {},
  'a move of two files': { files: FILES },
  'a move to another file system': { isElsewhere: true },
  'a move of two files to another file system': { files: FILES, isElsewhere: true },
  'a move on a file system without links': { fail: noLinks },
  'a deletion': { source: 'delete' },
  'a deletion of two files': { source: 'delete', files: FILES },
};

/** Begins the scenario and dies after so many steps. Undefined if it was complete before. */
async function dieAfter(steps: number, { fail, isElsewhere, ...options }: Scenario) {
  const target = isElsewhere ? join(otherFileSystem() ?? tempFolder(), 'done') : undefined;
  const scene = await setUp({ ...options, ...(target !== undefined && { target }) });
  faults.stepsLeft = steps;
  if (fail) faults.fail = fail;
  const hasDied = await scene.act().then(
    () => faults.stepsLeft <= 0,
    (error: unknown) => {
      if (!(error instanceof Died)) throw error;
      return true;
    },
  );
  resetFaults();
  if (fail) faults.fail = fail;
  return { ...scene, hasDied };
}

const isPrivate = (name: string): boolean => name.includes('.labfeed-');

describe.each(Object.entries(SCENARIOS))('%s that is killed between any two steps', (_, scenario) => {
  const names = Object.keys(scenario.files ?? { 'a.csv': '' });
  const isDeletion = scenario.source === 'delete';

  async function atEachStep(check: (scene: Awaited<ReturnType<typeof dieAfter>>, step: number) => Promise<void>) {
    for (let step = 0; ; step++) {
      const scene = await dieAfter(step, scenario);
      await check(scene, step);
      if (!scene.hasDied) return expect(step).toBeGreaterThan(8);
    }
  }

  test('hides no file after the restart, and is then completed as a whole, once', async () => {
    await atEachStep(async (scene, step) => {
      await scene.restart();
      expect(scene.inData().filter(isPrivate), `step ${step}`).toEqual([]);
      scene.wait();
      await scene.act();
      expect(await scene.outcomes(), `step ${step}`).toEqual(names.map(() => (isDeletion ? 'deleted' : 'moved')));
      expect(scene.inData(), `step ${step}`).toEqual([]);
      expect(scene.inDone(), `step ${step}`).toEqual(isDeletion ? [] : names);
    });
  });

  test('leaves what an instrument writes to the path meanwhile alone', async () => {
    await atEachStep(async (scene, step) => {
      const [name = ''] = names;
      // As programs do that replace a file.
      rmSync(join(scene.data, name), { force: true });
      const isLost =
        !isDeletion && ![...scene.inData(), ...scene.inDone()].some((one) => isPrivate(one) || one === name);
      writeFileSync(join(scene.data, name), 'the next run');
      for (let n = 0; n < 3; n++) {
        await scene.act();
        scene.wait();
      }
      expect(scene.read(`data/${name}`), `step ${step}`).toBe('the next run');
      expect([...scene.inData(), ...scene.inDone()].filter(isPrivate)).toEqual([]);
      // The filed file is elsewhere, unless it was replaced before it was renamed.
      expect(isLost ? [] : await scene.outcomes()).not.toContain(undefined);
    });
  });

  test('leaves files where they are if the configuration now says so', async () => {
    await atEachStep(async (scene, step) => {
      scene.state.source = 'keep';
      await scene.act();
      scene.wait();
      await scene.act();
      const kept = scene.inData();
      expect(kept.filter(isPrivate), `step ${step}`).toEqual([]);
      if (!isDeletion) expect(new Set([...kept, ...scene.inDone()]), `step ${step}`).toEqual(new Set(names));
      const outcomes = await scene.outcomes();
      // What was decided and done before the crash is known; the rest is kept.
      expect(outcomes.filter((outcome) => outcome === 'kept')).toHaveLength(kept.length);
      expect(outcomes).not.toContain(undefined);
    });
  });

  if (isDeletion)
    test('moves what is left if the configuration now says so', async () => {
      await atEachStep(async (scene, step) => {
        scene.state.source = { move: scene.done };
        await scene.act();
        scene.wait();
        await scene.act();
        expect(scene.inData(), `step ${step}`).toEqual([]);
        const outcomes = await scene.outcomes();
        const moved = names.filter((_, index) => outcomes[index] === 'moved');
        expect(scene.inDone(), `step ${step}`).toEqual(moved);
        expect(new Set([...outcomes, 'moved', 'deleted']).size).toBe(2);
      });
    });
});

test('no file of several is moved before all are renamed and hashed', async () => {
  const seen: string[] = [];
  const scene = await setUp({ files: FILES });
  faults.meanwhile = (call, path) => {
    if (call === 'link' && /-\d$/.test(path))
      seen.push(`${call} ${scene.inData().filter(isPrivate).length} ${path.slice(-2)}`);
  };
  await scene.act();
  expect(seen).toEqual(['link 2 -1', 'link 1 -2']);
  expect(scene.inDone()).toEqual(NAMES);
});
