import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import type { Instrument } from '../../src/config/load.js';
import { createProof, disposeOfSources, sourcesOf, unchangedMs } from '../../src/daemon/sources.js';
import { deliver } from '../../src/deliver/deliver.js';
import { STAND_IN } from '../../src/model.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, emptyJournal, SERVER, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const instrument = (source: Instrument['source']) => ({ name: 'balance', watch: '/data', source }) as Instrument;

test('the files of a run are recorded with their identity, unless they stay or were not read', () => {
  const { file } = newRun('a');
  expect(sourcesOf(instrument('keep'), file, 7)).toBeUndefined();
  expect(sourcesOf(instrument('delete'), { ...file, sha256: STAND_IN.padEnd(64, '1') }, 7)).toBeUndefined();
  expect(sourcesOf(instrument({ move: '/done' }), { ...file, device: 3n }, 7)).toEqual([
    {
      path: file.path,
      location: file.path,
      sha256: file.sha256,
      identity: `3:${file.size}:${file.mtimeNs}`,
      readyAt: 7,
    },
  ]);
  const location = Buffer.from('/data/caf\u00e9', 'latin1');
  expect(sourcesOf(instrument('delete'), { ...file, location }, 7)).toMatchObject([
    { location: `hex:${location.toString('hex')}` },
  ]);
});

test('nothing may be written to a file for ten minutes', () => {
  expect(unchangedMs({})).toBe(600_000);
});

const isAccessing = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));

/** A loop over these sources, whose time only `pass` moves on. */
function startLoop(
  sources: object,
  {
    isPresent = () => true,
    watch = '/data',
    unchanged = 0,
  }: { isPresent?(): boolean; watch?: string; unchanged?: number } = {},
) {
  let now = 0;
  let ahead = 0;
  const sleeping = new Set<{ readonly until: number; readonly wake: () => void }>();
  const clock = {
    now: () => now + ahead,
    monotonic: () => now,
    sleep: (ms: number) => new Promise<void>((wake) => void sleeping.add({ until: now + ms, wake })),
  };
  const journal = memoryJournal(clock);
  const usable = { ...instrument({ move: '/nowhere/else' }), watch };
  const loop = disposeOfSources({
    config: { notebook: { url: 'https://eln.example.org' }, claims: [] },
    journal: { ...journal, outbox: { ...journal.outbox, sources: { ...journal.outbox.sources, ...sources } } },
    proof: () => async () => undefined,
    instruments: [{ usable, activity: { isPresent, waiting: new Set() } }],
    unchangedMs: unchanged,
    clock,
    log: silentLog(),
  } as unknown as Parameters<typeof disposeOfSources>[0]);
  return {
    ...loop,
    journal,
    setClock: (byMs: number) => {
      ahead += byMs;
    },
    async pass(ms: number): Promise<void> {
      for (const end = now + ms; now < end; ) {
        // Files are accessed in real time.
        for (let turn = 0; turn < 5; turn = isAccessing() ? 0 : turn + 1)
          await new Promise((resolve) => setImmediate(resolve));
        now += 1000;
        for (const one of sleeping)
          if (one.until <= now) {
            sleeping.delete(one);
            one.wake();
          }
      }
    },
  };
}

test('nothing is moved while the folder is away or delivery is halted, but hidden files are put back', async () => {
  const claimed: (readonly string[])[] = [];
  let looks = 0;
  let isPresent = true;
  const sources = {
    async claimHidden() {
      looks += 1;
      return [];
    },
    async claim(_now: number, _limit: number, instruments: readonly string[]) {
      claimed.push(instruments);
      return [];
    },
  };
  const { pass, journal } = startLoop(sources, { isPresent: () => isPresent });
  await pass(5000);
  expect(claimed[0]).toEqual(['balance']);
  isPresent = false;
  await pass(1000);
  const before = claimed.length;
  await pass(20_000);
  isPresent = true;
  await journal.outbox.server('https://eln.example.org').learn({ halted: 'restored' });
  await pass(20_000);
  expect(claimed).toHaveLength(before);
  expect(looks).toBeGreaterThanOrEqual(8);
});

test('200 files for a folder that cannot be used lead to a dozen attempts in the first hour, and then one an hour', async () => {
  const folder = tempFolder();
  const file = join(folder, 'a.csv');
  writeFileSync(file, '');
  const due = new Map(Array.from({ length: 200 }, (_, run) => [run, 0]));
  let attempts = 0;
  const sources = {
    claimHidden: async () => [],
    claim: async (at: number, limit: number) =>
      [...due].flatMap(([run, dueAt]) => (dueAt <= at ? run : [])).slice(0, limit),
    release: async () => undefined,
    load: async (id: number) => ({
      ...{ run: { id, instrument: 'balance', path: file }, attempts: 0, isBegun: false },
      files: [{ n: 1, path: file, location: file, sha256: '', identity: '', isHidden: false }],
    }),
    async record(run: number, { dueAt }: { dueAt: number }) {
      attempts += 1;
      due.set(run, dueAt);
    },
    hasMovedTo: async () => false,
  };
  const { pass } = startLoop(sources, { watch: folder });
  await pass(3_600_000);
  expect(attempts).toBeGreaterThanOrEqual(7);
  expect(attempts).toBeLessThanOrEqual(13);
  const first = attempts;
  await pass(2 * 3_600_000);
  expect(attempts - first).toBeLessThanOrEqual(5);
}, 60_000);

