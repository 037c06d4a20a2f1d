import { copyFileSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { idOfPlace, type Journal, openJournal, readNote, writeNote } from '../../src/journal/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { tempFolder } from '../support/temp-folder.js';

/** A file like /etc/machine-id. */
function machine(id: string): string {
  const file = join(tempFolder(), 'machine-id');
  writeFileSync(file, `${id}\n`);
  return file;
}

test('a journal that is created again in the same place has the same id, and no other journal has it', () => {
  const folder = tempFolder();
  const [ours, theirs] = [machine('a1'), machine('b2')];
  const id = idOfPlace(join(folder, 'journal.db'), ours);
  expect(id).toMatch(/^[0-9a-f]{8}$/);
  expect(idOfPlace(join(folder, 'journal.db'), ours)).toBe(id);
  expect(idOfPlace(join(folder, 'other.db'), ours)).not.toBe(id);
  expect(idOfPlace(join(folder, 'journal.db'), theirs)).not.toBe(id);
  const link = join(tempFolder(), 'link');
  symlinkSync(folder, link);
  expect(idOfPlace(join(link, 'journal.db'), ours)).toBe(id);
});

test('without a machine id the id is random', () => {
  const path = join(tempFolder(), 'journal.db');
  const ids = [1, 2].map(() => idOfPlace(path, join(tempFolder(), 'absent')));
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}$/);
});

test('a journal keeps its id when it is moved', async () => {
  const folder = tempFolder();
  const first = await openJournal(join(folder, 'journal.db'), manualClock());
  await first.close();
  mkdirSync(join(folder, 'elsewhere'));
  renameSync(join(folder, 'journal.db'), join(folder, 'elsewhere', 'journal.db'));
  const moved = await openJournal(join(folder, 'elsewhere', 'journal.db'), manualClock());
  await moved.close();
  expect(moved.outbox.id).toBe(first.outbox.id);
});

/** Opens the journal, changes it if asked to, takes a note like the daemon does, and closes it. */
async function use(path: string, change?: (journal: Journal) => Promise<unknown>): Promise<Journal> {
  const journal = await openJournal(path, manualClock());
  await change?.(journal);
  const note = journal.notes.isBehind ? undefined : await journal.notes.take();
  if (note) await writeNote(path, note);
  await journal.close();
  return journal;
}

const learn = (journal: Journal) => journal.outbox.server('https://eln.example.org').learn({ dialect: 'v2' });

test('a journal that was lost, restored from a copy or replaced is behind its note, until a note is taken anyway', async () => {
  const path = join(tempFolder(), 'journal.db');
  expect((await use(path, learn)).notes.isBehind).toBe(false);
  copyFileSync(path, `${path}.copy`);
  const current = await use(path, learn);
  expect(current.notes.isBehind).toBe(false);
  expect(statSync(`${path}.seen`).mode & 0o777).toBe(0o600);
  copyFileSync(path, `${path}.current`);

  copyFileSync(`${path}.copy`, path);
  for (const _ of [1, 2]) expect((await use(path, learn)).notes.isBehind).toBe(true);
  rmSync(path);
  const lost = await use(path);
  expect(lost).toMatchObject({ isNew: true, notes: { isBehind: true }, outbox: { id: current.outbox.id } });
  const other = join(tempFolder(), 'journal.db');
  for (const _ of [1, 2, 3, 4]) await use(other, learn);
  copyFileSync(other, path);
  expect((await use(path)).notes.isBehind).toBe(true);
  copyFileSync(`${path}.current`, path);
  expect((await use(path)).notes.isBehind).toBe(false);

  rmSync(path);
  const recovered = await openJournal(path, manualClock());
  await writeNote(path, (await recovered.notes.take()) ?? expect.fail('there is a note'));
  await recovered.close();
  expect((await use(path)).notes.isBehind).toBe(false);
});

test('a note is taken only after a change, and is in the journal before it is in the file', async () => {
  const path = join(tempFolder(), 'journal.db');
  const journal = await openJournal(path, manualClock());
  expect(await journal.notes.take()).toMatchObject({ noted: 1 });
  expect(await journal.notes.take()).toBeUndefined();
  await learn(journal);
  expect(await journal.notes.take()).toMatchObject({ noted: 2 });
  expect(await journal.notes.take()).toBeUndefined();
  await journal.close();
  // A crash before the file is written: the journal is ahead, which is no reason to halt.
  await writeNote(path, { journal: journal.outbox.id, noted: 1 });
  expect((await use(path)).notes.isBehind).toBe(false);
  writeFileSync(`${path}.seen`, 'x');
  expect(readNote(path)).toBeUndefined();
  expect((await use(path)).notes.isBehind).toBe(false);
});
