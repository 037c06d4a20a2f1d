import { basename } from 'node:path';
import { z } from 'zod';
import { explain } from '../errors.js';
import { erasedCopy, type RunIdentity, referenceOf, refilingsOf, withoutJournalId } from '../markers.js';
import { STAND_IN } from '../model.js';
import type { Added, ContentKey, Handover, Match, NewRun, Reading, UnreadRun } from '../outbox.js';
import { addAttachments, toFile } from './attachments.js';
import { addHistory, type Connection, parseRows } from './database.js';
import { type Filed, putDraft, replaceDraft } from './drafts.js';
import { compareShape, heldReason, recordShape } from './drift.js';
import { addSources } from './sources.js';
import type { Store } from './store.js';
import { addVersion, claimPath, isBusy, type PathRun, runAt, takeVersion } from './versions.js';

/** From intake to outbox: the run is stored here first, and only then does intake remember the file. */
export const createHandover = (store: Store): Handover => ({
  match: (run) => match(store, run),
  move: (run, path) => store.commit(() => move(store.db, run, path)),
  add: (run, reading) => store.apply(() => add(store, run, reading, store.now())),
  unread: async (instrument, mapping) => unread(store.db, instrument, mapping),
});

/** Looked up for each file. */
interface RunRow {
  readonly id: number;
  readonly path: string;
  readonly copy: string;
  readonly step: string;
  readonly parked: string | null;
  readonly failure: string | null;
  readonly mapping: string;
  readonly matched: number;
}

/**
 * The last filing of this content. If equal bytes at other paths are no runs of their own, that of any path: the
 * configuration may have changed, and versions of a file have its path as their copy.
 */
const findRun = (db: Connection, run: NewRun): RunRow | undefined =>
  db.row<RunRow>`
    SELECT id, path, copy, step, parked, failure, mapping, matched FROM runs
      WHERE instrument = ${run.instrument} AND sha256 = ${run.file.sha256}
      AND (copy = ${copyOf(db, keyOf(run))} OR ${run.copy} = '')
      ORDER BY copy = ${run.copy} DESC, path = ${run.file.path} DESC, refiling DESC LIMIT 1`;

const keyOf = ({ instrument, file: { sha256 }, copy }: NewRun) => ({ instrument, sha256, copy });

/** The copy under which the outbox knows the content: its path, or a stand-in if a run of it was erased. */
export function copyOf(db: Connection, content: Omit<RunIdentity, 'refiling'>): string {
  if (content.copy === '') return '';
  const erased = erasedCopy(content);
  const row = db.row`
    SELECT 1 FROM runs WHERE instrument = ${content.instrument} AND sha256 = ${content.sha256}
      AND copy = ${erased} LIMIT 1`;
  return row === undefined ? content.copy : erased;
}

async function match(store: Store, run: NewRun): Promise<Match> {
  const { db } = store;
  const { instrument, file, partOf } = run;
  const own = runAt(db, run);
  if (own && own.sha256 !== file.sha256) {
    const version = await matchVersion(store, own, run);
    if (version) return version;
  }
  const found =
    (own?.sha256 === file.sha256 ? own : undefined) ??
    findRun(db, run) ??
    ((await claimRecovered(store, run)) ? findRun(db, run) : undefined);
  if (found === undefined) return partOf ? matchRest(store, run, partOf) : { kind: 'new' };
  if (isSetAside(found) || (isAboutMapping(found) && found.mapping !== run.mapping)) return { kind: 'unread' };
  if (remapPath(db, found.id) === file.path)
    return { kind: found.step === 'done' && found.parked === null ? 'unread' : 'busy' };
  if (found.mapping === '' && found.matched === 0)
    store.writeLater(() => void db.run`UPDATE runs SET matched = 1 WHERE id = ${found.id}`);
  if (hasOtherRemap(db, instrument, file.path, found.id))
    await store.commit(() => cancelRemaps(db, run, found.id, store.now()));
  const freed =
    findUnread(db, run, found.id).length > 0
      ? await store.commit(() => resolveUnread(db, run, found.id, store.now()))
      : [];
  const { id, copy, path } = found;
  return { kind: 'known', run: id, path, sha256: file.sha256, copy, isErased: path === '', freed };
}

