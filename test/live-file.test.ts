import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { liveFileOf, readLive, writeLive } from '../src/live.js';
import { someLive } from './support/live.js';
import { tempFolder } from './support/temp-folder.js';

test('what a daemon tells of itself is read back as it was', () => {
  const journal = join(tempFolder(), 'journal.db');
  const troubled = someLive({
    refused: {
      at: 5,
      problems: [{ at: 'a.yaml:1:2', message: 'm', hint: undefined, instrument: undefined }],
    },
    alarms: [{ kind: 'silence', instrument: 'balance', since: 1, text: 'nothing has come for a day' }],
  });
  for (const live of [someLive(), troubled]) {
    writeFileSync(liveFileOf(journal), JSON.stringify(live));
    expect(readLive(journal)).toEqual(live);
  }
});

test('where there is nothing, or nothing that can be understood, nothing is made up', () => {
  const journal = join(tempFolder(), 'journal.db');
  expect(readLive(journal)).toBeUndefined();
  for (const text of ['', '{', '{"at":1}', JSON.stringify({ ...someLive(), alarms: [{ kind: 'dance' }] })]) {
    writeFileSync(liveFileOf(journal), text);
    expect(readLive(journal)).toBeUndefined();
  }
});

test('who may not read the journal may not read what the daemon tells of itself either', async () => {
  const journal = join(tempFolder(), 'journal.db');
  writeFileSync(journal, '');
  for (const mode of [0o600, 0o640, 0o600]) {
    chmodSync(journal, mode);
    await writeLive(journal, someLive());
    expect(statSync(liveFileOf(journal)).mode & 0o777).toBe(mode);
  }
});
