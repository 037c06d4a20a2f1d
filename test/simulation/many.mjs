#!/usr/bin/env node
/**
 * Runs many seeds on all cores, without the test runner: `npm run simulate:many -- 1-1000000`. Every seed runs as three
 * kinds of history: without remaps (LABFEED_REDO=0), with them (1), and with versions of files (2). LABFEED_REDO=odd runs
 * one history per seed: odd seeds with remaps. `npm run simulate:many -- fleet 1-10000` runs histories of a fleet. Failures are printed with their seeds, and the others continue, even if a history does not end.
 * SIGTERM or SIGINT stops it; what was run until then is counted. Exits with 1 if a history has failed.
 */
import { fork } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';

/** A history takes milliseconds: a seed that takes so many seconds does not end. */
const MAX_SECONDS = 120;
const REPORT_EVERY = 5000;
const ROOT = join(import.meta.dirname, '../..');
const KIND = process.argv[2] === 'fleet' ? 'fleet' : 'simulate';
/** Histories of a fleet take longer. */
const PART = KIND === 'fleet' ? 20 : 500;
const BUNDLE = join(ROOT, 'node_modules/.simulate/dist', KIND);

const range = /^(\d+)-(\d+)$/.exec(process.argv[KIND === 'fleet' ? 3 : 2] ?? '');
if (!range) {
  console.error('usage: npm run simulate:many -- [fleet] FIRST-LAST');
  process.exit(2);
}
const [first, last] = range.slice(1).map(Number);
const startedAt = Date.now();
let next = first;
let isStopped = false;
let reportAt = REPORT_EVERY;
const total = { seeds: 0, histories: 0, failures: 0, cpuMs: 0 };

const print = (line) => console.log(`${new Date().toISOString()} ${line}`);

function report() {
  const { seeds, histories, failures, cpuMs } = total;
  const hours = ((Date.now() - startedAt) / 3_600_000).toFixed(2);
  const perHistory = (cpuMs / Math.max(1, histories)).toFixed(1);
  print(
    `${seeds} seeds of ${first}-${last} done, all below ${firstOpen()}: ${histories} histories, ${failures} failed, ${perHistory} ms each, ${hours} h`,
  );
}

/** The parts that are being run, by their first seeds. */
const running = new Set();
const firstOpen = () => Math.min(next, ...running);

/** Parts whose process has ended before them. */
const left = [];

function nextPart() {
  if (isStopped) return undefined;
  const part = left.pop();
  if (part || next > last) return part;
  const from = next;
  next = Math.min(last, from + PART - 1) + 1;
  return { from, to: next - 1 };
}

/** One process, which gets a part of the range whenever it is free. */
const work = () =>
  new Promise((resolve, reject) => {
    const child = fork(join(import.meta.dirname, 'part.mjs'), [join(BUNDLE, `${KIND}.js`)], {
      // Most objects of a history are gone before it ends. There is a process for each core, so that threads which compile
      // and collect garbage beside it only cost time.
      execArgv: ['--max-semi-space-size=32', '--single-threaded'],
    });
    let part;
    let seed = 0;
    let seconds = 0;
    // No time is counted while all of it is paused.
    const watch = setInterval(() => {
      seconds += 1;
      if (seconds > MAX_SECONDS) child.kill('SIGKILL');
    }, 1000);
    const give = () => {
      running.delete(part?.from);
      part = nextPart();
      if (!part) return child.disconnect();
      running.add(part.from);
      seed = part.from;
      child.send(part);
    };
    child.on('message', (done) => {
      for (const failure of done.failures) print(`FAILED ${failure}`);
      total.seeds += 1;
      total.histories += done.histories;
      total.failures += done.failures.length;
      total.cpuMs += done.cpuMs;
      seconds = 0;
      seed = done.seed + 1;
      if (seed > part.to) give();
      if (total.seeds < reportAt) return;
      reportAt += REPORT_EVERY;
      report();
    });
    child.on('error', reject).on('exit', (status, signal) => {
      clearInterval(watch);
      if (status === 0) return resolve();
      running.delete(part.from);
      if (seed < part.to) left.push({ from: seed + 1, to: part.to });
      print(`FAILED LABFEED_SEED=${seed}: its process ended with ${signal ?? status}`);
      total.failures += 1;
      resolve(isStopped ? undefined : work());
    });
    give();
  });

for (const signal of ['SIGTERM', 'SIGINT'])
  process.on(signal, () => {
    isStopped = true;
  });

await build({
  root: ROOT,
  configFile: false,
  logLevel: 'warn',
  build: { ssr: `test/simulation/${KIND}.ts`, outDir: BUNDLE, emptyOutDir: true, target: 'es2024', minify: false },
});
// Members of a fleet tell each other their version.
copyFileSync(join(ROOT, 'package.json'), join(BUNDLE, '../../package.json'));
print(`seeds ${first}-${last} on Node ${process.versions.node}`);
await Promise.all(Array.from({ length: availableParallelism() }, work));
report();
if (isStopped) print(`stopped: continue with ${firstOpen()}-${last}`);
process.exitCode = total.failures > 0 ? 1 : 0;
