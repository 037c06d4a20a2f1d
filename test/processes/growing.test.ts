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
import { expect, test } from 'vitest';
import type { Dialect } from '../../src/model.js';
import {
  type CrashPoint,
  type DaemonProcess,
  makeSite,
  peakBytes,
  type Site,
  startCrashing,
  startDaemon,
} from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { DIALECTS, type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

interface Scene {
  readonly sandbox: RunningSandbox;
  readonly site: Site;
  readonly log: string;
  append(text: string | Buffer): void;
}

const DAY = '2026-03-04';
const HEADER = 'Time,T (°C)\n';
/** A request that a kill cut off counts as lost after the grace period: 130 s on eLabFTW. */
const UNKNOWN_OUTCOME_MS = 240_000;

async function setUp(
  per: 'file' | 'day' = 'file',
  dialect: Dialect = 'v2',
  more = '',
  plot = ', plot: never',
  status = 'false',
): Promise<Scene> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const instruments = `
  logger:
    watch: data/logger
    files: "*.csv"
    run: { growing: { per: ${per}, every: 1s } }
    ready: { quiet: 100ms }
    poll: 300ms
    existing: ingest
    parse: { delimiter: ',', dates: { format: 'yyyy-MM-dd HH:mm:ss' }, table: {} }
    experiment: { title: "{{ file.stem }}"${plot} }
    ${more}`;
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments, status });
  mkdirSync(join(folder, 'data', 'logger'), { recursive: true });
  const log = join(folder, 'data', 'logger', 'temp.csv');
  return { sandbox, site, log, append: (text) => appendFileSync(log, text) };
}

const at = (minute: number, value = minute, day = '2026-03-04'): string =>
  `${day} ${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}:00,${value}.5\n`;

const lines = (from: number, to: number, day?: string): string =>
  Array.from({ length: to - from + 1 }, (_, n) => at(from + n, from + n, day)).join('');

/** The readings in the comments, in their order. */
const valuesIn = (comments: readonly { readonly comment: string }[]): string[] =>
  comments.flatMap(({ comment }) => [...comment.matchAll(/\d+\.5(?= °C|$)/gm)].map(([value]) => value));

/** The readings of each experiment, by its date and, in the order of their creation, its number. */
const readings = ({ sandbox }: Scene): [string, string[]][] =>
  sandbox.control.experiments().map(({ date, comments }) => [date, valuesIn(comments)]);

const values = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, n) => `${from + n}.5`);

const shown = (
  scene: Scene,
  wanted: readonly (readonly [string, readonly string[]])[],
  withinMs = 60_000,
): Promise<void> =>
  until('the readings', () => JSON.stringify(readings(scene)) === JSON.stringify(wanted), withinMs).catch(() =>
    expect(readings(scene)).toEqual(wanted),
  );

test.each(DIALECTS)('new lines become comments of one experiment, and its body follows (%s)', async (dialect) => {
  const scene = await setUp('file', dialect);
  scene.append(HEADER + lines(1, 3));
  const daemon = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 3)]]);
  scene.append(lines(4, 5) + at(6).slice(0, 8));
  await shown(scene, [[DAY, values(1, 5)]]);
  scene.append(at(6).slice(8) + lines(7, 40));
  await shown(scene, [[DAY, values(1, 40)]]);
  await until('the body', () => /40 rows/.test(scene.sandbox.experiments()[0]?.body ?? ''));
  expect(await daemon.stop()).toBe(0);
  const [experiment] = scene.sandbox.experiments();
  expect(experiment?.date).toBe('2026-03-04');
  expect(experiment?.comments).toHaveLength(3);
});

