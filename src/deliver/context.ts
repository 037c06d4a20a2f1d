import type { Clock } from '../clock.js';
import { LabfeedError, NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import type { Origin } from '../markers.js';
import type { LearntFacts, OpenRun, Outbox, ServerOutbox } from '../outbox.js';
import { joinWords, nearest } from '../text.js';

/** Everything that the delivery of a run needs. */
export interface DeliveryContext {
  readonly notebook: Notebook;
  readonly server: Server;
  readonly outbox: Pick<Outbox, 'id' | 'load' | 'record' | 'apply' | 'recordLater' | 'unfiled' | 'uploads'>;
  readonly unknown: UnknownOutcomes;
  /** Called when the experiment has its title, body and tags, so that only comments are missing. */
  readonly filled?: () => void;
  readonly clock: Clock;
  /** Whether an experiment with this origin line was filed from this journal and is not in it. */
  isUnknownRun?(origin: Origin): Promise<boolean>;
  /** Aborted with a StoppedError when the daemon stops; checked between two steps. */
  readonly stopping: AbortSignal;
}

/** One run whose experiment is known. */
export interface Filing extends DeliveryContext {
  readonly run: OpenRun;
  readonly experiment: number;
}

/** The server that runs are delivered to. Ids are meaningful only together with its URL. */
export interface Server extends ServerOutbox {
  readonly url: string;
  /** How long one request may take. */
  readonly timeoutMs: number;
}

/** An experiment as the server shows it. The contract names no fields beyond these. */
export type ExperimentRecord = { readonly title?: unknown; readonly date?: unknown } & Readonly<
  Record<string, unknown>
>;

/** The user that an experiment belongs to, under eLabFTW's name for it. Undefined if the server does not show it. */
export function ownerOf({ userid }: ExperimentRecord): string | undefined {
  return userid === undefined || userid === null ? undefined : String(userid);
}

export type CommentRecord = { readonly id: number } & Readonly<Record<string, unknown>>;

export interface ExperimentChanges {
  readonly title: string;
  readonly date: string;
  readonly body?: string;
  readonly tags?: readonly string[];
  readonly content_type?: number;
}

export interface FilledCreation {
  /** The provisional one. */
  readonly title: string;
  readonly body: string;
  readonly content_type: number;
  readonly tags?: readonly string[] | undefined;
  /** An object, unlike in a PATCH. */
  readonly metadata?: object | undefined;
  readonly category?: number;
  readonly status?: number;
  readonly canread_base?: number;
  readonly canwrite_base?: number;
}

/** What only eLabFTW has of an experiment. */
export interface ExperimentExtras {
  /** JSON. */
  readonly metadata?: string;
  readonly category?: number;
  readonly status?: number;
  readonly canread_base?: number;
  readonly canwrite_base?: number;
}

/** The part of the notebook client that delivery uses. */
export interface Notebook {
  /** `template`: eLabFTW only. */
  createExperiment(fields: { title: string; template?: number | undefined }): Promise<number>;
  /** eLabFTW only: the creation carries what the PATCH would, apart from title and date. */
  createFilledExperiment(content: FilledCreation): Promise<number>;
  readExperiment(id: number): Promise<ExperimentRecord>;
  /**
   * Resolves with the experiment as it then is, if the server returns it. `check` is called when it is the request's
   * turn; if it throws, nothing is sent.
   */
  patchExperiment(id: number, changes: ExperimentChanges, check?: () => void): Promise<ExperimentRecord | undefined>;
  /** eLabFTW only, as are the next two. */
  patchExtras(id: number, changes: ExperimentExtras): Promise<void>;
  /** Idempotent. */
  linkItem(id: number, item: number): Promise<void>;
  readonly listNamed: ListNamed;
  /** eLabFTW only, as are the next two: its PATCH does not accept tags. Idempotent. */
  addTag(experiment: number, tag: string): Promise<void>;
  listTags(experiment: number): Promise<readonly { readonly id: number; readonly tag: string }[]>;
  removeTag(experiment: number, tag: number): Promise<void>;
  /** Harmless, and answered by every notebook: shows whether the key and the server work, and the dialect. */
  listKeys(): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** eLabFTW only: the most recently changed experiments whose bodies contain all of these texts. Bodies are not shown. */
  searchBodies(texts: readonly string[]): Promise<readonly { readonly id: number }[]>;
  /** eLabFTW only: the most recently changed experiments whose titles contain this text, at most `limit`. No bodies. */
  searchTitles(text: string, limit: number): Promise<readonly ({ readonly id: number } & ExperimentRecord)[]>;
  listComments(experiment: number): Promise<readonly CommentRecord[]>;
  readComment(experiment: number, comment: number): Promise<CommentRecord>;
  postComment(experiment: number, text: string): Promise<number>;
  /** Resolves with the comment as the server then shows it. */
  patchComment(experiment: number, comment: number, text: string): Promise<CommentRecord>;
  deleteComment(experiment: number, comment: number): Promise<void>;
  /** eLabFTW only, as are the next two: the attached files of an experiment, archived and deleted ones included. */
  listUploads(experiment: number): Promise<readonly UploadRecord[]>;
  uploadFile(experiment: number, file: RawFile): Promise<number>;
  deleteUpload(experiment: number, upload: number): Promise<void>;
}

/** A file attached to an experiment. */
export interface UploadRecord {
  readonly id: number;
  readonly real_name?: string | undefined;
  /** SHA-256, in hexadecimal digits. */
  readonly hash?: string | undefined;
  /** 1: normal, 2: archived, 3: deleted. */
  readonly state?: number | undefined;
  /** Where the server keeps it: part of its address in a body. */
  readonly long_name?: string | undefined;
  readonly storage?: number | undefined;
}

/** A file to attach. */
export interface RawFile {
  readonly name: string;
  readonly size: number;
  /** The upload of which it is a new version: the notebook archives that one. */
  readonly replaces?: number | undefined;
  /** Its bytes, when it is the request's turn. If it throws, the request is cut off. */
  open(): AsyncIterable<Uint8Array>;
}

/** Not a failure: nothing can be decided about the run before this time. */
export class NotYetError extends LabfeedError {
  override readonly name = 'NotYetError';
  readonly untilMs: number;

  constructor(message: string, untilMs: number) {
    super(message);
    this.untilMs = untilMs;
  }
}

/** The daemon is stopping. What was not sent will not be sent. */
export class StoppedError extends LabfeedError {
  override readonly name = 'StoppedError';
}

/** Nothing is sent to this server until a person has run `recover`. */
export class HaltedError extends LabfeedError {
  override readonly name = 'HaltedError';
}

/** The requests of this process whose outcomes are unknown. */
export interface UnknownOutcomes {
  readonly creations: CreationLock;
  /** POSTs of experiments and comments, by run. They are reconciled before they are repeated. */
  readonly posts: OutcomeTimes;
  /** PATCHes and DELETEs, by run. They are idempotent. */
  readonly edits: OutcomeTimes;
  readonly window: WindowMemory;
}

export function trackUnknownOutcomes(clock: Clock, timeoutMs: number, log?: Log): UnknownOutcomes {
  const keepMs = maxGraceMs(timeoutMs);
  return {
    creations: new CreationLock(),
    posts: new OutcomeTimes(clock, keepMs),
    edits: new OutcomeTimes(clock, keepMs),
    window: new WindowMemory(log),
  };
}

/**
 * Creations run side by side; reconciliation runs alone. With another creation in flight, its experiment could be
 * mistaken for the one that reconciliation looks for.
 */
class CreationLock {
  /** The last exclusive section that was requested. Later requests wait for it, so that it is not starved. */
  #exclusive: Promise<unknown> = Promise.resolve();
  readonly #shared = new Set<Promise<unknown>>();

  async share<T>(create: () => Promise<T>): Promise<T> {
    for (let seen: unknown; seen !== this.#exclusive; ) {
      seen = this.#exclusive;
      await Promise.allSettled([this.#exclusive]);
    }
    const work = create();
    this.#shared.add(work);
    return work.finally(() => this.#shared.delete(work));
  }

  exclude<T>(reconcile: () => Promise<T>): Promise<T> {
    const work = Promise.allSettled([this.#exclusive])
      .then(() => Promise.allSettled(this.#shared))
      .then(reconcile);
    this.#exclusive = work;
    return work;
  }
}

/**
 * When a request of unknown outcome may last have been sent, by run, on the monotonic clock: the outbox's times may be
 * from before the clock was set, and a request can wait for hours between its intent and its turn. Requests of an
 * earlier process may have been sent until this one started.
 */
export class OutcomeTimes {
  readonly #clock: Clock;
  readonly #keepMs: number;
  readonly #startedAt: number;
  /** Oldest first. */
  readonly #times = new Map<number, number>();
  #adoptedAt: number;

  /** A time older than `keepMs` no longer matters and is forgotten. */
  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
    this.#startedAt = clock.monotonic();
    this.#adoptedAt = this.#startedAt;
  }

  note(run: number): void {
    const now = this.#clock.monotonic();
    this.#times.delete(run);
    this.#times.set(run, now);
    for (const [other, at] of this.#times) {
      if (now - at <= this.#keepMs) break;
      this.#times.delete(other);
    }
  }

  /** Whether this process recently noted such a request of this run. */
  has(run: number): boolean {
    return this.#times.has(run);
  }

  elapsedMs(run: number): number {
    return this.#clock.monotonic() - Math.max(this.#timeOf(run), this.#adoptedAt);
  }

  /**
   * The run adopted a blank experiment that may be another run's. Its own may still appear, so no absence is proved
   * before the grace period of this run has passed.
   */
  adopted(run: number): void {
    this.#adoptedAt = Math.max(this.#adoptedAt, this.#timeOf(run));
  }

  #timeOf(run: number): number {
    return this.#times.get(run) ?? this.#startedAt;
  }
}

/** A creation that was looked for after its grace period, and not found. */
export interface Absence {
  /** Every id of its window up to this one was read. */
  readonly through: number;
  /** Whether it can have no higher id either. */
  readonly isProved: boolean;
}

/** What this process knows about creations that carry their content. */
class FilledCreations {
  /** Older versions of eLabFTW drop the content. */
  isKept = true;
  /** The tags that the server has accepted: a creation with one that it refuses fails although it takes effect. */
  readonly #tags = new Set<string>();
  /** Runs whose filled creation failed: perhaps because of the content, so that the next one carries the title only. */
  readonly #failed = new Set<number>();

  isPossible(run: number): boolean {
    return this.isKept && !this.#failed.has(run);
  }

  noteFailed(run: number): void {
    if (this.#failed.size > MAX_FAILED) this.#failed.clear();
    this.#failed.add(run);
    this.#tags.clear();
  }

  areAccepted(tags: readonly string[]): boolean {
    return tags.every((tag) => this.#tags.has(tag));
  }

  noteAccepted(tags: readonly string[]): void {
    if (this.#tags.size > MAX_TAGS) this.#tags.clear();
    for (const tag of tags) this.#tags.add(tag);
  }
}

const MAX_TAGS = 1000;
const MAX_FAILED = 10_000;

const MAX_CHECKED = 100;

/** What the reads of this process have shown, so that no reconciliation reads it again. */
export class WindowMemory {
  /** Ids that exist and are not ours. */
  readonly foreign = new Set<number>();
  /** Ids that were skipped or deleted: missing below others after every grace period, so that none of ours appears there. */
  readonly missing = new Set<number>();
  /** By id, on the monotonic clock: when to try again. */
  readonly unreadable = new Map<number, number>();
  readonly failures = new Map<number, number>();
  /** By run. */
  readonly absent = new Map<number, Absence>();
  /** The last creation that was answered: a creation whose grace period was over before has no higher id. */
  ceiling: { readonly id: number; readonly sentAt: number } | undefined;
  /** A halt that could not be written to the journal yet. */
  halt: LearntFacts | undefined;
  /** Whether a creation of this process was read back on a server that drops titles. */
  isTitleChecked = false;
  readonly filled = new FilledCreations();
  readonly directory = new Directory();
  /** On the monotonic clock: when to look again for unseen creations, after one entry could not be read. */
  sweepAgainAt = 0;
  readonly log: Pick<Log, 'warn'> | undefined;

  constructor(log?: Pick<Log, 'warn'>) {
    this.log = log;
  }

  /** Runs whose experiments were just read and are as labfeed left them, and when, on the monotonic clock. */
  readonly #checked = new Map<number, number>();

  noteChecked(run: number, now: number): void {
    if (this.#checked.size > MAX_CHECKED) this.#checked.clear();
    this.#checked.set(run, now);
  }

  /** When it was last read, if that was just before. Only the next write may rely on it. */
  takeChecked(run: number): number | undefined {
    const at = this.#checked.get(run);
    this.#checked.delete(run);
    return at;
  }

  maySweep(now: number): boolean {
    return now >= this.sweepAgainAt;
  }

  noteUnknown(run: number): void {
    this.absent.delete(run);
    this.missing.clear();
  }

  noteCreation(run: number, id: number, sentAt: number): void {
    this.absent.delete(run);
    if (id > (this.ceiling?.id ?? 0)) this.ceiling = { id, sentAt };
  }
}

/** PHP continues for 120 s after its connection was cut. Observed: committed 6 s later, with a higher id. */
const ELABFTW_GRACE_MS = 130_000;

/** The longest grace period, whatever the server is. */
const maxGraceMs = (timeoutMs: number): number => Math.max(2 * timeoutMs, ELABFTW_GRACE_MS);

/** How long a request of unknown outcome may still take effect. */
export async function gracePeriodMs(server: Server): Promise<number> {
  const { dialect } = await server.facts();
  return dialect === 'elabftw' ? maxGraceMs(server.timeoutMs) : 2 * server.timeoutMs;
}

/** What an experiment on eLabFTW can be given by name. */
const NAMED = { category: 'category', status: 'status', template: 'template', link: 'resource' } as const;

export type Named = keyof typeof NAMED;

interface Entry {
  readonly id: number;
  readonly title: string;
}

/** All categories, statuses or templates; the resources whose names contain `wanted`, or the one with this id. */
export type ListNamed = (kind: Named, wanted: string | number) => Promise<readonly Entry[]>;

const KEEP_MS = 300_000;
const SHOWN = 12;

/** The ids of categories, statuses, templates and resources by name, as last read from the server. */
export class Directory {
  readonly #known = new Map<string, { readonly entries: readonly Entry[]; readonly at: number }>();
  /** Ids by the name under which they were found, so that a new name on the server stops nothing. */
  readonly #found = new Map<string, number>();

  async idOf(kind: Named, wanted: string | number, list: ListNamed, now: number): Promise<number> {
    // There can be more resources than a list has. A link to one that does not exist gets 404.
    if (kind === 'link' && typeof wanted === 'number') return wanted;
    const entries = await this.#entries(kind, wanted, list, now);
    const key = JSON.stringify([kind, wanted]);
    const matches = entries.filter(({ id, title }) =>
      typeof wanted === 'number' ? id === wanted : isSame(title, wanted),
    );
    const earlier = entries.find(({ id }) => id === this.#found.get(key));
    const [match = earlier, ...others] = matches;
    if (!match) throw unknownName(kind, wanted, entries);
    if (others.length > 0) throw ambiguousName(kind, wanted, matches);
    this.#found.set(key, match.id);
    return match.id;
  }

  async #entries(kind: Named, wanted: string | number, list: ListNamed, now: number): Promise<readonly Entry[]> {
    // A notebook can have thousands of resources: these are searched for.
    const key = kind === 'link' ? `${kind} ${wanted}` : kind;
    const known = this.#known.get(key);
    const has = known?.entries.some(({ id, title }) => id === wanted || isSame(title, String(wanted)));
    if (known && has && now - known.at < KEEP_MS) return known.entries;
    const entries = await list(kind, wanted);
    this.#known.set(key, { entries, at: now });
    return entries;
  }
}

const isSame = (a: string, b: string): boolean => a.trim().toLowerCase() === b.trim().toLowerCase();

function unknownName(kind: Named, wanted: string | number, entries: readonly Entry[]): NotebookError {
  const names = entries.map(({ title }) => title);
  const guess = nearest(String(wanted), names);
  const shown = names.length > SHOWN ? [...names.slice(0, SHOWN), `${names.length - SHOWN} more`] : names;
  const known = names.length === 0 ? 'the notebook has none' : `it has ${joinWords(shown.map(quote))}`;
  const instead = guess === undefined ? '' : ` Did you mean ${quote(guess)}?`;
  return new NotebookError('request', `the notebook has no ${NAMED[kind]} ${quote(wanted)}; ${known}`, {
    hint: `correct \`experiment.${kind}\` in the configuration, or create it in the notebook. Then retry with --remap.${instead}`,
  });
}

const ambiguousName = (kind: Named, wanted: string | number, matches: readonly Entry[]): NotebookError =>
  new NotebookError(
    'request',
    `the notebook has several with the name ${quote(wanted)}: ${joinWords(matches.map(({ id }) => String(id)))}`,
    { hint: `write the id of the ${NAMED[kind]} in \`experiment.${kind}\` instead. Then retry with --remap` },
  );

const quote = (name: string | number): string => (typeof name === 'number' ? String(name) : JSON.stringify(name));
