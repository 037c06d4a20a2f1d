import type { Notebook } from '../../src/deliver/deps.js';
import { NotebookError } from '../../src/errors.js';
import type { SimulatedNotebook } from '../support/simulated-notebook.js';
import type { Random } from './random.js';
import type { Life, Timeline } from './timeline.js';

export const TIMEOUT_MS = 1000;

/** A cut-off request is carried out this late at most; the grace is twice the time-out. */
const LATEST_MS = 2 * TIMEOUT_MS - 50;

type Fault =
  | 'none'
  | 'refused'
  | 'lostBefore'
  | 'lostAfter'
  | 'lostLate'
  | 'busy'
  | 'unauthorised'
  | 'outage'
  | 'brokenAfter';

const FAULTS: readonly Fault[] = [
  'refused',
  'lostBefore',
  'lostAfter',
  'lostLate',
  'busy',
  'unauthorised',
  'outage',
  'brokenAfter',
];

export interface Faults {
  /** Share of the requests that meet one. */
  rate: number;
}

const error = (failure: 'rate' | 'auth' | 'server', lost: boolean, status?: number): NotebookError =>
  new NotebookError(failure, `simulated ${failure}`, { lost, ...(status === undefined ? {} : { status }) });

/** The notebook as one process reaches it: over a wire that delays, loses and refuses as the seed says. */
export function faultyNotebook(
  notebook: SimulatedNotebook,
  admit: <T>(send: () => Promise<T>) => Promise<T>,
  timeline: Timeline,
  life: Life,
  random: Random,
  faults: Faults,
): Notebook & { close(): Promise<void> } {
  const isRead = (name: string): boolean => /^(read|list)/.test(name);

  function send<T>(name: string, act: () => Promise<T>): Promise<T> {
    const fault: Fault = random.chance(faults.rate)
      ? (FAULTS[random.below(FAULTS.length)] ?? 'none')
      : 'none';
    if (process.env['LABFEED_TRACE']) console.log(Math.round(timeline.now()), name, fault);
    const lost = !isRead(name);
    const wayMs = 1 + random.below(40);
    return new Promise<T>((resolve, reject) => {
      const answer = (delayMs: number, deliver: () => void) => life.at(delayMs, deliver);
      // The server goes on with what reached it although the process that asked is dead.
      const carryOut = (delayMs: number, then: (result: Promise<T>) => void) =>
        timeline.at(delayMs, () => {
          const result = act();
          result.catch(() => undefined);
          then(result);
        });
      switch (fault) {
        case 'none':
          return carryOut(wayMs, (result) => answer(1 + random.below(40), () => resolve(result)));
        case 'refused':
          return answer(wayMs, () => reject(error('server', false)));
        case 'busy':
          return answer(wayMs, () => reject(error('rate', false, 429)));
        case 'unauthorised':
          return answer(wayMs, () => reject(error('auth', false, 401)));
        case 'outage':
          return answer(wayMs, () => reject(error('server', lost, 502)));
        case 'lostBefore':
          return answer(TIMEOUT_MS, () => reject(error('server', lost)));
        case 'brokenAfter':
          return carryOut(wayMs, () => answer(wayMs, () => reject(error('server', lost, 500))));
        case 'lostAfter':
          return carryOut(wayMs, () => answer(TIMEOUT_MS, () => reject(error('server', lost))));
        case 'lostLate':
          carryOut(random.below(LATEST_MS), () => undefined);
          return answer(random.below(30), () => reject(error('server', lost)));
      }
    });
  }

  const wired = Object.fromEntries(
    Object.entries(notebook)
      .filter(([, part]) => typeof part === 'function')
      .map(([name, act]) => [
        name,
        (...args: unknown[]) => {
          const signal = args.find((arg) => arg instanceof AbortSignal);
          return admit(() => {
            signal?.throwIfAborted();
            // The dead send nothing more.
            if (!life.alive()) return new Promise<never>(() => undefined);
            return send(name, () => (act as (...args: unknown[]) => Promise<unknown>)(...args));
          });
        },
      ]),
  );
  return { ...(wired as unknown as Notebook), close: async () => undefined };
}
