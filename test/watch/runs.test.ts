import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunKind } from '../../src/config/schema.js';
import { FileChangedError } from '../../src/errors.js';
import type { FoundFile, IdentifiedFile } from '../../src/model.js';
import { createMatcher } from '../../src/watch/match.js';
import { createRuns, type Runs } from '../../src/watch/runs.js';
import { settle } from '../../src/watch/settle.js';
import { tempFolder } from '../support/temp-folder.js';
import { found, never, sleepingClock } from './support.js';

const FOLDER: RunKind = { folder: '*' };
const PAIR: RunKind = { join: ['{stem}.csv', '{stem}.xml'] };

interface Scene extends Runs {
  readonly root: string;
  write(files: Readonly<Record<string, string>>): void;
  /** The run that a scan makes of these files. */
  run(...names: string[]): FoundFile;
}

function setUp(run: RunKind, isClaimed = (_path: string) => false): Scene {
  const root = tempFolder();
  const matcher = createMatcher({ files: ['**/*'], ignore: ['**/*.tmp'], run });
  const runs = createRuns({ root, run, matcher, signal: never, isClaimed });
  return {
    ...runs,
    root,
    write(files) {
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(root, name)), { recursive: true });
        writeFileSync(join(root, name), content);
      }
    },
    run(...names) {
      const [first, ...more] = runs.group(names.map((name) => found(join(root, name))));
      expect(more).toEqual([]);
      return first ?? expect.fail('the files form a run');
    },
  };
}

const partsOf = (run: FoundFile | string): string[] =>
  typeof run === 'string' ? [run] : (run.parts ?? []).map(({ name }) => name);

async function identified({ stat: look, identify }: Scene, run: FoundFile): Promise<IdentifiedFile> {
  const now = await look(run);
  return typeof now === 'string' ? expect.fail(now) : identify(now);
}

describe('the files of a run', () => {
  test('all matching files of a folder belong to it, whichever was found first', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/z.csv': '1', 'a/sub/b.csv': '22', 'a/c.tmp': '', 'b/x.csv': '', 'stray.csv': '' });
    const run = scene.run('a/sub/b.csv');
    expect(run).toMatchObject({ path: join(scene.root, 'a'), size: 2 });
    expect(await scene.stat(run)).toMatchObject({ path: join(scene.root, 'a'), size: 3 });
    expect(partsOf(await scene.stat(run))).toEqual(['sub/b.csv', 'z.csv']);
    expect(scene.group([found(join(scene.root, 'stray.csv'))])).toEqual([]);
  });

  test('are grouped by run', () => {
    const scene = setUp(PAIR);
    scene.write({ 'a.csv': '', 'a.xml': '', 'b.xml': '', 'sub/a.csv': '' });
    const files = ['a.csv', 'b.xml', 'a.xml', 'sub/a.csv'].map((name) => found(join(scene.root, name)));
    const runs = scene.group(files);
    expect(runs.map(({ path }) => path)).toEqual(['a.csv', 'b.csv', 'sub/a.csv'].map((name) => join(scene.root, name)));
    expect(runs.map(partsOf)).toEqual([['a.csv', 'a.xml'], ['b.xml'], ['a.csv']]);
  });

  test('do not include files of other instruments', async () => {
    const folder = setUp(FOLDER, (path) => path.endsWith('.csv'));
    folder.write({ 'a/x.csv': '', 'a/y.txt': '' });
    expect(partsOf(await folder.stat(folder.run('a/y.txt')))).toEqual(['y.txt']);
    const pair = setUp(PAIR, (path) => path.endsWith('.xml'));
    pair.write({ 'a.csv': '', 'a.xml': '' });
    expect(await pair.stat(pair.run('a.csv'))).toMatchObject({ missing: join(pair.root, 'a.xml') });
  });

  test('a run without any files is gone', async () => {
    for (const [kind, file] of [
      [FOLDER, 'a/x.csv'],
      [PAIR, 'a.csv'],
    ] as const) {
      const scene = setUp(kind);
      scene.write({ [file]: '' });
      const run = scene.run(file);
      rmSync(join(scene.root, file));
      expect(await scene.stat(run)).toBe('absent');
      expect(await settle(run, {}, { clock: sleepingClock(), signal: never, stat: scene.stat })).toBeUndefined();
    }
  });
});

