import { Worker } from 'node:worker_threads';
import { systemCode } from '../../../errors.js';
import type { ZipPart } from './zip.js';

/** A sheet as lines of cells, where the spreadsheet has them. Empty ones at the ends are left out. */
export interface Sheet {
  readonly name: string;
  readonly lines: readonly (readonly string[])[];
}

/** What the thread is to read: the parts of an .xlsx, or an .xls as a single part without a name. */
export interface Workbook {
  readonly parts: readonly ZipPart[];
  readonly decimal: string;
}

/** Why a workbook could not be read: for people. */
export class ThreadProblem extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

const MEMORY_MB = 1024;

/** Reads a workbook in a thread of its own, which ends when it takes too long or too much. */
export function readInThread(workbook: Workbook, maxMs: number, signal?: AbortSignal): Promise<Sheet[]> {
  signal?.throwIfAborted();
  const worker = new Worker(new URL('./sheet-worker.js', import.meta.url), {
    workerData: workbook,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    // The library complains about what it does not know.
    ...{ stdout: true, stderr: true },
  });
  return new Promise<Sheet[]>((resolve, reject) => {
    const tooLong = setTimeout(() => {
      const hint = 'if such files are to be read, allow more: `limits: { seconds: 300 }`';
      reject(new ThreadProblem(`it took longer than ${maxMs / 1000} s`, hint));
    }, maxMs);
    const onAbort = () => reject(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    worker.once('message', resolve);
    worker.once('error', (error) => reject(problemOf(error)));
    worker.once('exit', () => {
      clearTimeout(tooLong);
      signal?.removeEventListener('abort', onAbort);
      reject(new ThreadProblem('its reading ended early'));
    });
  }).finally(() => worker.terminate());
}

function problemOf(error: unknown): ThreadProblem {
  if (systemCode(error) === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new ThreadProblem(
      `it takes more than ${MEMORY_MB} MB of memory`,
      'split it, or export it as .csv',
    );
  }
  const message = error instanceof Error ? error.message : String(error);
  if (/password|encrypt/i.test(message))
    return new ThreadProblem('it is protected', 'save it without a password');
  return new ThreadProblem(message);
}