/** The run of this path has other content. Undefined if this content belongs to another run of the same file. */
async function matchVersion(store: Store, own: PathRun, run: NewRun): Promise<Match | undefined> {
  const { partOf } = run;
  if (partOf?.sha256 === own.sha256 && own.experiment !== null) return matchRest(store, run, partOf);
  const recovered = own.experiment === null ? findRecoveredVersion(store.db, run) : undefined;
  if (recovered === undefined)
    return { kind: 'version', replaces: { sha256: own.sha256, copy: own.copy }, isBusy: isBusy(store, own) };
  await store.commit(() => followRecovered(store.db, own, recovered, run, store.now()));
  return undefined;
}

/** A journal that was lost has filed this version of the file. */
const findRecoveredVersion = (db: Connection, { instrument, file: { sha256, path } }: NewRun): number | undefined =>
  db.value<number>`
    SELECT id FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256} AND mapping = '' AND matched = 0
      AND step = 'done' AND experiment IS NOT NULL AND path = ${basename(path)} LIMIT 1`;

/** An older version, which this journal has not filed yet, must not get an experiment of its own. */
function followRecovered(db: Connection, own: PathRun, recovered: number, run: NewRun, at: number): void {
  claimPath(db, run.instrument, run.file.path, recovered);
  db.run`UPDATE runs SET path = ${run.file.path} WHERE id = ${recovered}`;
  if (own.step !== 'pending' || own.parked === 'ignored') return;
  setAside(db, own.id, `a later version of its file is filed as run ${recovered}`, at);
}

/** Within a commit. */
export function move(db: Connection, run: number, path: string): void {
  const instrument = db.value<string>`
    UPDATE runs SET path = ${path}, matched = 1 WHERE id = ${run} AND path <> '' RETURNING instrument`;
  if (instrument !== undefined) claimPath(db, instrument, path, run);
}

/** Whether the run waits for a mapping that can read its file, or that accepts its columns. */
const isAboutMapping = ({ parked, failure }: RunRow): boolean =>
  parked === 'quarantined' || (parked === 'held' && failure === 'drift');

/** The files are what is left of a run. If that one is in the notebook, they are not a run of their own. */
async function matchRest(store: Store, run: NewRun, { sha256, copy }: ContentKey): Promise<Match> {
  const { db } = store;
  const found = db.row<{ id: number; path: string }>`
    SELECT id, path FROM runs WHERE instrument = ${run.instrument} AND sha256 = ${sha256} AND copy = ${copy}
      AND experiment IS NOT NULL ORDER BY refiling DESC LIMIT 1`;
  if (found === undefined) return { kind: 'new' };
  if (hasOtherRemap(db, run.instrument, run.file.path, NO_RUN))
    await store.commit(() => cancelRemaps(db, run, NO_RUN, store.now(), 'some of its files are gone'));
  return { kind: 'known', run: found.id, path: found.path, sha256, copy, isErased: found.path === '' };
}

const NO_RUN = 0;

const recoveredRow = z.object({ id: z.number(), refiling: z.number(), reference: z.string(), path: z.string() });

/**
 * The notebook does not tell which of several equal files an experiment came from. A recovered run belongs to the file
 * that its reference was derived from; if it has none, to the first file of its name.
 */
async function claimRecovered({ db, commit }: Store, run: NewRun): Promise<boolean> {
  if (run.copy === '' || findRecovered(db, run).length === 0) return false;
  return commit(() => {
    const found = findRecovered(db, run);
    for (const { id, refiling } of found)
      db.run`UPDATE runs SET copy = ${run.copy}, refiling = ${refiling} WHERE id = ${id}`;
    return found.length > 0;
  });
}

function findRecovered(db: Connection, run: NewRun): { id: number; refiling: number }[] {
  const { instrument, sha256, copy } = keyOf(run);
  const found = db.rows`
    SELECT id, refiling, reference, path FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256}
      AND copy = '' AND mapping = '' AND step = 'done' AND matched = 0 ORDER BY refiling`;
  if (found.length === 0) return [];
  const rows = parseRows(recoveredRow, found);
  // A run that was refiled after it was erased has a reference derived from the stand-in.
  const erased = refilingsOf({ instrument, sha256, copy: erasedCopy({ instrument, sha256, copy }) });
  const own = new Map([...erased, ...refilingsOf({ instrument, sha256, copy })]);
  const certain = rows.flatMap(({ id, reference }) => {
    const refiling = own.get(reference);
    return refiling === undefined ? [] : [{ id, refiling }];
  });
  if (certain.length > 0) return certain;
  const likely = rows.find(
    ({ refiling, reference, path }) =>
      path === basename(run.file.path) && reference === referenceOf({ instrument, sha256, copy: '', refiling }),
  );
  return likely ? [{ id: likely.id, refiling: 0 }] : [];
}

