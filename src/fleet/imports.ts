import { createHash } from 'node:crypto';
import { addHistory, type Connection } from '../journal/database.js';
import type { Operation, Row, WholeRun } from '../journal/forwards.js';
import { dropSpare } from '../journal/outbox.js';
import { putWholeRun, readWholeRun } from '../journal/whole-runs.js';
import { ERASED, referenceOf, withJournalId } from '../markers.js';
import { STAND_IN } from '../model.js';
import type { LeadingJournal } from './working-copy.js';

/** An operation as it is received. */
export interface Sent {
  readonly member: number;
  readonly name: string;
  readonly number: number;
  readonly operation: Operation;
}

/** Each member counts its generations from 1. */
const GENERATIONS = 2 ** 32;

export const fleetGeneration = (member: number, own: number): number => member * GENERATIONS + own;

/** Where a file is, for people and as part of what identifies it. */
export const fleetPath = (member: string, path: string): string => `${member}:${path}`;

/** A file that could not be hashed is identified by its path, which two members can have in common. */
export const ofMemberIfUnread = (sha256: string, name: string): string =>
  sha256.startsWith(STAND_IN)
    ? STAND_IN + createHash('sha256').update(`${name} ${sha256}`).digest('hex').slice(STAND_IN.length)
    : sha256;

export const filedAs = (db: Connection, { member }: Sent, own: number): number | undefined =>
  db.value<number>`SELECT filed FROM origins WHERE member = ${member} AND run = ${own}`;

/** Within a commit. */
export const noteOrigin = (db: Connection, { member }: Sent, own: number, filed: number): unknown =>
  db.run`INSERT OR REPLACE INTO origins (member, run, filed) VALUES (${member}, ${own}, ${filed})`;

interface Known {
  readonly id: number;
  readonly sha256: string;
  readonly parked: string | null;
  readonly server: string | null;
  readonly experiment: number | null;
  readonly step: string;
}

/**
 * Within a commit. Takes a run of a member's own journal with its history, unless the fleet knows it. A run that both have
 * filed, as different experiments, is held: people decide which one stays. False if it has to wait.
 */
export function takeImport(whole: WholeRun, sent: Sent, { store }: LeadingJournal, fleet: string): boolean {
  const { db, now } = store;
  const run = toFleet(whole, sent, fleet);
  const { server = null, experiment = null } = run.run;
  const known = findKnown(db, run, sent);
  const what = known ? compare(db, run, known) : 'new';
  // Its state is about to change.
  if (known && what === 'newer' && store.claimed.has(known.id)) return false;
  const id = known && what !== 'twice' ? known.id : insert(db, run, what === 'twice');
  if (known && what === 'newer') replace(db, known, run);
  if (known && what === 'twice') hold(db, id, Number(experiment), known, now());
  if (known?.step === 'done' && what === 'known' && whole.run['step'] === 'creating')
    addHistory(db, id, now(), 'fileChanged', { reason: maybeTwice(sent.name) });
  noteOrigin(db, sent, whole.own, id);
  if (server !== null && experiment !== null) dropSpare(db, String(server), Number(experiment));
  for (const { own, n } of whole.unread)
    db.run`UPDATE versions SET unread = ${id} WHERE n = ${n} AND run = ${filedAs(db, sent, own) ?? 0}`;
  return true;
}

/** `newer`: what the member has replaces what the fleet has. */
function compare(db: Connection, { run, generation }: WholeRun, known: Known): 'known' | 'newer' | 'twice' {
  const { server = null, experiment = null } = run;
  const isOther = known.experiment !== null && (known.experiment !== experiment || known.server !== server);
  if (experiment !== null && isOther) return 'twice';
  if (experiment !== null && known.experiment === null) return 'newer';
  // Read by the member only, or more of it: the database was restored from a backup.
  if (run['parked'] === null && known.parked === 'quarantined') return 'newer';
  if (run['sha256'] !== known.sha256) return 'newer';
  const upto = db.value<number>`SELECT upto FROM generations WHERE id = ${generation?.['id'] ?? 0}`;
  return upto !== undefined && upto < Number(generation?.['upto']) ? 'newer' : 'known';
}

/** The fleet keeps its name for the run, and the experiment that it created. */
function replace(db: Connection, known: Known, whole: WholeRun): void {
  const { reference, refiling } = db.row<Row>`SELECT reference, refiling FROM runs WHERE id = ${known.id}` ?? {};
  const { server, experiment } = known.experiment === null ? whole.run : known;
  const run = { ...whole.run, server: server ?? null, experiment: experiment ?? null };
  const isSame = whole.run['sha256'] === known.sha256;
  putWholeRun(db, known.id, {
    ...whole,
    run: { ...run, reference: reference ?? '', ...(isSame && { refiling: refiling ?? 0 }) },
  });
}

