import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { loadConfig, type UsableConfig } from '../../src/config/load.js';
import { createDaemon } from '../../src/daemon/daemon.js';
import { applyDecisions, correctDueTimes, pruneDaily } from '../../src/daemon/upkeep.js';
import { openJournal } from '../../src/journal/journal.js';
import { openReader } from '../../src/journal/reader.js';
import type { Outcome } from '../../src/journal/requests.js';
import type { Pruned } from '../../src/outbox.js';
import { makeSite } from '../support/daemon-process.js';
import { take } from '../support/journal.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { runSandbox } from '../support/sandbox.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const DAY_MS = 86_400_000;

/** The daemon in this process. Its configuration may have mistakes outside of `notebook`. */
async function start(file: string, clock = systemClock) {
  const { notebook, ...rest } = loadConfig(file);
  if (!notebook) expect.fail('the notebook is configured');
  const config: UsableConfig = { ...rest, notebook };
  const daemon = createDaemon({ config, clock, log: silentLog(), conceal: () => undefined, isSecretIn: () => false });
  await daemon.start();
  return daemon;
}

const clockAt = (aheadMs: number) => ({ ...systemClock, now: () => Date.now() + aheadMs });

/** A journal with one finished run for each of these days from now. */
async function journalOf(path: string, days: readonly number[]): Promise<void> {
  for (const [index, day] of days.entries()) {
    const journal = await openJournal(path, clockAt(day * DAY_MS));
    await take(journal, newRun(`r${index}`), someDraft('old'));
    await journal.outbox.record(index + 1, { kind: 'finished' });
    await journal.close();
  }
}

/** The remaining history of the first run after these starts, each with the clock ahead by so many days. */
async function historyAfter(days: readonly number[], keep: string, starts: readonly number[]): Promise<string[]> {
  const site = makeSite(tempFolder(), { url: 'http://127.0.0.1:1', key: 'k', settings: `keep: ${keep}\n` });
  await journalOf(site.journal, days);
  for (const ahead of starts) await (await start(site.config, clockAt(ahead * DAY_MS))).stop();
  const reader = openReader(site.journal);
  onTestFinished(() => reader.close());
  return ((await reader.job(1))?.history ?? []).map(({ event }) => event);
}

test('the time to start grows with the number of instruments, not with its square', async () => {
  const instruments = Array.from({ length: 1000 }, (_, n) => `  i${n}: { watch: data/${n}, files: "*.csv" }`).join(
    '\n',
  );
  const site = makeSite(tempFolder(), { url: 'http://127.0.0.1:1', key: 'k', instruments });
  const before = process.cpuUsage();
  const daemon = await start(site.config);
  const { user } = process.cpuUsage(before);
  expect(daemon.live().instruments).toHaveLength(1000);
  await daemon.stop();
  // About 1 s on a quiet machine.
  expect(user / 1e6).toBeLessThan(8);
});

const LAST_WEEK = [-6, -5, -4, -3, -2, -1, 0];

test('history older than `keep` is removed, unless `keep` has a mistake', async () => {
  expect(await historyAfter([-800, ...LAST_WEEK], '1y', [0])).toEqual([]);
  expect(await historyAfter([-800, ...LAST_WEEK], 'soon', [0])).toEqual(['read', 'finished']);
  expect(await historyAfter([-300, ...LAST_WEEK], '1y', [0])).toEqual(['read', 'finished']);
});

test('starts with a clock that is two years ahead remove nothing, even if runs are added meanwhile', async () => {
  expect(await historyAfter(LAST_WEEK, '1y', [730, 730])).toEqual(['read', 'finished']);
  expect(await historyAfter([...LAST_WEEK, 730, 731], '1y', [731])).toEqual(['read', 'finished']);
});

