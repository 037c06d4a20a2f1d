import { LabfeedError } from '../errors.js';
import type { Commit, Database } from './database.js';
import {
  createAdopt,
  createErase,
  createForgetAnswers,
  createIgnore,
  createReadAnew,
  createRefile,
  createRepair,
  createRetry,
} from './decisions.js';
import { createPlaces, createRemap } from './drafts.js';
import { createShapes } from './drift.js';
import { createBackfill } from './files.js';
import {
  type Answer,
  createStanding,
  findSource,
  hasSeveralFiles,
  isStillThere,
  type Request,
  requestSchema,
  type SourceState,
  type Standing,
} from './requests.js';

/** What was asked, and what became of it. */
export interface Decision extends Answer {
  /** Undefined where it could not be read. */
  readonly request: Request | undefined;
}

export interface Inbox {
  /** Carries out what was asked since, each request as a whole or not at all, and answers it. */
  apply(): Promise<Decision[]>;
}

interface Row {
  readonly id: number;
  readonly request: string;
}

interface Prepared {
  readonly id: number;
  /** Undefined where it could not be read. */
  readonly request: Request | undefined;
  readonly source: Source;
}

/** What is where a run's file was, as far as the request makes a difference of it. */
interface Source {
  /** Whether the file of a run to be retried, or erased, is still where it was. */
  readonly isThere: boolean;
  /** What is there in place of the file of a run to be redone. */
  readonly state: SourceState;
}

/** So many at once: between them, deliveries get their turn. */
const AT_ONCE = 100;

/** How long an answer is kept for the command that asked. */
const KEPT_MS = 3_600_000;

export function createInbox(database: Database, commit: Commit, now: () => number): Inbox {
  const unanswered = database.prepare(
    'SELECT id, request FROM inbox WHERE answer IS NULL ORDER BY id LIMIT ?',
  );
  const answer = database.prepare('UPDATE inbox SET answer = ? WHERE id = ?');
  const clear = database.prepare('DELETE FROM inbox WHERE answer IS NOT NULL AND at < ?');
  const standing = createStanding(database);
  const places = createPlaces(database);
  const decide = createDecide(database);
  const forgetAnswers = createForgetAnswers(database);

  /** Read before the commit: nothing in there waits for a disk that may be far away. */
  async function prepare({ id, request: json }: Row): Promise<Prepared> {
    const request = requestSchema.safeParse(parseJson(json)).data;
    const run = request && 'run' in request ? standing(request.run) : undefined;
    const isAsked = request?.kind === 'retry' || request?.kind === 'erase';
    const isThere = run !== undefined && isAsked && (await isStillThere(run.source));
    const state = run !== undefined && request?.kind === 'remap' ? await lookFor(run) : UNSEEN;
    return { id, request, source: { isThere, state } };
  }

  /** Of several files one stands for all: whoever reads them hashes them again. */
  async function lookFor(run: Standing): Promise<SourceState> {
    if (!hasSeveralFiles(run)) return findSource(run, places(run));
    return { path: run.path, has: (await isStillThere(run.source)) ? 'itsBytes' : 'nothing' };
  }

  function settle({ id, request }: Prepared, erased: number[], act: () => Answer): Decision {
    const result = act();
    answer.run(JSON.stringify(result), id);
    if (request?.kind === 'erase' && result.done) erased.push(request.run);
    return { ...result, request };
  }

  async function carryOut(asked: Prepared, erased: number[]): Promise<Decision> {
    const { request, source } = asked;
    const act = (): Answer => (request ? decide(request, source, now()) : UNREADABLE);
    try {
      return await commit(() => settle(asked, erased, act));
    } catch (error) {
      // The journal itself is in trouble: the request stays for later. Anything else would fail again and again.
      if (error instanceof LabfeedError) throw error;
      return commit(() => settle(asked, erased, () => impossible(error)));
    }
  }

  return {
    async apply() {
      const rows = unanswered.all(AT_ONCE) as unknown as Row[];
      if (rows.length === 0) return [];
      const asked = await Promise.all(rows.map(prepare));
      // First, so that what is answered now can still be heard.
      const cleared = commit(() => void clear.run(now() - KEPT_MS));
      const erased: number[] = [];
      const carried = asked.map((one) => carryOut(one, erased));
      // In the same breath as the erasing itself.
      const forgotten = commit(() => forgetAnswers(erased));
      const [decisions] = await Promise.all([Promise.all(carried), cleared, forgotten]);
      return decisions;
    },
  };
}

/** Changes what was asked for, and only where it still makes sense. To be called within a commit. */
function createDecide(database: Database) {
  const standing = createStanding(database);
  const readAnew = createReadAnew(database);
  const retry = createRetry(database, readAnew);
  const adopt = createAdopt(database);
  const refile = createRefile(database, readAnew);
  const remap = createRemap(database);
  const ignore = createIgnore(database);
  const erase = createErase(database);
  const backfill = createBackfill(database);
  const repair = createRepair(database);
  const shapes = createShapes(database);

  function decide(run: Standing, request: RunRequest, source: Source, at: number): Answer {
    switch (request.kind) {
      case 'retry':
        return retry(run, source.isThere, at);
      case 'adopt':
        return adopt(run, request, at);
      case 'refile':
        return refile(run, at);
      case 'remap':
        return remap(run, source.state, at);
      case 'ignore':
        return ignore(run, at);
      case 'erase':
        return erase(run, source.isThere, at);
      case 'repair':
        return repair(run, request, at);
    }
  }

  return (request: Request, source: Source, at: number): Answer => {
    if (request.kind === 'backfill') return backfill(request.instrument, request.existing, at);
    const run = standing(request.run);
    if (run === undefined) return { done: false, text: `there is no run ${request.run}` };
    const answer = decide(run, request, source, at);
    const isAccepted = answer.done && run.resting !== null && run.failure === 'drift';
    if (!isAccepted || !ACCEPTING.has(request.kind)) return answer;
    const others = shapes.accept(run.id, at);
    if (others === 0) return answer;
    const more = others === 1 ? 'another run' : `${others} more runs`;
    return { ...answer, text: `${answer.text}; ${more} that waited for the same answer go on too` };
  };
}

type RunRequest = Extract<Request, { readonly run: number }>;

/** Who decides so takes a run as it is, with whatever columns and units it has. */
const ACCEPTING: ReadonlySet<Request['kind']> = new Set(['retry', 'adopt', 'refile']);

const UNSEEN: SourceState = { path: '', has: 'nothing' };

const UNREADABLE: Answer = { done: false, text: 'this version of labfeed does not know that request' };

const impossible = (error: unknown): Answer => ({
  done: false,
  text: `labfeed failed on this request: ${error instanceof Error ? error.message : error}`,
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
