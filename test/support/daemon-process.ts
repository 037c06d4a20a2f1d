import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { RunChange } from '../../src/outbox.js';
import type { UploadChange } from '../../src/uploads.js';
import { dialectAt } from './sandbox.js';
import { WAIT_MS } from './until.js';

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const CRASHING = fileURLToPath(new URL('./crashing-daemon.mjs', import.meta.url));

interface LogLine extends Record<string, unknown> {
  readonly msg: string;
}

/** The real daemon as a child process, to be signalled and killed. */
export interface DaemonProcess {
  readonly child: ChildProcess;
  readonly lines: LogLine[];
  /** Everything it wrote to stdout and stderr. */
  output(): string;
  /** Resolves with the first matching line, past or future. Fails if the daemon exits without one. */
  logged(fits: string | ((line: LogLine) => boolean), withinMs?: number): Promise<LogLine>;
  /** Asks it to stop, and resolves with its exit status. */
  stop(): Promise<number | null>;
  /** Kills it, as a power failure would. */
  kill(): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** `namespace`: the network namespace that it runs in. */
export const startDaemon = (
  config: string,
  env: NodeJS.ProcessEnv = {},
  { uid, namespace }: { readonly uid?: number | undefined; readonly namespace?: string | undefined } = {},
): DaemonProcess =>
  follow(
    [CLI, 'run', '--config', config],
    { env: { ...process.env, ...env }, ...(uid === undefined ? {} : { uid }) },
    namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace],
  );

/** A record in the journal, and whether the process dies before it is written or once it is on disk. */
export interface CrashPoint {
  readonly when: 'before' | 'after';
  /** `uploaded 2`: that of its second file. `remembered`: between the hand-over to the outbox and intake's record of the file. */
  readonly kind: RunChange['kind'] | UploadChange['kind'] | `uploaded ${number}` | 'remembered' | GrowingRecord;
}

/** Records of a growing file: for these, the number of the run is how often they happen until then. */
type GrowingRecord = 'begun' | 'saved' | 'replaced' | 'appended' | 'flushed' | 'reported' | 'attached';

/** The same daemon, which kills itself at this point of one run. */
export const startCrashing = (config: string, run: number, { when, kind }: CrashPoint): DaemonProcess =>
  follow([CRASHING, config, String(run), when, kind]);

function follow(
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; uid?: number } = {},
  through: readonly string[] = [],
): DaemonProcess {
  // `ip netns exec` becomes the program, so the process has its id.
  const [program = '', ...words] = [...through, process.execPath, ...args];
  const child = spawn(program, words, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: LogLine[] = [];
  let output = '';
  let unfinished = '';
  const take = (chunk: Buffer): void => {
    output += chunk;
    const parts = (unfinished + chunk).split('\n');
    unfinished = parts.pop() ?? '';
    for (const part of parts) if (part.startsWith('{')) lines.push(JSON.parse(part) as LogLine);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  let isClosed = false;
  const ended = once(child, 'close').then(([code]) => {
    isClosed = true;
    return code as number | null;
  });
  onTestFinished(() => void child.kill('SIGKILL'));

  return {
    child,
    lines,
    ended,
    output: () => output,
    async logged(fits, withinMs = WAIT_MS) {
      const isIt = typeof fits === 'string' ? (line: LogLine) => line.msg === fits : fits;
      const deadline = Date.now() + withinMs;
      for (;;) {
        // Its last lines may still be on their way when it has ended, until its output is closed.
        const isOver = isClosed || Date.now() > deadline;
        const line = lines.find(isIt);
        if (line) return line;
        if (isOver) throw new Error(`not logged: ${fits}\n${output}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    stop() {
      child.kill('SIGTERM');
      return ended;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export interface Site {
  readonly folder: string;
  readonly config: string;
  readonly journal: string;
  /** Writes a file into the folder of an instrument, creating the folder if needed. */
  drop(name: string, content: string | Buffer, instrument?: string): void;
}

export interface SiteOptions {
  readonly url: string;
  readonly key: string;
  readonly timeout?: string;
  /** More configuration lines, each with its line break. */
  readonly settings?: string;
  /** Under `instruments:`; by default one instrument with only a folder and a short quiet period. */
  readonly instruments?: string;
  /** The address of the status page. None by default. */
  readonly status?: string;
}

/** Without plots, which would be attached and shown after everything else. */
const BALANCE = '  balance: { watch: data/balance, ready: { quiet: 150ms }, experiment: { plot: never } }';

/**
 * A request that times out, because the machine is busy, costs twice as long on v2. On eLabFTW it costs more than two
 * minutes, and without it the time-out does not matter.
 */
const timeoutAt = (url: string): string => (dialectAt(url) === 'elabftw' ? '20s' : '3s');

/** A configuration, a key and folders for one daemon. */
export function makeSite(
  folder: string,
  { url, key, timeout = timeoutAt(url), settings = '', instruments = BALANCE, status = 'false' }: SiteOptions,
): Site {
  const config = join(folder, 'labfeed.yaml');
  const journal = join(folder, 'journal.db');
  mkdirSync(join(folder, 'data', 'balance'), { recursive: true });
  writeFileSync(join(folder, 'api-key'), `${key}\n`, { mode: 0o600 });
  const notebook = `url: "${url}"\n  key: { file: api-key }\n  rate: 2000/s\n  timeout: ${timeout}`;
  writeFileSync(
    config,
    `notebook:\n  ${notebook}\njournal: journal.db\nstatus: ${status}\n${settings}instruments:\n${instruments}\n`,
  );
  return {
    folder,
    config,
    journal,
    drop(name, content, instrument = 'balance') {
      mkdirSync(join(folder, 'data', instrument), { recursive: true });
      writeFileSync(join(folder, 'data', instrument, name), content);
    },
  };
}

/** The largest size of a process so far. */
export const peakBytes = ({ child }: DaemonProcess): number =>
  1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);

/** A small balance file, different for every n. */
export const weighing = (n: number): string => `Sample,Weight (mg)\nS${n},${n}.125\nS${n}b,${n}.5\n`;
