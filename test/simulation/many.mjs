#!/usr/bin/env node
/**
 * Runs many seeds on all cores: `npm run simulate:many -- 1-1000000`. Every seed runs as both kinds of history, with and
 * without remaps, unless LABFEED_REDO chooses one. Exits with 1 if a history fails. Each part of the range is a process
 * of its own, which gives up after five failures of a kind.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

const PART = 1000;
const range = /^(\d+)-(\d+)$/.exec(process.argv[2] ?? '');
if (!range) {
  console.error('usage: npm run simulate:many -- FIRST-LAST');
  process.exit(2);
}
const [first, last] = range.slice(1).map(Number);
const kinds = process.env['LABFEED_REDO'] === undefined ? 2 : 1;
const startedAt = Date.now();
let next = first;
let done = 0;
let failedParts = 0;

/** Resolves with what the tests printed if one of them failed. */
const runPart = (from, to) =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, LABFEED_SLOW: 'simulation', LABFEED_SEEDS: `${from}-${to}`, NO_COLOR: '1' };
    const args = ['vitest', 'run', '--config', 'test/vitest.config.ts', '-t', 'in histories'];
    const tests = spawn('npx', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (text) => {
      output += text;
    };
    tests.stdout.setEncoding('utf8').on('data', collect);
    tests.stderr.setEncoding('utf8').on('data', collect);
    tests.on('error', reject).on('close', (status) => resolve(status === 0 ? undefined : output));
  });

async function work() {
  while (next <= last) {
    const from = next;
    const to = Math.min(last, from + PART - 1);
    next = to + 1;
    const failures = await runPart(from, to);
    done += to - from + 1;
    const perSecond = ((done * kinds) / ((Date.now() - startedAt) / 1000)).toFixed(1);
    console.log(`${from}-${to} ${failures ? 'FAILED' : 'passed'}: ${done * kinds} histories, ${perSecond}/s`);
    if (!failures) continue;
    failedParts += 1;
    const replays = new Set(failures.match(/LABFEED_SEED=\d+ LABFEED_REDO=\d/g));
    console.log(replays.size > 0 ? `  ${[...replays].join('\n  ')}` : failures);
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));
console.log(failedParts > 0 ? `${failedParts} parts failed` : 'all histories passed');
process.exitCode = failedParts > 0 ? 1 : 0;
