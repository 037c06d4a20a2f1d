import { expect, test } from 'vitest';
import type { Finding, SafeFile } from '../../src/audit/findings.js';
import { examineFolder, type FolderDeps } from '../../src/audit/folder.js';
import { FileChangedError } from '../../src/errors.js';
import type { KnownRun } from '../../src/journal/reader.js';
import type { FoundFile, IdentifiedFile } from '../../src/model.js';

const found = (path: string): FoundFile => ({ path, location: path, size: 1, mtimeNs: 1n, inode: 1n });

const run = (id: number, sha256: string, changes: Partial<KnownRun> = {}): KnownRun => ({
  id,
  sha256,
  state: 'done',
  experiment: 100 + id,
  ...changes,
});

const identified = ({ parts: _, ...file }: FoundFile, sha256: string): IdentifiedFile => ({
  ...file,
  sha256,
});

/** A folder of these files, each with its own name as its hash. */
async function examine(paths: readonly string[], changes: Partial<FolderDeps>) {
  const findings: Finding[] = [];
  const safe: SafeFile[] = [];
  const counts = await examineFolder({
    instrument: 'balance',
    folder: '/data',
    copies: false,
    ignoresChanges: false,
    journal: { atPath: async () => undefined, ofContent: async () => undefined },
    async *list() {
      yield paths.map(found);
      return { state: 'present', unread: [] };
    },
    group: (files) => [...files],
    stat: async (run) => run,
    isOthers: () => false,
    identify: async (file) => identified(file, file.path),
    isProved: () => true,
    tell: (finding) => void findings.push(finding),
    proved: (file) => void safe.push(file),
    progress: () => undefined,
    ...changes,
  });
  const kinds = findings.map(({ kind, path }) => `${kind} ${path}`);
  return { counts, kinds, safe: safe.map(({ path }) => path) };
}

test('of files whose content is filed, those are safe whose run the notebook proved, and that rest nowhere', async () => {
  const states = {
    a: 'done',
    b: 'sending',
    c: 'queued',
    d: 'quarantined',
    e: 'held',
    f: 'ignored',
    g: 'done',
  } as const;
  const names = Object.keys(states) as (keyof typeof states)[];
  const told = await examine(names, {
    journal: {
      atPath: async () => undefined,
      ofContent: async ({ sha256 }) => {
        const name = sha256 as keyof typeof states;
        return run(names.indexOf(name), name, { state: states[name] });
      },
    },
    isProved: (id) => id !== names.indexOf('g'),
  });
  expect(told).toEqual({
    counts: { files: 7, proved: 1, unproved: 1, onTheirWay: 2, resting: 3, notTaken: 0 },
    kinds: [],
    safe: ['a'],
  });
});

test('a file is known by its content, not by a path that was filed with other bytes', async () => {
  const atPath: FolderDeps['journal']['atPath'] = async (_, { path }) => ({
    verdict: 'taken',
    run: run(1, path === 'same' ? 'same' : 'other bytes'),
    isUntouched: false,
  });
  const told = await examine(['same', 'rewritten'], {
    journal: { atPath, ofContent: async () => undefined },
  });
  expect(told).toMatchObject({ kinds: ['changed rewritten'], safe: ['same'] });
  const ignored = await examine(['rewritten'], {
    journal: { atPath, ofContent: async () => undefined },
    ignoresChanges: true,
  });
  expect(ignored).toMatchObject({ kinds: ['skipped rewritten'], safe: [] });
});

test('a run of several files is proved as a whole, however the listing cuts it, and each of its files is then safe', async () => {
  const part = (path: string) => ({ ...found(path), name: path, role: path });
  const whole = { ...found('s.D'), parts: [part('s.D/a'), part('s.D/b')] };
  const deps: Partial<FolderDeps> = {
    async *list() {
      yield [found('s.D/a')];
      yield [found('s.D/b')];
      return { state: 'present', unread: [] };
    },
    group: (files) => [{ ...found('s.D'), parts: files.map(({ path }) => part(path)) }],
    stat: async () => whole,
    identify: async (file) => ({
      ...identified(file, 'both'),
      parts: whole.parts.map((one) => ({ ...one, sha256: one.path })),
    }),
    journal: {
      atPath: async () => undefined,
      ofContent: async ({ sha256 }) => (sha256 === 'both' ? run(1, sha256) : undefined),
    },
  };
  expect(await examine([], deps)).toMatchObject({
    counts: { files: 2, proved: 2 },
    kinds: [],
    safe: ['s.D/a', 's.D/b'],
  });
  const half = await examine([], { ...deps, stat: async () => ({ ...whole, missing: 's.D/b' }) });
  expect(half).toMatchObject({ kinds: ['never taken s.D'], safe: [] });
  const known = { verdict: 'taken', run: run(1, 'with a third'), isUntouched: true } as const;
  const thinned = { atPath: async () => known, ofContent: async () => undefined };
  expect(await examine([], { ...deps, journal: thinned })).toMatchObject({
    kinds: ['thinned out s.D'],
    safe: [],
  });
});

test('where equal files are runs of their own, a copy that was not filed is not safe', async () => {
  const ofContent: FolderDeps['journal']['ofContent'] = async ({ sha256, copy }) =>
    copy === 'first' ? run(1, sha256) : undefined;
  const journal = { atPath: async () => undefined, ofContent };
  const told = await examine(['first', 'second'], {
    copies: true,
    journal,
    identify: async (file) => identified(file, 'equal'),
  });
  expect(told).toMatchObject({ kinds: ['never taken second'], safe: ['first'] });
});

test('files that were passed over or asked about are told without being read; what cannot be read is told too', async () => {
  const verdicts = { old: 'asked', unwanted: 'skipped' } as const;
  const told = await examine(['old', 'unwanted', 'busy'], {
    journal: {
      atPath: async (_, { path }) =>
        path in verdicts
          ? { verdict: verdicts[path as keyof typeof verdicts], run: undefined, isUntouched: true }
          : undefined,
      ofContent: async () => undefined,
    },
    identify: async ({ path }) => {
      throw new FileChangedError(`${path} changes`);
    },
  });
  expect(told).toMatchObject({ kinds: ['asked old', 'skipped unwanted', 'unread busy'], safe: [] });
});

test('what belongs to another instrument is left to it, and a folder that is gone is told', async () => {
  const others = await examine(['theirs'], { isOthers: (path) => path === 'theirs' });
  expect(others).toMatchObject({ counts: { files: 0 }, kinds: [] });
  const gone = await examine([], {
    // biome-ignore lint/correctness/useYield: there is nothing to list.
    async *list() {
      return { state: 'missing', reason: 'it is not there' };
    },
  });
  expect(gone.kinds).toEqual(['folder /data']);
});
