import { backoffMs, type Clock, systemClock } from './clock.js';
import { hasMark } from './deliver/comments.js';
import type { CommentRecord, ExperimentRecord, Notebook, UploadRecord } from './deliver/context.js';
import { answers, isEntryStatus } from './deliver/failures.js';
import { cellTexts, isAsStored } from './deliver/revise.js';
import { tryRead } from './deliver/window.js';
import { NotebookError } from './errors.js';
import type { FiledRun, Filing, JournalReader, KnownRun } from './journal/reader.js';
import { commentMark, markComment, originIn, readLabel } from './markers.js';
import { type Dialect, dialectOf } from './model.js';

export type NotebookReader = ReturnType<typeof createNotebookReader>;

interface ReaderOptions {
  readonly clock?: Clock;
  readonly signal: AbortSignal;
  /** Called with a message before each repeated request. */
  onRetry(message: string): void;
}

/** Including the waits, the attempts span a few minutes. */
const MAX_ATTEMPTS = 8;
/** An entry that fails this often, although the server answers another request each time, cannot be read. */
const MAX_ENTRY_FAILURES = 3;

/** Reads the notebook for `audit` and `recover`, and waits while it is unavailable. */
export function createNotebookReader(
  notebook: Pick<Notebook, 'listKeys' | 'readExperiment' | 'listComments' | 'readComment' | 'listUploads'> & {
    newestExperiments(): Promise<readonly { readonly id: number }[]>;
  },
  { clock = systemClock, signal, onRetry }: ReaderOptions,
) {
  async function retry<T>(request: () => Promise<T>, subject: 'entry' | 'server' = 'entry'): Promise<T> {
    for (let attempt = 1, failures = 0; ; attempt++) {
      signal.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        if (!isTemporary(error) || attempt === MAX_ATTEMPTS) throw error;
        if (subject === 'entry' && (await answers(notebook))) failures += 1;
        if (failures === MAX_ENTRY_FAILURES) throw unreadable(error);
        onRetry(`the notebook is unavailable, retrying: ${error.message}`);
        await clock.sleep(backoffMs(attempt), signal);
      }
    }
  }

  return {
    readExperiment: (id: number) => retry(() => tryRead(id, notebook)),
    listComments: (experiment: number) => retry(() => notebook.listComments(experiment)),
    /** eLabFTW only: the attached files, archived and deleted ones included. */
    listUploads: (experiment: number) => retry(() => notebook.listUploads(experiment)),
    /** Undefined if the comment does not exist. */
    readComment: (experiment: number, comment: number): Promise<CommentRecord | undefined> =>
      retry(() => notebook.readComment(experiment, comment)).catch((error: unknown) => {
        if (!isEntryStatus(error, 404)) throw error;
        return undefined;
      }),
    /** eLabFTW only: the highest id of the experiments that the key may read. Undefined if it cannot list them so. */
    async newestId(): Promise<number | undefined> {
      const [newest] = await retry(() => notebook.newestExperiments(), 'server').catch((error: unknown) => {
        if (isTemporary(error)) throw error;
        return [];
      });
      return newest?.id;
    },
    /**
     * Rejects unless the notebook itself answers: a proxy that has lost its backend answers 404 to everything. Resolves
     * with its dialect.
     */
    checkPresence: async (): Promise<Dialect> => dialectOf(await retry(() => notebook.listKeys(), 'server')),
  };
}

/** The notebook answers, but not about this entry. */
const unreadable = (cause: NotebookError): NotebookError =>
  new NotebookError('server', cause.message, { scope: 'run', cause });

export const isUnreadable = (error: unknown): error is NotebookError =>
  error instanceof NotebookError && error.failure === 'server' && error.scope === 'run';

/** Whether the request may succeed later without intervention. A rejected key needs intervention. */
export const isTemporary = (error: unknown): error is NotebookError =>
  error instanceof NotebookError && error.retryable && error.failure !== 'auth';

/** What the notebook has as the experiment of a run. `hasOrigin`: whether the body has the origin line of the run. */
export async function readBack(run: Pick<PlacedRun, 'instrument' | 'sha256' | 'experiment'>, notebook: NotebookReader) {
  const record = await notebook.readExperiment(run.experiment);
  if (record === 'missing') await notebook.checkPresence();
  return typeof record === 'string' ? record : { record, hasOrigin: hasOrigin(record, run) };
}

