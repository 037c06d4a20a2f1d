import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../src/config/load.js';
import { growingOf } from '../src/config/schema.js';
import { createFollowing } from '../src/growing.js';
import { migrate } from '../src/journal/database.js';
import { createJournal, type Journal } from '../src/journal/journal.js';
import { createReader } from '../src/journal/reader.js';
import { describeEvent } from '../src/status/history.js';
import { stampOf } from '../src/watch/identify.js';
import { createActivity } from '../src/watch/intake.js';
import { directReader } from './support/direct-reader.js';
import { manualClock } from './support/manual-clock.js';
import { silentLog } from './support/silent-log.js';
import { tempFolder } from './support/temp-folder.js';

const CSV = `parse: { delimiter: ',', dates: { format: 'yyyy-MM-dd HH:mm' }, table: {} }`;
const HEADER = 'Time,T (°C)\n';
const SECRET = 'a-secret-key-of-labfeed';

interface Options {
  readonly per?: 'file' | 'day';
  readonly mapping?: string;
  readonly changes?: (journal: Journal) => Partial<Journal>;
}

/** One instrument with a real folder and the real journal in memory. */
function setUp({ per = 'file', mapping = CSV, changes = () => ({}) }: Options = {}) {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  mkdirSync(join(folder, 'data'));
  writeFileSync(
    config,
    `instruments:\n  logger: { watch: data, files: "*.csv", run: { growing: { per: ${per}, every: 10m } }, ${mapping} }\n`,
  );
  const [instrument = expect.fail('no instrument')] = loadConfig(config).instruments;
  const clock = manualClock(Date.UTC(2026, 2, 10, 12));
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  const journal = createJournal({ database, clock, release: () => undefined });
  onTestFinished(() => journal.close());
  const path = join(folder, 'data', 'temp.csv');
  const reader = createReader(database, clock.now);
  const start = (changed: Partial<Journal> = {}) =>
    createFollowing({
      ...{ instrument, growing: growingOf(instrument.run) ?? expect.fail('not growing'), clock, log: silentLog() },
      journal: { ...journal, ...changed },
      reader: directReader(instrument, journal.outbox.id),
      activity: createActivity(instrument, clock),
      observer: {},
      isOwn: (one) => one.endsWith('.csv'),
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
    /** The text of a run's comments. */
    comments: async (run: number) => (await journal.outbox.load(run)).comments.map(({ text }) => text),
    runs: async () => (await reader.jobs({ limit: 100 })).map(({ id }) => id).sort((a, b) => a - b),
    history: async (run: number) =>
      ((await reader.job(run))?.history ?? [])
        .map(describeEvent)
        .filter((text) => !/^(File read|Comment|Filed)/.test(text)),
    why: async (at = path) => (await reader.followedAt('logger', at))?.note,
  };
}

const at = (n: number, day = '2026-03-04'): string => `${day} 00:${String(n).padStart(2, '0')},${n}.5\n`;
const lines = (from: number, to: number, day?: string): string =>
  Array.from({ length: to - from + 1 }, (_, n) => at(from + n, day)).join('');
const values = (texts: readonly string[]): number[] =>
  texts.flatMap((text) => [...text.matchAll(/(\d+)\.5(?= °C)/g)].map(([, value]) => Number(value)));

test('only complete lines are taken, and each once', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3) + at(4).slice(0, 9));
  expect(await scene.look()).toBe('revised');
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect(await scene.look()).toBe('unchanged');
  scene.append(at(4).slice(9));
  expect(await scene.look()).toBe('revised');
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
  expect((await scene.comments(1))[1]).toContain('1 row, from temp.csv, line 5');
});

test('a line that is never finished is not filed half, and `why` has a hint', async () => {
  const scene = setUp();
  scene.append(`${HEADER}${at(1)}2026-03-04 00:02,2`);
  await scene.look();
  scene.clock.advance(30 * 86_400_000);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1]);
  expect(await scene.reader.followedAt('logger', scene.path)).toMatchObject({ unfinished: 18 });
  scene.append('.5\n');
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2]);
});

test('a line end or a character that is split between two looks is read as one', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  const whole = Buffer.from('Note,T (°C)\r\nkühl,1.5\r\nwärmer,2.5\r\n');
  const first = whole.indexOf('\r\nw') + 1;
  const second = whole.indexOf('ä') + 1;
  scene.append(whole.subarray(0, first));
  await scene.look();
  expect(await scene.runs()).toEqual([]);
  scene.append(whole.subarray(first, second));
  await scene.look();
  scene.append(whole.subarray(second));
  await scene.look();
  const texts = (await scene.comments(1)).join('\n');
  expect(texts).toContain('kühl');
  expect(texts).toContain('wärmer');
  expect(values([texts])).toEqual([1, 2]);
});