test.each(DIALECTS)(
  'a log that is rotated by renaming ends its run, and the next one begins another (%s)',
  async (dialect) => {
    const scene = await setUp('file', dialect);
    scene.append(HEADER + lines(1, 3));
    const daemon = startDaemon(scene.site.config);
    await shown(scene, [[DAY, values(1, 3)]]);
    // Lines that were written between the last look and the rotation, the last of them unfinished.
    scene.append(lines(4, 5) + at(6).slice(0, 12));
    renameSync(scene.log, `${scene.log}.1`);
    scene.append(HEADER + lines(11, 12));
    await shown(scene, [
      [DAY, values(1, 5)],
      [DAY, values(11, 12)],
    ]);
    await reported(daemon, /the file temp.csv was replaced by another file, and is now temp.csv.1/);
    expect(await daemon.stop()).toBe(0);
  },
);

test.each(DIALECTS)(
  'a log that is copied and truncated ends its run, and the next lines begin another (%s)',
  async (dialect) => {
    const scene = await setUp('file', dialect);
    scene.append(HEADER + lines(1, 9));
    const daemon = startDaemon(scene.site.config);
    await shown(scene, [[DAY, values(1, 9)]]);
    scene.append(lines(10, 11));
    copyFileSync(scene.log, `${scene.log}.1`);
    truncateSync(scene.log, 0);
    scene.append(HEADER + lines(21, 22));
    await shown(scene, [
      [DAY, values(1, 11)],
      [DAY, values(21, 22)],
    ]);
    await reported(daemon, /the file temp.csv was truncated, and is now temp.csv.1/);
    expect(await daemon.stop()).toBe(0);
  },
);

test('after two rotations between two looks, the log in between is filed, too', async () => {
  const scene = await setUp();
  scene.append(HEADER + lines(1, 3));
  const daemon = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 3)]]);
  expect(await daemon.stop()).toBe(0);
  scene.append(at(4));
  renameSync(scene.log, `${scene.log}.2`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  scene.append(HEADER + lines(11, 12));
  renameSync(scene.log, `${scene.log}.1`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  scene.append(HEADER + lines(21, 22));
  const again = startDaemon(scene.site.config);
  // The rotated logs are read before the new one.
  await shown(scene, [
    [DAY, values(1, 4)],
    [DAY, values(11, 12)],
    [DAY, values(21, 22)],
  ]);
  expect(await again.stop()).toBe(0);
});

test.each(DIALECTS)('readings are filed by their own day, also if they are late (%s)', async (dialect) => {
  const scene = await setUp('day', dialect);
  scene.append(HEADER + lines(1, 2, '2026-03-04'));
  const daemon = startDaemon(scene.site.config);
  await until('the first day', () => scene.sandbox.experiments()[0]?.comments.length === 1);
  scene.append(at(3, 3, '2026-03-05') + at(4, 4, '2026-03-04') + at(5, 5, '2026-03-05'));
  await shown(scene, [
    ['2026-03-04', ['1.5', '2.5', '4.5']],
    ['2026-03-05', ['3.5', '5.5']],
  ]);
  expect(await daemon.stop()).toBe(0);
});

test.each(DIALECTS)('what somebody changed in the experiment stays, and comments go on (%s)', async (dialect) => {
  const scene = await setUp('file', dialect);
  scene.append(HEADER + lines(1, 3));
  const daemon = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 3)]]);
  const id = scene.sandbox.experiments()[0]?.id ?? 0;
  const body = `${scene.sandbox.experiments()[0]?.body}<p>Seen by Ada</p>`;
  scene.sandbox.control.as('owner').edit(id, { body });
  scene.append(lines(4, 5));
  await shown(scene, [[DAY, values(1, 5)]]);
  scene.append(lines(6, 7));
  await shown(scene, [[DAY, values(1, 7)]]);
  expect(await daemon.stop()).toBe(0);
  expect(scene.sandbox.experiments()[0]?.body).toBe(body);
  const { stdout } = await labfeed(['show', '1', '--config', scene.site.config]);
  expect(stdout.match(/The experiment stays as it is/g)).toHaveLength(1);
  expect(stdout).toMatch(/^growing .*only comments are added: somebody changed the experiment/m);
});

