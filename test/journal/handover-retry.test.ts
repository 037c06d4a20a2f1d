import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import type { Journal } from '../../src/journal/journal.js';
import { openClient } from '../../src/journal/requests.js';
import type { NewRun, RunChange } from '../../src/outbox.js';
import { emptyJournal, SERVER } from '../support/filing.js';
import { decide, due, knows, recheck, refuse, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const INTENDED: RunChange = { kind: 'intended', server: SERVER, floor: 9, at: 1 };
const CREATED: RunChange = { kind: 'created', experiment: 12, found: false };
const DESCRIBED: RunChange = { kind: 'described' };
const REFUSED: RunChange = { kind: 'parked', as: 'quarantined', failure: 'request', reason: '422' };
const posted = (n: number): RunChange => ({ kind: 'commented', n, comment: 40 + n, found: false });

interface Scene {
  readonly journal: Journal;
  readonly run: NewRun;
  retry(): Promise<{ done: boolean; text: string; rescan?: string | undefined } | undefined>;
}

/** A run of an existing file after these changes. */
async function setUp(name: string | Buffer, ...changes: RunChange[]): Promise<Scene> {
  const folder = tempFolder();
  const journal = await emptyJournal(manualClock(), join(folder, 'journal.db'));
  const location = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);
  writeFileSync(location, 'a');
  const path = join(folder, typeof name === 'string' ? name : 'caf\\xE9.csv');
  const run = newRun('a', { path });
  await take(journal, run, someDraft('as read before', ['one', 'two', 'three']));
  await journal.outbox.record(1, ...changes);
  return {
    journal,
    run,
    async retry() {
      const client = openClient(join(folder, 'journal.db'));
      await client.ask([{ kind: 'retry', run: 1 }], 1);
      await client.close();
      return (await decide(journal))[0];
    },
  };
}

test('a quarantined run is read again on request, and keeps its experiment and posted comments', async () => {
  const { journal, run, retry } = await setUp('a.csv', INTENDED, CREATED, DESCRIBED, posted(1), REFUSED);
  const intent: RunChange = { kind: 'commentIntended', n: 2, at: 5 };
  await journal.outbox.record(1, intent);
  expect(await knows(journal, run)).toBe(true);
  expect(await retry()).toMatchObject({
    done: true,
    rescan: 'balance',
    text: expect.stringMatching(/^run 1 \(a\.csv\) will be re-read .*keeps experiment 12$/),
  });
  expect(await due(journal)).toEqual([]);
  expect(await journal.intake.unknown('balance', [run.file])).toHaveLength(1);
  expect(await knows(journal, run)).toBe(false);
  await take(journal, run, someDraft('as read now', ['uno', 'due']));
  expect(await due(journal)).toEqual([1]);
  expect(await journal.outbox.load(1)).toMatchObject({
    step: 'created',
    experiment: 12,
    draft: { title: 'as read now' },
    earlier: [{ title: 'as read before', tags: ['balance'], written: true }],
    comments: [
      { n: 1, text: 'uno', comment: 41, earlier: ['one'] },
      { n: 2, text: 'due', comment: undefined, intentAt: 5, earlier: ['two'] },
    ],
    surplus: [],
  });
  await journal.outbox.record(1, { kind: 'commentRevised', n: 1 });
  expect((await journal.outbox.load(1)).comments.map(({ earlier }) => earlier)).toEqual([[], ['two']]);
  await journal.outbox.record(1, { kind: 'finished' });
  expect((await journal.outbox.load(1)).earlier).toEqual([]);
});

test('a run whose file the current mapping cannot read keeps its earlier draft and has the reason', async () => {
  const { journal, run, retry } = await setUp('a.csv', REFUSED);
  await retry();
  await refuse(journal, run, new FileError('no table any more'));
  expect(await journal.outbox.count()).toEqual({ quarantined: 1 });
  expect((await journal.outbox.load(1)).draft.title).toBe('as read before');
  expect((await journal.outbox.load(1)).earlier).toEqual([]);
});

for (const [what, change] of [
  ['is gone', (path: string) => rmSync(path)],
  ['has other bytes by now', (path: string) => writeFileSync(path, 'quite another one')],
  ['has other bytes of the same size by now', (path: string) => writeFileSync(path, 'b')],
  [
    'has become a folder',
    (path: string) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
] as const) {
  test(`a quarantined run whose file ${what} continues with its earlier draft, as the answer says`, async () => {
    const { journal, run, retry } = await setUp('a.csv', INTENDED, CREATED, REFUSED);
    change(run.file.path);
    expect(await retry()).toMatchObject({
      done: true,
      text: expect.stringMatching(
        /keeps experiment 12; its file is no longer at .*a\.csv, so the existing draft is sent/,
      ),
    });
    expect(await due(journal)).toEqual([1]);
    expect(await journal.outbox.load(1)).toMatchObject({
      step: 'created',
      draft: { title: 'as read before' },
    });
  });
}

test('a file whose name is not UTF-8 is found', async () => {
  const { retry } = await setUp(Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x2e, 0x63, 0x73, 0x76]), REFUSED);
  expect((await retry())?.text).toContain('will be re-read');
});

test('a held run is not read again: it continues where it stopped', async () => {
  const held: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };
  const { journal, run, retry } = await setUp('a.csv', INTENDED, CREATED, held);
  expect((await retry())?.text).toContain('continues where it stopped');
  expect(await knows(journal, run)).toBe(true);
});

test('with another mapping every quarantined run is read again, and no other run', async () => {
  const { journal, run } = await setUp('a.csv', INTENDED, CREATED, REFUSED);
  await take(journal, newRun('b'), someDraft('b'));
  expect(await recheck(journal, 'balance', run.mapping)).toBe(0);
  expect(await recheck(journal, 'balance', 'm2')).toBe(1);
  expect(await knows(journal, { ...run, mapping: 'm2' })).toBe(false);
  expect(await knows(journal, newRun('b', { mapping: 'm2' }))).toBe(true);
  await take(journal, { ...run, mapping: 'm2' }, someDraft('as read now'));
  expect(await knows(journal, { ...run, mapping: 'm2' })).toBe(true);
});