test('an empty file, and one that has only its header, wait for the first reading', async () => {
  const scene = setUp();
  scene.append('');
  await scene.look();
  scene.append(HEADER);
  await scene.look();
  expect(await scene.runs()).toEqual([]);
  expect(await scene.why()).toMatch(/no reading yet/);
  scene.append(at(1));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1]);
});

test('a file that cannot be read at all is quarantined, and read again with a reading', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: { header: /^Time/ } }` });
  scene.append('x\n'.repeat(10));
  await scene.look();
  expect(await scene.runs()).toEqual([]);
  scene.clock.advance(3_700_000);
  await scene.look();
  expect((await scene.reader.job(1))?.state).toBe('quarantined');
  scene.append(HEADER + at(1));
  await scene.look();
  expect((await scene.reader.job(1))?.state).toBe('ignored');
  expect(values(await scene.comments(2))).toEqual([1]);
});

test('a line that cannot be read is reported, and those after it are filed', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(`${at(3)}2026-03-04 00:04,4.5,too,many\n${at(5)}`);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3, 5]);
  expect(texts.at(-1)).toMatch(/line 5 could not be read: .*\n {2}2026-03-04 00:04,4.5,too,many/);
  expect((await scene.history(1)).join('\n')).toMatch(/Line 5 could not be read/);
  await scene.deliver();
  await scene.deliver();
  expect((await scene.journal.outbox.load(1)).draft.body).toContain('Not read: line 5.');
});

test('more bad lines than a batch may have are reported together', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(at(3) + '2026-03-04 00:04,4.5,too,many\n'.repeat(50) + at(5));
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3]);
  expect(texts.join('\n')).toMatch(/lines 25–55 not read/);
  scene.append(at(6));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 6]);
});

test('a header that comes again is reported and skipped, whatever its facts', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', meta: { separator: ':' }, table: { header: /^Time/ } }` });
  scene.append(`Started: 08:00\n${HEADER}${at(1)}`);
  await scene.look();
  scene.append(`${at(2)}Started: 09:00\n${HEADER}${at(3)}`);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3]);
  expect(texts.at(-1)).toContain('the header comes again at line 5');
  expect(texts.at(-1)).toContain('Started: 09:00');
});

test('other columns in the middle of the file begin another run', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(`${at(3)}Time,T (°C),Humidity (%)\n2026-03-04 00:04,4.5,50\n2026-03-04 00:05,5.5,51\n`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect(values(await scene.comments(2))).toEqual([4, 5]);
  expect((await scene.comments(2))[0]).toMatch(/Humidity/);
  expect((await scene.history(1)).join('\n')).toMatch(/from line 5 on, the columns are others/i);
  scene.append('2026-03-04 00:06,6.5,52\n');
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([4, 5, 6]);
});

test.each([
  ['NUL characters', Buffer.from('2026-03-04 00:02,\0\u00002.5\n'), /line 3 contains NUL/],
  ['a byte order mark', Buffer.from('\ufeff2026-03-04 00:02,2.5\n'), /line 3 contains a byte order mark/],
])('%s in the middle are left out and reported', async (_, line, note) => {
  const scene = setUp();
  scene.append(HEADER + at(1));
  await scene.look();
  scene.append(line);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2]);
  expect(texts.at(-1)).toMatch(note);
});

test('a line in another encoding is converted and reported, and the header stays as it is', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  scene.append('Place,T (°C)\nlab,1.5\n');
  await scene.look();
  scene.append(Buffer.from('K\xfcche,2.5\n', 'latin1'));
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2]);
  expect(texts.join('\n')).toContain('Küche');
  expect(texts.at(-1)).toMatch(/line 3 is not in UTF-8/);
});

test('a file in UTF-16 is followed by its lines', async () => {
  const scene = setUp();
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
  scene.append(Buffer.concat([Buffer.from([0xff, 0xfe]), utf16(HEADER + lines(1, 2))]));
  await scene.look();
  const more = utf16(lines(3, 4));
  scene.append(more.subarray(0, more.length - 1));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  scene.append(more.subarray(more.length - 1));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
});