test('the plot follows the readings, and the raw file is attached once when it was rotated and read to its end', async () => {
  const scene = await setUp('file', 'elabftw', '', '');
  const uploads = (n: number) =>
    scene.sandbox.control
      .experiments()
      [n]?.uploads.filter(({ state }) => state === 1)
      .map(({ real_name, filesize, hash }) => `${real_name} ${filesize} ${hash}`) ?? [];
  const plots = (n: number) => uploads(n).filter((upload) => upload.startsWith('temp-plot.png'));
  scene.append(HEADER + lines(1, 9));
  const daemon = startDaemon(scene.site.config);
  await until('the plot', () => plots(0).length === 1);
  const [first] = plots(0);
  scene.append(lines(10, 30));
  await until('the next plot', () => plots(0).length === 1 && plots(0)[0] !== first, 60_000);
  const image = /app\/download\.php[^"]*/;
  await until('the body shows it', () => image.test(scene.sandbox.experiments()[0]?.body ?? ''));
  expect(uploads(0)).toHaveLength(1);
  const { size } = statSync(scene.log);
  renameSync(scene.log, `${scene.log}.1`);
  scene.append(HEADER + lines(41, 42));
  const hourAgo = Date.now() / 1000 - 3600;
  utimesSync(`${scene.log}.1`, hourAgo, hourAgo);
  await until('the raw file', () => uploads(0).some((upload) => upload.startsWith(`temp.csv ${size} `)), 60_000);
  await shown(scene, [
    [DAY, values(1, 30)],
    [DAY, values(41, 42)],
  ]);
  expect(uploads(0)).toHaveLength(2);
  expect(await daemon.stop()).toBe(0);
});

const reported = (daemon: DaemonProcess, what: RegExp) => daemon.logged((line) => what.test(String(line['what'])));

/** Appends a line every now and then until the process has died, then a few more. Returns the number of the last one. */
async function growUntilDead(scene: Scene, daemon: DaemonProcess, from: number): Promise<number> {
  let last = from;
  for (let n = 0; daemon.child.exitCode === null && daemon.child.signalCode === null; n++) {
    if (n > 1500) throw new Error(`the crash was not reached:\n${daemon.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (n % 5 === 4) scene.append(at(++last));
  }
  if (daemon.child.signalCode !== 'SIGKILL') throw new Error(daemon.output());
  scene.append(lines(last + 1, last + 2));
  return last + 2;
}

const CRASHES: readonly (readonly [CrashPoint['when'], CrashPoint['kind'], number])[] = [
  ['after', 'begun', 1],
  ['before', 'saved', 1],
  ['before', 'appended', 1],
  ['after', 'appended', 1],
  ['after', 'appended', 2],
  ['before', 'flushed', 2],
  ['after', 'flushed', 2],
  // Of the delivery of run 1.
  ['after', 'described', 1],
  ['after', 'commentIntended', 1],
  ['before', 'commented', 1],
  ['before', 'finished', 1],
];

test.each(CRASHES)(
  'killed %s a batch is %s (%i), the daemon files each line once after a restart',
  async (when, kind, count) => {
    const scene = await setUp();
    scene.append(HEADER + lines(1, 3));
    const last = await growUntilDead(scene, startCrashing(scene.site.config, count, { when, kind }), 3);
    const daemon = startDaemon(scene.site.config);
    await shown(scene, [[DAY, values(1, last)]], 60_000);
    scene.append(at(last + 1));
    await shown(scene, [[DAY, values(1, last + 1)]], 60_000);
    expect(await daemon.stop()).toBe(0);
  },
);

test.each(DIALECTS)('killed while a rotated log is read, the daemon files each line once (%s)', async (dialect) => {
  const scene = await setUp('file', dialect);
  scene.append(HEADER + lines(1, 3));
  const daemon = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 3)]]);
  expect(await daemon.stop()).toBe(0);
  for (const [when, count] of [
    ['before', 1],
    ['after', 1],
    ['after', 2],
  ] as const) {
    if (when === 'before') {
      scene.append(lines(4, 5));
      renameSync(scene.log, `${scene.log}.1`);
      scene.append(HEADER + lines(11, 12));
    }
    const dying = startCrashing(scene.site.config, count, { when, kind: count === 1 ? 'reported' : 'appended' });
    await Promise.race([
      dying.ended,
      shown(
        scene,
        [
          [DAY, values(1, 5)],
          [DAY, values(11, 12)],
        ],
        10_000,
      ).catch(() => undefined),
    ]);
    await dying.kill();
  }
  const again = startDaemon(scene.site.config);
  await shown(
    scene,
    [
      [DAY, values(1, 5)],
      [DAY, values(11, 12)],
    ],
    UNKNOWN_OUTCOME_MS,
  );
  scene.append(at(13));
  await shown(
    scene,
    [
      [DAY, values(1, 5)],
      [DAY, values(11, 13)],
    ],
    60_000,
  );
  expect(await again.stop()).toBe(0);
});

/** How many bytes a process has read so far. */
const bytesRead = ({ child }: DaemonProcess): number =>
  Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${child.pid}/io`, 'utf8'))?.[1]);

test('a log of 1 GB that grows by a line costs a read of kilobytes', async () => {
  const scene = await setUp('file', 'v2', 'silence: 24h');
  writeFileSync(
    scene.site.config,
    readFileSync(scene.site.config, 'utf8').replace('existing: ingest', 'existing: skip'),
  );
  scene.append(HEADER + lines(1, 3));
  // What was there before is skipped; most of it is a hole, which takes no space on the disk.
  truncateSync(scene.log, 2 ** 30);
  scene.append('\n');
  const daemon = startDaemon(scene.site.config);
  await daemon.logged('ready');
  scene.append(lines(4, 5));
  await shown(scene, [[DAY, values(4, 5)]]);
  const before = bytesRead(daemon);
  scene.append(at(6));
  await shown(scene, [[DAY, values(4, 6)]]);
  // The daemon also reads its folder, its journal and the answers of the notebook.
  expect(bytesRead(daemon) - before).toBeLessThan(10 * 2 ** 20);
  expect(await daemon.stop()).toBe(0);
});

test('status, show, why, audit and the page say how far a growing file has come', async () => {
  const scene = await setUp('day', 'v2', '', ', plot: never', '127.0.0.1:0');
  scene.append(HEADER + lines(1, 3) + at(4).slice(0, 12));
  const daemon = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 3)]]);
  await daemon.logged('run filed');
  const { url } = await daemon.logged('status page listening');
  const command = async (...args: string[]) => (await labfeed([...args, '--config', scene.site.config])).stdout;
  const taken = /85 bytes taken, 4 lines, the last of them on .*its last line \(12 bytes\) has no line end yet/;
  const status = await command('status');
  expect(status).toMatch(/^growing files$/m);
  expect(status).toMatch(new RegExp(`temp.csv: ${taken.source}`));
  const grown = /3 readings of 2026-03-04, up to byte 85 \(line 4\) of the file/;
  expect(await command('show', '1')).toMatch(new RegExp(`^growing +${grown.source}`, 'm'));
  expect(await command('why', scene.log)).toMatch(new RegExp(`the file keeps growing: ${taken.source}`));
  expect(await command('audit')).toMatch(/files that keep growing, which are not safe to delete[\s\S]*temp.csv/);
  const page = (await (await fetch(new URL('/api/jobs/1', String(url)))).json()) as Record<string, unknown>;
  expect(page['growing']).toMatch(grown);
  // A run that waits for its next lines is done: it neither waits nor is it late.
  expect((await fetch(new URL('/readyz', String(url)))).status).toBe(200);
  expect(await daemon.stop()).toBe(0);
});

