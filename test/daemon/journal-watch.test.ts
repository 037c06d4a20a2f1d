import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createJournalWatch } from '../../src/daemon/reporting.js';
import { tempFolder } from '../support/temp-folder.js';

test('a journal that is moved or replaced while labfeed is running is reported', async () => {
  const path = join(tempFolder(), 'journal.db');
  writeFileSync(path, '');
  const trouble = createJournalWatch(path);
  expect(await trouble()).toBeUndefined();
  renameSync(path, `${path}.away`);
  expect(await trouble()).toBe(`the journal ${path} cannot be written (ENOENT)`);
  writeFileSync(path, '');
  expect(await trouble()).toBe(`the journal ${path} was replaced while labfeed was running: restart labfeed`);
  rmSync(path);
  renameSync(`${path}.away`, path);
  expect(await trouble()).toBeUndefined();
});
