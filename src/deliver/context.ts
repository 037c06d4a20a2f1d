import type { Clock } from '../clock.js';
import { LabfeedError } from '../errors.js';
import type { OpenRun, RunChange, ServerOutbox } from '../outbox.js';

/** An experiment as the notebook shows it. Beyond the title, the contract names no fields. */
export type ExperimentRecord = { readonly title?: unknown; readonly date?: unknown } & Readonly<
  Record<string, unknown>
>;

export type CommentRecord = { readonly id: number } & Readonly<Record<string, unknown>>;

interface TagRecord {
  readonly id: number;
  readonly tag: string;
}

export interface ExperimentChanges {
  readonly title: string;
  readonly date: string;
  readonly body: string;
  readonly tags?: readonly string[];
  readonly content_type?: number;
}

/** What delivery needs of the notebook. */
export interface Notebook {
  createExperiment(fields: { title: string }): Promise<number>;
  readExperiment(id: number): Promise<ExperimentRecord>;
  patchExperiment(id: number, changes: ExperimentChanges, signal?: AbortSignal): Promise<void>;
  /** eLabFTW only: its PATCH does not take tags. Adding one that is there changes nothing. */
  addTag(experiment: number, tag: string): Promise<void>;
  /** eLabFTW only. */
  listTags(experiment: number): Promise<readonly TagRecord[]>;
  /** eLabFTW only. Takes the tag off this experiment; removing one that is not there changes nothing. */
  removeTag(experiment: number, tag: number): Promise<void>;
  /** A request that always has an answer: it proves that it is the notebook who speaks, and tells its dialect. */
  listKeys(): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** eLabFTW only: the last changed experiments whose bodies hold all of these texts. */
  searchBodies(texts: readonly string[]): Promise<readonly ({ readonly id: number } & ExperimentRecord)[]>;
  listComments(experiment: number): Promise<readonly CommentRecord[]>;
  readComment(experiment: number, comment: number): Promise<CommentRecord>;
  postComment(experiment: number, text: string): Promise<number>;
  /** Resolves with the comment as it is then. */
  patchComment(experiment: number, comment: number, text: string): Promise<CommentRecord>;
  deleteComment(experiment: number, comment: number): Promise<void>;
}

export interface DeliverDeps {
  readonly notebook: Notebook;
  /** The server's address: ids mean something only together with it. */
  readonly server: string;
  /** How long one request may take. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly creations: Creations;
  readonly memory: ServerOutbox;
  /** Of creations and comments: what has no answer is looked for. */
  readonly losses: Losses;
  /** Of changes, which are sent again. */
  readonly edits: Losses;
  /** Resolves when the changes are on disk. */
  record(run: number, ...changes: RunChange[]): Promise<void>;
  /** Throws between two steps once the daemon is to stop. */
  goOn(): void;
}

/** Ways in which a delivery ends early without anything having gone wrong. */

/** Not a failure: the run can only be decided on after this time. */
export class NotYetError extends LabfeedError {
  override readonly name = 'NotYetError';
  readonly untilMs: number;

  constructor(message: string, untilMs: number) {
    super(message);
    // The clock that only grows has fractions, and the journal none.
    this.untilMs = Math.ceil(untilMs);
  }
}

/** The daemon is ending: what was not sent yet is surely not sent. */
export class StoppedError extends LabfeedError {
  override readonly name = 'StoppedError';
}

/** Nothing more is sent to this server until a person has looked at it. */
export class HaltedError extends LabfeedError {
  override readonly name = 'HaltedError';
}

/**
 * Creations go on side by side; a look for a lost one goes alone (recovery rule 4): with another
 * creation unanswered, that one's experiment could be taken for the lost one.
 */
interface Creations {
  share<T>(create: () => Promise<T>): Promise<T>;
  exclude<T>(look: () => Promise<T>): Promise<T>;
}

export function createCreations(): Creations {
  /** The last look that was asked for; whoever comes later waits for it, so that looks are not starved. */
  let look: Promise<unknown> = Promise.resolve();
  const sharing = new Set<Promise<unknown>>();
  const settled = async (work: Iterable<Promise<unknown>>): Promise<void> =>
    void (await Promise.allSettled(work));

  return {
    async share(create) {
      for (let seen: unknown; seen !== look; ) {
        seen = look;
        await settled([look]);
      }
      const work = create();
      sharing.add(work);
      return work.finally(() => sharing.delete(work));
    },
    exclude(work) {
      const before = look;
      const mine = settled([before])
        .then(() => settled(sharing))
        .then(work);
      look = mine;
      return mine;
    },
  };
}

/**
 * When a request of a run whose answer is not known can last have been on its way. Counted in time that only grows:
 * the journal's times may be from before somebody set the clock, and a request can wait at the gate for hours
 * after its intent was recorded. What an earlier process sent may have left until the moment that this one began.
 */
interface Losses {
  note(run: number): void;
  /** Whether this process has noted one, and not long ago. */
  isNoted(run: number): boolean;
  /** Milliseconds since then. */
  sinceMs(run: number): number;
  /**
   * The run adopted a blank experiment that may be another run's. Its own may still appear, so nobody's absence is
   * proved before its grace period has passed.
   */
  adopted(run: number): void;
}

/** A loss from longer ago than `keptMs` is as old as any: it is forgotten. */
export function createLosses(clock: Clock, keptMs: number): Losses {
  const began = clock.monotonic();
  /** The oldest first. */
  const lostAt = new Map<number, number>();
  const timeOf = (run: number): number => lostAt.get(run) ?? began;
  let adoptedAt = began;
  return {
    note(run) {
      const now = clock.monotonic();
      lostAt.delete(run);
      lostAt.set(run, now);
      for (const [other, at] of lostAt) {
        if (now - at <= keptMs) break;
        lostAt.delete(other);
      }
    },
    isNoted: (run) => lostAt.has(run),
    sinceMs: (run) => clock.monotonic() - Math.max(timeOf(run), adoptedAt),
    adopted(run) {
      adoptedAt = Math.max(adoptedAt, timeOf(run));
    },
  };
}

/** PHP runs a request on for 120 s after its connection was cut; seen: committed 6 s later, with a higher id. */
const ELABFTW_MS = 130_000;

/** How long a request whose answer was lost may still be carried out, whoever the server is. */
export const longestGraceMs = (timeoutMs: number): number => Math.max(2 * timeoutMs, ELABFTW_MS);

/** The same of the server that is spoken to. */
export async function graceMsOf({ memory, timeoutMs }: DeliverDeps): Promise<number> {
  const { dialect } = await memory.facts();
  return dialect === 'elabftw' ? longestGraceMs(timeoutMs) : 2 * timeoutMs;
}

/**
 * Looks for what a request of this run may have left behind. A find counts at once; a not-found only if the look
 * began after the grace, since what was not there when it passed may have come while it went on.
 */
export async function lookWithGrace<T>(
  run: OpenRun,
  pending: string,
  deps: DeliverDeps,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const graceMs = await graceMsOf(deps);
  const leftMs = (): number => graceMs - deps.losses.sinceMs(run.id);
  const notYet = (): NotYetError => new NotYetError(pending, deps.clock.now() + Math.max(0, leftMs()));
  const isEarly = leftMs() > 0;
  // With several creations of one run unaccounted for, adopting the first would leave the last one behind.
  if (isEarly && run.step === 'creating' && run.unseen > 0) throw notYet();
  const found = await look();
  if (found === undefined && isEarly) throw notYet();
  return found;
}