const maybeTwice = (name: string): string =>
  `${name} was about to file this run, too, when it joined the fleet: \`labfeed audit\` shows whether it left an empty experiment`;

/** The run that this one became before, that has its experiment, or its content. */
function findKnown(db: Connection, { own, run }: WholeRun, sent: Sent): Known | undefined {
  const { instrument = '', sha256 = '', copy = '', refiling = 0, server = null, experiment = null } = run;
  const id =
    filedAs(db, sent, own) ??
    db.value<number>`SELECT id FROM runs WHERE server = ${server} AND experiment = ${experiment}` ??
    db.value<number>`
      SELECT id FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256} AND copy = ${copy}
        AND refiling = ${refiling}`;
  return id === undefined
    ? undefined
    : db.row<Known>`SELECT id, sha256, parked, server, experiment, step FROM runs WHERE id = ${id}`;
}

/** `isSecond`: of two filings of one content. */
function insert(db: Connection, whole: WholeRun, isSecond: boolean): number {
  const id = (db.value<number>`SELECT max(id) FROM runs` ?? 0) + 1;
  const refiling = Number(whole.run['refiling']) + Number(isSecond);
  putWholeRun(db, id, { ...whole, run: withFreeReference(db, { ...whole.run, refiling }, isSecond) });
  return id;
}

/** Two members can have equal files at equal paths, each of which is a run of its own. */
function withFreeReference(db: Connection, run: Row, isSecond: boolean): Row {
  const isFree = (reference: string): boolean => !db.exists`SELECT 1 FROM runs WHERE reference = ${reference}`;
  const isNamed = !isSecond && !String(run['sha256']).startsWith(STAND_IN);
  if (isNamed && isFree(String(run['reference']))) return run;
  const text = (column: string): string => String(run[column]);
  const content = { instrument: text('instrument'), sha256: text('sha256'), copy: text('copy') };
  for (let refiling = Number(run['refiling']); ; refiling++) {
    const reference = referenceOf({ ...content, refiling });
    const isTaken = db.exists`
      SELECT 1 FROM runs WHERE instrument = ${content.instrument} AND sha256 = ${content.sha256}
        AND copy = ${content.copy} AND refiling = ${refiling}`;
    if (isFree(reference) && !isTaken) return { ...run, reference, refiling };
  }
}

/** Both stay in the journal, so that nothing is filed for a third time, and neither is changed. */
function hold(db: Connection, id: number, experiment: number, known: Known, at: number): void {
  const reason = `experiment ${experiment} has the same file as experiment ${known.experiment} of run ${known.id}: two machines filed it before they shared a journal\n  → delete one of the experiments if you do not need both, then: labfeed ignore ${id}`;
  db.run`UPDATE runs SET parked = 'held', failure = 'conflict', reason = ${reason}, updated_at = ${at} WHERE id = ${id}`;
  addHistory(db, id, at, 'filedTwice', { experiment, with: known.id, reason });
}

/** The paths of a member's files have its name, and its generations have numbers of their own. */
function toFleet(whole: WholeRun, { name, member }: Sent, fleet: string): WholeRun {
  const generation = (id: Row[string] | undefined): number => fleetGeneration(member, Number(id));
  const { run, rows } = whole;
  const mapped = Object.entries(rows).map(([table, found]) => [
    table,
    found.map((row) => ({
      ...withPaths(row, (path) => fleetPath(name, path)),
      ...(table === 'growths' && { generation: generation(row['generation']) }),
      // The runs of this list have other numbers here. Set when those runs arrive.
      ...(table === 'versions' && { unread: null }),
      ...(table === 'comments' && run['experiment'] !== null && { intent_at: row['intent_at'] ?? 0 }),
      ...(table === 'attachments' && row['upload'] === 0 && LOOKED_FOR),
      // What is filed from now on is recognised as the fleet's.
      ...(table === 'drafts' && run['step'] === 'pending' && { body: withJournalId(String(row['body']), fleet) }),
    })),
  ]);
  const sha256 = ofMemberIfUnread(String(run['sha256']), name);
  return {
    ...whole,
    run: { ...withPaths(run, (path) => fleetPath(name, path)), sha256 },
    rows: Object.fromEntries(mapped) as WholeRun['rows'],
    generation: whole.generation && { ...whole.generation, id: generation(whole.generation['id']) },
  };
}

/** The database had it: whether the notebook has it is not known here. */
const LOOKED_FOR = { upload: null, intent_at: 0, due_at: 0 };

const withPaths = (row: Row, change: (path: string) => string): Row =>
  Object.fromEntries(
    Object.entries(row).map(([column, cell]) => {
      const isPath = (column === 'path' || column === 'copy') && typeof cell === 'string';
      return [column, isPath && cell !== '' && !cell.startsWith(ERASED) ? change(cell) : cell];
    }),
  );

