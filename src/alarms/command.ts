import { type ChildProcess, spawn } from 'node:child_process';
import type { Words } from '../config/alarms.js';
import { LabfeedError } from '../errors.js';
import type { Log } from '../log.js';
import { messageOf } from './message.js';
import type { Tell } from './telling.js';

const TIMEOUT_MS = 30_000;

/** Of what the program prints, the rest is dropped. */
const MOST_OUTPUT = 4096;

export interface CommandOptions {
  readonly words: Words;
  readonly log: Log;
  /** The environment that it gets, beside what it is told. */
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs?: number;
}

/** Starts a program for each notice, without a shell, and waits for its end. */
export function createCommand({ words, log, env, timeoutMs = TIMEOUT_MS }: CommandOptions): Tell {
  const [program, ...args] = words;

  return async (notice, signal) => {
    const { state, kind, instrument, text, since } = messageOf(notice);
    const told = {
      LABFEED_ALARM_STATE: state,
      LABFEED_ALARM_KIND: kind,
      LABFEED_ALARM_INSTRUMENT: instrument ?? '',
      LABFEED_ALARM_TEXT: text,
      LABFEED_ALARM_SINCE: since,
    };
    // In a group of its own, so that it can be ended with all that it started.
    const child = spawn(program, args, {
      env: { ...env, ...told },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const output = listen(child);
    const ending = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const end = await endOf(child, ending);
      if (end === 0) return;
      throw new LabfeedError(
        signal.aborted
          ? 'labfeed is stopping'
          : ending.aborted
            ? `${program} did not end within ${timeoutMs / 1000} s, and was ended`
            : `${program} ended with ${typeof end === 'number' ? `status ${end}` : end}`,
      );
    } finally {
      const said = output().trim();
      if (said !== '') log.info({ program, output: said }, 'the command of an alarm said');
      // What it left running may hold these for ever.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }
  };
}

function listen({ stdout, stderr }: ChildProcess): () => string {
  let output = '';
  for (const stream of [stdout, stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      if (output.length < MOST_OUTPUT) output = (output + chunk.toString()).slice(0, MOST_OUTPUT);
    });
  }
  return () => output;
}

/** Its exit status, or the signal that ended it. Rejects where it could not be started. */
function endOf(child: ChildProcess, ending: AbortSignal): Promise<number | string> {
  return new Promise((resolve, reject) => {
    const kill = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended by itself just now.
      }
    };
    ending.addEventListener('abort', kill, { once: true });
    child.once('error', reject);
    child.once('exit', (status, signal) => {
      ending.removeEventListener('abort', kill);
      // What it wrote last may still be on its way.
      setImmediate(() => resolve(status ?? signal ?? 'no status'));
    });
    if (ending.aborted) kill();
  });
}
