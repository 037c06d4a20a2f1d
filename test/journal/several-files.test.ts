import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesOf } from '../../src/model.js';
import type { NewRun, RunChange } from '../../src/outbox.js';
import { knows, take } from '../support/journal.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';
import { found } from '../watch/support.js';
import { openAsked } from './asked-journal.js';

/** A run of files that are there: in a folder, or known by the first of them. */
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

test('of a run that was taken every file is known by the quick look, and one that changes is not', async () => {
  const { journal, rows } = await openAsked();
  const run = runOf(join(tempFolder(), 's1.D'), ['a.csv', 'b.bin']);
  await take(journal, run, someDraft('one'));
  expect(await journal.intake.unknown('balance', filesOf(run.file))).toEqual([]);
  const [, second = expect.fail('there are two')] = filesOf(run.file);
  expect(await journal.intake.unknown('balance', [{ ...second, size: 7 }])).toHaveLength(1);
  expect(rows('SELECT path, size FROM runs')).toEqual([{ path: run.file.path, size: 999 }]);
});

test('a run was taken before if any of its files was, however often others were passed over since', async () => {
  const { journal } = await openAsked();
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
  test(`a quarantined run of ${what} is read anew as long as it is there`, async () => {
    const { journal, ask } = await openAsked();
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

/** A run of three files that is in the notebook, and others that are made of some of them. */
async function threeFiles(...changes: readonly RunChange[]) {
  const { journal } = await openAsked();
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

test('what is left of a filed run after a clean-up is no run of its own', async () => {
  const { isKnown, a, b } = await threeFiles(...FILED);
  expect(await isKnown(a, b)).toBe(true);
  expect(await isKnown(b)).toBe(true);
});

test('what is left of a run beside a new file, or one that was rewritten, is a run of its own: nothing is lost', async () => {
  const { isKnown, a, b } = await threeFiles(...FILED);
  expect(await isKnown(a, { ...b, path: `${b.path}.new`, inode: 77n })).toBe(false);
  expect(await isKnown(a, { ...b, mtimeNs: b.mtimeNs + 1n })).toBe(false);
  expect(await isKnown(a, { ...b, size: b.size + 1 })).toBe(false);
});

test('what is left of a run that is not in the notebook yet is a run of its own', async () => {
  const { isKnown, a, b } = await threeFiles();
  expect(await isKnown(a, b)).toBe(false);
});
