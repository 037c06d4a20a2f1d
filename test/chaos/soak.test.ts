import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readLive } from '../../src/live.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/** Each day takes about three seconds. `LABFEED_DAYS=30` is a month. */
const DAYS = Number(process.env['LABFEED_DAYS'] ?? 12);
const FILES_PER_DAY = 12;
const KEPT_FOLDERS = 4;

const INSTRUMENTS = `  balance: { watch: data/balance, ready: { quiet: 150ms }, existing: ingest }
  reader: { watch: data/reader, files: "**/*.csv", ready: { quiet: 150ms }, existing: ingest, poll: 1s }
  share: { watch: data/share/balance, ready: { quiet: 150ms }, existing: ingest, poll: 1s }
  logger:
    watch: data/logger
    files: "temp.csv"
    run: { growing: { every: 1s } }
    existing: ingest
    ready: { quiet: 150ms }
    poll: 1s
    parse: { delimiter: ",", table: {} }
    comments: { readings: lines }`;
const LINES_PER_DAY = 30;
const KEPT_LOGS = 3;

interface Sample {
  readonly runs: number;
  readonly bytes: number;
  readonly descriptors: number;
  readonly watches: number;
  readonly walBytes: number;
}

interface Scene {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
  readonly daemon: DaemonProcess;
  /** Files that were dropped so far, by title. */
  readonly titles: string[];
  /** Rotated logs so far, and the one that grows. */
  readonly logs: number[][];
}

test(`after ${DAYS} days of files, outages, reloads and missing shares, memory, handles, watches and journal are as before`, {
  timeout: 60_000 + DAYS * 60_000,
}, async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, timeout: '2s', instruments: INSTRUMENTS });
  for (const name of ['reader', 'share/balance', 'logger']) mkdirSync(join(folder, 'data', name), { recursive: true });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const scene: Scene = { site, sandbox, daemon, titles: [], logs: [] };
  const samples: Sample[] = [];
  for (let day = 0; day < DAYS; day++) {
    rotateLog(day, scene);
    await passDay(day, scene);
    await logDay(day, scene);
    samples.push(takeSample(scene));
  }
  // That of a new folder may come later than its files are filed.
  await until('each folder is watched', () => takeSample(scene).watches === countFolders(site));
  console.log(samples.map(describeSample).join('\n'));
  expect(await daemon.stop()).toBe(0);
  verifyFiled(scene);
  verifyFlat(samples, scene);
});

/** As logrotate does, every other day by copying and truncating: lines of the last seconds were not read yet. */
function rotateLog(day: number, { site: { folder }, logs }: Scene): void {
  const log = join(folder, 'data', 'logger', 'temp.csv');
  for (let n = KEPT_LOGS; n > 0 && day > 0; n--) {
    const [from, to] = [n === 1 ? log : `${log}.${n - 1}`, `${log}.${n}`];
    if (!existsSync(from)) continue;
    if (n > 1 || day % 2 === 0) renameSync(from, to);
    else {
      copyFileSync(from, to);
      truncateSync(from, 0);
    }
  }
  logs.push([]);
  appendFileSync(log, 'n,T (°C)\n');
  appendLines(log, logs);
}

function appendLines(log: string, logs: number[][]): void {
  const first = logs.flat().length;
  for (let n = first; n < first + LINES_PER_DAY; n++) {
    appendFileSync(log, `${n},${n}.5\n`);
    logs.at(-1)?.push(n);
  }
}

/** The readings of each log are in its experiment, once and in their order. The last ones of the day are written now. */
async function logDay(day: number, { site, sandbox, logs }: Scene): Promise<void> {
  const filed = (): string =>
    JSON.stringify(
      loggedIn(sandbox).map(({ comments }) =>
        comments.flatMap(({ comment }) => [...comment.matchAll(/(\d+)\.5(?= °C)/g)].map(([, n]) => Number(n))),
      ),
    );
  await until(`the log of day ${day} is filed`, () => filed() === JSON.stringify(logs), 120_000);
  appendLines(join(site.folder, 'data', 'logger', 'temp.csv'), logs);
}

const loggedIn = (sandbox: RunningSandbox) =>
  sandbox.control.experiments().filter(({ title }) => title === 'temp (logger)');

