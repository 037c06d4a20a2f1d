import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLI, start, startProgram } from './processes.mjs';
import { median, ratios, rounds } from './ratios.mjs';
import { csv, makeSite } from './site.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PYTHON = process.env['LABFEED_PYTHON'] ?? 'python3';
const ROWS = 10;
const BODY = `<table>${csv(ROWS).repeat(3)}</table>`;
/**
 * `warmUp`: files that are not counted, because of start-up and what V8 has not compiled yet. Compiling takes a fifth of
 * the time until about 2,000 files are filed. A slow server hides it.
 */
const LOADS = [
  { delayMs: 20, warmUp: 150, files: 300 },
  { delayMs: 0, warmUp: 2400, files: 1500 },
];
const ROUNDS = { least: 3, most: Number(process.env['LABFEED_ROUNDS'] ?? 5), withinMs: 60_000 };

/**
 * From a dropped file to a filed run, four connections, against a server that takes 20 ms or no time for a request.
 * @param builds Other builds of labfeed can be measured beside this one.
 * @returns {Promise<object[]>} For each load and client, the files a second and the CPU time of each round.
 */
export async function measurePipeline(folder, tell, builds = { labfeed: CLI }) {
  const clients = { 'bare undici': bareClient };
  for (const [name, cli] of Object.entries(builds)) clients[name] = (site) => daemon(site, cli);
  if (hasPython()) clients['Python script'] = script;
  const results = [];
  for (const load of LOADS) {
    const measured = Object.fromEntries(Object.keys(clients).map((name) => [name, []]));
    for (const round of rounds(ROUNDS)) {
      for (const [name, startClient] of Object.entries(clients)) {
        tell(`pipeline: ${load.delayMs} ms a request, round ${round}, ${name}`);
        measured[name].push(await measure(join(folder, `${load.delayMs}-${round}-${name}`), load, startClient));
      }
    }
    for (const [name, all] of Object.entries(measured)) results.push({ ...load, name, rounds: all });
  }
  return results;
}

/** Wall time and CPU time of labfeed for one file, against bare undici and the script. */
export function pipelineRatios(measured) {
  const of = (delayMs, name) => measured.find((one) => one.delayMs === delayMs && one.name === name)?.rounds;
  return TARGETS.flatMap(({ delayMs, baseline, kind, target }) => {
    const [ours, theirs] = [of(delayMs, 'labfeed'), of(delayMs, baseline)];
    if (!theirs) return [];
    const valuesOf = (all) => all.map((round) => round[kind]);
    const raw = `${median(valuesOf(ours)).toFixed(2)} ms a file, ${baseline} ${median(valuesOf(theirs)).toFixed(2)} ms`;
    const what = `dropped to filed, ${delayMs} ms a request, ${kind === 'wallMs' ? 'wall time' : 'processor time'}`;
    return [{ what, baseline, ratios: ratios(valuesOf(ours), valuesOf(theirs)), target, raw }];
  });
}

const TARGETS = [
  { delayMs: 20, baseline: 'bare undici', kind: 'wallMs', target: 1.05 },
  { delayMs: 0, baseline: 'bare undici', kind: 'wallMs', target: 1.33 },
  { delayMs: 0, baseline: 'Python script', kind: 'wallMs', target: 0.67 },
  { delayMs: 0, baseline: 'bare undici', kind: 'cpuMs', target: 3 },
];

/** What one file costs in calls, counted in a run of its own, which the counting slows down. */
export async function countCalls(folder, tell) {
  tell('pipeline: counting calls');
  const load = { delayMs: 0, warmUp: 600, files: 300 };
  const { lines } = await measure(folder, load, counting);
  const { counts } = JSON.parse(lines.findLast((line) => line.startsWith('{"counts"')));
  const perFile = (kind) => (counts[kind] / load.files).toFixed(1);
  return `per file: ${perFile('statements')} SQL statements, ${perFile('stats')} stat calls, ${perFile('controllers')} abort controllers, ${perFile('listeners')} listeners`;
}

async function counting(site) {
  const client = await daemon(site, CLI, '--import', here('count.mjs'));
  return {
    ...client,
    drop(count, first) {
      if (first > 0) client.process.kill('SIGUSR2');
      client.drop(count, first);
    },
  };
}

/** Files a second and CPU time of each client. */
export const pipelineTable = (measured) => [
  'All files are dropped at once, after a warm-up. Bare undici has no files and records nothing; the script records nothing.',
  ...measured.map(({ delayMs, name, rounds: all }) => {
    const of = (kind) => median(all.map((round) => round[kind]));
    return `${delayMs} ms a request, ${name}: ${of('perSecond').toFixed(0)} files/s, ${of('cpuMs').toFixed(2)} ms of processor time a file`;
  }),
];

async function measure(folder, { delayMs, warmUp, files }, startClient) {
  const watch = join(folder, 'watched');
  mkdirSync(watch, { recursive: true });
  const server = start(here('plain-server.mjs'), String(delayMs));
  await server.wrote('"url"');
  const { url } = JSON.parse(server.lines[0]);
  const client = await startClient({ folder, watch, url });
  await client.drop(warmUp, 0);
  await server.wrote(`filed ${warmUp}.`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const before = { atMs: performance.now(), cpuMs: client.process.cpuMs() };
  await client.drop(files, warmUp);
  const { atMs } = await server.wrote(`filed ${warmUp + files}.`);
  const cpuMs = client.process.cpuMs() - before.cpuMs;
  await client.process.stop();
  await server.stop();
  const wallMs = (atMs - before.atMs) / files;
  return { lines: client.process.lines, wallMs, perSecond: 1000 / wallMs, cpuMs: cpuMs / files };
}

const dropInto = (watch) => (count, first) => {
  for (let n = first; n < first + count; n++) writeFileSync(join(watch, `run-${n}.csv`), csv(ROWS, n));
};

async function daemon({ folder, watch, url }, cli = CLI, ...flags) {
  const site = makeSite(join(folder, 'site'), { watch, notebook: { url, key: 'key' }, existing: 'ingest' });
  const process = start(...flags, cli, 'run', '--config', site.config);
  await process.wrote('"ready"');
  return { process, drop: dropInto(watch) };
}

async function script({ watch, url }) {
  const process = startProgram(PYTHON, here('script.py'), url, watch);
  await process.wrote('ready');
  return { process, drop: dropInto(watch) };
}

const hasPython = () => spawnSync(PYTHON, ['-c', 'import watchdog, requests']).status === 0;

/** Sends requests of the size of labfeed's for such a file, from memory. */
async function bareClient({ url }) {
  const example = {
    created: { title: `labfeed ${'0'.repeat(16)}` },
    changes: { title: 'run-000000', date: '2026-01-01', body: BODY, tags: ['balance'] },
    comment: { comment: csv(ROWS).repeat(2) },
  };
  const process = start(here('bare-client.mjs'), url, JSON.stringify(example));
  return { process, drop: (count) => process.write(`${count}\n`) };
}
