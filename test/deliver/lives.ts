import { memoryOf } from '../../src/daemon/runtime.js';
import { type DeliveryContext, type Notebook, trackUnknownOutcomes } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { prepareServer } from '../../src/deliver/reconcile.js';
import { NotebookError } from '../../src/errors.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import type { Draft } from '../../src/model.js';
import type { OpenRun } from '../../src/outbox.js';
import { askRemap } from '../support/ask-remap.js';
import { manualClock } from '../support/manual-clock.js';
import { seeded } from '../support/random.js';
import type { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, someDraft } from '../support/runs.js';
import { type SimulationOptions, simulatedNotebook } from '../support/simulated-notebook.js';

const SERVER = 'https://eln.example.org';

/** What became of a request: whether the server did it, and whether its answer came. */
export type Outcome = 'answered' | 'refused' | 'lost' | 'never' | 'late';

/** One process, from its start to its death. */
export interface Life {
  /** Of its requests, in order; those beyond are answered. */
  readonly outcomes: readonly Outcome[];
  /** How many records it makes before it dies; without it, it lives until nothing is left to do. */
  readonly records?: number;
  /** What becomes of the request that is under way when it dies. */
  readonly atDeath?: 'lost' | 'never' | 'late';
  /** After how many further requests, of whomever, something late is carried out; but always within the grace. */
  readonly lateness?: number;
}

class Crash extends Error {}

interface Late {
  requests: number;
  act(): Promise<unknown>;
}

export type Lives = ReturnType<typeof createLives>;

/** Journal and notebook, which outlive processes. */
/** `chance`: the seed of the back-offs, which decide the order in which runs are delivered. */
export function createLives(database: ReusableDatabase, kind: SimulationOptions, chance = 1) {
  database.empty();
  const clock = manualClock();
  const random = seeded(chance).next;
  const notebook = simulatedNotebook(kind);
  const journal = createJournal({ database, clock, release: () => undefined, schedule: queueMicrotask });
  let late: Late[] = [];
  let runs = 0;

  async function arrive(isDue: (one: Late) => boolean): Promise<void> {
    const due = late.filter(isDue);
    late = late.filter((one) => !due.includes(one));
    for (const { act } of due) await act().catch(() => undefined);
  }

  return {
    notebook,
    async add(title: string, comments: number): Promise<void> {
      const texts = Array.from({ length: comments }, (_, index) => `comment ${index + 1}`);
      await journal.runs.add(newRun(title), someDraft(title, texts));
      runs += 1;
    },
    /** A person has a run redone that is done: it reads so now. */
    async remap(title: string, draft: Draft): Promise<void> {
      const run = newRun(title);
      const { id } = database
        .prepare("SELECT id FROM runs WHERE sha256 = ? AND step = 'done'")
        .get(run.file.sha256) as { id: number };
      askRemap(database, id, run.file.path, clock.now());
      await journal.runs.add(run, draft);
    },
    /** Lives it, and tells the state of each run at its end. */
    async live(life: Life): Promise<string[]> {
      const process = mortal(life, {
        sent: (one) => void late.push(one),
        tick() {
          for (const one of late) one.requests -= 1;
          return arrive(({ requests }) => requests < 0);
        },
      });
      await work(process.depsOf(journal, notebook, clock), journal, clock, random, () => arrive(() => true));
      const open = await Promise.all(
        Array.from({ length: runs }, (_, index) => journal.runs.open(index + 1)),
      );
      return open.map(stateOf);
    },
    /** Until nothing is on its way any more. */
    rest: () => arrive(() => true),
    /** Whether something of ours is left over that the next run uses before it makes anything. */
    isLeftOver: (): boolean =>
      database.prepare('SELECT 1 FROM spares UNION SELECT 1 FROM servers WHERE sweep IS NOT NULL').get() !==
      undefined,
  };
}

export function stateOf({ step, comments }: OpenRun): string {
  const reached = comments.filter(({ intentAt }) => intentAt !== undefined).at(-1);
  if (step !== 'described' || !reached) return step;
  return `comment ${reached.n} ${reached.comment === undefined ? 'intended' : 'posted'}`;
}

/** Gives what the process asks of journal and notebook the fate that was chosen for it. */
function mortal(life: Life, wire: { sent(late: Late): void; tick(): Promise<void> }) {
  const outcomes = [...life.outcomes];
  let left = life.records ?? Number.POSITIVE_INFINITY;
  let dead = false;

  const living =
    <A extends unknown[], R>(act: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (dead) throw new Crash();
      return act(...args);
    };
  const durable =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      dead ||= left === 0;
      if (dead) throw new Crash();
      left -= 1;
      return write(...args);
    };

  async function send<R>(act: () => Promise<R>, writes: boolean): Promise<R> {
    if (dead) throw new Crash();
    await wire.tick();
    dead = left === 0;
    const outcome = dead ? (life.atDeath ?? 'never') : (outcomes.shift() ?? 'answered');
    if (outcome === 'answered') return act();
    if (outcome === 'lost') await act();
    if (outcome === 'late') wire.sent({ requests: life.lateness ?? 0, act });
    if (dead) throw new Crash();
    if (outcome === 'refused') throw new NotebookError('rate', 'slow down', { status: 429 });
    throw new NotebookError('server', 'no answer', { outcomeUnknown: writes });
  }

  const wired = (notebook: Notebook): Notebook =>
    Object.fromEntries(
      Object.entries(notebook).map(([name, part]) => [
        name,
        (...args: unknown[]) => send(() => part(...args), !/^(read|list)/.test(name)),
      ]),
    ) as unknown as Notebook;

  return {
    depsOf(journal: Journal, notebook: Notebook, clock: DeliveryContext['clock']): DeliveryContext {
      const server = memoryOf(SERVER, journal);
      return {
        notebook: wired(notebook),
        server: {
          ...server,
          url: SERVER,
          timeoutMs: 1000,
          learn: durable(server.learn),
          claimSpare: living(server.claimSpare),
          addSpare: durable(server.addSpare),
        },
        outbox: { record: durable(journal.runs.record) },
        unknown: trackUnknownOutcomes(clock, 1000),
        clock,
        stopping: new AbortController().signal,
      };
    },
  };
}

/** As the queue would: all runs that are due go together, and time passes until the next is due. */
async function work(
  deps: DeliveryContext,
  journal: Journal,
  clock: ReturnType<typeof manualClock>,
  random: () => number,
  arriveAll: () => Promise<void>,
): Promise<void> {
  async function bring(id: number): Promise<void> {
    const run = await journal.runs.open(id);
    try {
      await prepareServer({ dialect: 'auto', isUnknownRun: async () => false }, deps);
      await deliver(run, deps);
    } catch (error) {
      if (error instanceof Crash) throw error;
      const change = afterFailure(
        error,
        { attempts: run.attempts, rejections: run.attempts },
        clock.now(),
        random,
      );
      await deps.outbox.record(id, change);
    }
  }

  for (let round = 0; round < 100; round++) {
    const due = await journal.queue.due(clock.now(), 10, new Set());
    const ends = await Promise.allSettled(due.map(bring));
    if (ends.some((end) => end.status === 'rejected' && end.reason instanceof Crash)) return;
    const next = await journal.queue.nextDueAt(new Set());
    if (next === undefined) return;
    // Whatever is late comes before the time has passed that is waited for it.
    await arriveAll();
    clock.advance(Math.max(0, next - clock.now()));
  }
  throw new Error('it never comes to an end');
}