test.each([3_600_000, -3_600_000, 10 * 365 * 86_400_000])(
  'after a start, and if the clock is set by %d ms, nothing is moved for ten minutes',
  async (byMs) => {
    let claims = 0;
    const sources = {
      async claim() {
        claims += 1;
        return [];
      },
    };
    const { pass, setClock } = startLoop(sources, { unchanged: 600_000 });
    await pass(595_000);
    expect(claims).toBe(0);
    await pass(20_000);
    expect(claims).toBeGreaterThan(0);
    setClock(byMs);
    await pass(1000);
    const before = claims;
    await pass(590_000);
    expect(claims).toBe(before);
    await pass(20_000);
    expect(claims).toBeGreaterThan(before);
    // Small adjustments are no jumps.
    for (let n = 0; n < 60; n++) {
      setClock(500);
      await pass(5000);
    }
    expect(claims).toBeGreaterThan(before + 50);
  },
);

test('files that cannot get their names again are tried less and less often, for all files of an instrument', async () => {
  let attempts = 0;
  const hidden = Array.from({ length: 50 }, (_, run) => run);
  const sources = {
    claimHidden: async () => hidden,
    claim: async () => [],
    release: async () => undefined,
    load: async (id: number) => ({
      ...{ run: { id, instrument: 'balance', path: '/data/a.csv' }, attempts: 0, isBegun: false },
      // What is in a file is no folder.
      files: [{ n: 1, path: '/data/a.csv', location: `${import.meta.filename}/${'x'.repeat(300)}`, isHidden: true }],
    }),
    async record() {
      attempts += 1;
      throw new Error('cannot write');
    },
  };
  const { pass } = startLoop(sources);
  await pass(3_600_000);
  expect(attempts).toBeGreaterThanOrEqual(7);
  expect(attempts).toBeLessThanOrEqual(40);
}, 60_000);

test('a private name of another journal is an alarm after some minutes, until it is gone', async () => {
  const folder = tempFolder();
  const name = join(folder, '.labfeed-0123abcd-b.csv');
  writeFileSync(name, 'filed');
  const { foundHidden, strays, pass } = startLoop({});
  foundHidden('balance', name);
  await pass(300_000);
  expect(strays()).toEqual([]);
  foundHidden('balance', name);
  await pass(295_000);
  expect(strays()).toEqual([]);
  await until('it is an alarm', async () => {
    await pass(60_000);
    return strays().join() === name;
  });
  rmSync(name);
  await until('it is no longer an alarm', async () => {
    await pass(60_000);
    return strays().length === 0;
  });
});

test('a file that a scan finds under a private name gets its own again', async () => {
  const folder = tempFolder();
  const { foundHidden, pass, journal } = startLoop({});
  const aside = join(folder, `.labfeed-${journal.outbox.id}-a.csv`);
  for (const name of [aside, join(folder, '.labfeed-other-b.csv')]) writeFileSync(name, 'filed');
  for (const name of readdirSync(folder)) foundHidden('balance', join(folder, name));
  await until('it has its name, and that of another journal is left alone', async () => {
    await pass(5000);
    return readdirSync(folder).toSorted().join() === '.labfeed-other-b.csv,a.csv';
  });
  expect(readFileSync(join(folder, 'a.csv'), 'utf8')).toBe('filed');
});

test('without its draft, nothing proves that the notebook has what was filed, even if the experiment and comments exist', async () => {
  const [clock, notebook, path] = [manualClock(), fakeNotebook(), join(tempFolder(), 'journal.db')];
  const journal = await emptyJournal(clock, path);
  await see(journal, 'a');
  await deliver(await journal.outbox.load(1), contextOf(journal, notebook, clock));
  const prove = createProof({
    config: { notebook: { url: SERVER }, settings: { journal: path } },
    ...{ journal, notebook, clock, log: silentLog(), signal: new AbortController().signal },
  } as unknown as Parameters<typeof createProof>[0]);
  const filed = await journal.outbox.sources.load(1);
  await expect(prove(filed, { move: '/filed' })).resolves.toBeUndefined();
  const database = new DatabaseSync(path);
  database.exec('DELETE FROM drafts');
  database.close();
  await expect(prove(filed, { move: '/filed' })).rejects.toThrow('not everything was read back from the notebook');
});