describe('a run is complete', () => {
  test('when nothing in its folder was changed or added for the quiet period', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/x.csv': '1' });
    const clock = sleepingClock((elapsed) => {
      if (elapsed === 5000) scene.write({ 'a/late.csv': '2' });
      if (elapsed === 10_000) appendFileSync(join(scene.root, 'a/x.csv'), 'more');
    });
    const settled = await settle(scene.run('a/x.csv'), { quiet: 5000 }, { clock, signal: never, stat: scene.stat });
    expect(settled).toMatchObject({ size: 6 });
    expect(clock.monotonic()).toBe(15_000);
  });

  test('after another quiet period if a file was removed from its folder', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/x.csv': '1', 'a/z.csv': '2' });
    const clock = sleepingClock((elapsed) => {
      if (elapsed === 5000) rmSync(join(scene.root, 'a/z.csv'));
    });
    const run = scene.run('a/x.csv', 'a/z.csv');
    const settled = await settle(run, { quiet: 5000 }, { clock, signal: never, stat: scene.stat });
    expect(partsOf(settled ?? '')).toEqual(['x.csv']);
    expect(clock.monotonic()).toBe(10_000);
  });

  test('when the last joined file exists, which is reported as missing, and has settled', async () => {
    const scene = setUp(PAIR);
    scene.write({ 'a.csv': '1' });
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 3_600_000 && !existsSync(join(scene.root, 'a.xml'))) scene.write({ 'a.xml': '<x/>' });
    });
    const reported: unknown[] = [];
    const settled = await settle(
      scene.run('a.csv'),
      { quiet: 5000 },
      { clock, signal: never, stat: scene.stat, progress: ({ missing }) => reported.push(missing) },
    );
    expect(partsOf(settled ?? '')).toEqual(['a.csv', 'a.xml']);
    expect(clock.monotonic()).toBeGreaterThan(3_605_000);
    const waits = reported.filter((missing) => missing !== undefined);
    expect(waits.at(-1)).toMatchObject({ kind: 'file', name: join(scene.root, 'a.xml') });
    expect((waits.at(-1) as { waitedMs: number }).waitedMs).toBeGreaterThan(3_500_000);
  });

  test('when its done-file exists, beside the folder or in it', async () => {
    for (const [doneFile, name] of [
      ['{name}.done', 'a.done'],
      ['{name}/RTAComplete.txt', 'a/RTAComplete.txt'],
    ] as const) {
      const scene = setUp(FOLDER);
      scene.write({ 'a/x.csv': '1' });
      const clock = sleepingClock((elapsed) => {
        if (elapsed > 60_000) scene.write({ [name]: '' });
      });
      const settled = await settle(scene.run('a/x.csv'), { doneFile }, { clock, signal: never, stat: scene.stat });
      expect(settled).toBeDefined();
      expect(clock.monotonic()).toBeGreaterThan(60_000);
    }
  });
});

describe('the fingerprint of a run', () => {
  test('covers the hashes and names of its files as sha256sum lists them', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/x.csv': '1', 'a/B.csv': '2', 'a/sub/ä.csv': '3' });
    const { sha256 } = await identified(scene, scene.run('a/x.csv'));
    const listing = 'find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum';
    expect(execFileSync('sh', ['-c', listing], { cwd: join(scene.root, 'a') }).toString()).toContain(sha256);
  });

  test('does not cover the name of the folder, the stem, or times', async () => {
    const folder = setUp(FOLDER);
    folder.write({ 'a/x.csv': '1', 'a/y.csv': '2' });
    const before = await identified(folder, folder.run('a/x.csv'));
    cpSync(join(folder.root, 'a'), join(folder.root, 'b'), { recursive: true });
    utimesSync(join(folder.root, 'b/x.csv'), 1000, 1000);
    expect((await identified(folder, folder.run('b/y.csv'))).sha256).toBe(before.sha256);
    const pair = setUp(PAIR);
    pair.write({ 'a.csv': '1', 'a.xml': '2', 'b.csv': '1', 'b.xml': '2', 'c.csv': '2', 'c.xml': '1' });
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((stem) => identified(pair, pair.run(`${stem}.csv`))));
    expect(b?.sha256).toBe(a?.sha256);
    expect(c?.sha256).not.toBe(a?.sha256);
  });

  test('changes if a file is added, renamed or changed', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/x.csv': '1' });
    const seen = new Set<string>();
    const note = async () => seen.add((await identified(scene, scene.run('a/x.csv'))).sha256);
    await note();
    scene.write({ 'a/y.csv': '2' });
    await note();
    renameSync(join(scene.root, 'a/y.csv'), join(scene.root, 'a/z.csv'));
    await note();
    scene.write({ 'a/z.csv': '3' });
    await note();
    expect(seen.size).toBe(4);
  });

  test('cannot be forged by a file name', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/x': '1', 'a/y': '2' });
    const two = await identified(scene, scene.run('a/x'));
    const [x, y] = two.parts ?? [];
    scene.write({ [`b/x\n${y?.sha256}  y`]: '1' });
    const one = await identified(scene, scene.run(`b/x\n${y?.sha256}  y`));
    expect(one.parts?.[0]?.sha256).toBe(x?.sha256);
    expect(one.sha256).not.toBe(two.sha256);
  });

  test('is not computed for a run that changes meanwhile', async () => {
    const scene = setUp(FOLDER);
    scene.write({ 'a/x.csv': '1' });
    const run = await scene.stat(scene.run('a/x.csv'));
    if (typeof run === 'string') expect.fail(run);
    scene.write({ 'a/late.csv': '2' });
    await expect(scene.identify(run)).rejects.toThrow(FileChangedError);
  });
});