test('a file that shrinks by one byte is reported, and continues when it is whole again', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  const whole = readFileSync(scene.path);
  truncateSync(scene.path, whole.length - 1);
  await scene.look();
  await scene.look();
  expect(await scene.why()).toMatch(/the last 1 byte of what was filed is gone/);
  expect((await scene.history(1)).filter((text) => /became shorter/.test(text))).toHaveLength(1);
  scene.append(`\n${at(4)}`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
  expect(await scene.runs()).toEqual([1]);
});

test('a file that shrinks and goes on differently begins another run where it differs', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  truncateSync(scene.path, readFileSync(scene.path).length - 3);
  await scene.look();
  scene.append(`9.5\n${lines(4, 6)}`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect((await scene.comments(2)).join('')).toContain('39.5');
  expect(values(await scene.comments(2)).slice(1)).toEqual([4, 5, 6]);
});

test('a file that is rewritten in place begins another run', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 9));
  await scene.look();
  writeFileSync(scene.path, HEADER + lines(11, 30));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(values(await scene.comments(2))[0]).toBe(11);
  expect((await scene.history(1)).join('\n')).toMatch(/temp.csv was rewritten/);
});

test('an unfinished line of a rotated file is reported when the file is complete', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(`${at(3)}2026-03-04 00:04,4`);
  renameSync(scene.path, `${scene.path}.1`);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  for (let n = 0; n < 3; n++) {
    scene.clock.advance(120_000);
    await scene.finish();
  }
  expect((await scene.comments(1)).at(-1)).toMatch(/line 5 not filed: the file ended before.*\n {2}2026-03-04 00:04,4/);
  expect((await scene.history(1)).join('\n')).toMatch(/temp.csv.1 was read to its end/);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('a file that was renamed before another takes its place is read to its end', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(at(3));
  renameSync(scene.path, `${scene.path}.1`);
  await scene.finish();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
});

test('rotated files that match the globs themselves are not filed twice, however they are found', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  const rotated = scene.path.replace('.csv', '-1.csv');
  scene.append(at(3));
  renameSync(scene.path, rotated);
  scene.append(HEADER + lines(11, 12));
  await scene.look(rotated);
  await scene.look();
  await scene.look(rotated);
  expect(await scene.runs()).toEqual([1, 2]);
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('a copy of a growing file is not filed', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  const copy = scene.path.replace('.csv', '-copy.csv');
  copyFileSync(scene.path, copy);
  expect(await scene.look(copy)).toBe('skipped');
  expect(await scene.runs()).toEqual([1]);
});

test('a log that was rotated without a trace ends its run, which says so', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  rmSync(scene.path);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect((await scene.history(1)).join('\n')).toMatch(/lines that it got after the last look, if any, are not filed/);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('generations that begin alike are different runs', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  for (let n = 1; n <= 3; n++) {
    scene.append('N,T (°C)\n1,1.5\n');
    await scene.look();
    scene.append(`2,${n}2.5\n`);
    await scene.look();
    renameSync(scene.path, `${scene.path}.${n}`);
  }
  expect(await scene.runs()).toEqual([1, 2, 3]);
  for (const run of [1, 2, 3]) expect(values(await scene.comments(run))).toEqual([1, 10 * run + 2]);
});

test('lines out of order across midnight are filed by their own day', async () => {
  const scene = setUp({ per: 'day' });
  scene.append(HEADER + at(1, '2026-03-08') + at(2, '2026-03-09') + at(3, '2026-03-08'));
  await scene.look();
  scene.append(at(4, '2026-03-10') + at(5, '2026-03-07') + at(6, '2026-03-08'));
  await scene.look();
  const days = await Promise.all(
    (await scene.runs()).map(async (run) => {
      const { draft } = await scene.journal.outbox.load(run);
      return [draft.date, values(await scene.comments(run))];
    }),
  );
  expect(days.sort()).toEqual([
    ['2026-03-07', [5]],
    ['2026-03-08', [1, 3, 6]],
    ['2026-03-09', [2]],
    ['2026-03-10', [4]],
  ]);
});

test('readings without a date belong to the day on which they are read, by the local clock', async () => {
  const scene = setUp({ per: 'day', mapping: `parse: { delimiter: ',', table: {} }` });
  const localDay = (ms: number): string =>
    new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  const first = localDay(scene.clock.now());
  scene.append('N,T (°C)\n1,1.5\n');
  await scene.look();
  scene.clock.advance(86_400_000);
  scene.append('2,2.5\n');
  await scene.look();
  const dates = await Promise.all(
    (await scene.runs()).map(async (run) => (await scene.journal.outbox.load(run)).draft.date),
  );
  expect(dates).toEqual([first, localDay(scene.clock.now())]);
});