function unread(db: Connection, instrument: string, mapping: string): UnreadRun[] {
  const rows = db.rows<ContentKey & { path: string | null }>`
    SELECT sha256, copy, NULL AS path FROM runs WHERE instrument = ${instrument} AND parked IS NOT NULL
      AND mapping <> ${mapping} AND (parked = 'quarantined' OR parked = 'held' AND failure = 'drift')
    UNION ALL SELECT sha256, copy, remaps.path FROM remaps JOIN runs ON runs.id = run
      WHERE remaps.instrument = ${instrument}`;
  return rows.map(({ path, ...content }) => ({ ...content, path: path ?? undefined }));
}

/** Within a commit. */
export function add(store: Store, run: NewRun, reading: Reading, at: number): Added {
  const { db } = store;
  const own = runAt(db, run);
  const isVersion = own !== undefined && own.sha256 !== run.file.sha256;
  const added = isVersion ? addVersionOf(store, own, run, reading, at) : addContent(db, own, run, reading, at);
  if (added.outcome === 'busy') return added;
  if (added.outcome !== 'known') cancelRemaps(db, run, added.run, at);
  const freed = resolveUnread(db, run, added.run, at);
  return freed.length > 0 ? { freed, ...added } : added;
}

function addContent(db: Connection, own: RunRow | undefined, run: NewRun, reading: Reading, at: number): Added {
  const found = own ?? findRun(db, run);
  const added = (found && revise(db, found, run, reading, at)) ?? addOrReplace(db, found, run, reading, at);
  if (run.revises && added.outcome !== 'known') claimPath(db, run.instrument, run.file.path, added.run);
  return added;
}

/** A version that cannot be read is quarantined as a run of its own, unless none before it was read. */
function addVersionOf(store: Store, before: PathRun, run: NewRun, reading: Reading, at: number): Added {
  const { db } = store;
  const { sha256, path } = run.file;
  const isNeverRead =
    before.parked === 'quarantined' &&
    before.step === 'pending' &&
    !db.exists`SELECT 1 FROM drafts WHERE run = ${before.id}`;
  if (reading.draft || isNeverRead) {
    if (!isBusy(store, before)) return takeVersion(db, before, run, reading, at);
    return { run: before.id, outcome: 'busy', drift: undefined, sha256, copy: path, isErased: false };
  }
  const stays =
    before.experiment === null
      ? `run ${before.id} keeps the version before`
      : `experiment ${before.experiment} (run ${before.id}) stays as it is, with the version before`;
  // Two files may have the same unreadable content, for example none.
  const own = { ...run, copy: path };
  const added = addOrReplace(db, findRun(db, own), own, reading, at, stays);
  if (added.outcome === 'quarantined') addVersion(db, before, run, at, added.run);
  return added;
}

/**
 * Runs from this path whose file was never read, and of which another file has taken the place. The versions of one
 * file have the same path; otherwise, only a file without a fingerprint is known to be the same. Many runs may be
 * quarantined, so they are found by the path.
 */
function findUnread(db: Connection, { instrument, file: { sha256, path }, revises }: NewRun, by: number): number[] {
  if (revises)
    return db.values<number>`
      SELECT id FROM runs WHERE path = ${path} AND +instrument = ${instrument} AND +parked = 'quarantined'
        AND step = 'pending' AND id <> ${by} AND NOT EXISTS (SELECT 1 FROM drafts WHERE run = id)`;
  return db.values<number>`
    SELECT id FROM runs WHERE instrument = ${instrument} AND sha256 > ${STAND_IN} AND sha256 < ${AFTER_STAND_INS}
      AND sha256 <> ${sha256} AND path = ${path} AND parked = 'quarantined'`;
}

const AFTER_STAND_INS = STAND_IN.replace(/.$/, '1');

/** Returns their contents: other files may have them. */
function resolveUnread(db: Connection, run: NewRun, by: number, at: number): ContentKey[] {
  return findUnread(db, run, by).flatMap((id) => {
    setAside(db, id, `its path now holds the file of run ${by}`, at);
    return db.row<ContentKey>`SELECT sha256, copy FROM runs WHERE id = ${id}` ?? [];
  });
}

