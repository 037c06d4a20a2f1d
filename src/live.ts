/**
 * What a running daemon knows beyond the journal: its folders, its files that are not still yet, its gate, its alarms.
 * It leaves this beside the journal (`JOURNAL.live`) for the commands, and shows it on the page.
 */
export interface Live {
  /** When this was true. */
  readonly at: number;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: number;
  /** The configuration's file. */
  readonly config: string;
  /** What is wrong with the configuration, for people: with file, line and what to do. */
  readonly problems: readonly ConfigProblem[];
  /** A reload that was refused since the last that was taken. */
  readonly refused: { readonly at: number; readonly problems: readonly ConfigProblem[] } | undefined;
  readonly notebook: {
    readonly url: string;
    readonly gate: LiveGate;
    readonly requests: readonly RequestCount[];
  };
  readonly instruments: readonly LiveInstrument[];
  readonly alarms: readonly LiveAlarm[];
}

export interface ConfigProblem {
  /** `file:line:column`. */
  readonly at: string;
  readonly message: string;
  readonly hint: string | undefined;
  /** The instrument that it stops. */
  readonly instrument: string | undefined;
}

/** Why requests leave, or why they wait. Slowed: by what the server was seen to take. Slow start: after an outage. */
export type LiveGate =
  | { readonly kind: 'open' | 'slowed' | 'slow start'; readonly perSecond: number }
  | { readonly kind: 'held'; readonly until: number; readonly reason: string }
  | {
      readonly kind: 'down';
      readonly since: number;
      readonly probeAt: number;
      readonly failure: string;
      readonly reason: string;
    };

/** How many requests were answered so; `status` is a number, or `none` where no answer came. */
export interface RequestCount {
  readonly method: string;
  readonly status: string;
  readonly count: number;
}

export interface LiveInstrument {
  readonly name: string;
  readonly watch: string;
  /** `stopped`: a mistake in the configuration, or a failed test. `starting`: the first scan goes on. */
  readonly line: 'starting' | 'watching' | 'stopped';
  readonly folder: {
    readonly state: 'present' | 'missing' | 'unreadable' | 'unknown';
    readonly reason?: string | undefined;
  };
  /** When the last complete listing ended, and how many files of this instrument it found. */
  readonly scannedAt: number | undefined;
  readonly files: number;
  /** Files that no glob of this instrument fits, as the last listing found them. */
  readonly unmatched: { readonly files: number; readonly example: string | undefined };
  /** Files that are not still yet; the first ones by name. */
  readonly waiting: { readonly files: number; readonly first: readonly WaitingFile[] };
  /** When a file last came: one that became a run, or was seen for the first time. */
  readonly lastFileAt: number | undefined;
}

export interface WaitingFile {
  readonly path: string;
  readonly since: number;
  /** What it waits for, in words: `still for 2 s of 5 s`, `no done-file run-17.done`. */
  readonly reason: string;
}

/** Every kind of trouble that a person should know of. */
export const ALARM_KINDS = [
  'silence',
  'unmatched',
  'folder',
  'quarantine',
  'held',
  'auth',
  'outage',
  'configuration',
  'journal',
] as const;

/** A trouble that a person should know of. */
export interface LiveAlarm {
  readonly kind: (typeof ALARM_KINDS)[number];
  readonly instrument: string | undefined;
  readonly since: number;
  /** For people, in one or two sentences. */
  readonly text: string;
}