test('a reading dated in the future by a wrong clock is not filed in the future', async () => {
  const scene = setUp({ per: 'day' });
  scene.append(HEADER + at(1, '2099-01-01'));
  await scene.look();
  expect((await scene.journal.outbox.load(1)).draft.date).toBe('2026-03-10');
});

test('the body follows all readings, and comments have the new ones', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 40));
  await scene.look();
  await scene.deliver();
  scene.append(lines(41, 59));
  await scene.look();
  const { draft, step, earlier } = await scene.journal.outbox.load(1);
  expect(step).toBe('created');
  expect(earlier).toHaveLength(1);
  expect(draft.body).toContain('59 rows; all are in the comments');
  expect(draft.body).toMatch(/<td>59<\/td><td>1.5<\/td>.*<td>59.5<\/td>/);
  expect(draft.date).toBe('2026-03-04');
  expect(await scene.comments(1)).toHaveLength(2);
});

test('lines that arrive while a run is being delivered are stored, and delivered when it is done', async () => {
  const scene = setUp();
  scene.append(HEADER + at(1));
  await scene.look();
  await scene.journal.outbox.claim(Number.MAX_SAFE_INTEGER, 1);
  for (let n = 2; n <= 4; n++) {
    scene.append(at(n));
    await scene.look();
  }
  const before = await scene.journal.outbox.load(1);
  expect(values(before.comments.map(({ text }) => text))).toEqual([1, 2, 3, 4]);
  await scene.journal.outbox.record(1, { kind: 'finished' });
  const { draft, step } = await scene.journal.outbox.load(1);
  expect(step).toBe('created');
  expect(draft.body).toContain('<td>4.5</td>');
});

test('a batch that was handed over before a crash is not handed over again, though the file has grown', async () => {
  const lost: Partial<Journal['growing']> = {};
  const scene = setUp({
    changes: (journal) => ({
      growing: { ...journal.growing, ...lost, save: async () => undefined, saveLater: () => undefined },
    }),
  });
  scene.append(HEADER + lines(1, 3));
  // Without a header in the journal, nothing is taken: it is durable before the first batch.
  await scene.look().catch(() => undefined);
  scene.restart();
  scene.append(at(4));
  await scene.look();
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
  expect(await scene.runs()).toEqual([1]);
});

test('a batch with more readings than comments may have is summarised', async () => {
  const scene = setUp({ mapping: `${CSV}, comments: { maxBytes: 1KB, maxComments: 2 }` });
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  scene.append(lines(1, 59).repeat(10));
  await scene.look();
  const texts = await scene.comments(1);
  expect(texts).toHaveLength(2);
  expect(texts[1]).toMatch(/590 rows, 2 columns; all rows are in the raw file/);
  await scene.deliver();
  await scene.deliver();
  expect((await scene.journal.outbox.load(1)).draft.body).toContain('593 rows; all are in the file');
});

test('a secret in a line reaches neither the journal nor the notebook', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  scene.append('Place,T (°C)\nlab,1.5\n');
  await scene.look();
  scene.append(`${SECRET},2.5\n`);
  await scene.look();
  scene.append('lab,3.5\n');
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 3]);
  expect(texts.join('\n')).toMatch(/line 3 not filed: the file contains the API key/);
  expect(texts.join('\n')).not.toContain(SECRET);
});

test('without a mapping, a file is read as its first readings, and other columns are reported', async () => {
  const scene = setUp({ mapping: 'attach: never' });
  scene.append(HEADER + lines(1, 5));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
  scene.append(at(6));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6]);
});

test('logs that are rotated on and on, under names that match the globs, are filed once', async () => {
  const scene = setUp();
  const [first, second] = [1, 2].map((n) => scene.path.replace('.csv', `-${n}.csv`)) as [string, string];
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  renameSync(scene.path, first);
  scene.append(HEADER + lines(11, 12));
  for (const path of [first, scene.path]) await scene.look(path);
  scene.append(at(13));
  renameSync(first, second);
  renameSync(scene.path, first);
  scene.append(HEADER + lines(21, 22));
  for (const path of [first, scene.path, second, first, scene.path]) await scene.look(path);
  expect(await Promise.all((await scene.runs()).map(async (run) => values(await scene.comments(run))))).toEqual([
    [1, 2],
    [11, 12, 13],
    [21, 22],
  ]);
});