test.each([
  ['before', 'replaced'],
  ['after', 'replaced'],
] as const)('killed %s a changed file is %s, the daemon files each line once', async (when, kind) => {
  const scene = await setUp();
  scene.append(HEADER + lines(1, 9));
  const first = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 9)]]);
  expect(await first.stop()).toBe(0);
  truncateSync(scene.log, Buffer.byteLength(HEADER + lines(1, 7)));
  scene.append(lines(30, 39));
  const dying = startCrashing(scene.site.config, 1, { when, kind });
  await dying.ended;
  const again = startDaemon(scene.site.config);
  await shown(
    scene,
    [
      [DAY, values(1, 9)],
      [DAY, values(30, 39)],
    ],
    60_000,
  );
  expect(await again.stop()).toBe(0);
});

test.each([
  ['before', 'attached'],
  ['after', 'attached'],
  ['before', 'uploaded'],
] as const)('killed %s the raw file is %s, the daemon attaches it once', async (when, kind) => {
  const scene = await setUp('file', 'elabftw');
  const names = () => scene.sandbox.control.experiments().flatMap(({ uploads }) => uploads.map((one) => one.real_name));
  scene.append(HEADER + lines(1, 9));
  const first = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 9)]]);
  renameSync(scene.log, `${scene.log}.1`);
  scene.append(HEADER + lines(41, 42));
  const both = [
    [DAY, values(1, 9)],
    [DAY, values(41, 42)],
  ] as const;
  await shown(scene, both);
  expect(await first.stop()).toBe(0);
  const hourAgo = Date.now() / 1000 - 3600;
  utimesSync(`${scene.log}.1`, hourAgo, hourAgo);
  await startCrashing(scene.site.config, 1, { when, kind }).ended;
  const again = startDaemon(scene.site.config);
  if (kind === 'attached') await until('the raw file', () => names().length > 0, 60_000);
  else await again.logged('ready');
  expect(names()).toEqual(['temp.csv']);
  await shown(scene, both);
  expect(await again.stop()).toBe(0);
});

