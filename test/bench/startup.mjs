import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, ratios, rounds } from './ratios.mjs';
import { csv, fillFolder, makeSite, startDaemon } from './site.mjs';

const MANY = 50_000;
const FEW = 1000;
const ROUNDS = { least: 3, most: 6, withinMs: 18_000 };
/** How long a daemon is idle before its memory is measured. */
const IDLE_MS = 1000;
/** For the measurement of rescans: the poll interval, the number of samples and the time between them. */
const POLL = '500ms';
const SAMPLES = 30;
const SAMPLE_MS = 400;

/** With a folder full of files that are known: how long until it is watched, and what they cost in memory. */
export async function measureStartUp(folder, tell) {
  tell(`start-up: making ${MANY} files known`);
  const many = await settledSite(join(folder, 'many'), MANY);
  const few = await settledSite(join(folder, 'few'), FEW);
  const none = await settledSite(join(folder, 'none'), 0);
  const seen = [];
  for (const round of rounds(ROUNDS)) {
    tell(`start-up: round ${round}`);
    const full = await startIdle(many);
    const light = await startIdle(few);
    const empty = await startIdle(none, 0);
    // Less what both take with an empty folder: what counts is the files, not how fast Node starts.
    const findsMs = (await findMs(many.watch)) - (await findMs(none.watch));
    seen.push({ full, light, scanMs: full.readyMs - empty.readyMs, findsMs });
  }
  tell('memory: listing the folders again and again');
  const later = await rescanning(many, few);
  const first = seen.map(({ full, light }) => [full.bytes, light.bytes]);
  const [scanMs, findsMs] = [seen.map((round) => round.scanMs), seen.map((round) => round.findsMs)];
  return [
    {
      what: `start-up with ${MANY} known files`,
      baseline: 'find -printf',
      ratios: ratios(scanMs, findsMs),
      target: 6,
      raw: `${median(scanMs).toFixed(0)} ms, find ${median(findsMs).toFixed(0)} ms`,
    },
    memory(`memory, idle with ${MANY} known files`, first),
    memory(`memory, after many rescans of ${MANY}`, later),
  ];
}

/** @param {[full: number, light: number][]} seen */
function memory(what, seen) {
  const [full, light] = [0, 1].map((side) => seen.map((pair) => pair[side]));
  const megabytes = (bytes) => (median(bytes) / 2 ** 20).toFixed(0);
  return {
    what,
    baseline: `the same with ${FEW}`,
    ratios: ratios(full, light),
    target: 1.3,
    raw: `${megabytes(full)} MB, with ${FEW} ${megabytes(light)} MB`,
  };
}

/** A folder of which the journal knows every file, since a first start passed over them all. */
async function settledSite(folder, files) {
  const watch = fillFolder(join(folder, 'files'), files, (n) => csv(1, n));
  const site = { folder, watch, ...makeSite(folder, { watch }) };
  await startIdle(site, 0);
  return site;
}

async function startIdle(site, idleMs = IDLE_MS) {
  const daemon = startDaemon(site);
  const { atMs } = await daemon.wrote('"ready"');
  await sleep(idleMs);
  const bytes = daemon.rssBytes();
  await daemon.stop();
  return { readyMs: atMs - daemon.startedMs, bytes };
}

/** Stands for the fastest way to learn every file's size and time. */
export async function findMs(folder) {
  const startedMs = performance.now();
  const find = spawn('find', [folder, '-printf', '%p %s %T@\\n'], { stdio: 'ignore' });
  const [code] = await once(find, 'close');
  if (code !== 0) throw new Error(`find ended with ${code}`);
  return performance.now() - startedMs;
}

/** What a daemon comes to that lists its folder for a day, in short: the garbage of each time counts as well. */
async function rescanning(...sites) {
  const daemons = sites.map(({ folder, watch }) => startDaemon(makeSite(folder, { watch, poll: POLL })));
  await Promise.all(daemons.map((daemon) => daemon.wrote('"ready"')));
  const seen = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    await sleep(SAMPLE_MS);
    // The first half is the way there.
    if (sample >= SAMPLES / 2) seen.push(daemons.map((daemon) => daemon.rssBytes()));
  }
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  return seen;
}
