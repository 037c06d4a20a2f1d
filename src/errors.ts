/** Where something is wrong, as precisely as is known. Lines and columns count from 1. */
export interface Place {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
}

export function formatPlace({ file, line, column }: Place): string {
  return [file, line, line === undefined ? undefined : column].filter((part) => part !== undefined).join(':');
}

export interface ErrorDetails {
  readonly where?: Place;
  /** What the reader can do about it. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** Exit statuses of the commands: failed, wrong usage, wrong configuration (EX_CONFIG of sysexits.h). */
export const EXIT = { failed: 1, usage: 2, config: 78 } as const;

/** An error that a person can act on: what happened, where, and what to do. */
export class LabfeedError extends Error {
  override readonly name: string = 'LabfeedError';
  readonly where?: Place;
  readonly hint?: string;
  readonly exitStatus: number = EXIT.failed;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    if (details.where) this.where = details.where;
    if (details.hint) this.hint = details.hint;
  }
}

/** An instrument's file does not read as its mapping says. Concerns that one run, which is quarantined. */
export class FileError extends LabfeedError {
  override readonly name = 'FileError';
}

/** The file is no longer what was hashed: gone, or written to again. Not a verdict: it is looked at anew. */
export class FileChangedError extends LabfeedError {
  override readonly name = 'FileChangedError';
}

export class UsageError extends LabfeedError {
  override readonly name = 'UsageError';
  override readonly exitStatus = EXIT.usage;
}

/** One mistake in the configuration. */
export interface Problem {
  readonly where: Place;
  readonly message: string;
  readonly hint?: string;
  /** What the mistake stops: the daemon as a whole, one instrument, or nothing but `check`. */
  readonly stops: 'daemon' | { readonly instrument: string } | 'nothing';
}

export class ConfigError extends LabfeedError {
  override readonly name = 'ConfigError';
  override readonly exitStatus = EXIT.config;
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(`the configuration has ${problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`}`);
    this.problems = problems;
  }
}

/**
 * What a refusal concerns, and so who waits:
 * `file` and `request` one run, for good; `conflict` one run, until a person decides;
 * `auth`, `rate` and `server` everybody, until it passes.
 */
export type FailureClass = 'file' | 'request' | 'conflict' | 'auth' | 'rate' | 'server';

/** These pass without a change to the request, and until then stop everybody. */
const PASSING: ReadonlySet<FailureClass> = new Set(['auth', 'rate', 'server']);

export interface NotebookErrorDetails extends ErrorDetails {
  readonly status?: number;
  /** Whether the server may have carried the request out all the same (see `lost`). */
  readonly lost: boolean;
  readonly retryAfterMs?: number;
  /** Only where it is not what the class says (see `scope`). */
  readonly scope?: 'run' | 'everybody';
}

/** The notebook did not do what was asked. Knows its class, so that nobody else reads statuses. */
export class NotebookError extends LabfeedError {
  override readonly name = 'NotebookError';
  readonly failure: FailureClass;
  readonly status?: number;
  /** True where the answer was lost: the request may have been carried out, or still be. */
  readonly lost: boolean;
  readonly retryAfterMs?: number;
  /**
   * Who waits. Mostly as the class says; but a `server` failure with scope `run` is no outage:
   * this one run is tried again later, and nobody else stops for it.
   */
  readonly scope: 'run' | 'everybody';

  constructor(failure: FailureClass, message: string, details: NotebookErrorDetails) {
    super(message, details);
    this.failure = failure;
    this.lost = details.lost;
    this.scope = details.scope ?? (PASSING.has(failure) ? 'everybody' : 'run');
    if (details.status !== undefined) this.status = details.status;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
  }

  /** Whether the same request can succeed later without anybody changing it. */
  get retryable(): boolean {
    return PASSING.has(this.failure);
  }
}

/** For people: the message with its place and its hint, a line each. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.map(explainProblem).join('\n');
  if (error instanceof LabfeedError) return explainProblem(error);
  return error instanceof Error ? error.message : String(error);
}

export function explainProblem(problem: { message: string; where?: Place; hint?: string }): string {
  const place = problem.where ? `${formatPlace(problem.where)}: ` : '';
  const hint = problem.hint ? `\n  → ${problem.hint}` : '';
  return `${place}${problem.message}${hint}`;
}

/** The code of a system error (`ENOENT`), where the thrown thing is one. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