test('a run that was postponed while the clock was a month ahead is delivered once the clock is right', async () => {
  const sandbox = await runSandbox(join(tempFolder(), 'notebook.db'));
  const site = makeSite(tempFolder(), { url: sandbox.url, key: sandbox.key });
  const ahead = await openJournal(site.journal, clockAt(30 * DAY_MS));
  await take(ahead, newRun('a'), someDraft('a'));
  const dueAt = Date.now() + 30 * DAY_MS;
  await ahead.outbox.record(1, { kind: 'postponed', dueAt, failure: 'server', reason: 'no answer' });
  await ahead.close();
  const daemon = await start(site.config);
  onTestFinished(() => daemon.stop());
  await until('filed', async () => (await daemon.count())['done'] === 1);
});

test('a clock that is set back while labfeed runs postpones nothing for longer than a minute', async () => {
  const clock = simulatedClock();
  const journal = memoryJournal(clock);
  await take(journal, newRun('a'), someDraft('a'));
  const dueAt = clock.now() + 30 * DAY_MS;
  let wakes = 0;
  const loop = correctDueTimes(journal.outbox, clock, silentLog(), () => {
    wakes += 1;
  });
  await clock.run(clock.sleep(1000));
  await journal.outbox.record(1, { kind: 'postponed', dueAt, failure: 'server', reason: 'no answer' });
  expect(await journal.outbox.claim(clock.now(), 1)).toEqual([]);
  await clock.run(clock.sleep(60_000));
  await loop.stop();
  expect(wakes).toBe(1);
  expect(await journal.outbox.claim(clock.now(), 1)).toEqual([1]);
});

test('a journal in a watched folder is not a run, nor are its side files', async () => {
  const folder = tempFolder();
  const site = makeSite(folder, {
    url: 'http://127.0.0.1:1',
    key: 'k',
    instruments: '  all: { watch: ., files: "**/{journal,spooled}*", existing: ingest, ready: { quiet: 1h } }',
  });
  writeFileSync(join(folder, 'journal.txt'), 'no journal');
  mkdirSync(join(folder, 'journal.db.spool'));
  writeFileSync(join(folder, 'journal.db.spool', 'spooled'), 'a copy');
  const daemon = await start(site.config);
  onTestFinished(() => daemon.stop());
  const [all] = daemon.live().instruments;
  expect(all?.waiting.first.map(({ path }) => path)).toEqual([join(folder, 'journal.txt')]);
});

test('a file belongs to the first instrument that matches it, and to no other', async () => {
  const ready = 'existing: ingest, ready: { quiet: 1h }';
  const site = makeSite(tempFolder(), {
    url: 'http://127.0.0.1:1',
    key: 'k',
    instruments: `  tables: { watch: data, files: "**/*.csv", ${ready} }\n  rest: { watch: data, ${ready} }`,
  });
  site.drop('a.csv', 'x,y\n1,2\n');
  site.drop('b.txt', 'x');
  const daemon = await start(site.config);
  onTestFinished(() => daemon.stop());
  expect(
    daemon.live().instruments.map(({ name, waiting }) => [name, ...waiting.first.map(({ path }) => basename(path))]),
  ).toEqual([
    ['tables', 'a.csv'],
    ['rest', 'b.txt'],
  ]);
});

