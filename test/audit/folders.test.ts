import { expect, test } from 'vitest';
import { compareFolder, type FolderDeps } from '../../src/audit/command.js';
import type { Finding, SafeFile } from '../../src/audit/report.js';
import { FileChangedError, FileError } from '../../src/errors.js';
import type { KnownRun } from '../../src/journal/reader.js';
import type { FoundFile, IdentifiedFile } from '../../src/model.js';
import { standInFor } from '../../src/watch/identify.js';

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

type Changes = Partial<Omit<FolderDeps, 'folder'>> &
  Partial<FolderDeps['folder']> & {
    readonly verified?: ReadonlySet<number>;
    readonly proved?: ReadonlySet<number>;
  };

/** A folder with these files; the hash of each is its path. By default every run is verified. */
async function compare(paths: readonly string[], changes: Changes) {
  const findings: Finding[] = [];
  const safe: SafeFile[] = [];
  const verified = new Set(changes.verified ?? [0, 1, 2, 3, 4, 5, 6]);
  const folder: FolderDeps['folder'] = {
    path: '/data',
    async *list() {
      yield paths.map(found);
      return PRESENT;
    },
    group: (files) => [...files],
    stat: async (run) => run,
    isOthers: () => false,
    identify: async (file) => identified(file, file.path),
    ...changes,
  };
  const deps: FolderDeps = {
    instrument: 'balance',
    copies: false,
    ignoresChanges: false,
    journal: { atPath: async () => undefined, ofContent: async () => undefined },
    onProgress: () => undefined,
    ...changes,
    folder,
  };
  const counts = await compareFolder(deps, {
    findings,
    safe,
    verified,
    proved: new Set(changes.proved ?? verified),
  });
  const kinds = findings.map(({ kind, path }) => `${kind} ${path}`);
  return { counts, kinds, safe: safe.map(({ path }) => path) };
}

const PRESENT = { state: 'present', files: 1, empty: false, unread: [], links: [] } as const;

test('only files of done and verified runs are safe; files of other runs are counted', async () => {
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
  const result = await compare(names, {
    journal: {
      atPath: async () => undefined,
      ofContent: async ({ sha256 }) => {
        const name = sha256 as keyof typeof states;
        return run(names.indexOf(name), name, { state: states[name] });
      },
    },
    verified: new Set([0, 1, 2, 3, 4, 5]),
  });
  expect(result).toEqual({
    counts: { files: 7, proved: 1, incomplete: 0, unproved: 1, onTheirWay: 2, resting: 3, growing: 0, notTaken: 0 },
    kinds: [],
    safe: ['a'],
  });
});

test('a file is matched by its content, not by a path that was filed with other content', async () => {
  const atPath: FolderDeps['journal']['atPath'] = async (_, { path }) => ({
    verdict: 'taken',
    run: run(1, path === 'same' ? 'same' : 'other bytes'),
    isUntouched: false,
    isTouched: false,
  });
  const result = await compare(['same', 'rewritten'], {
    journal: { atPath, ofContent: async () => undefined },
  });
  expect(result).toMatchObject({ kinds: ['changed rewritten'], safe: ['same'] });
  const ignored = await compare(['rewritten'], {
    journal: { atPath, ofContent: async () => undefined },
    ignoresChanges: true,
  });
  expect(ignored).toMatchObject({ kinds: ['skipped rewritten'], safe: [] });
});

test('a file that must not be read, or is too large, belongs to the run that was quarantined for it', async () => {
  const standIn = standInFor(found('large'));
  const atPath: FolderDeps['journal']['atPath'] = async (_, { path }) => ({
    verdict: 'taken',
    run: run(1, path === 'large' ? standIn : 'other bytes', { state: 'quarantined' }),
    isUntouched: true,
    isTouched: false,
  });
  const identify = async (): Promise<never> => {
    throw new FileError('the file is too large');
  };
  const result = await compare(['large', 'other'], { journal: { atPath, ofContent: async () => undefined }, identify });
  expect(result).toMatchObject({ counts: { resting: 1, notTaken: 1 }, kinds: ['unread other'], safe: [] });
});

