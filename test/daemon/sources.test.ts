import { expect, test } from 'vitest';
import type { Instrument } from '../../src/config/load.js';
import { disposeOfSources, sourcesOf } from '../../src/daemon/sources.js';
import { STAND_IN } from '../../src/model.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';
import { until } from '../support/until.js';

const instrument = (source: Instrument['source']) => ({ name: 'balance', watch: '/data', source }) as Instrument;

test('the files of a run are recorded with their identity, unless they stay or were not read', () => {
  const { file } = newRun('a');
  expect(sourcesOf(instrument('keep'), file)).toBeUndefined();
  expect(sourcesOf(instrument('delete'), { ...file, sha256: STAND_IN.padEnd(64, '1') })).toBeUndefined();
  expect(sourcesOf(instrument({ move: '/done' }), { ...file, device: 3n })).toEqual([
    { path: file.path, location: file.path, sha256: file.sha256, identity: `3:${file.inode}:${file.mtimeNs}` },
  ]);
  const location = Buffer.from('/data/caf\u00e9', 'latin1');
  expect(sourcesOf(instrument('delete'), { ...file, location })).toMatchObject([
    { location: `hex:${location.toString('hex')}` },
  ]);
});

test('a filed run is looked for at once, and not while its folder is away or delivery is halted', async () => {
  // Time stands still: only `wake` leads to another look.
  const clock = { now: Date.now, monotonic: () => 0, sleep: () => new Promise<void>(() => undefined) };
  const { outbox } = memoryJournal(clock);
  const claimed: (readonly string[])[] = [];
  let state = 'present';
  let looks = 0;
  let retries = 0;
  const sources = {
    ...outbox.sources,
    async retryNow() {
      retries += 1;
    },
    async claimHidden() {
      looks += 1;
      return [];
    },
    async claim(_now: number, _limit: number, instruments: readonly string[]) {
      claimed.push(instruments);
      return [];
    },
  };
  const loop = disposeOfSources({
    config: { notebook: { url: 'https://eln.example.org' }, claims: [] },
    journal: { outbox: { ...outbox, sources } },
    notebook: {},
    instruments: [{ usable: instrument('delete'), activity: { isPresent: () => state === 'present' } }],
    rescan: async () => undefined,
    clock,
    log: silentLog(),
  } as unknown as Parameters<typeof disposeOfSources>[0]);
  const look = async (): Promise<void> => {
    const before = looks;
    loop.wake();
    await until('it has looked', () => looks > before);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await until('it has looked', () => claimed.length === 1);
  await look();
  expect(claimed).toEqual([['balance'], ['balance']]);
  state = 'missing';
  await look();
  state = 'present';
  await outbox.server('https://eln.example.org').learn({ halted: 'restored' });
  await look();
  expect([claimed.length, retries]).toEqual([2, 1]);
  // Files that a crash has hidden are put back in any case.
  expect(looks).toBeGreaterThanOrEqual(4);
});
