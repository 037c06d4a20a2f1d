import { expect, test } from 'vitest';
import type { FoundFile } from '../../src/model.js';
import { openAsked } from './asked-journal.js';

const found = (path: string, mtimeNs: bigint): FoundFile => ({
  path,
  location: path,
  size: 1,
  mtimeNs,
  inode: 9n,
});
const FILES = [found('/data/1', 1n), found('/data/2', BigInt(Date.UTC(2026, 5, 1)) * 1_000_000n)];

async function withQuestion() {
  const scene = await openAsked();
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
  { existing: 'skip', takes: [], text: /^balance: 2 files of the backlog skipped$/ },
  {
    existing: { since: '2026-01-01' },
    takes: ['/data/2'],
    text: /^balance: 1 file of the backlog will be filed.*; 1 file of the backlog skipped$/,
  },
] as const) {
  test(`the question of old files, answered with ${JSON.stringify(existing)}, is settled for good`, async () => {
    const { ask, unknown, rows } = await withQuestion();
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

test('before the first scan has ended there is no question to answer', async () => {
  const { ask, journal } = await openAsked();
  await journal.intake.holdBacklog('balance', FILES);
  expect(await ask({ kind: 'backfill', instrument: 'balance', existing: 'ingest' })).toMatchObject({
    done: false,
    text: expect.stringContaining('the first scan of balance has not finished'),
  });
  expect(await journal.intake.unknown('balance', FILES)).toEqual([]);
});

test('a backlog decision before the first scan has ended does not end it: what is listed later is backlog too', async () => {
  const { journal } = await openAsked();
  await journal.intake.holdBacklog('balance', FILES);
  expect(await journal.intake.decideBacklog('balance', 'skip')).toEqual({ files: 2, toFile: 0 });
  expect(await journal.intake.firstScanAt('balance')).toBeUndefined();
});