function hasOrigin(
  { body }: ExperimentRecord,
  { instrument, sha256 }: Pick<PlacedRun, 'instrument' | 'sha256'>,
): boolean {
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  return origin?.sha256 === sha256 && readLabel(origin.label, [instrument]) !== undefined;
}

/**
 * The run as which the daemon would recognise this content; undefined if the content is new. `copies`: whether equal
 * bytes at other paths are runs of their own.
 */
export const runWithContent = (
  { instrument, sha256, path, copies }: { instrument: string; sha256: string; path: string; copies: boolean },
  journal: Pick<JournalReader, 'ofContent'>,
): Promise<KnownRun | undefined> => journal.ofContent({ instrument, sha256, copy: copies ? path : '' });

/** How a filed run differs from what the notebook has of it. */
export interface Difference {
  readonly kind:
    | ('vanished' | 'deleted' | 'forbidden' | 'not ours' | 'outdated' | 'elsewhere' | 'unread')
    | ('comment missing' | 'comment twice' | 'file missing' | 'not attached' | 'on its way')
    | ('edited' | 'altered' | 'incomplete');
  readonly instrument: string;
  readonly run: number;
  readonly experiment: number | undefined;
  readonly path: string | undefined;
  /** One line. */
  readonly text: string;
}

/** Comments that the notebook no longer has, with their ids in the journal. */
export type MissingComments = readonly { readonly n: number; readonly comment: number }[];

/** Raw files that the notebook does not have, with their ids in the journal, or null if they were refused. */
export type MissingUploads = readonly { readonly n: number; readonly upload: number | null }[];

export interface VerifyDeps {
  /** The URL of the notebook. */
  readonly server: string;
  readonly dialect: string | undefined;
  readonly notebook: NotebookReader;
  readonly journal: Pick<JournalReader, 'filingOf'>;
}

export interface Verification {
  readonly findings: readonly Difference[];
  /** Whether the experiment and all comments were read back and contain what was filed. */
  readonly isVerified: boolean;
  /** Whether what was filed is everything that the file contains. */
  readonly isComplete: boolean;
  /** Whether the notebook has the raw files themselves. */
  readonly isAttached?: boolean;
  readonly missing: MissingComments;
  readonly uploads?: MissingUploads;
}

/** Whether the file could be deleted: every reading it holds, or the file itself, was read back from the notebook. */
export const isSafe = ({ isVerified, isComplete, isAttached = false }: Verification): boolean =>
  isAttached || (isVerified && isComplete);

/** Compares a done run with its experiment and comments. */
export async function verifyRun(run: FiledRun, deps: VerifyDeps): Promise<Verification> {
  const { experiment } = run;
  if (run.server !== deps.server) return unverified(run, 'elsewhere', `filed in ${run.server ?? 'another notebook'}`);
  if (experiment === undefined) return unverified(run, 'vanished', 'the journal has no experiment for it');
  const found = await readBack({ ...run, experiment }, deps.notebook);
  if (found === 'missing') return unverified(run, 'vanished', 'the experiment no longer exists');
  if (found === 'private') return unverified(run, 'forbidden', 'this key is not allowed to read the experiment');
  if (deps.dialect === 'elabftw' && Number(found.record['state']) === ELABFTW_DELETED)
    return unverified(run, 'deleted', 'somebody deleted the experiment');
  if (!found.hasOrigin) {
    const shown = originIn(String(found.record['body']))?.sha256 ?? '';
    const isEarlier = (await deps.journal.filingOf(run.id)).versions.includes(shown);
    return isEarlier
      ? unverified(run, 'outdated', `it shows the version sha256:${shown}`)
      : unverified(run, 'not ours', 'the origin line of this run is not in the body');
  }
  return verifyContent({ ...run, experiment }, found.record, deps);
}

const ELABFTW_DELETED = 3;

export const unverified = (run: FiledRun, kind: Difference['kind'], text: string): Verification => ({
  findings: [describe(run, kind, text)],
  isVerified: false,
  isComplete: false,
  missing: [],
});

const describe = ({ id, ...run }: FiledRun, kind: Difference['kind'], text: string): Difference => ({
  kind,
  instrument: run.instrument,
  run: id,
  experiment: run.experiment,
  path: run.path,
  text,
});

type PlacedRun = FiledRun & { readonly experiment: number };