/**
 * Within a commit. A member leaves: its runs that are not done, or whose files are not attached yet, leave with it, so that
 * the fleet can neither send them nor decide about them. One that another member has, too, stays. False while one of them is
 * being sent.
 */
export function takeLeave({ member, name }: Sent, { store }: LeadingJournal): boolean {
  const { db, claimed, attaching } = store;
  const open = db.values<number>`
    SELECT id FROM runs WHERE (step <> 'done' OR parked IS NOT NULL OR EXISTS (SELECT 1 FROM attachments WHERE run = runs.id
        AND upload IS NULL AND refused = 0)) AND id IN (${ofMember(member, name)})
      AND NOT EXISTS (SELECT 1 FROM origins WHERE filed = runs.id AND member <> ${member})`;
  const isSent = (id: number) => claimed.has(id) || attaching.has(id);
  const leaving = open
    .filter((id) => !isSent(id))
    .map((id) => ({ id, own: ownOf(db, member, id), whole: readOwn(db, member, id) }));
  for (const { id, own, whole } of leaving) {
    db.run`INSERT OR REPLACE INTO departures (member, run, whole) VALUES (${member}, ${own}, ${JSON.stringify(whole)})`;
    db.run`DELETE FROM runs WHERE id = ${id}`;
    db.run`DELETE FROM origins WHERE filed = ${id}`;
  }
  return !open.some(isSent);
}

/** The runs of a member: its own, and those that people had filed again from its files. */
const ofMember = (member: number, name: string) => ({
  text: `SELECT filed FROM origins WHERE member = ? UNION
    SELECT id FROM runs AS other WHERE substr(path, 1, ?) = ? AND NOT EXISTS (SELECT 1 FROM origins WHERE filed = other.id)`,
  values: [member, name.length + 1, `${name}:`],
});

/** Its number in the journal of the member; negative if it has none there. */
const ownOf = (db: Connection, member: number, id: number): number =>
  db.value<number>`SELECT run FROM origins WHERE member = ${member} AND filed = ${id}` ?? -id;

function readOwn(db: Connection, member: number, id: number): WholeRun | undefined {
  const whole = readWholeRun(db, id);
  const versions = whole?.rows['versions']?.map((row) => {
    const unread = row['unread'] ? ownOf(db, member, Number(row['unread'])) : 0;
    return { ...row, unread: unread > 0 ? unread : null };
  });
  return whole && { ...whole, own: ownOf(db, member, id), rows: { ...whole.rows, ...(versions && { versions }) } };
}

/**
 * What a member that left takes along, from a working copy: under its own numbers, paths and generations. `isShared`:
 * another member has the file, too, and the fleet delivers the run.
 */
export function* readDepartures(copy: Connection, member: number, name: string): Generator<Departed> {
  const filed = copy.values<number>`SELECT id FROM runs WHERE id IN (${ofMember(member, name)}) ORDER BY id`;
  for (const id of filed) {
    const whole = readOwn(copy, member, id);
    const isShared = whole?.run['step'] !== 'done' || whole.run['parked'] !== null;
    if (whole) yield { ...fromFleet(attachedByFleet(whole), member, name), isShared };
  }
  for (const whole of copy.values<string>`SELECT whole FROM departures WHERE member = ${member} ORDER BY run`)
    yield { ...fromFleet(JSON.parse(whole) as WholeRun, member, name), isShared: false };
}

export type Departed = WholeRun & { readonly isShared: boolean };

/** The files of a run that stays with the fleet are not attached again. */
function attachedByFleet(whole: WholeRun): WholeRun {
  const attachments = whole.rows['attachments']?.map((row) =>
    row['upload'] === null && row['refused'] === 0 ? { ...row, upload: 0, due_at: null } : row,
  );
  return attachments ? { ...whole, rows: { ...whole.rows, attachments } } : whole;
}

function fromFleet(whole: WholeRun, member: number, name: string): WholeRun {
  const own = (path: string): string => (path.startsWith(`${name}:`) ? path.slice(name.length + 1) : path);
  const generation = (id: Row[string] | undefined): number => Number(id) - member * GENERATIONS;
  const rows = Object.entries(whole.rows).map(([table, found]) => [
    table,
    found.map((row) => ({
      ...withPaths(row, own),
      ...(table === 'growths' && { generation: generation(row['generation']) }),
    })),
  ]);
  return {
    ...whole,
    run: withPaths(whole.run, own),
    rows: Object.fromEntries(rows) as WholeRun['rows'],
    generation: whole.generation && { ...whole.generation, id: generation(whole.generation['id']) },
  };
}
