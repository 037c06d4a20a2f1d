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
  await scene.journal.files.ask('balance', FILES);
  await scene.journal.files.endFirstScan('balance');
  const unknown = async () => (await scene.journal.files.unknown('balance', FILES)).map(({ path }) => path);
  return { ...scene, unknown };
}

for (const { existing, takes, text } of [
  { existing: 'ingest', takes: ['/data/1', '/data/2'], text: /^balance: 2 old files will be filed/ },
  { existing: 'skip', takes: [], text: /^balance: 2 old files passed over$/ },
  {
    existing: { since: '2026-01-01' },
    takes: ['/data/2'],
    text: /^balance: 1 old file will be filed.*; 1 old file passed over$/,
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
    expect(rows('SELECT asked FROM instruments')).toEqual([{ asked: 0 }]);
    expect(await ask({ kind: 'backfill', instrument: 'balance', existing })).toEqual({
      done: false,
      text: 'no old files of balance wait for an answer',
    });
  });
}

test('before the first scan has ended there is no question to answer', async () => {
  const { ask, journal } = await openAsked();
  await journal.files.ask('balance', FILES);
  expect(await ask({ kind: 'backfill', instrument: 'balance', existing: 'ingest' })).toMatchObject({
    done: false,
    text: expect.stringContaining('not scanned to the end yet'),
  });
  expect(await journal.files.unknown('balance', FILES)).toEqual([]);
});
