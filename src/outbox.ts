import type { FailureClass, FileError } from './errors.js';
import type { Dialect, Draft, IdentifiedFile, Shape } from './model.js';
import type { NewSource, Sources } from './sources.js';
import type { NewAttachment, NewPlot, Uploads } from './uploads.js';

/**
 * The interface to the store of runs. Intake hands runs over, delivery claims them and records each step. Every call
 * is asynchronous and independent: no call relies on a transaction that includes another one.
 * A change is durable when its promise resolves, unless its description says otherwise.
 */
export interface Outbox extends Handover, Deliveries, Upkeep {
  /** Part of the origin line of everything that is filed from it; 8 hexadecimal digits. */
  readonly id: string;
  /** What is known about one notebook server. */
  server(url: string): ServerOutbox;
  readonly uploads: Uploads;
  readonly sources: Sources;
  /** The number of runs in each step or parked state. */
  count(): Promise<Record<string, number>>;
}

/** From intake to outbox. Repeating a call after a crash changes nothing: a run is identified by its fingerprint. */
export interface Handover {
  /** Tells whether intake has to read this file. Attaches the file to a recovered run that has the same content. */
  match(run: NewRun): Promise<Match>;
  /** The file of this run was renamed: from now on, other bytes at this path are its next version. */
  move(run: number, path: string): Promise<void>;
  /**
   * Stores a run with its draft, or with the reason why its file cannot be read. It is on disk before anything is sent
   * for it, and within a second in any case. The source is not needed afterwards.
   * A quarantined or drifted run, or one that a person wants remapped, takes the new reading. If the file revises the
   * run of its path, that run takes the new version, whatever its state: its experiment, if it has one, is updated.
   */
  add(run: NewRun, reading: Reading): Promise<Added>;
  /** Runs whose files must be read again: parked under another mapping, or to be remapped. */
  unread(instrument: string, mapping: string): Promise<UnreadRun[]>;
}

/** From outbox to notebook. */
export interface Deliveries {
  /**
   * Takes up to `limit` due runs: live before backlog, fair between instruments, oldest first. Nobody else gets them
   * until they are released, or until the process that claimed them ends.
   */
  claim(now: number, limit: number, among?: Among): Promise<number[]>;
  release(run: number): Promise<void>;
  /** When the next unclaimed run becomes due. */
  nextDueAt(among?: Among): Promise<number | undefined>;
  load(run: number): Promise<OpenRun>;
  /** All changes of one call become durable together, or none of them does. */
  record(run: number, ...changes: RunChange[]): Promise<void>;
  /** Like `record`, but a power failure may undo it within a second: for changes that a later delivery can find out. */
  apply(run: number, ...changes: RunChange[]): Promise<void>;
  /** Like `apply`, for changes that nobody waits for: they are stored together with the run's next change. */
  recordLater(run: number, ...changes: RunChange[]): void;
  /** Some of the runs that have no experiment yet, oldest first. */
  unfiled(limit: number): Promise<{ readonly instrument: string; readonly sha256: string }[]>;
  /** Whether a run with this content has an experiment. */
  hasContent(instrument: string, sha256: string): Promise<boolean>;
}

/** Which runs to choose from: only these few, the first of them preferred, or all but these few. */
export type Among =
  | { readonly only: readonly number[]; readonly except?: never }
  | { readonly only?: never; readonly except: ReadonlySet<number> };

/** For alarms and housekeeping. Called every second, so the cost must not grow with the number of runs. */
export interface Upkeep {
  /** The runs that wait for a person, by instrument. */
  waitingForPeople(): Promise<ReadonlyMap<string, WaitingForPeople>>;
  /** The run that has been on its way for the longest time, if it was added or reopened before this time. */
  overdue(before: number): Promise<OverdueRun | undefined>;
  /** When the newest run of the instrument was added, or the newest version of a file. Called at the start. */
  lastAddedAt(instrument: string): Promise<number | undefined>;
  /**
   * Makes the runs due whose next attempt is later than this, and returns their number: no wait is that long, so the
   * clock was ahead when they were postponed.
   */
  pullForward(latest: number): Promise<number>;
  /**
   * The latest time that is certain to have passed whatever the clock says now: runs were added on several days since.
   * Undefined if there are too few.
   */
  provenTime(): Promise<number | undefined>;
  /**
   * Removes the history, the draft and the comment texts of runs that were finished before this time, a few at a time.
   * Fingerprints, paths and the notebook's ids stay.
   */
  prune(before: number, from: number): Promise<Pruned>;
}

