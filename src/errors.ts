/** The location of a mistake. Lines and columns count from 1. */
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
  /** What to do next. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/** 78 is EX_CONFIG of sysexits.h. */
export const EXIT = { failed: 1, usage: 2, config: 78 } as const;

/** An error that a person can act on: what happened, where, and what to do next. */
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

/** A file does not match its mapping. The run is quarantined; others continue. */
export class FileError extends LabfeedError {
  override readonly name = 'FileError';
}

/** A bug that one file triggers quarantines that file; the others continue. */
export const bugWith = (file: string, error: unknown): FileError =>
  new FileError(`labfeed failed to process this file: ${error instanceof Error ? error.message : error}`, {
    where: { file },
    hint: 'this is a bug in labfeed; please report it, with the file if possible',
    cause: error,
  });

/** The file was removed or written to since it was hashed. It is read again; nothing is quarantined. */
export class FileChangedError extends LabfeedError {
  override readonly name = 'FileChangedError';
}

/** The run of this file is being sent with an earlier version. The newest one is taken afterwards. */
export class RunBusyError extends LabfeedError {
  override readonly name = 'RunBusyError';
}

export class UsageError extends LabfeedError {
  override readonly name = 'UsageError';
  override readonly exitStatus = EXIT.usage;
}

export interface Problem {
  readonly where: Place;
  readonly message: string;
  readonly hint?: string | undefined;
  /** What the mistake stops. `nothing`: only `check` reports it. */
  readonly stops: 'daemon' | { readonly instrument: string } | 'nothing';
}

export class ConfigError extends LabfeedError {
  override readonly name = 'ConfigError';
  override readonly exitStatus = EXIT.config;
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(`the configuration has ${problems.length === 1 ? 'an error' : `${problems.length} errors`}`);
    this.problems = problems;
  }
}

/**
 * `file` and `request`: this run fails until its file or its mapping changes. `conflict`: a person must decide about
 * this run. `auth`, `rate` and `server`: temporary, and they concern every run.
 */
export type FailureClass = 'file' | 'request' | 'conflict' | 'auth' | 'rate' | 'server';

const TEMPORARY: ReadonlySet<FailureClass> = new Set(['auth', 'rate', 'server']);

export interface NotebookErrorDetails extends ErrorDetails {
  readonly status?: number;
  /** See `NotebookError.outcomeUnknown`; false by default. */
  readonly outcomeUnknown?: boolean;
  readonly retryAfterMs?: number;
  /** Only if it differs from what the class implies. */
  readonly scope?: 'run' | 'server';
}

/** A request to the notebook failed. Only `notebook/errors.ts` interprets HTTP statuses; others use the class. */
export class NotebookError extends LabfeedError {
  override readonly name = 'NotebookError';
  readonly failure: FailureClass;
  readonly status?: number;
  /** The server may have carried out the write, or may still do so. If false, it certainly did not. */
  readonly outcomeUnknown: boolean;
  readonly retryAfterMs?: number;
  /** Whether the failure concerns one run or all of them. A `server` failure of scope `run` is not an outage. */
  readonly scope: 'run' | 'server';

  constructor(failure: FailureClass, message: string, details: NotebookErrorDetails = {}) {
    super(message, details);
    this.failure = failure;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.scope = details.scope ?? (TEMPORARY.has(failure) ? 'server' : 'run');
    if (details.status !== undefined) this.status = details.status;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
  }

  /** Whether the same request can succeed later. */
  get retryable(): boolean {
    return TEMPORARY.has(this.failure);
  }
}

/** The message with its location, and the hint on a line of its own. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.map(explainProblem).join('\n');
  if (error instanceof LabfeedError) return explainProblem(error);
  return error instanceof Error ? error.message : String(error);
}

export function explainProblem(problem: { message: string; where?: Place; hint?: string | undefined }): string {
  const place = problem.where ? `${formatPlace(problem.where)}: ` : '';
  const hint = problem.hint ? `\n  → ${problem.hint}` : '';
  return `${place}${problem.message}${hint}`;
}

/** Splits an explanation. An arrow within a line, such as in a name, does not start a hint. */
export function splitHint(explained: string): { readonly what: string; readonly hint: string | undefined } {
  const [what = '', ...hints] = explained.split(/\n\s*→\s*/);
  return { what, hint: hints.length === 0 ? undefined : hints.join('\n') };
}

/** Whether the code of a system error means that permission is missing. */
export const isForbidden = (code: string | undefined): boolean => code === 'EACCES' || code === 'EPERM';

/** The code of a system error, such as `ENOENT`. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined;
  const [, number] = /^Unknown system error -(\d+)$/.exec(error.code) ?? [];
  return (number && NAMELESS[Number(number)]) || error.code;
}

/** Errors of Linux that Node has no names for. */
const NAMELESS: Readonly<Record<number, string>> = { 116: 'ESTALE', 123: 'ENOMEDIUM' };
