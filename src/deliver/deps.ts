import type { Clock } from '../clock.js';
import type { Draft, RunChange, ServerFacts } from '../model.js';
import type { Creations } from './creations.js';

/** What delivery needs of the notebook. */
export interface Notebook {
  createExperiment(fields: { title: string }): Promise<number>;
  readExperiment(id: number): Promise<{ title?: unknown; date?: unknown }>;
  patchExperiment(id: number, changes: Omit<Draft, 'comments'>): Promise<void>;
  /** A request that always has an answer, for proof that it is the notebook who says 404. */
  listKeys(): Promise<unknown>;
  listComments(experiment: number): Promise<readonly CommentRecord[]>;
  readComment(experiment: number, comment: number): Promise<CommentRecord>;
  postComment(experiment: number, text: string): Promise<number>;
}

export type CommentRecord = { readonly id: number } & Readonly<Record<string, unknown>>;

export interface DeliverDeps {
  readonly notebook: Notebook;
  /** The server's address: ids mean something only together with it. */
  readonly server: string;
  /** After this long, what was not carried out will not be any more. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly creations: Creations;
  /** Resolves when the changes are on disk. */
  record(run: number, ...changes: RunChange[]): Promise<void>;
  facts(): Promise<ServerFacts>;
  learn(facts: { keepsTitle?: boolean; keepsComments?: boolean }): Promise<void>;
  /** Throws between two steps once the daemon is to stop. */
  goOn(): void;
}