export interface WaitingForPeople {
  readonly quarantined: ParkedRuns | undefined;
  readonly held: ParkedRuns | undefined;
}

export interface OverdueRun {
  readonly run: number;
  readonly instrument: string;
  /** Empty if the run was erased. */
  readonly path: string;
  readonly state: string;
  /** When it was added, or reopened by a person. */
  readonly since: number;
  /** Why its last attempt failed. */
  readonly reason: string | undefined;
  /** The run is done, but this raw file is not attached at the notebook where it was filed. */
  readonly upload?: { readonly file: string; readonly server: string | undefined };
}

export interface ParkedRuns {
  readonly runs: number;
  /** Path and reason of the newest one. */
  readonly path: string;
  readonly reason: string | undefined;
}

export interface Pruned {
  readonly runs: number;
  /** Where the next batch begins; undefined at the end. */
  readonly next: number | undefined;
}

/** What is known about one notebook server: its properties, and which of its experiments are ours. */
export interface ServerOutbox {
  facts(): Promise<ServerFacts>;
  /** Stores what was learnt; null forgets it. */
  learn(facts: LearntFacts): Promise<void>;
  /** Gives the run an unused experiment of ours, if there is one; preferably the run's own. */
  claimSpare(run: OpenRun, earlier?: UnseenCreations): Promise<number | undefined>;
  addSpare(experiment: number, reference?: string): Promise<void>;
  /** Whether one of the unused experiments has the provisional title with this reference. */
  hasSpare(reference: string): Promise<boolean>;
  /** Whether a run has this experiment, or it is a spare. */
  hasExperiment(experiment: number): Promise<boolean>;
  /** The run that has this experiment. */
  runWith(experiment: number): Promise<number | undefined>;
  /** The runs that were written and not parked since, those with the highest experiments first. */
  lastFiled(count: number): Promise<FiledRun[]>;
  /** The same, those whose experiments were filled in last first. */
  lastDescribed(count: number): Promise<FiledRun[]>;
  /** Whether a creation of the run with this reference has an unknown outcome. */
  isCreating(reference: string): Promise<boolean>;
  /** The number of creations whose outcome is unknown. */
  countUnknown(): Promise<number>;
  /** The runs with such creations. */
  unknownCreations(): Promise<UnknownCreation[]>;
}

/** Earlier creations of a run that may have left experiments behind which were not found. */
export interface UnseenCreations {
  /** Their number. */
  readonly unseen: number;
  /** See `ServerFacts.sweepFrom`. */
  readonly sweepFrom?: number | undefined;
}

/** A run with creations of unknown outcome. */
export interface UnknownCreation extends Pick<OpenRun, 'reference' | 'sha256' | 'floor' | 'unseen'> {
  readonly run: number;
  /** A person has to decide about the run. */
  readonly isParked: boolean;
}

/** What identifies the experiment of a run as ours. */
export interface FiledRun {
  readonly experiment: number;
  readonly reference: string;
  readonly sha256: string;
  /** Absent if the draft was removed. */
  readonly title: string | undefined;
}

/** The content of a run: its identity without the refiling count. */
export interface ContentKey {
  readonly sha256: string;
  /** The path, if equal content at other paths is a separate run; else empty. */
  readonly copy: string;
}

/** A run as intake hands it over. */
export interface NewRun {
  readonly instrument: string;
  readonly file: IdentifiedFile;
  /** See `ContentKey`. */
  readonly copy: string;
  readonly backlog: boolean;
  /** Fingerprint of the mapping that reads the file. */
  readonly mapping: string;
  /** The run that these files may be the rest of: they are unchanged since it was taken, but others are gone. */
  readonly partOf?: ContentKey | undefined;
  /**
   * The file is the next version of the run that was taken from its path, if there is one. `last`: what was taken from
   * there last, as far as intake knows.
   */
  readonly revises?: { readonly last: ContentKey | undefined } | undefined;
  /** Its raw files, if they are to be attached. */
  readonly attachments?: readonly NewAttachment[] | undefined;
  /** Its plot, or why it has none. Undefined if it has none to attach, or keeps the one it has. */
  readonly plot?: NewPlot | undefined;
  /** What is to become of its files, unless they stay. */
  readonly sources?: readonly NewSource[] | undefined;
}

/**
 * `new`: no run has this content. `unread`: a run has it, and its file is to be read again. `known`: nothing to do.
 * `busy`: the run is to be remapped from this file, but its delivery is not finished: a later scan reads the file.
 * `version`: the run of this path has other content, which this one replaces. `isBusy`: not while it is being sent.
 */
