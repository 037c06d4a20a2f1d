import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';
import { CLI, start } from './processes.mjs';
import { median } from './ratios.mjs';
import { csv, fillFolder, makeSite, startDaemon } from './site.mjs';
import { findMs } from './startup.mjs';

const MAX_RUNS = Number(process.env['LABFEED_RUNS'] ?? 1_000_000);
const SIZES = [1000, 10_000, 100_000, 1_000_000].filter((runs) => runs <= MAX_RUNS);
const FILES = 400;
const KNOWN_FILES = 100_000;
const FOLDERS = 20;
const IDLE_MS = 10_000;

/**
 * What a run costs as the journal grows, and what a folder with many known files costs.
 * @returns {Promise<string[]>} The lines to print.
 */
export async function measureScale(folder, tell) {
  return [...(await measureJournal(join(folder, 'journal'), tell)), '', ...(await measureFolder(folder, tell))];
}

/** One journal and one server, for all sizes: a server that starts again at its first id would seem to be restored. */
async function measureJournal(folder, tell) {
  const watch = join(folder, 'watched');
  mkdirSync(watch, { recursive: true });
  const server = start(fileURLToPath(new URL('plain-server.mjs', import.meta.url)), '0', String(10 * MAX_RUNS));
  await server.wrote('"url"');
  const { url } = JSON.parse(server.lines[0]);
  const site = makeSite(folder, { watch, notebook: { url, key: 'key' }, existing: 'ingest' });
  const lines = [
    'runs in the journal | ready | processor time a run | wall time a run | idle, a minute | slowest command',
  ];
  let filed = 0;
  for (const runs of [0, ...SIZES]) {
    tell(`scale: ${runs} runs in the journal`);
    if (runs > 0) addRuns(join(site.journal, 'journal.db'), runs, { url, watch });
    const measured = await fileMore(site, watch, server, filed);
    filed += FILES;
    // The first one only creates the journal.
    if (runs === 0) continue;
    const commands = timeCommands(site, join(watch, `old-${runs / 2}.csv`));
    const [name, ms] = commands.reduce((slowest, one) => (one[1] > slowest[1] ? one : slowest));
    const { readyMs, cpuMs, wallMs, idleMs } = measured;
    const columns = [
      ...[runs, `${(readyMs / 1000).toFixed(2)} s`, `${cpuMs.toFixed(2)} ms`, `${wallMs.toFixed(2)} ms`],
      ...[`${(idleMs / 1000).toFixed(2)} s`, `${name}: ${(ms / 1000).toFixed(2)} s`],
    ];
    lines.push(columns.join(' | '));
  }
  await server.stop();
  return lines;
}

async function fileMore(site, watch, server, filed) {
  const daemon = startDaemon(site);
  const { atMs } = await daemon.wrote('"ready"');
  const readyMs = atMs - daemon.startedMs;
  const cpuBefore = daemon.cpuMs();
  const startedMs = performance.now();
  for (let n = filed; n < filed + FILES; n++) writeFileSync(join(watch, `run-${n}.csv`), csv(10, n));
  const end = await server.wrote(`filed ${filed + FILES}.`);
  const cpuMs = (daemon.cpuMs() - cpuBefore) / FILES;
  await sleep(1000);
  const idleBefore = daemon.cpuMs();
  await sleep(IDLE_MS);
  const idleMs = ((daemon.cpuMs() - idleBefore) * 60_000) / IDLE_MS;
  await daemon.stop();
  return { readyMs, cpuMs, wallMs: (end.atMs - startedMs) / FILES, idleMs };
}

