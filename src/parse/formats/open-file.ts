import type { Pace } from '../pace.js';
import type { Refuse } from '../refuse.js';
import type { Source } from '../source.js';

/** A file that is being read, and what reading it needs. */
export interface OpenFile {
  readonly source: Source;
  /** Whether there are further mappings to try where this one is not for the file. */
  readonly isAlternative?: boolean;
  readonly refuse: Refuse;
  readonly pace: Pace;
  readonly signal?: AbortSignal | undefined;
}