export type Match =
  | { readonly kind: 'new' | 'unread' | 'busy' }
  | { readonly kind: 'version'; readonly replaces: ContentKey; readonly isBusy: boolean }
  /** `path`: where the run was taken from. Only the name of the file, if the run was recovered; empty if it was erased. */
  | ({ readonly kind: 'known'; readonly run: number; readonly path: string } & Taken);

/** The key under which intake remembers the files of a run. */
export interface Taken extends ContentKey {
  /** Contents of quarantined runs that this file has replaced. Other files that have them are to be looked at again. */
  readonly freed?: readonly ContentKey[];
  /** The run was erased: its files are remembered without their names. */
  readonly isErased: boolean;
}

/** What parsing and mapping made of a file. */
export type Reading =
  | {
      readonly draft: Draft;
      /** What the file has and the draft does not. Undefined if that is not known. */
      readonly omits?: readonly string[];
      readonly shaped?: Shaped | undefined;
      readonly problem?: never;
    }
  | { readonly draft?: never; readonly omits?: never; readonly shaped?: never; readonly problem: FileError };

/** The columns and units of a run, and what to do if they differ from the previous run. */
export interface Shaped {
  readonly shape: Shape;
  readonly drift: 'warn' | 'hold' | 'off';
  /** How many shapes the instrument's files may have: one for each alternative of its mapping. */
  readonly kinds: number;
  /** The part of the mapping that determines the shape. Shapes of different layouts cannot be compared. Default: all. */
  readonly layout?: string;
}

export interface Drift {
  readonly changes: readonly string[];
  /** The run that was compared. */
  readonly since: number | undefined;
  readonly held: boolean;
}

export interface Added extends Taken {
  readonly run: number;
  /**
   * `known`: the run was added before, and nothing changed. For a done run that was read again on request: `revised`,
   * `unchanged` (it reads as it was filed) or `refused` (it cannot be read, and stays as it was filed). For the next
   * version of a run: `changed`, or `parked` if the run waits for a person. `busy`: nothing was stored, since the
   * version before is being sent.
   */
  readonly outcome:
    | 'known'
    | 'queued'
    | 'held'
    | 'quarantined'
    | 'revised'
    | 'unchanged'
    | 'refused'
    | 'changed'
    | 'parked'
    | 'busy';
  readonly drift: Drift | undefined;
}

export interface UnreadRun extends ContentKey {
  /** The file to read, if a person wants the run remapped. */
  readonly path: string | undefined;
}

/**
 * How far a run has come. `creating`: the intent is recorded and a POST may have been sent; whether the experiment
 * exists is unknown until its id is recorded with `created`.
 */
export type RunStep = 'pending' | 'creating' | 'created' | 'described' | 'done';

export interface PlannedComment {
  readonly n: number;
  readonly text: string;
  /** The latest time a POST of it may have been sent. */
  readonly intentAt: number | undefined;
  /** Its id, once the notebook has it. */
  readonly comment: number | undefined;
  /** It may be in the notebook: the id that it had before it disappeared from there, or 0. No POST of it is in flight. */
  readonly gone?: number | undefined;
  /** Its texts under earlier readings of the file: the notebook may hold one of them instead. */
  readonly earlier: readonly string[];
}

/** A comment of an earlier reading that the current one does not need: deleted, unless a person changed it. */
export interface SurplusComment {
  readonly n: number;
  /** Absent if the outcome of its POST is unknown. */
  readonly comment: number | undefined;
  /** The texts that it may have. */
  readonly texts: readonly string[];
}

/**
 * Fingerprints of the parts that the server stored differently from what was sent, as it returned them to our own
 * write. A part that still has this fingerprint was changed by nobody else.
 */
export type StoredParts = Partial<Readonly<Record<'title' | 'date' | 'body', string>>>;

/** What a run's file was read as before it was read again. */
interface EarlierDraft extends Omit<Draft, 'comments' | 'attached'> {
  readonly stored: StoredParts;
  /** Whether the notebook had all of it; if not, a PATCH of it may have been applied, perhaps in part. */
  readonly written: boolean;
}