/** Fills the journal up to this many runs that were filed over the last months, with all that a filed run leaves. */
function addRuns(file, runs, { url, watch }) {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; BEGIN');
  const first = Number(
    db.prepare('SELECT ifnull(max(experiment), 0) + 1 AS n FROM runs WHERE experiment < ?').get(10 * MAX_RUNS).n,
  );
  const rows = `WITH RECURSIVE numbers (n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${runs})`;
  const path = `'${watch.replaceAll("'", "''")}/old-' || n || '.csv'`;
  const at = `${Date.now() - 200 * 86_400_000} + n * ${Math.floor((190 * 86_400_000) / runs)}`;
  db.exec(`${rows} INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping, step,
      server, floor, intent_at, experiment, added_at, updated_at)
    SELECT 'balance', lower(hex(randomblob(32))), '', 0, lower(hex(randomblob(8))), ${path}, 400, ${at}, 0, 'bench', 'done',
      '${url}', n - 1, ${at}, n, ${at}, ${at} FROM numbers`);
  db.exec(
    `CREATE TEMP TABLE added AS SELECT id, path, sha256, experiment AS n, added_at FROM runs WHERE experiment BETWEEN ${first} AND ${runs}`,
  );
  db.exec(
    `INSERT INTO drafts (run, title, date, body, tags) SELECT id, 'old-' || n, '2026-01-01', '<p>${'x'.repeat(300)}</p>', '["balance"]' FROM added`,
  );
  db.exec(
    `INSERT INTO comments (run, n, text, intent_at, comment) SELECT id, 1, '${'x'.repeat(200)}', added_at, n FROM added`,
  );
  for (const event of ['read', 'intended', 'created', 'described', 'commentIntended', 'commented', 'finished'])
    db.exec(`INSERT INTO history (run, at, event, detail) SELECT id, added_at, '${event}', '{}' FROM added`);
  db.exec(`INSERT INTO files (instrument, path, size, mtime_ns, inode, verdict, sha256, copy, ctime_ns)
    SELECT 'balance', path, 400, added_at * 1000000, n, 'taken', sha256, '', added_at * 1000000 FROM added`);
  db.exec('DROP TABLE added; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}

const COMMANDS = [
  ['status'],
  ['jobs'],
  ['jobs', '--state', 'done', '--instrument', 'balance'],
  ['jobs', '--state', 'held'],
  ['show', 'RUN'],
  ['why', 'PATH'],
  ['why', 'NAME'],
  ['why', 'no-such-file.csv'],
];

/** The commands that people use every day, each as a process, without a daemon. */
function timeCommands(site, path) {
  const [, run] = /(\d+)\.csv$/.exec(path);
  const given = { RUN: run, PATH: path, NAME: path.slice(path.lastIndexOf('/') + 1) };
  return COMMANDS.map((command) => {
    const words = command.map((word) => given[word] ?? word);
    const times = Array.from({ length: 3 }, () => {
      const startedMs = performance.now();
      const { status, stderr } = spawnSync(process.execPath, [CLI, ...words, '--config', site.config]);
      if (status !== 0 && status !== 1) throw new Error(`labfeed ${words.join(' ')} ended with ${status}: ${stderr}`);
      return performance.now() - startedMs;
    });
    return [command.join(' '), median(times)];
  });
}

/** Start-up, memory and watches with many known files in some folders. */
async function measureFolder(folder, tell) {
  tell(`scale: ${KNOWN_FILES} known files`);
  const watch = join(folder, 'files');
  for (let n = 0; n < FOLDERS; n++)
    fillFolder(join(watch, `day-${n}`), KNOWN_FILES / FOLDERS, (file) => csv(1, n * KNOWN_FILES + file));
  const site = makeSite(join(folder, 'known'), { watch, files: '**/*.csv' });
  const empty = makeSite(join(folder, 'empty'), { watch: fillFolder(join(folder, 'none'), 0) });
  await startOnce(site);
  const rounds = [];
  for (let round = 0; round < 3; round++) {
    const full = await startOnce(site);
    const none = await startOnce(empty);
    const foundMs = (await findMs(watch)) - (await findMs(join(folder, 'none')));
    rounds.push({ ...full, ratio: (full.readyMs - none.readyMs) / foundMs });
  }
  const of = (kind) => median(rounds.map((round) => round[kind]));
  return [
    `${KNOWN_FILES} known files in ${FOLDERS} folders: start-up ${of('ratio').toFixed(1)} × find -printf, ${(of('bytes') / 2 ** 20).toFixed(0)} MB, ${of('watches')} watches`,
  ];
}

async function startOnce(site) {
  const daemon = startDaemon(site);
  const { atMs } = await daemon.wrote('"ready"', 1, 300_000);
  await sleep(1000);
  const result = { readyMs: atMs - daemon.startedMs, bytes: daemon.rssBytes(), watches: countWatches(daemon.pid) };
  await daemon.stop();
  return result;
}

const countWatches = (pid) =>
  readdirSync(`/proc/${pid}/fdinfo`)
    .map((name) => readFileSync(`/proc/${pid}/fdinfo/${name}`, 'utf8'))
    .reduce((sum, text) => sum + (text.match(/^inotify /gm) ?? []).length, 0);
