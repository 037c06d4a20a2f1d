import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { backUp } from '../../src/journal/maintenance.js';
import { openClient } from '../../src/journal/requests.js';
import { decide, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const SERVER = 'https://eln.example.org';

async function open(path: string): Promise<Journal> {
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

async function setUp() {
  const folder = tempFolder();
  const path = join(folder, 'journal.db');
  const journal = await open(path);
  await take(journal, newRun('a'), someDraft('A', ['one', 'two']));
  return { journal, path, copy: join(folder, 'copy.db'), folder };
}

test('a copy made while the journal is written to is whole, private, and a journal like any other', async () => {
  const { journal, path, copy, folder } = await setUp();
  const writing = take(journal, newRun('b'), someDraft('B'));
  expect(backUp(path, copy, SERVER)).toEqual({ runs: 1, bytes: statSync(copy).size });
  await writing;
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).filter((name) => name.startsWith('copy'))).toEqual(['copy.db']);
  const restored = await open(copy);
  expect(await restored.outbox.count()).toEqual({ pending: 1 });
  expect(await restored.outbox.load(1)).toMatchObject({ draft: { title: 'A' }, comments: [{}, {}] });
});

test('a copy knows that it is one: nothing is sent from it, and nothing asked of the original is done by it', async () => {
  const { path, copy } = await setUp();
  const client = openClient(path);
  await client.ask([{ kind: 'refile', run: 1 }], 1);
  await client.close();
  backUp(path, copy, SERVER);
  const restored = await open(copy);
  expect((await restored.outbox.server(SERVER).facts()).halted).toMatch(/labfeed recover/);
  expect(await decide(restored)).toEqual([]);
});

test('nothing is overwritten, and a copy that failed leaves nothing behind', async () => {
  const { path, copy, folder } = await setUp();
  writeFileSync(copy, 'my thesis');
  expect(() => backUp(path, copy, SERVER)).toThrow(/already exists/);
  expect(readFileSync(copy, 'utf8')).toBe('my thesis');
  writeFileSync(join(folder, 'other.db.part'), '');
  expect(() => backUp(path, join(folder, 'other.db'), SERVER)).toThrow(/part already exists/);
  expect(() => backUp(path, join(folder, 'nowhere', 'copy.db'), SERVER)).toThrow(/cannot write/);
  expect(() => backUp(join(folder, 'none.db'), join(folder, 'third.db'), SERVER)).toThrow(/no journal at/);
  expect(existsSync(join(folder, 'third.db.part'))).toBe(false);
});
