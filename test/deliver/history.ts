import fc from 'fast-check';
import { type DeliveryContext, type Notebook, trackUnknownOutcomes } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { prepareServer } from '../../src/deliver/server.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import type { Draft } from '../../src/model.js';
import type { OpenRun } from '../../src/outbox.js';
import { askRemap } from '../support/ask-remap.js';
import {
  FAULTS,
  type FakeRequest,
  type Fault,
  fakeNotebook,
  intercept,
  type NotebookKind,
} from '../support/fake-notebook.js';
import { SERVER } from '../support/filing.js';
import { due, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { seeded } from '../support/random.js';
import type { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, someDraft } from '../support/runs.js';

/** One process, from its start to its death. */
export interface ProcessScript {
  /** The outcomes of its requests, in order. Later requests are answered. */
  readonly outcomes: readonly ('answered' | Fault)[];
  /** How many records it writes before it crashes. By default, it runs until nothing is left to do. */
  readonly records?: number;
  /** What becomes of the request that is in flight when it crashes. */
  readonly atDeath?: 'lost' | 'dropped' | 'late';
  /** A late request is carried out after this many further requests, always within the grace period. */
  readonly lateness?: number;
}

export const anyProcess: fc.Arbitrary<ProcessScript> = fc.record({
  outcomes: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constant('answered' as const) },
      { weight: 2, arbitrary: fc.constantFrom('busy' as const, 'lost', 'dropped', 'late') },
    ),
    { maxLength: 12 },
  ),
  records: fc.nat(14),
  atDeath: fc.constantFrom('lost', 'dropped', 'late'),
  lateness: fc.nat(20),
});

class Crash extends Error {}

/** A request that the server carries out after this many further requests. */
interface LateRequest {
  requests: number;
  carryOut(): Promise<unknown>;
}

export type History = ReturnType<typeof createHistory>;

/** A journal, a notebook, and the processes that used them. `seed` sets the back-offs, and so the order of runs. */
export function createHistory(database: ReusableDatabase, kind: NotebookKind, seed = 1) {
  database.empty();
  const clock = manualClock();
  const random = seeded(seed).next;
  const notebook = fakeNotebook(kind);
  const journal = createJournal({ database, clock, release: () => undefined, schedule: queueMicrotask });
  let late: LateRequest[] = [];
  let runs = 0;

  async function carryOutLate(isDue: (request: LateRequest) => boolean = () => true): Promise<void> {
    const due = late.filter(isDue);
    late = late.filter((request) => !due.includes(request));
    for (const { carryOut } of due) await carryOut().catch(() => undefined);
  }

  return {
    notebook,
    async add(title: string, comments: number): Promise<void> {
      const texts = Array.from({ length: comments }, (_, index) => `comment ${index + 1}`);
      await take(journal, newRun(title), someDraft(title, texts));
      runs += 1;
    },
    /** A person wants a done run remapped; its file now yields this draft. */
    async remap(title: string, draft: Draft): Promise<void> {
      const run = newRun(title);
      const { id } = database
        .prepare("SELECT id FROM runs WHERE sha256 = ? AND step = 'done'")
        .get(run.file.sha256) as { id: number };
      askRemap(database, id, run.file.path, clock.now());
      await take(journal, run, draft);
    },
    /** Runs one process, and resolves with the state of each run at its end. */
    async process(script: ProcessScript = { outcomes: [] }): Promise<string[]> {
      const context = mortalContext(script, journal, notebook, clock, {
        send: (request) => void late.push(request),
        async tick() {
          for (const request of late) request.requests -= 1;
          await carryOutLate(({ requests }) => requests < 0);
        },
      });
      await deliverAll(context, journal, clock, random, carryOutLate);
      const open = Array.from({ length: runs }, (_, index) => journal.outbox.load(index + 1));
      return (await Promise.all(open)).map(stateOf);
    },
    carryOutLate: () => carryOutLate(),
    /** Whether a spare experiment of ours is left; the next run uses it instead of creating one. */
    hasSpares: (): boolean =>
      database.prepare('SELECT 1 FROM spares UNION SELECT 1 FROM servers WHERE sweep IS NOT NULL').get() !== undefined,
  };
}

