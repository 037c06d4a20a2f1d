import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/** The kernel counts processor time in hundredths of a second, whatever its own tick is. */
const TICK_MS = 10;

/** Who waits longer than this for a line has nothing to measure. */
const PATIENCE_MS = 60_000;

/** Every process that was started here and has not ended yet. */
const running = new Set();

/**
 * @typedef {object} Reading What a process had used when it had written so many lines of a kind.
 * @property {number} atMs
 * @property {number} cpuMs Of all its threads, in user mode and in the kernel.
 * @property {number} lines
 */

/** A program in a process of its own, measured from outside at the lines that it writes. */
export const start = (...argv) => startProgram(process.execPath, ...argv);

/** The same for a program that is not JavaScript. */
export function startProgram(program, ...argv) {
  const startedMs = performance.now();
  const child = spawn(program, argv, { stdio: ['pipe', 'pipe', 'pipe'] });
  const closed = once(child, 'close');
  running.add(child);
  const waiting = new Set();
  const lines = [];
  let unfinished = '';
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  child.stdout.on('data', (chunk) => {
    const parts = (unfinished + chunk).split('\n');
    unfinished = parts.pop() ?? '';
    lines.push(...parts);
    for (const look of [...waiting]) look();
  });

  /** @returns {Promise<Reading>} when so many lines hold this text. */
  function wrote(text, most = 1, patienceMs = PATIENCE_MS) {
    return new Promise((resolve, reject) => {
      let found = 0;
      let next = 0;
      const timer = setTimeout(() => fail('waited in vain'), patienceMs);
      const forget = () => {
        clearTimeout(timer);
        waiting.delete(look);
        child.off('close', ended);
      };
      const fail = (why) => {
        forget();
        reject(new Error(`${why} for ${most} × "${text}" of ${argv.join(' ')}\n${tail(lines)}\n${errors}`));
      };
      const ended = () => fail('the process has ended; waited');
      // All that came in one piece is counted before the clock is read: the two belong together.
      const look = () => {
        for (; next < lines.length; next++) if (lines[next].includes(text)) found += 1;
        if (found < most) return;
        forget();
        resolve({ atMs: performance.now(), cpuMs: cpuMs(child.pid), lines: found });
      };
      waiting.add(look);
      child.once('close', ended);
      look();
    });
  }

  return {
    startedMs,
    pid: child.pid,
    lines,
    wrote,
    write: (text) => child.stdin.write(text),
    kill: (signal) => child.kill(signal),
    /** Of all threads until now. */
    cpuMs: () => cpuMs(child.pid),
    rssBytes: () => memoryBytes(child.pid, 'VmRSS'),
    /** The most that it ever had. */
    peakRssBytes: () => memoryBytes(child.pid, 'VmHWM'),
    /** Asks it to end, and waits until it has. */
    async stop() {
      child.kill('SIGTERM');
      await closed;
      running.delete(child);
    },
  };
}

/** For the way out, however the bench ends. */
export function killAll() {
  for (const child of running) child.kill('SIGKILL');
}

const tail = (lines) => lines.slice(-5).join('\n');

/** Fields 14 and 15 of proc(5); the name before them may hold blanks, but ends with the last bracket. */
function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function memoryBytes(pid, kind) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kilobytes] = new RegExp(`^${kind}:\\s+(\\d+) kB`, 'm').exec(status) ?? [];
  return Number(kilobytes) * 1024;
}
