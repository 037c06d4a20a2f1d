import type { RunState } from '../model.js';

/** What became of a file. Where it became a run, in the words that commands and page have for that. */
export type Outcome =
  | RunState
  /** The same bytes are a run already. */
  | 'duplicate'
  /** Passed over as the configuration says. */
  | 'skipped'
  /** Part of the question that old files raise. */
  | 'asked'
  /** No instrument claims it. */
  | 'unmatched'
  /** The instrument that claims it is stopped. */
  | 'stopped'
  /** There is no such file, and the journal does not know of one. */
  | 'unknown';

/** One piece of evidence, in words. */
export interface Finding {
  readonly text: string;
  /** What can be done about it. */
  readonly hint?: string;
}

export interface Explanation {
  readonly path: string;
  readonly outcome: Outcome;
  /** The answer in one sentence, and what can be done. */
  readonly answer: Finding;
  /** What it rests on. */
  readonly findings: readonly Finding[];
  readonly run: number | undefined;
  readonly experiment: number | undefined;
  /** Where the experiment is. */
  readonly address: string | undefined;
}

export interface Account {
  readonly outcome: Outcome;
  readonly answer: Finding;
  readonly findings?: readonly Finding[];
}