test('a backlog is read in batches, and delivered in one update', async () => {
  const scene = setUp();
  const many = Array.from({ length: 200_000 }, (_, n) => `2026-03-04 00:${String(n % 60).padStart(2, '0')},${n}.5\n`);
  scene.append(HEADER + many.join(''));
  expect(statSync(scene.path).size).toBeGreaterThan(4 * 2 ** 20);
  await scene.look();
  const texts = await scene.comments(1);
  expect(texts).toHaveLength(2);
  expect(texts.join('\n')).toMatch(/Summary of temp.csv, lines 1–.*Summary of temp.csv, lines/s);
  await scene.deliver();
  const { draft } = await scene.journal.outbox.load(1);
  expect(draft.body).toContain('200,000 rows; all are in the file');
  expect(draft.body).toMatch(/<td>200,000<\/td><td>0.5<\/td><td>≈ [0-9.]+<\/td><td>199999.5<\/td>/);
}, 60_000);

test('a run that is refiled gets the later lines, and its predecessor none', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  await scene.deliver();
  const { answer } = await scene.journal.requests.decide({ kind: 'refile', run: 1 }, NOWHERE);
  expect(answer.done).toBe(true);
  scene.append(at(3));
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([1, 2, 3]);
  expect(values(await scene.comments(1))).toEqual([1, 2]);
});

test('a growing run is neither remapped nor erased before its file has ended', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  await scene.journal.outbox.record(1, { kind: 'intended', server: 'x', floor: 0, at: 1 });
  await scene.journal.outbox.record(1, { kind: 'created', experiment: 7, found: false });
  await scene.deliver();
  const decide = async (kind: 'remap' | 'erase') =>
    (await scene.journal.requests.decide({ kind, run: 1 }, NOWHERE)).answer;
  expect(await decide('remap')).toMatchObject({
    done: false,
    text: expect.stringMatching(/keeps growing: the current mapping/),
  });
  expect(await decide('erase')).toMatchObject({
    done: false,
    text: expect.stringMatching(/rename or remove the file first/),
  });
  rmSync(scene.path);
  scene.append('Time,P (bar)\n2026-03-04 00:01,1.5\n');
  await scene.look();
  expect(await decide('erase')).toMatchObject({ done: true });
  await scene.journal.growing.erase(1);
  const left = scene.database.prepare('SELECT head, tail, header, path FROM growing WHERE id = 1').get();
  expect(left).toMatchObject({ header: null, path: expect.stringMatching(/^erased:/) });
  expect(scene.database.prepare('SELECT accumulation, next FROM growths WHERE run = 1').get()).toEqual({
    accumulation: '',
    next: null,
  });
});

test('after an older journal was restored, comments are looked for before they are posted', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  await scene.deliver();
  await scene.journal.recovery.begin('https://eln');
  scene.append(at(3));
  await scene.look();
  const [, second] = (await scene.journal.outbox.load(1)).comments;
  expect(second?.intentAt).toBe(0);
  await scene.journal.outbox.record(1, { kind: 'commented', n: 2, comment: 9, found: false }, { kind: 'finished' });
  scene.append(at(4));
  await scene.look();
  expect((await scene.journal.outbox.load(1)).comments[2]?.intentAt).toBeUndefined();
});

test('a run that another journal filed is held, and its lines are set aside only if a person says so', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  // As after a lost journal: the run is known from the notebook alone.
  scene.database.exec(`DELETE FROM growths; DELETE FROM generations; DELETE FROM growing; DELETE FROM drafts;
    UPDATE runs SET step = 'done', mapping = '', experiment = 7, server = 'x'`);
  scene.restart();
  scene.append(at(3));
  await scene.look();
  expect(await scene.reader.job(1)).toMatchObject({
    state: 'held',
    reason: expect.stringMatching(/labfeed refile 1.*labfeed ignore 1/),
  });
  expect(await scene.runs()).toEqual([1]);
  await scene.journal.requests.decide({ kind: 'ignore', run: 1 }, NOWHERE);
  await scene.look();
  expect(await scene.runs()).toEqual([1]);
  renameSync(scene.path, `${scene.path}.1`);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

const NOWHERE = { path: '', has: 'nothing' } as const;