/** Not a person's decision, so it has no failure that was ignored. */
function setAside(db: Connection, id: number, reason: string, at: number): void {
  db.run`UPDATE runs SET parked = 'ignored', failure = NULL, reason = ${reason}, updated_at = ${at} WHERE id = ${id}`;
  addHistory(db, id, at, 'rested', { as: 'ignored', reason });
}

/** `stays`: what becomes of the version before, if this one cannot be read. */
function addOrReplace(
  db: Connection,
  found: RunRow | undefined,
  run: NewRun,
  { draft, omits, shaped, problem }: Reading,
  at: number,
  stays = '',
): Added {
  const judgement = shaped ? compareShape(db, run.instrument, run.mapping, shaped) : {};
  const { drift } = judgement;
  const failure = problem ? 'file' : drift?.held ? 'drift' : undefined;
  const reason = problem ? `${explain(problem)}${stays && `\n  → ${stays}`}` : null;
  const copy = found ? found.copy : copyOf(db, keyOf(run));
  const content = { sha256: run.file.sha256, copy, isErased: false };
  const id = found
    ? updateRun(db, found.id, run, { failure, reason }, at)
    : insertRun(db, run, copy, { failure, reason }, at);
  if (id === undefined) {
    return { ...content, run: found?.id ?? 0, outcome: 'known', isErased: found?.path === '', drift: undefined };
  }
  addHistory(db, id, at, draft ? 'read' : 'refused', { path: run.file.path, reason, noPlot: run.plot?.reason });
  if (found || judgement.accepted || drift) recordShape(db, id, judgement, shaped?.shape, at);
  if (drift?.held) db.run`UPDATE runs SET reason = ${heldReason(id, drift)} WHERE id = ${id}`;
  if (draft && run.attachments) addAttachments(db, id, run.attachments);
  if (draft && found) replaceDraft(db, id, toFile(db, id, run, draft, omits));
  else if (draft) putDraft(db, id, toFile(db, id, run, draft, omits));
  if (run.sources) addSources(db, id, run.sources);
  return { run: id, outcome: failure ? PARKED[failure] : 'queued', drift, ...content };
}

const PARKED = { file: 'quarantined', drift: 'held' } as const;

interface Parking {
  readonly failure: keyof typeof PARKED | undefined;
  readonly reason: string | null;
}

/** Whether its file was never read, and another one took its place: if the content returns, it is quarantined again. */
const isSetAside = ({ step, parked, failure, path }: RunRow): boolean =>
  step === 'pending' && parked === 'ignored' && failure === null && path !== '';

/** Undefined if the run does not wait for a new reading. */
const updateRun = (
  db: Connection,
  id: number,
  { file, mapping }: NewRun,
  { failure, reason }: Parking,
  at: number,
): number | undefined =>
  db.value<number>`
    UPDATE runs SET path = ${file.path}, size = ${file.size}, modified_ms = ${Number(file.mtimeNs / 1_000_000n)},
      mapping = ${mapping}, parked = ${failure ? PARKED[failure] : null}, failure = ${failure ?? null}, reason =
      ${reason}, attempts = 0, due_at = 0, updated_at = ${at} WHERE id = ${id}
      AND (parked = 'quarantined' OR (parked = 'held' AND failure = 'drift') OR (parked = 'ignored' AND failure IS NULL
      AND step = 'pending' AND path <> '')) RETURNING id`;

/**
 * The reference may belong to a run that had this content before its file changed: the notebook has marker lines with
 * it, so this run gets another one.
 */
function insertRun(
  db: Connection,
  { instrument, file, backlog, mapping }: NewRun,
  copy: string,
  { failure, reason }: Parking,
  at: number,
): number {
  for (let refiling = 0; ; refiling++) {
    const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling });
    const id = db.value<number>`
      INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
        step, parked, failure, reason, added_at, updated_at) VALUES (${instrument}, ${file.sha256}, ${copy},
        ${refiling}, ${reference}, ${file.path}, ${file.size}, ${Number(file.mtimeNs / 1_000_000n)},
        ${backlog ? 1 : 0}, ${mapping}, 'pending', ${failure ? PARKED[failure] : null}, ${failure ?? null},
        ${reason}, ${at}, ${at}) ON CONFLICT (reference) DO NOTHING RETURNING id`;
    if (id !== undefined) return id;
  }
}

