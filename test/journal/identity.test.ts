import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { idOfPlace } from '../../src/journal/identity.js';
import { openJournal } from '../../src/journal/journal.js';
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