describe('decisions', () => {
  /** An inbox that the test fills, and a simulated clock. */
  function setUp() {
    const clock = simulatedClock();
    const inbox: { at: number; decision: Outcome }[] = [];
    const delaysMs: number[] = [];
    const effects: unknown[] = [];
    let isBroken = false;
    const start = () =>
      applyDecisions({
        async apply() {
          if (isBroken) throw new Error('disk full');
          const requests = inbox.splice(0);
          delaysMs.push(...requests.map(({ at }) => clock.monotonic() - at));
          return requests.map(({ decision }) => decision);
        },
        clock,
        log: silentLog(),
        wakeDelivery: () => effects.push('wake'),
        rescan: (instrument, asBacklog) => effects.push({ instrument, asBacklog }),
      });
    return {
      clock,
      start,
      delaysMs,
      effects,
      decide: (decision: Outcome) => inbox.push({ at: clock.monotonic(), decision }),
      setBroken(value: boolean) {
        isBroken = value;
      },
    };
  }

  const retried: Outcome = { done: true, text: 'continues', request: { kind: 'retry', run: 1 } };

  test('are applied within a second', async () => {
    const { clock, start, delaysMs, decide } = setUp();
    const loop = start();
    const times = [0, 1, 250, 499, 500, 501, 1234, 60_000];
    await clock.run(
      (async () => {
        for (const time of times) {
          await clock.sleep(time);
          decide(retried);
        }
        await clock.sleep(2000);
      })(),
    );
    await loop.stop();
    expect(delaysMs).toHaveLength(times.length);
    expect(Math.max(...delaysMs)).toBeLessThan(1000);
  });

  test('wake delivery and rescan each folder once, a backlog separately', async () => {
    const { clock, start, effects, decide } = setUp();
    decide({ ...retried, rescan: 'balance' });
    decide({ ...retried, rescan: 'balance' });
    const request = { kind: 'backfill', instrument: 'logger', existing: 'ingest' } as const;
    decide({ done: true, text: 'taken', rescan: 'logger', request });
    const loop = start();
    await clock.run(clock.sleep(100));
    await loop.stop();
    expect(effects).toEqual([
      'wake',
      { instrument: 'balance', asBacklog: false },
      { instrument: 'logger', asBacklog: true },
    ]);
  });

  test('that are refused have no effect', async () => {
    const { clock, start, effects, decide } = setUp();
    decide({ done: false, text: 'there is no run 7', request: { kind: 'retry', run: 7 } });
    const loop = start();
    await clock.run(clock.sleep(100));
    await loop.stop();
    expect(effects).toEqual([]);
  });

  test('are applied when the journal can be written again', async () => {
    const { clock, start, delaysMs, decide, setBroken } = setUp();
    setBroken(true);
    const loop = start();
    await clock.run(clock.sleep(60_000));
    setBroken(false);
    decide(retried);
    await clock.run(clock.sleep(10_000));
    await loop.stop();
    expect(delaysMs).toHaveLength(1);
  });
});

describe('old history', () => {
  function setUp(keepMs: number, answer: (call: number) => Promise<Pruned>) {
    const clock = simulatedClock();
    const calls: { at: number; before: number; from: number }[] = [];
    const outbox = {
      prune(before: number, from: number) {
        calls.push({ at: clock.monotonic(), before: clock.now() - before, from });
        return answer(calls.length);
      },
      provenTime: async () => clock.now(),
    };
    return { clock, calls, loop: pruneDaily(outbox, keepMs, clock, silentLog()) };
  }

  test('is removed at the start and then daily, in batches with a pause between them', async () => {
    const { clock, calls, loop } = setUp(30 * DAY_MS, async (call) => ({
      runs: 1,
      next: call === 1 ? 77 : undefined,
    }));
    await clock.run(clock.sleep(1.5 * DAY_MS));
    await loop.stop();
    expect(calls.map(({ from }) => from)).toEqual([0, 77, 0]);
    const [first, second, third] = calls.map(({ at }) => at);
    expect(first).toBe(0);
    expect(second).toBeGreaterThan(0);
    expect(third).toBeGreaterThanOrEqual(DAY_MS);
    expect(calls[0]?.before).toBe(30 * DAY_MS);
  });

  test('is removed a day later if the journal cannot be written', async () => {
    const { clock, calls, loop } = setUp(DAY_MS, async (call) => {
      if (call === 1) throw new Error('disk full');
      return { runs: 0, next: undefined };
    });
    await clock.run(clock.sleep(1.5 * DAY_MS));
    await loop.stop();
    expect(calls).toHaveLength(2);
  });
});
