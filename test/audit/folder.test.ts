import { expect, test } from 'vitest';
import type { Finding, SafeFile } from '../../src/audit/findings.js';
import { examineFolder, type FolderDeps } from '../../src/audit/folder.js';
import { FileChangedError } from '../../src/errors.js';
import type { KnownRun } from '../../src/journal/evidence.js';
import type { FoundFile } from '../../src/model.js';

const found = (path: string): FoundFile => ({ path, location: path, size: 1, mtimeNs: 1n, inode: 1n });

const run = (id: number, sha256: string, changes: Partial<KnownRun> = {}): KnownRun => ({
  id,
  sha256,
  state: 'done',
  experiment: 100 + id,
  ...changes,
});

/** A folder of these files, each with its own name as its hash. */
async function examine(paths: readonly string[], changes: Partial<FolderDeps>) {
  const findings: Finding[] = [];
  const safe: SafeFile[] = [];
  const counts = await examineFolder({
    instrument: 'balance',
    folder: '/data',
    copies: false,
    journal: { atPath: () => undefined, ofContent: () => undefined },
    async *list() {
      yield paths.map(found);
      return { state: 'present', unread: [] };
    },
    isOthers: () => false,
    hash: async ({ path }) => path,
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
      atPath: () => undefined,
      ofContent: ({ sha256 }) => {
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
  const atPath: FolderDeps['journal']['atPath'] = (_, path) => ({
    verdict: 'taken',
    run: run(1, path === 'same' ? 'same' : 'other bytes'),
  });
  const told = await examine(['same', 'rewritten'], { journal: { atPath, ofContent: () => undefined } });
  expect(told).toMatchObject({ kinds: ['changed rewritten'], safe: ['same'] });
});

test('where equal files are runs of their own, a copy that was not filed is not safe', async () => {
  const ofContent: FolderDeps['journal']['ofContent'] = ({ sha256, copy }) =>
    copy === 'first' ? run(1, sha256) : undefined;
  const journal = { atPath: () => undefined, ofContent };
  const told = await examine(['first', 'second'], { copies: true, journal, hash: async () => 'equal' });
  expect(told).toMatchObject({ kinds: ['never taken second'], safe: ['first'] });
});

test('files that were passed over or asked about are told without being read; what cannot be read is told too', async () => {
  const verdicts = { old: 'asked', unwanted: 'skipped' } as const;
  const told = await examine(['old', 'unwanted', 'busy'], {
    journal: {
      atPath: (_, path) =>
        path in verdicts ? { verdict: verdicts[path as keyof typeof verdicts], run: undefined } : undefined,
      ofContent: () => undefined,
    },
    hash: async ({ path }) => {
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
