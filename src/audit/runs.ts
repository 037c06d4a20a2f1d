import { hasMark } from '../deliver/comments.js';
import type { CommentRecord, ExperimentRecord } from '../deliver/context.js';
import { cellTexts, isAsStored } from '../deliver/revise.js';
import { NotebookError } from '../errors.js';
import { createNotebookReader, type NotebookReader, readBack } from '../evidence.js';
import type { FiledRun, Filing, JournalReader, UnfiledRun } from '../journal/reader.js';
import { commentMark, markComment } from '../markers.js';
import { NO_FILES, verifyFiles } from './files.js';
import { inParallel } from './folders.js';
import type { AuditDeps, AuditResult, Finding, FindingKind, Repair } from './report.js';

/** Compares the runs in the journal with the notebook. Adds to the result as it goes, in case it stops early. */
export async function compareRuns(deps: AuditDeps, result: AuditResult): Promise<void> {
  const server = await deps.journal.server(deps.config.notebook.url);
  try {
    await verifyRuns(deps, server.dialect, result);
  } finally {
    // Last, because runs go on: one that is filed meanwhile must not be listed as on its way and as safe.
    await reportUnfiled(deps, server, result);
  }
}

async function verifyRuns(
  { config, instrument, journal, notebook, signal, progress }: AuditDeps,
  knownDialect: string | undefined,
  result: AuditResult,
): Promise<void> {
  const { url, concurrency, dialect } = config.notebook;
  // Without retries: a wrong key or address is reported at once.
  await notebook.listKeys();
  const verifyDeps = {
    server: url,
    dialect: dialect === 'auto' ? knownDialect : dialect,
    notebook: createNotebookReader(notebook, { signal, onRetry: progress.print }),
    journal,
  };
  const total = await journal.countFiled(instrument);
  await inParallel(journal.filed(instrument), concurrency, async (run) => {
    signal.throwIfAborted();
    progress.show(`reading back run ${result.filed + 1} of ${total}`);
    const checked = await verifyRun(run, verifyDeps).catch(unreadable(run));
    const { findings, isVerified, isComplete, isAttached, missing, uploads = [] } = checked;
    result.filed += 1;
    result.findings.push(...findings);
    if (isVerified) result.verified.add(run.id);
    if (isVerified && isComplete) result.complete.add(run.id);
    if (isAttached) result.attached.add(run.id);
    if (missing.length + uploads.length > 0)
      result.repairs.push({ run: run.id, comments: missing, ...(uploads.length > 0 && { uploads }) });
  });
}

/** Findings that need no request: a halt, runs that are not filed, and spares. */
async function reportUnfiled(
  { config, instrument, journal }: AuditDeps,
  server: Awaited<ReturnType<JournalReader['server']>>,
  { findings, repairs, verified, attached }: AuditResult,
): Promise<void> {
  if (server.halted !== undefined)
    findings.push({ kind: 'halted', text: `nothing is sent to ${config.notebook.url}: ${server.halted}` });
  for await (const run of journal.unfiled(instrument)) {
    const finding = describeUnfiled(run);
    findings.push(finding);
    // It was reopened after it was read back.
    verified.delete(run.id);
    attached.delete(run.id);
    if (finding.kind === 'interrupted') repairs.push({ run: run.id, comments: [] });
  }
  for (const experiment of instrument === undefined ? server.spares : [])
    findings.push({ kind: 'spare', experiment, text: 'the next run will use it' });
}

function describeUnfiled({ id, instrument, path, experiment, state, reason, attempts }: UnfiledRun): Finding {
  const isParked = state === 'held' || state === 'quarantined';
  return {
    kind: isParked ? state : attempts > 0 ? 'interrupted' : 'on its way',
    instrument,
    run: id,
    experiment,
    path,
    // The other lines of a reason say what to do; `show` prints them.
    text: reason === undefined ? `it is ${state}` : (reason.split('\n', 1)[0] ?? ''),
  };
}

/** A failure that concerns one experiment does not keep the others from being read. */
const unreadable =
  (run: FiledRun) =>
  (error: unknown): Verification => {
    if (!(error instanceof NotebookError) || error.scope !== 'run') throw error;
    return unverified(run, 'unread', error.message);
  };

export interface VerifyDeps {
  /** The URL of the notebook. */
  readonly server: string;
  readonly dialect: string | undefined;
  readonly notebook: NotebookReader;
  readonly journal: Pick<JournalReader, 'filingOf'>;
}

interface Verification {
  readonly findings: readonly Finding[];
  /** Whether the experiment and all comments were read back and contain what was filed. */
  readonly isVerified: boolean;
  /** Whether what was filed is everything that the file contains. */
  readonly isComplete: boolean;
  /** Whether the notebook has the raw files themselves. */
  readonly isAttached?: boolean;
  readonly missing: Repair['comments'];
  readonly uploads?: Repair['uploads'];
}

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
  if (!found.hasOrigin) return unverified(run, 'not ours', 'the origin line of this run is not in the body');
  return verifyContent({ ...run, experiment }, found.record, deps);
}

const ELABFTW_DELETED = 3;

const unverified = (run: FiledRun, kind: FindingKind, text: string): Verification => ({
  findings: [describe(run, kind, text)],
  isVerified: false,
  isComplete: false,
  missing: [],
});

const describe = ({ id, ...run }: FiledRun, kind: FindingKind, text: string): Finding => ({
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

/** What people changed. What the server itself changed when it stored the draft is no edit. */
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