async function passDay(day: number, { site, sandbox, daemon, titles }: Scene): Promise<void> {
  const { folder } = site;
  const drop = (instrument: string, path: string, n: number): void => {
    const stem = `d${day}-${instrument}-${n}`;
    site.drop(join(path, `${stem}.csv`), weighing(10_000 * (day + 1) + titles.length), instrument);
    titles.push(`${stem} (${instrument})`);
  };
  if (day % 3 === 1) sandbox.control.setOutage('maintenance');
  if (day % 4 === 2) daemon.child.kill('SIGHUP');
  for (let n = 0; n < FILES_PER_DAY; n++) drop('balance', '', n);
  mkdirSync(join(folder, 'data', 'reader', `day-${day}`), { recursive: true });
  // A folder a day; old ones are removed, as people do.
  for (let n = 0; n < 3; n++) drop('reader', `day-${day}`, n);
  rmSync(join(folder, 'data', 'reader', `day-${day - KEPT_FOLDERS}`), { recursive: true, force: true });
  if (day % 3 === 2) await missShare(day, site, titles);
  if (day % 3 === 1)
    await until('the outage is noticed', () => readLive(site.journal)?.notebook.gate.kind === 'down', 60_000);
  sandbox.control.setOutage(undefined);
  await until(`all files of day ${day} are filed`, () => countFiled(daemon) === titles.length, 120_000);
  // A file that is renamed is not filed again.
  renameSync(join(folder, 'data/balance', `d${day}-balance-0.csv`), join(folder, 'data/balance', `renamed-${day}.csv`));
}

/** The share is unmounted: its folder is there, but empty, or it is missing. It comes back with a new file. */
async function missShare(day: number, { folder }: Site, titles: string[]): Promise<void> {
  const share = join(folder, 'data', 'share');
  renameSync(share, `${share}.away`);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const stem = `d${day}-share`;
  writeFileSync(join(`${share}.away`, 'balance', `${stem}.csv`), weighing(9_000_000 + day));
  titles.push(`${stem} (share)`);
  renameSync(`${share}.away`, share);
}

const countFiled = ({ lines }: DaemonProcess): number =>
  lines.filter(({ msg, instrument }) => msg === 'run filed' && instrument !== 'logger').length;

function takeSample({ daemon, site, titles }: Scene): Sample {
  const proc = `/proc/${daemon.child.pid}`;
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`${proc}/status`, 'utf8')) ?? [];
  const watches = readdirSync(`${proc}/fdinfo`).map((name) => {
    try {
      return readFileSync(`${proc}/fdinfo/${name}`, 'utf8').match(/^inotify /gm)?.length ?? 0;
    } catch {
      return 0;
    }
  });
  return {
    runs: titles.length,
    bytes: Number(kilobytes) * 1024,
    descriptors: readdirSync(`${proc}/fd`).length,
    watches: watches.reduce((sum, count) => sum + count, 0),
    walBytes: statSync(`${site.journal}-wal`).size,
  };
}

const describeSample = ({ runs, bytes, descriptors, watches, walBytes }: Sample): string =>
  `${runs} runs: ${(bytes / 2 ** 20).toFixed(0)} MB, ${descriptors} descriptors, ${watches} watches, ${(walBytes / 2 ** 20).toFixed(1)} MB of WAL`;

/** Four that are configured, and those of the last days. */
const countFolders = ({ folder }: Site): number => 4 + readdirSync(join(folder, 'data', 'reader')).length;

function verifyFiled({ sandbox, titles }: Scene): void {
  const filed = sandbox.experiments().flatMap(({ title }) => (title === 'temp (logger)' ? [] : [title]));
  expect(filed.toSorted()).toEqual(titles.toSorted());
}

function verifyFlat(samples: readonly Sample[], { site }: Scene): void {
  const last = samples.at(-1) ?? expect.fail('there is no sample');
  const third = Math.ceil(samples.length / 3);
  const [early, late] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
  const least = (all: readonly Sample[], of: (sample: Sample) => number): number => Math.min(...all.map(of));
  expect(least(late, ({ descriptors }) => descriptors)).toBeLessThanOrEqual(
    least(early, ({ descriptors }) => descriptors) + 2,
  );
  expect(least(late, ({ bytes }) => bytes)).toBeLessThan(1.15 * least(early, ({ bytes }) => bytes));
  // SQLite writes the WAL from its start again after 4000 pages.
  expect(Math.max(...samples.map(({ walBytes }) => walBytes))).toBeLessThan(20 * 2 ** 20);
  // The journal was checkpointed when the daemon stopped. An empty one takes 200 KB, a log about 20.
  expect(statSync(site.journal).size).toBeLessThan(300_000 + 8000 * last.runs + 40_000 * DAYS);
}