test('a file is safe only if the notebook has all that it contains', async () => {
  const journal = { atPath: async () => undefined, ofContent: async () => run(0, 'a', { state: 'done' }) };
  const partly = await compare(['a'], { journal, proved: new Set() });
  expect(partly).toMatchObject({ counts: { files: 1, proved: 0, incomplete: 1 }, safe: [] });
  expect(await compare(['a'], { journal })).toMatchObject({ counts: { proved: 1, incomplete: 0 }, safe: ['a'] });
  // The file itself is in the notebook.
  const attached = { journal, verified: new Set<number>(), proved: new Set([0]) };
  expect(await compare(['a'], attached)).toMatchObject({ counts: { proved: 1 }, safe: ['a'] });
});

test('a run of several files is verified as a whole, even if the listing splits it, and all its files are then safe', async () => {
  const part = (path: string) => ({ ...found(path), name: path, role: path });
  const whole = { ...found('s.D'), parts: [part('s.D/a'), part('s.D/b')] };
  const deps: Changes = {
    async *list() {
      yield [found('s.D/a')];
      yield [found('s.D/b')];
      return PRESENT;
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
  expect(await compare([], deps)).toMatchObject({
    counts: { files: 2, proved: 2 },
    kinds: [],
    safe: ['s.D/a', 's.D/b'],
  });
  const half = await compare([], { ...deps, stat: async () => ({ ...whole, missing: 's.D/b' }) });
  expect(half).toMatchObject({ kinds: ['never taken s.D'], safe: [] });
  const known = { verdict: 'taken', run: run(1, 'with a third'), isUntouched: true, isTouched: false } as const;
  const partial = { atPath: async () => known, ofContent: async () => undefined };
  expect(await compare([], { ...deps, journal: partial })).toMatchObject({
    kinds: ['thinned out s.D'],
    safe: [],
  });
});

test('if copies are separate runs, a copy that was not filed is not safe', async () => {
  const ofContent: FolderDeps['journal']['ofContent'] = async ({ sha256, copy }) =>
    copy === 'first' ? run(1, sha256) : undefined;
  const journal = { atPath: async () => undefined, ofContent };
  const result = await compare(['first', 'second'], {
    copies: true,
    journal,
    identify: async (file) => identified(file, 'equal'),
  });
  expect(result).toMatchObject({ kinds: ['never taken second'], safe: ['first'] });
});

test('skipped and backlog files are reported without being read; unreadable files are reported too', async () => {
  const verdicts = { old: 'asked', unwanted: 'skipped' } as const;
  const result = await compare(['old', 'unwanted', 'busy'], {
    journal: {
      atPath: async (_, { path }) =>
        path in verdicts
          ? { verdict: verdicts[path as keyof typeof verdicts], run: undefined, isUntouched: true, isTouched: false }
          : undefined,
      ofContent: async () => undefined,
    },
    identify: async ({ path }) => {
      throw new FileChangedError(`${path} changes`);
    },
  });
  expect(result).toMatchObject({ kinds: ['asked old', 'skipped unwanted', 'unread busy'], safe: [] });
});

test('files of another instrument are left out, and a missing folder is reported', async () => {
  const others = await compare(['theirs'], { isOthers: (path) => path === 'theirs' });
  expect(others).toMatchObject({ counts: { files: 0 }, kinds: [] });
  const gone = await compare([], {
    // biome-ignore lint/correctness/useYield: there is nothing to list.
    async *list() {
      return { state: 'missing', reason: 'it does not exist' };
    },
  });
  expect(gone.kinds).toEqual(['folder /data']);
});

test('a growing file that is filed counts as such, and is never safe to delete', async () => {
  const followed = { lines: 3, offset: 30 } as never;
  const journal = {
    atPath: async () => undefined,
    ofContent: async () => undefined,
    followedAt: async (_: string, path: string) => (path === 'a' ? followed : undefined),
  };
  expect(await compare(['a', 'b'], { journal, isGrowing: true })).toMatchObject({
    counts: { files: 2, growing: 1, notTaken: 1 },
    safe: [],
  });
});