test('a large log at first sight takes little memory and few comments', async () => {
  const scene = await setUp();
  scene.append(HEADER);
  const day = lines(0, 1439);
  const days = Math.ceil((20 * 2 ** 20) / day.length);
  scene.append(day.repeat(days));
  const daemon = startDaemon(scene.site.config);
  const all = `${(days * 1440).toLocaleString('en')} rows; all are in the file`;
  // One comment for each batch of 4 MB, after the body.
  const isFiled = () => {
    const [experiment] = scene.sandbox.experiments();
    return experiment?.body.includes(all) === true && experiment.comments.length >= 6;
  };
  await until('all lines are filed', isFiled, 300_000);
  // 200 MB take 360 MB, too.
  expect(peakBytes(daemon)).toBeLessThan(600 * 2 ** 20);
  expect(await daemon.stop()).toBe(0);
  expect(scene.sandbox.experiments()[0]?.comments).toHaveLength(6);
});

test('after a lost journal, a growing file is held and not filed a second time', async () => {
  const scene = await setUp();
  scene.append(HEADER + lines(1, 3));
  const first = startDaemon(scene.site.config);
  await shown(scene, [[DAY, values(1, 3)]]);
  scene.append(at(4));
  await shown(scene, [[DAY, values(1, 4)]]);
  expect(await first.stop()).toBe(0);
  for (const suffix of ['', '-wal', '-shm']) rmSync(scene.site.journal + suffix, { force: true });
  const recovered = await labfeed(['recover', '--ids', '1-5', '--config', scene.site.config]);
  expect(recovered.status, recovered.stderr).toBe(0);
  scene.append(at(5));
  const second = startDaemon(scene.site.config);
  await second.logged('run held');
  expect(readings(scene)).toEqual([[DAY, values(1, 4)]]);
  const held = await labfeed(['show', '1', '--config', scene.site.config]);
  expect(held.stdout).toMatch(/it is not known which lines of .*temp.csv are in experiment/);
  const refiled = await labfeed(['refile', '1', '--config', scene.site.config]);
  expect(refiled.status, refiled.stderr).toBe(0);
  await shown(scene, [
    [DAY, values(1, 4)],
    [DAY, values(1, 5)],
  ]);
  scene.append(at(6));
  await shown(scene, [
    [DAY, values(1, 4)],
    [DAY, values(1, 6)],
  ]);
  expect(await second.stop()).toBe(0);
});