async function verifyContent(
  run: PlacedRun,
  record: ExperimentRecord,
  { journal, notebook, dialect }: VerifyDeps,
): Promise<Verification> {
  const filing = await journal.filingOf(run.id);
  const { draft, omits, stored, comments } = filing;
  const edits = draft ? findEdits(record, draft, stored) : [];
  // Servers sanitise markup, so only the text is compared.
  const isIntact = draft === undefined || cellTexts(String(record['body'])) === cellTexts(draft.body);
  const altered = isIntact || edits.includes(BODY_CHANGED) ? [] : [describe(run, 'altered', BODY_ALTERED)];
  const listed =
    comments.length === 0 ? [] : (embedded(record, comments) ?? (await notebook.listComments(run.experiment)));
  const verified = await Promise.all(comments.map((filed) => verifyComment(filed, listed, run, notebook)));
  const isVerified = verified.every((comment) => comment.isVerified) && isIntact;
  const files = dialect === 'elabftw' ? await verifyFiles(run, filing, record, notebook) : NO_FILES;
  const gaps = isVerified && !files.isAttached ? gapsOf(draft, omits) : [];
  return {
    findings: [
      ...gaps.map((text) => describe(run, 'incomplete', text)),
      ...edits.map((text) => describe(run, 'edited', text)),
      ...altered,
      ...verified.flatMap(({ findings }) => findings),
      ...files.findings.map(({ kind, text }) => describe(run, kind, text)),
    ],
    // A title is only a name, but a body or a comment that was changed may no longer contain what the file does.
    isVerified,
    isComplete: gaps.length === 0,
    missing: verified.flatMap(({ missing }) => missing),
    ...(files.isAttached && { isAttached: true }),
    ...(files.uploads.length > 0 && { uploads: files.uploads }),
  };
}

/** Why the file is not in the notebook in full, although all that was filed is. */
function gapsOf(draft: Filing['draft'], omits: Filing['omits']): readonly string[] {
  if (!draft) return ['the journal no longer has what was filed, so it cannot be compared'];
  return (
    omits ?? ['filed by an older version, which did not note what it left out: to check, labfeed retry --remap RUN']
  );
}

/** What people changed. What the server itself changed when it stored the draft is not an edit. */
function findEdits(record: ExperimentRecord, draft: NonNullable<Filing['draft']>, stored: Filing['stored']): string[] {
  const { title, date, body } = record;
  const edits: string[] = [];
  if (
    typeof title === 'string' &&
    withoutSpaces(title) !== withoutSpaces(draft.title) &&
    !isAsStored('title', record, stored)
  )
    edits.push(`the title is now ${JSON.stringify(title)}`);
  if (typeof date === 'string' && !date.startsWith(draft.date) && !isAsStored('date', record, stored))
    edits.push(`the date is now ${date}`);
  if (cellTexts(String(body)) !== cellTexts(draft.body) && !isAsStored('body', record, stored))
    edits.push(BODY_CHANGED);
  return edits;
}

const BODY_CHANGED = 'the body was changed';
const BODY_ALTERED = 'the notebook itself changed the text of the body when it stored it';

const withoutSpaces = (text: string): string => text.replace(/\s+/g, '');

type FiledComment = Filing['comments'][number];

async function verifyComment(
  { n, text, comment }: FiledComment,
  listed: readonly CommentRecord[],
  run: PlacedRun,
  notebook: NotebookReader,
): Promise<Verification> {
  const { experiment, reference } = run;
  const marked = listed.filter((record) => hasMark(record, commentMark(reference, n)));
  // The text of a recovered comment is not in the journal, so only its marker line can be compared.
  const isAsFiled = (record: CommentRecord): boolean =>
    text === '' ? marked.includes(record) : contains(record, markComment(text, reference, n));
  if (marked.length > 1) {
    const ids = marked.map(({ id }) => id).join(', ');
    const twice = unverified(run, 'comment twice', `comment ${n} exists ${marked.length} times, with the ids ${ids}`);
    return { ...twice, isVerified: marked.some(isAsFiled) };
  }
  const [listedRecord] = [...marked, ...listed.filter(({ id }) => id === comment)];
  // An incomplete list does not prove that a comment is missing.
  const record = listedRecord ?? (comment === undefined ? undefined : await notebook.readComment(experiment, comment));
  if (record === undefined) {
    const missing = comment === undefined ? [] : [{ n, comment }];
    return { ...unverified(run, 'comment missing', `comment ${n} (id ${comment ?? 'unknown'}) is missing`), missing };
  }
  if (isAsFiled(record)) return { findings: [], isVerified: true, isComplete: true, missing: [] };
  return unverified(run, 'edited', `comment ${n} (id ${record.id}) was changed`);
}

