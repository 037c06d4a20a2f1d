import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { liveFileOf, readLive, writeLive } from '../src/live.js';
import { someLive } from './support/live.js';
import { tempFolder } from './support/temp-folder.js';

test('the status of a daemon is read back unchanged', () => {
  const journal = join(tempFolder(), 'journal.db');
  const withAlarm = someLive({
    refused: {
      at: 5,
      problems: [{ at: 'a.yaml:1:2', message: 'm', hint: undefined, instrument: undefined }],
    },
    alarms: [{ kind: 'silence', instrument: 'balance', since: 1, text: 'no file for a day' }],
  });
  for (const live of [someLive(), withAlarm]) {
    writeFileSync(liveFileOf(journal), JSON.stringify(live));
    expect(readLive(journal)).toEqual(live);
  }
});

test('a missing or unreadable status file yields nothing', () => {
  const journal = join(tempFolder(), 'journal.db');
  expect(readLive(journal)).toBeUndefined();
  for (const text of ['', '{', '{"at":1}', JSON.stringify({ ...someLive(), alarms: [{ kind: 'dance' }] })]) {
    writeFileSync(liveFileOf(journal), text);
    expect(readLive(journal)).toBeUndefined();
  }
});

test('the status file has the permissions of the journal', async () => {
  const journal = join(tempFolder(), 'journal.db');
  writeFileSync(journal, '');
  for (const mode of [0o600, 0o640, 0o600]) {
    chmodSync(journal, mode);
    await writeLive(journal, someLive());
    expect(statSync(liveFileOf(journal)).mode & 0o777).toBe(mode);
  }
});