function stateOf({ step, comments }: OpenRun): string {
  const reached = comments.filter(({ intentAt }) => intentAt !== undefined).at(-1);
  if (step !== 'described' || !reached) return step;
  return `comment ${reached.n} ${reached.comment === undefined ? 'intended' : 'posted'}`;
}

/** The context of a process that crashes, and whose requests have the outcomes of its script. */
function mortalContext(
  script: ProcessScript,
  journal: Journal,
  notebook: Notebook,
  clock: DeliveryContext['clock'],
  network: { send(late: LateRequest): void; tick(): Promise<void> },
): DeliveryContext {
  const outcomes = [...script.outcomes];
  let recordsLeft = script.records ?? Number.POSITIVE_INFINITY;
  let isDead = false;

  const alive =
    <A extends unknown[], R>(act: (...args: A) => Promise<R>, records = 0) =>
    async (...args: A): Promise<R> => {
      isDead ||= recordsLeft < records;
      if (isDead) throw new Crash();
      recordsLeft -= records;
      return act(...args);
    };

  async function send({ isWrite, carryOut }: FakeRequest): Promise<unknown> {
    if (isDead) throw new Crash();
    await network.tick();
    isDead = recordsLeft === 0;
    const outcome = isDead ? (script.atDeath ?? 'dropped') : (outcomes.shift() ?? 'answered');
    if (outcome === 'answered') return carryOut();
    const { carriedOut, error } = FAULTS[outcome];
    if (carriedOut === 'now') await carryOut();
    if (carriedOut === 'later') network.send({ requests: script.lateness ?? 0, carryOut });
    throw isDead ? new Crash() : error(isWrite);
  }

  const server = journal.outbox.server(SERVER);
  return {
    notebook: intercept(notebook, send),
    server: {
      ...server,
      url: SERVER,
      timeoutMs: 1000,
      learn: alive(server.learn, 1),
      claimSpare: alive(server.claimSpare),
      addSpare: alive(server.addSpare, 1),
    },
    outbox: {
      ...journal.outbox,
      record: alive(journal.outbox.record, 1),
      apply: alive(journal.outbox.apply, 1),
      // As if it were written at once: a process may also end after that.
      recordLater: (...args) => void alive(journal.outbox.apply, 1)(...args).catch(() => undefined),
    },
    unknown: trackUnknownOutcomes(clock, 1000),
    clock,
    stopping: new AbortController().signal,
  };
}

/** As the queue would: all due runs at once, and then time passes until the next is due. */
async function deliverAll(
  context: DeliveryContext,
  journal: Journal,
  clock: ReturnType<typeof manualClock>,
  random: () => number,
  carryOutLate: () => Promise<void>,
): Promise<void> {
  async function deliverRun(id: number): Promise<void> {
    const run = await journal.outbox.load(id);
    try {
      await prepareServer({ dialect: 'auto', instruments: ['balance'], isUnknownRun: async () => false }, context);
      await deliver(run, context);
    } catch (error) {
      if (error instanceof Crash) throw error;
      const failures = { attempts: run.attempts };
      await context.outbox.record(id, afterFailure(error, failures, clock.now(), random));
    }
  }

  for (let round = 0; round < 100; round++) {
    const runs = await due(journal, clock.now(), 10);
    const ends = await Promise.allSettled(runs.map(deliverRun));
    if (ends.some((end) => end.status === 'rejected' && end.reason instanceof Crash)) return;
    const next = await journal.outbox.nextDueAt();
    if (next === undefined) return;
    // A late request is carried out before the grace period has passed.
    await carryOutLate();
    clock.advance(Math.max(0, next - clock.now()));
  }
  throw new Error('the delivery does not end');
}