/** Some notebooks show comments with the experiment. They prove that a comment exists, not that one is missing. */
function embedded(
  { comments: shown }: ExperimentRecord,
  filed: readonly FiledComment[],
): readonly CommentRecord[] | undefined {
  if (!Array.isArray(shown)) return undefined;
  const records = shown.filter(isComment);
  const ids = new Set(records.map(({ id }) => id));
  return filed.every(({ comment }) => comment !== undefined && ids.has(comment)) ? records : undefined;
}

const isComment = (value: unknown): value is CommentRecord =>
  typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'number';

/** As it was sent, or converted to markup. The contract names no field for the text. */
const contains = (record: CommentRecord, wanted: string): boolean =>
  Object.values(record).some(
    (value) => typeof value === 'string' && [withoutSpaces(value), cellTexts(value)].includes(withoutSpaces(wanted)),
  );

/** What the notebook has of the raw files of a run. */
interface VerifiedFiles {
  /** Whether it has all of them, with the content that was read: eLabFTW lists the hash of what it stored. */
  readonly isAttached: boolean;
  readonly findings: readonly { readonly kind: Difference['kind']; readonly text: string }[];
  readonly uploads: MissingUploads;
}

const NO_FILES: VerifiedFiles = { isAttached: false, findings: [], uploads: [] };

type Attachment = Filing['attachments'][number];

/** eLabFTW only. */
async function verifyFiles(
  run: FiledRun & { readonly experiment: number },
  { attachments: all, draft }: Pick<Filing, 'attachments' | 'draft'>,
  record: ExperimentRecord,
  notebook: Pick<NotebookReader, 'listUploads'>,
): Promise<VerifiedFiles> {
  const shown = shownUploads(record);
  // Without its plot, a run is complete.
  const attachments = all.filter(({ kind }) => kind === 'raw');
  // The journal was lost. The fingerprint of a run with one file is that of the file.
  if (attachments.length === 0 && !draft) return { ...NO_FILES, isAttached: has(shown ?? [], run.sha256) };
  if (attachments.length === 0) return NO_FILES;
  const expected = attachments.filter(({ upload }) => upload !== undefined);
  const isShown = expected.every(({ sha256 }) => has(shown ?? [], sha256));
  // The experiment does not show archived files.
  const listed = isShown ? (shown ?? []) : await notebook.listUploads(run.experiment);
  const missing = expected.filter(({ sha256 }) => !has(listed, sha256));
  const refused = attachments.filter(({ isRefused }) => isRefused);
  const waiting = attachments.filter(({ upload, isRefused }) => upload === undefined && !isRefused);
  return {
    isAttached: missing.length + refused.length + waiting.length === 0,
    findings: [
      ...missing.map(({ name, upload }) => ({
        kind: 'file missing' as const,
        text: `the raw file ${name} (id ${upload}) was deleted or replaced`,
      })),
      ...refused.map((file) => ({ kind: 'not attached' as const, text: whyNotAttached(file) })),
      ...waiting.map((file) => ({ kind: 'on its way' as const, text: whyNotAttached(file) })),
    ],
    // Of an archive that was never written, there is nothing to attach.
    uploads: [...missing, ...refused.filter(({ sha256 }) => sha256 !== '')].map(({ n, upload }) => ({
      n,
      upload: upload ?? null,
    })),
  };
}

const whyNotAttached = ({ name, reason }: Attachment): string =>
  reason?.split('\n', 1)[0] ?? `the raw file ${name} is not attached yet`;

const has = (listed: readonly UploadRecord[], sha256: string): boolean =>
  listed.some(({ hash, state }) => hash === sha256 && state !== ELABFTW_DELETED);

/** eLabFTW shows files with the experiment, except for archived and deleted ones. */
function shownUploads({ uploads }: ExperimentRecord): UploadRecord[] | undefined {
  if (!Array.isArray(uploads)) return undefined;
  return uploads.filter(
    (one): one is UploadRecord => typeof one === 'object' && one !== null && 'id' in one && 'hash' in one,
  );
}