/** The done run that a person wants remapped from this file takes the new reading. */
function revise(
  db: Connection,
  found: RunRow,
  run: NewRun,
  { draft, omits, problem }: Reading,
  at: number,
): Added | undefined {
  const { file, mapping } = run;
  if (found.step !== 'done' || found.parked !== null) return undefined;
  if (remapPath(db, found.id) !== file.path) return undefined;
  const { id, copy } = found;
  // Accepted by a person, so it is not compared with the shapes of other runs.
  const added = { run: id, sha256: file.sha256, copy, isErased: false, drift: undefined };
  db.run`DELETE FROM remaps WHERE run = ${id}`;
  if (draft === undefined) {
    noteRemap(db, id, at, 'remapRefused', `${NOT_REMAPPED}: ${explain(problem)}`);
    return { ...added, outcome: 'refused' };
  }
  // What a person once said about its experiment no longer matters: it is as labfeed left it, or it is theirs.
  db.run`
    UPDATE runs SET path = ${file.path}, size = ${file.size}, modified_ms =
      ${Number(file.mtimeNs / 1_000_000n)}, mapping = ${mapping}, adopted = 0, attempts = 0, due_at = 0
      WHERE id = ${id}`;
  // The bytes are the same, so what is attached stays. A run that was filed without its files gets them now.
  if (run.attachments) addAttachments(db, id, run.attachments);
  const filed = toFile(db, id, run, draft, omits);
  const isSame = isSameDraft(db, id, filed);
  if (!isSame) replaceDraft(db, id, filed);
  // A run that an older version filed can be proved to be complete after it was read again.
  else db.run`UPDATE drafts SET omits = ${filed.omits ? JSON.stringify(filed.omits) : null} WHERE run = ${id}`;
  if (run.plot?.reason !== undefined) addHistory(db, id, at, 'read', { path: file.path, noPlot: run.plot.reason });
  noteRemap(db, id, at, isSame ? 'remapUnchanged' : 'remapped', null);
  return { ...added, outcome: isSame ? 'unchanged' : 'revised' };
}

const NOT_REMAPPED = 'it was not remapped and stays as it was filed';

/** The journal's id in the origin line does not count: a run that an older version filed is not updated for it. */
function isSameDraft(db: Connection, run: number, { draft }: Filed): boolean {
  const { title, date, body, tags, extras, comments } = draft;
  const before = db.row<Record<'title' | 'date' | 'body' | 'tags' | 'extras', string>>`
    SELECT title, date, body, tags, ifnull(extras, '') AS extras FROM drafts WHERE run = ${run}`;
  const texts = db.values<string>`SELECT text FROM comments WHERE run = ${run} ORDER BY n`;
  return (
    before !== undefined &&
    before.title === title &&
    before.date === date &&
    withoutJournalId(before.body) === withoutJournalId(body) &&
    before.tags === JSON.stringify(tags) &&
    before.extras === (extras ? JSON.stringify(extras) : '') &&
    JSON.stringify(texts) === JSON.stringify(comments)
  );
}

const remapPath = (db: Connection, run: number): string | undefined =>
  db.value<string>`SELECT path FROM remaps WHERE run = ${run}`;

const hasOtherRemap = (db: Connection, instrument: string, path: string, run: number): boolean =>
  db.exists`
    SELECT 1 FROM remaps WHERE instrument = ${instrument} AND path = ${path} AND run <> ${run}`;

/** The file that other runs were to be remapped from now belongs to this run, or is incomplete. */
function cancelRemaps(
  db: Connection,
  { instrument, file: { path } }: NewRun,
  run: number,
  at: number,
  reason = `${path} now belongs to run ${run}`,
): void {
  const cancelled = db.values<number>`
    DELETE FROM remaps WHERE instrument = ${instrument} AND path = ${path} AND run <> ${run} RETURNING run`;
  for (const other of cancelled) noteRemap(db, other, at, 'remapRefused', `${NOT_REMAPPED}: ${reason}`);
}

/** The reason why a done run was not remapped is shown with it until the next attempt. */
function noteRemap(db: Connection, run: number, at: number, event: string, reason: string | null): void {
  db.run`
    UPDATE runs SET failure = ${reason === null ? null : 'file'}, reason = ${reason}, updated_at = ${at}
      WHERE id = ${run}`;
  addHistory(db, run, at, event, reason === null ? undefined : { reason });
}
