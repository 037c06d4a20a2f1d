import type { Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';
import type { Life } from './timeline.js';
import type { World } from './world.js';

export const TIMEOUT_MS = 1000;

/** A cut-off request is carried out this late at most; the grace is twice the time-out. */
const LATEST_MS = 2 * TIMEOUT_MS - 50;

type Fault =
  | 'none'
  | 'refused'
  | 'lostBefore'
  | 'lostAfter'
  | 'lostLate'
  | 'slow'
  | 'busy'
  | 'unauthorised'
  | 'outage'
  | 'brokenAfter';

/** What comes late is what hurts most after a crash. */
const FAULTS: readonly Fault[] = [
  'refused',
  'lostBefore',
  'lostAfter',
  'lostLate',
  'lostLate',
  'slow',
  'slow',
  'slow',
  'slow',
  'busy',
  'unauthorised',
  'outage',
  'brokenAfter',
];

const error = (failure: 'auth' | 'server', lost: boolean, status?: number): NotebookError =>
  new NotebookError(failure, `simulated ${failure}`, {
    outcomeUnknown: lost,
    ...(status === undefined ? {} : { status }),
  });

/** The notebook as one process reaches it: over a wire that delays, loses and refuses as the seed says. */
export function faultyNotebook(
  { notebook, timeline, random, faults, wire, trace }: World,
  admit: <T>(send: () => Promise<T>) => Promise<T>,
  life: Life,
): Notebook & { close(): Promise<void> } {
  const busy = (): NotebookError =>
    new NotebookError('rate', 'simulated rate', {
      status: 429,
      ...(random.chance(0.5) ? { retryAfterMs: random.below(5000) } : {}),
    });
  wire.writing = 0;

  function send<T>(writes: boolean, told: string, act: () => Promise<T>): Promise<T> {
    const fault: Fault = random.chance(faults.ofRequests)
      ? (FAULTS[random.below(FAULTS.length)] ?? 'none')
      : 'none';
    trace?.(`${told}: ${fault}`);
    const lost = writes;
    const wayMs = 1 + random.below(40);
    if (writes) wire.writing += 1;
    return new Promise<T>((resolve, reject) => {
      const answer = (delayMs: number, deliver: () => void) =>
        life.at(delayMs, () => {
          if (writes) wire.writing -= 1;
          deliver();
        });
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
          return answer(wayMs, () => reject(busy()));
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
        case 'slow': {
          const slowMs = random.below(LATEST_MS);
          carryOut(slowMs, (result) => slowMs < TIMEOUT_MS && answer(0, () => resolve(result)));
          return slowMs < TIMEOUT_MS ? undefined : answer(TIMEOUT_MS, () => reject(error('server', lost)));
        }
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
            const told = trace ? [name, ...args.map((arg) => JSON.stringify(arg))].join(' ') : '';
            return send(!/^(read|list)/.test(name), told, () =>
              (act as (...args: unknown[]) => Promise<unknown>)(...args),
            );
          });
        },
      ]),
  );
  return { ...(wired as unknown as Notebook), close: async () => undefined };
}
