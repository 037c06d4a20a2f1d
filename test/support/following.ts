import { appendFileSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { growingOf } from '../../src/config/schema.js';
import { createFollowing } from '../../src/growing/growing.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import { createReader } from '../../src/journal/reader.js';
import { Spool } from '../../src/spool.js';
import { describeEvent } from '../../src/status/history.js';
import { stampOf } from '../../src/watch/identify.js';
import { createActivity } from '../../src/watch/intake.js';
import { createRawFiles } from '../../src/watch/raw-files.js';
import { directReader } from './direct-reader.js';
import { manualClock } from './manual-clock.js';
import { emptyDatabase } from './memory-journal.js';
import { silentLog } from './silent-log.js';
import { tempFolder } from './temp-folder.js';

export const CSV = `parse: { delimiter: ',', dates: { format: 'yyyy-MM-dd HH:mm' }, table: {} }`;
export const HEADER = 'Time,T (°C)\n';
export const SECRET = 'a-secret-key-of-labfeed';

interface Options {
  readonly per?: 'file' | 'day';
  readonly mapping?: string;
  /** Drawing takes most of the time that these tests would take. */
  readonly isPlotted?: boolean;
  readonly changes?: (journal: Journal) => Partial<Journal>;
}

/** One instrument with a real folder and the real journal in memory. */
export function setUp({ per = 'file', mapping = CSV, isPlotted = false, changes = () => ({}) }: Options = {}) {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  mkdirSync(join(folder, 'data'));
  writeFileSync(
    config,
    `instruments:\n  logger: { watch: data, files: "*.csv", run: { growing: { per: ${per}, every: 10m } }, ${mapping} }\n`,
  );
  const [instrument = expect.fail('no instrument')] = loadConfig(config).instruments;
  const clock = manualClock(Date.UTC(2026, 2, 10, 12));
  const database = emptyDatabase();
  const journal = createJournal({ database, clock, release: () => undefined });
  onTestFinished(() => journal.close());
  const path = join(folder, 'data', 'temp.csv');
  const reader = createReader(database, clock.now);
  const spool = new Spool(join(folder, 'spool'));
  const direct = directReader(instrument, journal.outbox.id);
  let drawn = 0;
  const start = (changed: Partial<Journal> = {}) =>
    createFollowing({
      ...{ instrument, growing: growingOf(instrument.run) ?? expect.fail('not growing'), clock, log: silentLog() },
      journal: { ...journal, ...changed },
      reader: {
        ...direct,
        async readGrowth(task) {
          if (task.isPlotted) drawn += 1;
          return direct.readGrowth(task);
        },
      },
      rawFiles: createRawFiles({
        ...{ spool, maxBytes: 2 ** 30, isPlotted, isWanted: async () => true },
        isNeeded: journal.outbox.uploads.needs,
      }),
      activity: createActivity(instrument, clock),
      observer: {},
      isOwn: (one) => one.endsWith('.csv'),
      isOthers: (one) => one.endsWith('.77'),
      isSecretIn: (text) => text.includes(SECRET),
      wakeDelivery: () => undefined,
      signal: new AbortController().signal,
    });
  let following = start(changes(journal));
  const found = (at: string) => ({ path: at, location: at, ...stampOf(statSync(at, { bigint: true })) });
  /** The last modification is that of the manual clock. */
  const touch = (at: string): void => utimesSync(at, clock.now() / 1000, clock.now() / 1000);
  return {
    ...{ journal, clock, path, reader, database },
    append(text: string | Buffer, at = path): void {
      appendFileSync(at, text);
      touch(at);
    },
    look: (at = path) => following.take(found(at), false),
    finish: () => following.finishRotated(),
    /** As a part of the backlog. */
    skip: (at = path) => journal.intake.skip('logger', [found(at)]),
    /** As after a crash: nothing is known but what is in the journal. */
    restart(): void {
      following = start();
    },
    /** As if the notebook had everything. */
    async deliver(): Promise<void> {
      for (const run of await journal.outbox.claim(Number.MAX_SAFE_INTEGER, 100)) {
        const { comments } = await journal.outbox.load(run);
        const changes = comments
          .filter(({ comment }) => comment === undefined)
          .map(({ n }) => ({ kind: 'commented', n, comment: 100 * run + n, found: false }) as const);
        await journal.outbox.record(run, ...changes, { kind: 'finished' });
        await journal.outbox.release(run);
      }
    },
    /** How often a plot was drawn. */
    drawn: () => drawn,
    /** The text of a run's comments. */
    comments: async (run: number) => (await journal.outbox.load(run)).comments.map(({ text }) => text),
    runs: async () => (await reader.jobs({ limit: 100 })).map(({ id }) => id).sort((a, b) => a - b),
    history: async (run: number) =>
      ((await reader.job(run))?.history ?? [])
        .map(describeEvent)
        .filter((text) => !/^(File read|Comment|Filed)/.test(text)),
    /** What is to be attached to a run, as the notebook shows it. */
    attached: async (run: number) =>
      (await reader.attachmentsOf(run)).map(({ kind, name, sha256 }) => ({ kind, name, sha256 })),
    why: async (at = path) => (await reader.followedAt('logger', at))?.note,
  };
}

export const at = (n: number, day = '2026-03-04'): string => `${day} 00:${String(n).padStart(2, '0')},${n}.5\n`;
export const lines = (from: number, to: number, day?: string): string =>
  Array.from({ length: to - from + 1 }, (_, n) => at(from + n, day)).join('');
export const values = (texts: readonly string[]): number[] =>
  texts.flatMap((text) => [...text.matchAll(/(\d+)\.5(?= °C)/g)].map(([, value]) => Number(value)));
