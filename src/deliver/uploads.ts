import { createHash } from 'node:crypto';
import { backoffMs } from '../clock.js';
import { explain, FileError, type LabfeedError, NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import { capitalize, escapeHtml } from '../text.js';
import type { PlannedUpload, RunUploads, UploadChange, UploadScope } from '../uploads.js';
import { checkComments } from './comments.js';
import {
  type DeliveryContext,
  type Filing,
  HaltedError,
  NotYetError,
  type RawFile,
  StoppedError,
  type UploadRecord,
} from './context.js';
import { attributeNotFound, certainlyNotDone, confirmForbidden } from './failures.js';
import { removeSurplus, showPlot } from './plots.js';
import { createQueue, type QueueDeps } from './queue.js';
import { gracePeriod } from './reconcile.js';
import { isStillOurs, rewritten } from './restored.js';
import { checkOpen, checkUnedited } from './revise.js';
import { Blame, isWriteFailure } from './writes.js';

/** The bytes of a raw file, from the spool or from where it was read. */
interface RawSource {
  /** From the start, each time it is called. */
  read(): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Where raw files come from. */
export interface AttachOptions {
  /** Of which instruments files are attached, and of which they are not. The files of others wait. */
  readonly instruments: Pick<UploadScope, 'attached' | 'dropped'>;
  /** Whether plots of this instrument are attached. */
  isPlotted(instrument: string): boolean;
  /** Undefined if neither the spool nor the source has these bytes any more. */
  openSource(file: PlannedUpload): Promise<RawSource | undefined>;
  /** The bytes are no longer needed. */
  uploaded(file: PlannedUpload): Promise<void>;
  /** Whether a text contains the API key or another secret of labfeed. */
  isSecretIn(text: string): boolean;
}

interface UploadsDeps extends AttachOptions {
  readonly context: DeliveryContext;
  /** Sends one file, over connections that others do not use. */
  send(experiment: number, file: RawFile): Promise<number>;
  /** Finds out what must be known about the server before anything is sent. */
  prepare(): Promise<void>;
  /** The body of a run has changed, so that it is to be delivered again. */
  wakeDelivery(): void;
  /** For back-off. */
  readonly random: () => number;
  readonly log: Log;
}

type Delivery = UploadsDeps & {
  readonly blame: Blame;
  /** When runs were filed by this process, on the monotonic clock. */
  readonly filedAt: Map<number, number>;
};

/** Large files are few, and each may take hours. */
const CONCURRENCY = 2;

/**
 * Attaches raw files to the experiments of done runs, in a queue and over connections of their own: other runs never
 * wait for them. Record, act, record, as for everything that is sent.
 */
export function createUploads(deps: UploadsDeps) {
  const { context, log } = deps;
  const delivery: Delivery = { ...deps, blame: new Blame(context.clock), filedAt: new Map() };
  const work = (id: number, signal: AbortSignal) => attachFiles(id, signal, delivery);
  const { claim, nextDueAt, release } = context.outbox.uploads;
  const scope = { server: context.server.url, ...deps.instruments };
  const outbox: QueueDeps['outbox'] = {
    claim: (now, limit) => claim(now, limit, scope),
    nextDueAt: () => nextDueAt(scope),
    release,
  };
  const queue = createQueue({ outbox, concurrency: CONCURRENCY, clock: context.clock, log, work });
  return {
    ...queue,
    /** The run is done: its files are due. */
    filed(run: number): void {
      delivery.filedAt.set(run, context.clock.monotonic());
      if (delivery.filedAt.size > MAX_REMEMBERED) delivery.filedAt.delete(delivery.filedAt.keys().next().value ?? 0);
      queue.wake();
    },
  };
}

const MAX_REMEMBERED = 1000;

/** After a longer time, somebody may have rewritten the experiment: it is read before anything is attached to it. */
const FRESH_MS = 60_000;

/** How often to check whether a person has ended a halt. */
const HALT_CHECK_MS = 30_000;
const JOURNAL_RETRY_MS = 5000;

export async function attachFiles(id: number, signal: AbortSignal, delivery: Delivery): Promise<void> {
  const { context, log } = delivery;
  try {
    const run = await context.outbox.uploads.load(id);
    await delivery.prepare();
    if (!(await isWanted(run, delivery))) return await drop(run, delivery);
    let attempt: Attempt = { ...delivery, run, isOurs: isFresh(run, delivery) };
    for (let file = nextOf(run); file !== undefined; file = nextOf(attempt.run)) {
      context.stopping.throwIfAborted();
      if (!(await attach(file, attempt))) return;
      // A file may take hours, and its run may have been remapped meanwhile.
      attempt = { ...attempt, run: await context.outbox.uploads.load(id) };
    }
  } catch (error) {
    if (error instanceof StoppedError) return;
    const isHalted = error instanceof HaltedError;
    if (!isHalted) log.error({ run: id, reason: explain(error) }, 'cannot attach the files of a run, retrying');
    await context.clock.sleep(isHalted ? HALT_CHECK_MS : JOURNAL_RETRY_MS, signal);
  }
}

const nextOf = ({ files }: RunUploads): PlannedUpload | undefined => files.find(({ isOpen }) => isOpen);

async function isWanted({ instrument }: RunUploads, { context, instruments }: Delivery): Promise<boolean> {
  const { dialect, halted } = await context.server.facts();
  if (halted !== undefined) throw new HaltedError(halted);
  return dialect === 'elabftw' && !instruments.dropped.includes(instrument);
}

async function drop(run: RunUploads, { context, uploaded, wakeDelivery }: Delivery): Promise<void> {
  await context.outbox.uploads.record(run.run, { kind: 'uploadsDropped' });
  wakeDelivery();
  for (const file of run.files) if (file.isOpen) await uploaded(file);
}

/** The files of one run. */
type Attempt = Delivery & {
  readonly run: RunUploads;
  /** Whether the experiment is known to be the run's. */
  isOurs: boolean;
};

/** One file, with everything that follows from a failure. False if it is tried again later. */
async function attach(file: PlannedUpload, attempt: Attempt): Promise<boolean> {
  const { run, context, uploaded, log } = attempt;
  let isAmended = false;
  const record = async (change: UploadChange): Promise<void> => {
    await context.outbox.uploads.record(run.run, change);
    isAmended = 'body' in change || change.kind === 'uploadRefused';
    if (isAmended) attempt.wakeDelivery();
  };
  const { n, name, reason } = file;
  const fields = { run: run.run, instrument: run.instrument, experiment: run.experiment, file: name };
  try {
    const filing = await filingOf(run, context);
    if (!attempt.isOurs) await checkOurs(filing);
    attempt.isOurs = true;
    if (file.kind === 'surplus') {
      await removeSurplus(file, run.files, filing);
      await record({ kind: 'uploadRemoved', n });
      return true;
    }
    if (file.kind === 'plot' && !attempt.isPlotted(run.instrument)) throw new FileError(NO_PLOTS);
    const { upload, found } = await obtainUpload(file, filing, attempt);
    // It may have been refused before, and a person had it tried again.
    const corrected = reason && (await changedBody((body) => withoutNote(body, name), attempt));
    const shown = file.kind === 'plot' ? await showPlot(file, upload, filing) : corrected;
    await record({ kind: 'uploaded', n, upload, found, ...shown });
    log.info({ ...fields, upload }, 'file attached');
  } catch (error) {
    const cause = await attributeNotFound(error, context.notebook);
    if (cause instanceof StoppedError || cause instanceof HaltedError) throw cause;
    const failed = afterFailure(cause, file, attempt);
    const change = failed.kind === 'uploadRefused' ? await noted(failed, file, attempt) : failed;
    await record(change);
    if (change.kind === 'uploadPostponed') {
      log.info({ ...fields, ...change }, 'upload postponed');
      return false;
    }
    attempt.blame.forget(run.run);
    log.warn({ ...fields, ...failed }, 'file not attached');
  }
  await uploaded(file);
  // The other files follow when the notebook has the new body and comments.
  return !isAmended;
}

const refusal = (name: string, why: string): string => `the raw file ${name} is not attached: ${why}`;

const noteOf = (reason: string): string => `<p>${escapeHtml(capitalize(reason))}.</p>\n`;

type Refused = Extract<UploadChange, { kind: 'uploadRefused' }>;

/** The body is to say it: if the experiment cannot be read now, all is tried again later. */
const noted = (refused: Refused, file: PlannedUpload, attempt: Attempt): Promise<UploadChange> =>
  changedBody((body) => withoutFile(body, file, refused.reason), attempt).then(
    (changed) => ({ ...refused, ...changed }),
    (error: unknown) => afterFailure(error, file, attempt),
  );

/** With a note that a file is not attached. The origin line stays last. A plot is just not shown. */
function withoutFile(body: string, { kind, image = '' }: PlannedUpload, reason: string): string {
  if (kind !== 'raw') return body.replace(image, '');
  const end = body.lastIndexOf('<p>');
  return end < 0 ? body : `${body.slice(0, end)}${noteOf(reason)}${body.slice(end)}`;
}

/** Without the note about this file, whatever it says: the reason may have changed since it was written. */
function withoutNote(body: string, name: string): string {
  const [beginning = ''] = noteOf(refusal(name, '')).split('.</p>');
  const start = body.indexOf(beginning);
  return start < 0 ? body : body.slice(0, start) + body.slice(start).replace(/^.*?<\/p>\n/s, '');
}

/** The draft's body after this change; undefined if there is none, or if the experiment is not as labfeed left it. */
async function changedBody(
  change: (body: string) => string,
  { run, context }: Attempt,
): Promise<{ readonly body?: string; readonly was?: string }> {
  try {
    const filing = await filingOf(run, context);
    const { draft, stored, earlier } = filing.run;
    const body = change(draft.body);
    if (body === draft.body) return {};
    const written = {
      ...filing,
      run: { ...filing.run, earlier: [...earlier, { ...draft, stored, written: true }] },
    };
    const { dialect } = await context.server.facts();
    const record = await context.notebook.readExperiment(filing.experiment);
    checkUnedited(record, written, dialect);
    await checkComments(written, record);
    return { body, was: draft.body };
  } catch (error) {
    if (error instanceof NotebookError && !error.retryable) return {};
    throw error;
  }
}

async function filingOf({ run, server, experiment }: RunUploads, context: DeliveryContext): Promise<Filing> {
  const isHere = experiment !== undefined && server === context.server.url;
  if (!isHere) throw new Error(`the files of run ${run} wait for ${server}`);
  return { ...context, run: await context.outbox.load(run), experiment };
}

/** Immediately after its run was filed, nobody can have rewritten the experiment. */
function isFresh({ run }: RunUploads, { context, filedAt }: Delivery): boolean {
  const at = filedAt.get(run);
  filedAt.delete(run);
  return at !== undefined && context.clock.monotonic() - at < FRESH_MS;
}

/** An administrator's key could attach files to a locked experiment. */
async function checkOurs(filing: Filing): Promise<void> {
  const { notebook, experiment } = filing;
  const record = await confirmForbidden(notebook, () => notebook.readExperiment(experiment));
  checkOpen(record, experiment, 'elabftw');
  if (!(await isStillOurs(record, filing))) throw rewritten(filing);
}

interface Obtained {
  readonly upload: number;
  readonly found: boolean;
}

/** The upload of this file: found after an unknown outcome, or sent now. */
async function obtainUpload(file: PlannedUpload, filing: Filing, attempt: Attempt): Promise<Obtained> {
  const { run, context, blame, openSource, isSecretIn, send } = attempt;
  const { outbox, unknown, clock, stopping } = context;
  const { n } = file;
  const attached = await findAttached(run, file, filing);
  if (attached?.hash === file.sha256) return { upload: attached.id, found: true };
  const source = await openSource(file);
  if (!source) throw new FileError(GONE);
  const reading = new VerifiedReading(file, source, { isSecretIn, stopping });
  try {
    await outbox.uploads.record(run.run, { kind: 'uploadIntended', n, sha256: file.sha256, at: clock.now() });
    const raw = { name: file.name, size: file.size, replaces: attached?.id, open: () => reading.chunks() };
    const upload = await confirmForbidden(filing.notebook, () => send(filing.experiment, raw));
    blame.accepted(run.run, 'uploadFile');
    return { upload, found: false };
  } catch (error) {
    if (certainlyNotDone(error)) await outbox.uploads.record(run.run, { kind: 'notUploaded', n });
    else unknown.posts.note(run.run);
    // The request was cut off because of its file.
    if (reading.problem) throw reading.problem;
    throw error instanceof NotebookError && isWriteFailure(error) ? blamed(error, run, blame) : error;
  } finally {
    await source.close();
  }
}

const NO_PLOTS = 'the mapping has `plot: never`';

/** The notebook failed on the file itself: after a while, a problem of the file if it takes others meanwhile. */
function blamed(error: NotebookError, { run }: RunUploads, blame: Blame): NotebookError {
  blame.failed(run, 'uploadFile');
  if (!blame.isEnough(run)) return error;
  return new NotebookError('request', `the notebook keeps failing on it, but takes others: ${error.message}`);
}

const GONE = 'labfeed has no copy of the file, and the file was changed or removed since it was read';

/**
 * The upload that an earlier POST may have created, or the one of an earlier version, which is to be replaced. Absence
 * counts only after the grace period.
 */
async function findAttached(run: RunUploads, file: PlannedUpload, filing: Filing): Promise<UploadRecord | undefined> {
  const { intentAt, earlier, sha256 } = file;
  if (intentAt === undefined && earlier.length === 0) return undefined;
  const pending = 'an upload with an unknown outcome may still take effect';
  const checkGrace = intentAt === undefined ? undefined : await gracePeriod({ id: run.run }, pending, filing);
  const listed = await filing.notebook.listUploads(filing.experiment);
  const known = new Set(run.files.flatMap(({ upload }) => upload ?? []));
  const current = earlier.length === 0 ? undefined : currentVersion(file, listed, known);
  const found = earlier.length === 0 ? matchUpload(file, listed, known) : current;
  if (found?.hash === sha256) return found;
  const plot = knownPlot(file, listed, known);
  if (plot) return { ...plot, hash: sha256 };
  // A list proves absence only if it contains every upload that we know.
  const ids = new Set(listed.map(({ id }) => id));
  if ([...known].some((id) => !ids.has(id)))
    throw new NotebookError('request', `experiment ${filing.experiment} no longer lists all files attached to it`);
  checkGrace?.();
  return current;
}

/** The version that the notebook shows: earlier ones are archived. One that a person archived or deleted stays so. */
function currentVersion(
  { sha256, earlier }: PlannedUpload,
  listed: readonly UploadRecord[],
  taken: ReadonlySet<number>,
): UploadRecord | undefined {
  const isVersion = ({ hash }: UploadRecord): boolean => hash === sha256 || earlier.includes(hash ?? '');
  return listed
    .filter((one) => isVersion(one) && Number(one.state ?? NORMAL) === NORMAL && !taken.has(one.id))
    .sort((a, b) => b.id - a.id)[0];
}

/** The journal was lost. A plot may look different since, but each run has one only. */
function knownPlot(
  { kind, name, intentAt }: PlannedUpload,
  listed: readonly UploadRecord[],
  taken: ReadonlySet<number>,
): UploadRecord | undefined {
  if (kind !== 'plot' || intentAt !== 0) return undefined;
  return listed.find(({ id, real_name, state }) => real_name === name && state === NORMAL && !taken.has(id));
}

const NORMAL = 1;
const DELETED = 3;

/** The listed file with this content that no other file of the run has. If several match, the name decides. */
function matchUpload(
  { sha256, name, kind }: Pick<PlannedUpload, 'sha256' | 'name' | 'kind'>,
  listed: readonly UploadRecord[],
  taken: ReadonlySet<number>,
): UploadRecord | undefined {
  // A raw file that a person deleted stays deleted. A deleted plot is an earlier one of ours.
  const isThere = ({ state }: UploadRecord): boolean => kind !== 'plot' || Number(state ?? NORMAL) !== DELETED;
  const same = listed.filter((one) => one.hash === sha256 && !taken.has(one.id) && isThere(one));
  return same.find(({ real_name }) => real_name === name) ?? same[0];
}

/**
 * Retried: what can succeed later. Final for the file: a size or type that the notebook does not take, bytes that are
 * gone, an experiment that is locked, deleted or rewritten, and a file on which the notebook keeps failing while it takes
 * others.
 */
function afterFailure(
  error: unknown,
  { n, kind, name, attempts, earlier }: PlannedUpload,
  { context, random }: Attempt,
): UploadChange {
  const now = context.clock.now();
  const what = kind === 'raw' ? `the raw file ${name}` : `the plot ${name}`;
  const postponed = (dueAt: number, failure: NotebookError['failure']): UploadChange => ({
    ...{ kind: 'uploadPostponed', n, failure, dueAt: Math.ceil(dueAt) },
    reason: `${what} is not attached yet: ${explain(error)}`,
  });
  const refused = (failure: NotebookError['failure'], why: string): UploadChange => ({
    ...{ kind: 'uploadRefused', n, failure },
    reason:
      kind === 'raw' ? refusal(name, why + (earlier.length > 0 ? EARLIER : '')) : `${what} is not attached: ${why}`,
  });
  if (error instanceof NotYetError) return postponed(error.untilMs, 'server');
  if (error instanceof FileError) return refused('file', error.message);
  if (!(error instanceof NotebookError)) return postponed(now + backoffMs(attempts, { random }), 'server');
  const { failure, status, retryAfterMs = 0 } = error;
  if (status === 413) return refused(failure, 'it is larger than the notebook accepts');
  if (failure === 'request' || failure === 'conflict') return refused(failure, error.message);
  return postponed(now + Math.max(retryAfterMs, backoffMs(attempts, { random })), failure);
}

const EARLIER = '; a file of this name in the notebook is from an earlier version';

/** The longest secret, in every spelling, is shorter. */
const OVERLAP = 1024;

/**
 * The bytes of a file, as they are sent. The last ones are held back until all of them are known to be the run's, and
 * none contains a secret: otherwise the request is cut off, and the server has an incomplete file that it drops.
 */
class VerifiedReading {
  /** Why the file cannot be sent. */
  problem: LabfeedError | undefined;
  readonly #file: PlannedUpload;
  readonly #source: RawSource;
  readonly #options: ReadingOptions;

  constructor(file: PlannedUpload, source: RawSource, options: ReadingOptions) {
    this.#file = file;
    this.#source = source;
    this.#options = options;
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    const { sha256 } = this.#file;
    const { isSecretIn, stopping } = this.#options;
    const hash = createHash('sha256');
    let held: Uint8Array | undefined;
    let before = '';
    for await (const chunk of this.#source.read()) {
      if (stopping.aborted) throw this.#fail(new StoppedError('labfeed is stopping'));
      if (held) yield held;
      hash.update(chunk);
      const text = before + textOf(chunk);
      if (isSecretIn(text)) throw this.#fail(new FileError(SECRET));
      before = text.slice(-OVERLAP);
      held = chunk;
    }
    if (hash.digest('hex') !== sha256) throw this.#fail(new FileError(CHANGED));
    if (held) yield held;
  }

  #fail(problem: LabfeedError): LabfeedError {
    this.problem = problem;
    return problem;
  }
}

/** Text in UTF-16 has a zero byte in every other place. A loop is faster than a regular expression. */
function textOf(chunk: Uint8Array): string {
  if (!chunk.includes(0)) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1');
  const kept = Buffer.allocUnsafe(chunk.length);
  let length = 0;
  for (let at = 0; at < chunk.length; at++) {
    kept[length] = chunk[at] ?? 0;
    if (chunk[at] !== 0) length += 1;
  }
  return kept.toString('latin1', 0, length);
}

interface ReadingOptions extends Pick<UploadsDeps, 'isSecretIn'> {
  readonly stopping: AbortSignal;
}

const SECRET = 'it contains the API key or the token of labfeed';
const CHANGED = 'its bytes have changed since they were read';
