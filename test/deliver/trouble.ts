import { notebookSchema } from '../../src/config/settings.js';
import { openDelivery } from '../../src/daemon/runtime.js';
import { type Notebook, trackUnknownOutcomes } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';
import type { RunChange } from '../../src/outbox.js';
import { type FakeRequest, fakeNotebook, intercept } from '../support/fake-notebook.js';
import { SERVER } from '../support/filing.js';
import { take } from '../support/journal.js';
import { memoryJournal } from '../support/memory-journal.js';
import { seeded } from '../support/random.js';
import { newRun, someDraft } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

export const TIMEOUT_MS = 1000;

/** What becomes of a request. `isDone`: whether the server carries it out. */
export interface Trouble {
  readonly error: NotebookError;
  readonly isDone?: boolean;
  readonly afterMs?: number;
}

export const LOST: Trouble = {
  error: new NotebookError('server', 'no response', { outcomeUnknown: true }),
  isDone: true,
  afterMs: TIMEOUT_MS,
};
export const status = (code: number, details: Partial<NotebookError> = {}): Trouble => ({
  error: new NotebookError('server', `status ${code}`, { status: code, outcomeUnknown: true, ...details }),
});

/** The real delivery and journal, and a notebook that fails as `trouble` decides. Time is simulated. */
export function setUp(
  trouble: (request: FakeRequest, now: number) => Trouble | undefined,
  { concurrency = 4, timeoutMs = TIMEOUT_MS } = {},
) {
  const clock = simulatedClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook();
  const filedAt = new Map<number, number>();
  const parked = new Map<number, { at: number; change: RunChange }>();
  const sent: { operation: string; at: number }[] = [];
  const now = clock.monotonic;

  async function send(request: FakeRequest): Promise<unknown> {
    sent.push({ operation: request.operation, at: now() });
    const { error, isDone = false, afterMs = 20 } = trouble(request, now()) ?? {};
    await clock.sleep(afterMs);
    if (!error) return request.carryOut();
    if (isDone) await request.carryOut();
    throw error.outcomeUnknown && !request.isWrite ? new NotebookError('server', error.message) : error;
  }

  /** In small steps, each after everything that can happen now has happened: the journal takes a few turns. */
  async function pass(ms: number): Promise<void> {
    for (const end = now() + ms; now() < end; ) {
      for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
      await clock.run(clock.sleep(Math.min(50, end - now())));
    }
  }

  const unknown = trackUnknownOutcomes(clock, timeoutMs);
  const open = () =>
    openDelivery({
      notebook: notebookSchema.parse({
        url: SERVER,
        key: { env: 'KEY' },
        rate: '100/s',
        timeout: `${timeoutMs}ms`,
        concurrency,
        dialect: 'v2',
      }),
      connect: (schedule) => ({
        ...intercept<Notebook>(notebook, (request) => schedule(() => send(request))),
        close: async () => undefined,
      }),
      instruments: ['balance'],
      outbox: journal.outbox,
      unknown,
      clock,
      log: silentLog(),
      observer: {
        filed: ({ id }) => void filedAt.set(id, now()),
        failed: ({ id }, change) => change.kind === 'parked' && parked.set(id, { at: now(), change }),
      },
      random: seeded(1).next,
    });
  let delivery = open();
  delivery.start();

  return {
    clock,
    notebook,
    filedAt,
    parked,
    sent,
    async drop(title: string): Promise<number> {
      const { run } = await take(journal, newRun(title), someDraft(title, ['first']));
      delivery.wake();
      return run;
    },
    pass,
    /** As with SIGHUP: another delivery continues while requests of the first may be in flight. */
    async reload(withinMs: number): Promise<void> {
      let isStopped = false;
      void delivery
        .stop(withinMs, () => delivery.wake())
        .then(() => {
          isStopped = true;
        });
      while (!isStopped) await pass(50);
      delivery = open();
      delivery.start();
    },
    gate: () => delivery.gate(),
    /** Lets time pass until this is true. Throws if it is not by then. */
    async until(isTrue: () => boolean, byMs: number): Promise<void> {
      while (!isTrue()) {
        if (now() >= byMs)
          throw new Error(`not true after ${byMs} ms: ${JSON.stringify(await journal.outbox.count())}`);
        await pass(50);
      }
    },
    /** How many experiments nobody has described. */
    blanks: (): number => [...notebook.experiments.values()].filter(({ title }) => title.startsWith('labfeed ')).length,
    /** The titles of described experiments, sorted. */
    titles: (): string[] => [...notebook.experiments.values()].map(({ title }) => title).sort(),
  };
}
