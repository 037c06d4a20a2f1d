import type { Clock } from '../clock.js';
import type { OpenRun, RunChange, ServerFacts } from '../model.js';
import type { Creations } from './creations.js';
import type { Losses } from './losses.js';

/** An experiment as the notebook shows it. Beyond the title, the contract names no fields. */
export type ExperimentRecord = { readonly title?: unknown; readonly date?: unknown } & Readonly<
  Record<string, unknown>
>;

export type CommentRecord = { readonly id: number } & Readonly<Record<string, unknown>>;

export interface TagRecord {
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

/** What delivery needs of the journal, for one server. */
export interface ServerMemory {
  facts(): Promise<ServerFacts>;
  learn(facts: { [K in Exclude<keyof ServerFacts, 'highest'>]?: ServerFacts[K] | null }): Promise<void>;
  /** Gives the run an experiment of ours that nobody uses, if there is one. */
  claimSpare(run: OpenRun): Promise<number | undefined>;
  addSpare(experiment: number, reference?: string): Promise<void>;
  /** Whether a run, or the store of spares, has this experiment. */
  hasExperiment(experiment: number): Promise<boolean>;
  /** The highest so many experiments that runs have, highest first. */
  lastExperiments(count: number): Promise<number[]>;
  /** Whether a run of ours has this reference. */
  hasReference(reference: string): Promise<boolean>;
  /** Whether a creation of the run with this reference has an answer that is not known. */
  isCreating(reference: string): Promise<boolean>;
  /** How many creations have an answer that is not known. */
  countLost(): Promise<number>;
}

export interface DeliverDeps {
  readonly notebook: Notebook;
  /** The server's address: ids mean something only together with it. */
  readonly server: string;
  /** How long one request may take. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly creations: Creations;
  readonly memory: ServerMemory;
  /** Of creations and comments: what has no answer is looked for. */
  readonly losses: Losses;
  /** Of changes, which are sent again. */
  readonly edits: Losses;
  /** Resolves when the changes are on disk. */
  record(run: number, ...changes: RunChange[]): Promise<void>;
  /** Throws between two steps once the daemon is to stop. */
  goOn(): void;
}