/** A run with everything that its delivery needs. */
export interface OpenRun {
  readonly id: number;
  readonly instrument: string;
  readonly sha256: string;
  readonly reference: string;
  readonly step: RunStep;
  readonly server: string | undefined;
  /** What its creations left behind has higher ids than this. Undefined if no id was known when the first was sent. */
  readonly floor: number | undefined;
  /** Earlier creations with an unknown outcome whose absence is not proved. */
  readonly unseen: number;
  readonly experiment: number | undefined;
  /** Whether a person said that this experiment is the run's, whatever it contains. */
  readonly adopted: boolean;
  readonly attempts: number;
  readonly draft: Omit<Draft, 'comments' | 'attached'>;
  /** Of the draft, once it was written. */
  readonly stored: StoredParts;
  /** Oldest first. */
  readonly earlier: readonly EarlierDraft[];
  readonly comments: readonly PlannedComment[];
  readonly surplus: readonly SurplusComment[];
  /** Whether it has raw files to attach. */
  readonly hasFiles: boolean;
  /** Whether the draft differs from the earlier one only by the plot, or by a note about its files. */
  readonly isAddition: boolean;
  /** Whether its file keeps growing: comments are only added, and a person's edit of the rest is left alone. */
  readonly isGrowing: boolean;
}

/** Everything that can happen to a run on its way to the notebook. */
export type RunChange =
  /** Durable before the POST: after a crash, delivery looks for the experiment instead of creating a second one. */
  | ({
      readonly kind: 'intended';
      readonly server: string;
      readonly floor: number | undefined;
      readonly at: number;
    } & Partial<UnseenCreations>)
  /** The creation certainly did not happen: the next attempt starts again. */
  | { readonly kind: 'notCreated' }
  | {
      readonly kind: 'created';
      readonly experiment: number;
      readonly found: boolean;
    }
  /** The draft replaces another one, and is about to be written. */
  | { readonly kind: 'describing' }
  | { readonly kind: 'described'; readonly stored?: StoredParts | undefined }
  | { readonly kind: 'commentIntended'; readonly n: number; readonly at: number }
  /** The comment was certainly not posted. */
  | { readonly kind: 'notCommented'; readonly n: number }
  | { readonly kind: 'commented'; readonly n: number; readonly comment: number; readonly found: boolean }
  /** The comment now has the text of the draft, not one of an earlier reading. */
  | { readonly kind: 'commentRevised'; readonly n: number }
  /** A surplus comment is gone. */
  | { readonly kind: 'commentDropped'; readonly n: number }
  /** The body stays as it was before the addition. */
  | { readonly kind: 'additionDropped' }
  /** Somebody changed the experiment of a growing file: from now on, only comments are added. */
  | { readonly kind: 'bodyKept'; readonly reason: string }
  | { readonly kind: 'finished' }
  | {
      readonly kind: 'postponed';
      readonly dueAt: number;
      readonly failure: FailureClass;
      readonly reason: string;
    }
  | {
      readonly kind: 'parked';
      readonly as: 'quarantined' | 'held';
      readonly failure: FailureClass;
      readonly reason: string;
    };

/** What was learnt about a server, stored so that it need not be detected again. */
export interface ServerFacts {
  readonly dialect: Dialect | undefined;
  /** The highest experiment id seen there, of any owner: a new experiment gets a higher one. */
  readonly highest: number | undefined;
  /** Whether titles of creations are kept. Unknown until one has been read back. */
  readonly keepsTitle: boolean | undefined;
  /** What a new experiment looks like, except for ids and times, on a server that drops titles. */
  readonly blank: string | undefined;
  /** Unseen creations may have left experiments from this id on, below the next creation. 0: no id was known. */
  readonly sweepFrom: number | undefined;
  /** The id of that creation, once there is one: the ids below it are to be read. */
  readonly sweep: number | undefined;
  /** How many experiments can be found there at most. */
  readonly sweepCount: number | undefined;
  /** The user that our experiments belong to, on servers that show it. */
  readonly owner: string | undefined;
  /** The last id that `recover` read. Until a creation shows where ids end, runs may be filed above it. */
  readonly unconfirmed: number | undefined;
  /** Whether somebody else creates experiments as the user of our key, on a server that drops titles. */
  readonly shared: boolean | undefined;
  /** Why nothing is sent there until a person has recovered the journal. */
  readonly halted: string | undefined;
  /** The server was restored to an older state: ids from this one on may have been assigned twice. */
  readonly restoredFrom: number | undefined;
  /** Whether comments hold the text that was sent. Unknown until one has been read back. */
  readonly keepsComments: boolean | undefined;
}

export type LearntFacts = { readonly [K in Exclude<keyof ServerFacts, 'highest'>]?: ServerFacts[K] | null } & {
  /** An experiment with this id exists. The highest one is kept. */
  readonly seen?: number;
};
