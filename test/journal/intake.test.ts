import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { type FoundFile, filesOf } from '../../src/model.js';
import type { NewRun, RunChange } from '../../src/outbox.js';
import { knows, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';
import { openTestJournal } from '../support/test-journal.js';
import { found } from '../watch/support.js';

async function journalAt(path = join(tempFolder(), 'state', 'journal.db')): Promise<Journal> {
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

const fileAt = (path: string, mtimeNs = 5n): FoundFile => ({
  path,
  location: path,
  size: 1,
  mtimeNs,
  inode: 9n,
});

test('only files that were taken and have the same size, time and inode are known', async () => {
  const journal = await journalAt();
  const run = newRun('a');
  await take(journal, run, someDraft('A'));
  expect(await journal.intake.unknown('balance', [run.file])).toEqual([]);
  for (const change of [{ size: 2 }, { mtimeNs: run.file.mtimeNs + 1n }, { inode: 1n }, { path: '/data/b' }]) {
    expect(await journal.intake.unknown('balance', [{ ...run.file, ...change }])).toHaveLength(1);
  }
  expect(await journal.intake.unknown('other', [run.file])).toHaveLength(1);
});

/** Enough for the lookup of a whole batch. */
const BATCH = Array.from({ length: 60 }, (_, n) => ({ ...fileAt(`/data/${100 + n}.csv`), ctimeNs: 7n }));

async function withTakenBatch() {
  const scene = await openTestJournal();
  for (const file of BATCH)
    scene.journal.intake.remember('balance', file, { sha256: sha256(file.path), copy: '', isErased: false });
  const unknown = async (files: readonly FoundFile[], isRechecked?: (isTouched: boolean) => boolean) =>
    (await scene.journal.intake.unknown('balance', files, isRechecked)).map(({ path }) => path);
  return { ...scene, unknown };
}

test('in a batch of known files, those that are new or have changed are found', async () => {
  const { unknown } = await withTakenBatch();
  expect(await unknown(BATCH)).toEqual([]);
  const changes = [{ size: 2 }, { mtimeNs: 6n }, { inode: 1n }, { path: '/data/100.csw' }, { ctimeNs: 8n }];
  const changed = BATCH.map((file, n) => ({ ...file, ...changes[n] }));
  expect(await unknown(changed.toReversed())).toEqual(
    changed
      .slice(0, 5)
      .reverse()
      .map(({ path }) => path),
  );
  expect(await unknown(BATCH, () => true)).toHaveLength(BATCH.length);
});

test('one changed file is found in a batch, in each attribute', async () => {
  const { unknown } = await withTakenBatch();
  for (const change of [{ size: 2 }, { mtimeNs: 6n }, { inode: 1n }, { ctimeNs: 8n }])
    expect(await unknown(BATCH.map((file, n) => (n === 30 ? { ...file, ...change } : file)))).toEqual([
      '/data/130.csv',
    ]);
});

test('skipped files of a batch are not hashed again', async () => {
  const { journal, unknown } = await withTakenBatch();
  const skipped = BATCH.map((file) => ({ ...file, path: file.path.replace('/data', '/old') }));
  await journal.intake.skip('balance', skipped);
  expect(await unknown(skipped, () => true)).toEqual([]);
  const mixed = [...BATCH, ...skipped];
  expect(await unknown(mixed, () => true)).toEqual(BATCH.map(({ path }) => path));
});

test('a batch is found among many more files that are gone', async () => {
  const { journal, unknown } = await withTakenBatch();
  const gone = Array.from({ length: 500 }, (_, n) => fileAt(`/data/100.csv.${n}`));
  await journal.intake.skip('balance', gone);
  expect(await unknown([...BATCH, fileAt('/data/new.csv')])).toEqual(['/data/new.csv']);
});

test('a held backlog is decided by the configuration later', async () => {
  const journal = await journalAt();
  const files = [fileAt('/data/1', 1n), fileAt('/data/2', BigInt(Date.UTC(2026, 5, 1)) * 1_000_000n)];
  await journal.intake.holdBacklog('balance', files);
  await journal.intake.endFirstScan('balance');
  expect(await journal.intake.firstScanAt('balance')).toBeDefined();
  expect(await journal.intake.unknown('balance', files)).toEqual([]);
  expect(await journal.intake.decideBacklog('balance', { since: '2026-01-01' })).toEqual({
    files: 2,
    toFile: 1,
  });
  expect((await journal.intake.unknown('balance', files)).map(({ path }) => path)).toEqual(['/data/2']);
  expect(await journal.intake.decideBacklog('balance', 'ingest')).toEqual({ files: 0, toFile: 0 });
});

const FILES = [fileAt('/data/1', 1n), fileAt('/data/2', BigInt(Date.UTC(2026, 5, 1)) * 1_000_000n)];

async function withHeldBacklog() {
  const scene = await openTestJournal();
  await scene.journal.intake.holdBacklog('balance', FILES);
  await scene.journal.intake.endFirstScan('balance');
  const unknown = async () => (await scene.journal.intake.unknown('balance', FILES)).map(({ path }) => path);
  return { ...scene, unknown };
}

for (const { existing, takes, text } of [
  {
    existing: 'ingest',
    takes: ['/data/1', '/data/2'],
    text: /^balance: 2 files of the backlog will be filed/,
  },
  {
    existing: 'skip',
    takes: [],
    text: /^balance: 2 files of the backlog skipped; to undo this: labfeed backfill balance --undo$/,
  },
  {
    existing: { since: '2026-01-01' },
    takes: ['/data/2'],
    text: /^balance: 1 file of the backlog will be filed.*; 1 file of the backlog skipped; to undo this/,
  },
] as const) {
  test(`a backlog decision is final (${JSON.stringify(existing)})`, async () => {
    const { ask, unknown, rows } = await withHeldBacklog();
    expect(await unknown()).toEqual([]);
    expect(await ask({ kind: 'backfill', instrument: 'balance', existing })).toEqual({
      done: true,
      text: expect.stringMatching(text),
      rescan: 'balance',
    });
    expect(await unknown()).toEqual(takes);
    expect(rows('SELECT backlog FROM instruments')).toEqual([{ backlog: 0 }]);
    expect(await ask({ kind: 'backfill', instrument: 'balance', existing })).toEqual({
      done: false,
      text: 'balance has no backlog that needs a decision',
    });
  });
}

test('what a person skipped needs a decision again after an undo, but not what the configuration skipped', async () => {
  const { ask, unknown, rows, journal } = await withHeldBacklog();
  const undo = { kind: 'backfill', instrument: 'balance', existing: 'undo' } as const;
  expect(await ask(undo)).toMatchObject({
    done: false,
    text: expect.stringContaining('no file of balance was skipped'),
  });
  await ask({ kind: 'backfill', instrument: 'balance', existing: { since: '2026-01-01' } });
  expect(await unknown()).toEqual(['/data/2']);
  expect(await ask(undo)).toEqual({
    done: true,
    text: 'balance: 1 skipped file of the backlog needs a decision again',
  });
  expect(rows('SELECT backlog FROM instruments')).toEqual([{ backlog: 1 }]);
  await ask({ kind: 'backfill', instrument: 'balance', existing: 'ingest' });
  expect(await unknown()).toEqual(['/data/1', '/data/2']);

  await journal.intake.holdBacklog('balance', FILES);
  await journal.intake.endFirstScan('balance');
  await journal.intake.decideBacklog('balance', 'skip');
  expect(await ask(undo)).toMatchObject({ done: false });
  expect(await unknown()).toEqual([]);
});

test('a backlog decision is refused before the first scan has ended', async () => {
  const { ask, journal } = await openTestJournal();
  await journal.intake.holdBacklog('balance', FILES);
  expect(await ask({ kind: 'backfill', instrument: 'balance', existing: 'ingest' })).toMatchObject({
    done: false,
    text: expect.stringContaining('the first scan of balance has not finished'),
  });
  expect(await journal.intake.unknown('balance', FILES)).toEqual([]);
});

test('a backlog decision does not end the first scan: files listed later are backlog too', async () => {
  const { journal } = await openTestJournal();
  await journal.intake.holdBacklog('balance', FILES);
  expect(await journal.intake.decideBacklog('balance', 'skip')).toEqual({ files: 2, toFile: 0 });
  expect(await journal.intake.firstScanAt('balance')).toBeUndefined();
});

/** A run of existing files: a folder, or joined files. */
function runOf(at: string, names: readonly string[]): NewRun {
  mkdirSync(join(at, '..'), { recursive: true });
  const isFolder = !names.includes('.csv');
  if (isFolder) mkdirSync(at, { recursive: true });
  const parts = names.map((name) => {
    const path = isFolder ? join(at, name) : at.replace(/\.csv$/, name);
    writeFileSync(path, name);
    return { ...found(path), name, role: name, sha256: sha256(name) };
  });
  const file = {
    path: at,
    location: at,
    size: 999,
    mtimeNs: 5n,
    inode: 1n,
    sha256: sha256(names.join()),
    parts,
  };
  return newRun('', { file });
}

const REFUSED: RunChange = { kind: 'parked', as: 'quarantined', failure: 'request', reason: '422' };

test('every file of a taken run is known until it changes', async () => {
  const { journal, rows } = await openTestJournal();
  const run = runOf(join(tempFolder(), 's1.D'), ['a.csv', 'b.bin']);
  await take(journal, run, someDraft('one'));
  expect(await journal.intake.unknown('balance', filesOf(run.file))).toEqual([]);
  const [, second = expect.fail('there are two')] = filesOf(run.file);
  expect(await journal.intake.unknown('balance', [{ ...second, size: 7 }])).toHaveLength(1);
  expect(rows('SELECT path, size FROM runs')).toEqual([{ path: run.file.path, size: 999 }]);
});

test('a run was taken before if any of its files was, even if others were skipped since', async () => {
  const { journal } = await openTestJournal();
  const at = join(tempFolder(), 's1.D');
  await take(journal, runOf(at, ['a.csv', 'b.bin']), someDraft('one'));
  const { file: changed } = runOf(at, ['b.bin', 'late.txt']);
  expect(await journal.intake.wasTaken('balance', changed)).toBe(true);
  for (let n = 0; n < 2; n++) {
    await journal.intake.skip('balance', [changed]);
    expect(await journal.intake.wasTaken('balance', changed)).toBe(true);
    expect(await journal.intake.unknown('balance', filesOf(changed))).toEqual([]);
  }
  const { parts: _, ...late } = found(join(at, 'late.txt'));
  const single = { ...late, sha256: 'other' };
  expect(await journal.intake.wasTaken('balance', single)).toBe(false);
});

for (const [what, name, files] of [
  ['a folder', 's1_%.D', ['a.csv', 'b.bin']],
  ['joined files', 's1.csv', ['.csv', '.xml']],
] as const) {
  test(`a quarantined run of ${what} is read again while its files are there`, async () => {
    const { journal, ask } = await openTestJournal();
    const at = join(tempFolder(), name);
    const run = runOf(at, files);
    await take(journal, run, someDraft('one'));
    await journal.outbox.record(1, REFUSED);
    expect((await ask({ kind: 'retry', run: 1 })).text).toContain('will be re-read');
    expect(await journal.intake.unknown('balance', filesOf(run.file))).toHaveLength(2);
    await take(journal, run, someDraft('two'));
    await journal.outbox.record(1, REFUSED);
    rmSync(at, { recursive: true });
    expect((await ask({ kind: 'retry', run: 1 })).text).toContain('so the existing draft is sent');
  });
}

const FILED: readonly RunChange[] = [
  { kind: 'intended', server: 'https://eln.example.org', floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
];

/** A run of three files, and runs that consist of some of them. */
async function threeFiles(...changes: readonly RunChange[]) {
  const { journal } = await openTestJournal();
  const run = runOf(join(tempFolder(), 's1.D'), ['a.csv', 'b.bin', 'c.txt']);
  await take(journal, run, someDraft('one'));
  if (changes.length > 0) await journal.outbox.record(1, ...changes);
  const [a, b] = run.file.parts ?? [];
  if (!a || !b) expect.fail('there are three');
  type Parts = NonNullable<typeof run.file.parts>;
  const isKnown = (...parts: Parts): Promise<boolean> =>
    knows(journal, {
      ...run,
      file: { ...run.file, sha256: sha256(JSON.stringify(parts.length)), parts },
    });
  return { isKnown, a, b };
}

test('the remaining files of a filed run are not a run of their own', async () => {
  const { isKnown, a, b } = await threeFiles(...FILED);
  expect(await isKnown(a, b)).toBe(true);
  expect(await isKnown(b)).toBe(true);
});

test('the remaining files of a run with a new or rewritten file are a run of their own', async () => {
  const { isKnown, a, b } = await threeFiles(...FILED);
  expect(await isKnown(a, { ...b, path: `${b.path}.new`, inode: 77n })).toBe(false);
  expect(await isKnown(a, { ...b, mtimeNs: b.mtimeNs + 1n })).toBe(false);
  expect(await isKnown(a, { ...b, size: b.size + 1 })).toBe(false);
});

test('the remaining files of a run that is not in the notebook yet are a run of their own', async () => {
  const { isKnown, a, b } = await threeFiles();
  expect(await isKnown(a, b)).toBe(false);
});

test('a taken file whose attributes changed is hashed again, within limits; a skipped one is not', async () => {
  const { journal } = await openTestJournal();
  const file = { ...newRun('a').file, ctimeNs: 5n };
  journal.intake.remember('balance', file, { sha256: file.sha256, copy: '', isErased: false });
  const other = { ...file, path: '/data/skipped.csv' };
  await journal.intake.skip('balance', [other]);
  const unknown = (ctimeNs: bigint, ...wants: [((isTouched: boolean) => boolean)?]) =>
    journal.intake.unknown(
      'balance',
      [
        { ...file, ctimeNs },
        { ...other, ctimeNs },
      ],
      ...wants,
    );
  expect(await unknown(5n)).toEqual([]);
  expect((await unknown(6n)).map(({ path }) => path)).toEqual([file.path]);
  expect(await unknown(6n, () => false)).toEqual([]);
  expect((await unknown(5n, (isTouched) => !isTouched)).map(({ path }) => path)).toEqual([file.path]);
  // After it was hashed, its new time is known.
  journal.intake.remember('balance', { ...file, ctimeNs: 6n }, { sha256: file.sha256, copy: '', isErased: false });
  expect(await unknown(6n)).toEqual([]);
});

test('a file of an older journal gets its time of change without being hashed again', async () => {
  const { journal, rows } = await openTestJournal();
  const { file } = newRun('a');
  journal.intake.remember('balance', file, { sha256: file.sha256, copy: '', isErased: false });
  expect(await journal.intake.unknown('balance', [{ ...file, ctimeNs: 7n }])).toEqual([]);
  expect(rows('SELECT ctime_ns FROM files')).toEqual([{ ctime_ns: 7 }]);
  expect(await journal.intake.unknown('balance', [{ ...file, ctimeNs: 8n }])).toHaveLength(1);
});

test('where a folder was last seen is remembered across restarts', async () => {
  const path = join(tempFolder(), 'journal.db');
  const journal = await journalAt(path);
  expect(await journal.intake.lastSeen('/mnt/nas/a')).toBeUndefined();
  await journal.intake.see('/mnt/nas/a', { point: '/mnt/nas', isEmpty: true });
  await journal.intake.see('/mnt/nas/a', { point: '/mnt/nas', isEmpty: false });
  await journal.close();
  const { intake } = await journalAt(path);
  expect(await intake.lastSeen('/mnt/nas/a')).toEqual({ point: '/mnt/nas', isEmpty: false });
});
