import type { LiveGate, WaitingFile } from '../live.js';
import type { RunState } from '../model.js';

/** All that is known about one file, from its folder, the configuration, the journal and the running daemon. */
export interface Evidence {
  readonly path: string;
  readonly now: number;
  readonly file: FileEvidence;
  /** In the order in which they claim files. */
  readonly instruments: readonly InstrumentEvidence[];
  /** What the journal remembers of this path; the same instrument may stand there twice. */
  readonly known: readonly KnownPath[];
  /** Runs that this path, or the very bytes of the file, belong to; the newest first. */
  readonly runs: readonly KnownRun[];
  /** Whether there is a journal at all. */
  readonly journal: boolean;
  /** It is the journal itself, or a file that belongs to it. */
  readonly isJournal: boolean;
  readonly daemon: {
    readonly running: boolean;
    readonly gate: LiveGate | undefined;
  };
  readonly servers: readonly KnownServer[];
}

export type FileEvidence =
  | {
      readonly state: 'present';
      readonly size: number;
      readonly modifiedMs: number;
      /** Undefined where it was not, or could not be, read. */
      readonly sha256: string | undefined;
      /** Why it was not. */
      readonly unread: string | undefined;
    }
  | { readonly state: 'absent' | 'folder' }
  | { readonly state: 'unreadable'; readonly reason: string };

export interface InstrumentEvidence {
  readonly name: string;
  readonly watch: string;
  readonly files: readonly string[];
  /** How the file stands to it. */
  readonly rule: Rule;
  /** The path of the run that the file is one of several of. */
  readonly partOf: string | undefined;
  readonly folder: {
    readonly state: 'present' | 'missing' | 'unreadable';
    readonly reason?: string | undefined;
  };
  /** A linked folder between the watched one and the file: such are not followed. */
  readonly link: string | undefined;
  /** What is wrong with it, so that it is stopped. */
  readonly mistakes: readonly string[];
  readonly quietMs: number;
  readonly doneFile: { readonly name: string; readonly isThere: boolean } | undefined;
  /** Undefined where they have a mistake. */
  readonly changed: string | undefined;
  readonly existing: string | undefined;
  readonly duplicates: string | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
  /** What the daemon says of this very file. */
  readonly waiting: WaitingFile | undefined;
}

export type Rule =
  | { readonly kind: 'taken'; readonly pattern: string }
  | { readonly kind: 'ignore' | 'doneFile' | 'run'; readonly pattern: string }
  /** `otherCase`: one that would fit if capitals did not count. */
  | { readonly kind: 'files'; readonly otherCase: string | undefined }
  /** How many folders lie between it and the file. */
  | { readonly kind: 'outside'; readonly distance: number };

export interface KnownPath {
  readonly instrument: string;
  readonly verdict: 'taken' | 'skipped' | 'asked';
  readonly run?: number | undefined;
}

export interface KnownRun {
  readonly id: number;
  readonly instrument: string;
  readonly state: RunState;
  /** Empty where it was erased. */
  readonly path: string;
  readonly sha256: string;
  readonly server: string | undefined;
  readonly experiment: number | undefined;
  readonly reason: string | undefined;
  readonly dueAt: number;
  readonly addedAt: number;
  readonly updatedAt: number;
  /** What a person can do about it. */
  readonly nextStep: string;
}

export interface KnownServer {
  readonly url: string;
  readonly dialect: string | undefined;
  readonly halted: string | undefined;
}
