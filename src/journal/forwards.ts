import { explain } from '../errors.js';
import type { Growths, NewBatch } from '../growth.js';
import { STAND_IN } from '../model.js';
import type { NewRun, Outbox, Reading } from '../outbox.js';
import type { NewAttachment } from '../uploads.js';
import type { Connection } from './database.js';
import type { Request } from './decisions.js';
import { append, attach, createGrowths, describeNext, flush, report } from './growths.js';
import { add, move } from './handover.js';
import { hasLeftFrom } from './sources.js';
import type { Store } from './store.js';
import { noteFiled } from './versions.js';

/**
 * The journal of a member of a fleet. It has both halves: intake works as on one machine, whether or not the database of
 * the fleet can be reached. What intake hands over is stored as an operation in the same transaction, and the leader
 * repeats the operations of all members, in the order of each, on the outbox of the fleet.
 */
export type Operation =
  /** `own`: the run in the journal of the member. */
  | { readonly kind: 'add'; readonly own: number; readonly run: SentRun; readonly reading: SentReading }
  | { readonly kind: 'move'; readonly own: number; readonly path: string }
  | { readonly kind: 'append'; readonly own: readonly number[]; readonly batch: SentBatch }
  | { readonly kind: 'flush'; readonly generation: number; readonly isEnd: boolean }
  | { readonly kind: 'report'; readonly generation: number; readonly what: string; readonly isEnd: boolean }
  | { readonly kind: 'attach'; readonly generation: number; readonly files: readonly NewAttachment[] }
  /** A person's decision about a run of the fleet. `own`: its number in the inbox of the member. */
  | { readonly kind: 'request'; readonly own: number; readonly request: Request }
  /** Whether the notebook has what was filed, so that the file may be moved or deleted. */
  | { readonly kind: 'prove'; readonly own: number; readonly sha256: string; readonly isDelete: boolean }
  /** A run that the fleet may not know: filed before this machine joined, or after the last backup of the database. */
  | ({ readonly kind: 'import' } & WholeRun)
  | ({ readonly kind: 'facts' } & JournalFacts)
  /** The machine leaves the fleet, and takes its runs along. */
  | { readonly kind: 'leave' };

/** What the leader needs of a run, as JSON can hold it. */
export interface SentRun extends Omit<NewRun, 'file' | 'sources'> {
  /** The member has moved or deleted the file that was at this path: this one is not a version of it. */
  readonly isSeparate: boolean;
  readonly file: { readonly path: string; readonly size: number; readonly mtimeNs: string; readonly sha256: string };
}

export type SentReading =
  | (Omit<Extract<Reading, { problem?: never }>, 'problem'> & { readonly problem?: never })
  | { readonly draft?: never; readonly problem: string };

interface SentBatch extends Omit<NewBatch, 'tail' | 'parts'> {
  /** In hexadecimal digits. */
  readonly tail: string;
  readonly parts: readonly (Omit<NewBatch['parts'][number], 'run'> & { readonly run: SentRun })[];
}

/** Values by column, as JSON can hold them. */
export type Row = Readonly<Record<string, string | number | null>>;

/** A run with everything that the outbox half knows about it. */
export interface WholeRun {
  readonly own: number;
  readonly run: Row;
  /** By table. */
  readonly rows: Readonly<Record<string, readonly Row[]>>;
  /** How far the outbox has the lines of its growing file. */
  readonly generation: Row | undefined;
  /** The versions of other runs that could not be read, and are quarantined as this run. */
  readonly unread: readonly { readonly own: number; readonly n: number }[];
}

/** What the outbox half knows apart from runs. */
export interface JournalFacts {
  readonly servers: readonly Row[];
  readonly spares: readonly Row[];
  readonly shapes: readonly Row[];
}

function toSentRun({ file, sources: _, ...run }: NewRun, isSeparate = false): SentRun {
  const { path, size, mtimeNs, sha256 } = file;
  return { ...run, file: { path, size, mtimeNs: String(mtimeNs), sha256 }, isSeparate };
}

/** A raw file or a plot that travels with an operation. */
export interface Content {
  readonly sha256: string;
  readonly size: number;
  readonly path?: string;
  readonly kind: 'raw' | 'plot';
}

export function contentsOf(operation: Operation): Content[] {
  const raw = (files: readonly { sha256: string; size: number; path: string; problem?: string }[] = []): Content[] =>
    files.flatMap(({ problem, ...file }) => (problem === undefined ? { ...file, kind: 'raw' as const } : []));
  const plot = (one: { sha256?: string; size?: number } | undefined): Content[] =>
    one?.sha256 === undefined ? [] : [{ sha256: one.sha256, size: one.size ?? 0, kind: 'plot' }];
  if (operation.kind === 'add') return [...raw(operation.run.attachments), ...plot(operation.run.plot as object)];
  if (operation.kind === 'attach') return raw(operation.files);
  if (operation.kind === 'append') return operation.batch.parts.flatMap(({ run }) => plot(run.plot as object));
  if (operation.kind === 'import')
    return (operation.rows['attachments'] ?? []).flatMap(({ sha256, size, path, kind, refused, upload }) => {
      if (refused === 1 || upload || kind === 'surplus') return [];
      const content = { sha256: String(sha256), size: Number(size) };
      return kind === 'plot' ? { ...content, kind } : { ...content, path: String(path), kind: 'raw' as const };
    });
  return [];
}

/** Within a commit. Returns its number. */
export function putForward(db: Connection, operation: Operation): number {
  const id = db.value<number>`INSERT INTO forwards (operation) VALUES (${JSON.stringify(operation)}) RETURNING id` ?? 0;
  for (const { sha256 } of contentsOf(operation)) db.run`INSERT OR IGNORE INTO forwarded VALUES (${sha256}, ${id})`;
  return id;
}

/** The outbox of a member: what intake hands over is forwarded, too. */
export const forwardingOutbox = (store: Store, outbox: Outbox): Outbox => ({
  ...outbox,
  // What the fleet has is the leader's concern.
  overdue: async (before) => (store.db.exists`SELECT 1 FROM forwards` ? outbox.overdue(before) : undefined),
  move: (run, path) =>
    store.commit(() => {
      move(store.db, run, path);
      putForward(store.db, { kind: 'move', own: run, path });
    }),
  add: (run, reading) =>
    store.apply(() => {
      const isSeparate = run.revises !== undefined && hasLeftFrom(store.db, run.instrument, run.file.path);
      const added = add(store, run, reading, store.now());
      if (added.outcome === 'busy' || added.outcome === 'known') return added;
      const { problem, ...read } = reading;
      const sent = problem ? { problem: explain(problem) } : (read as SentReading);
      putForward(store.db, { kind: 'add', own: added.run, run: toSentRun(run, isSeparate), reading: sent });
      return added;
    }),
});

export function forwardingGrowths(store: Store): Growths {
  const { db } = store;
  const forwarded = <T>(change: () => T, operation: (result: T) => Operation | undefined): Promise<T> =>
    store.apply(() => {
      const result = change();
      const sent = operation(result);
      if (sent) putForward(db, sent);
      return result;
    });
  return {
    ...createGrowths(store),
    append: (batch) =>
      forwarded(
        () => append(store, batch, store.now()),
        (appended) => {
          if (appended.blocked !== undefined || appended.added.length === 0) return undefined;
          const parts = batch.parts.map(({ run, ...part }) => ({ ...part, run: toSentRun(run) }));
          const tail = Buffer.from(batch.tail).toString('hex');
          return { kind: 'append', own: appended.added.map(({ run }) => run), batch: { ...batch, tail, parts } };
        },
      ),
    attach: (generation, files) =>
      forwarded(
        () => attach(db, generation, files),
        (isAttached) => (isAttached ? { kind: 'attach', generation, files } : undefined),
      ),
    flush: (generation, isEnd = false) =>
      forwarded(
        () => flush(db, generation, isEnd, true),
        () => ({ kind: 'flush', generation, isEnd }),
      ),
    report: (generation, what, isEnd) =>
      forwarded(
        () => report(db, generation, what, isEnd, store.now()),
        () => ({ kind: 'report', generation, what, isEnd }),
      ),
  };
}

/** What became of a member's run in the fleet. */
export interface FleetState {
  /** In the journal of the member. */
  readonly own: number;
  readonly sha256: string;
  readonly step: string;
  readonly parked: string | null;
  readonly failure: string | null;
  readonly reason: string | null;
  readonly server: string | null;
  readonly experiment: number | null;
  /** Empty: its file is to be read again. */
  readonly mapping: string;
  /** The file of this member that a person wants the run remapped from. */
  readonly remap: string | null;
  readonly isErased: boolean;
}

/**
 * Within a commit. The member shows the state of its run, and disposes of the files of one that is done. Returns the
 * instrument whose folder has files to be read again.
 */
export function takeState({ db, now }: Store, state: FleetState): string | undefined {
  const { own, sha256, parked, failure, reason, server, experiment, remap } = state;
  const known = db.row<{ instrument: string; sha256: string; step: string; mapping: string }>`
    SELECT instrument, sha256, step, mapping FROM runs WHERE id = ${own}`;
  // Its file has changed since: the state of that version follows. A file that was not read has no content.
  if (!known || (known.sha256 !== sha256 && !sha256.startsWith(STAND_IN))) return undefined;
  db.run`UPDATE OR IGNORE runs SET server = ${server}, experiment = ${experiment} WHERE id = ${own}`;
  db.run`
    UPDATE runs SET parked = ${parked}, failure = ${failure}, reason = ${reason}, updated_at = ${now()} WHERE id = ${own}
      AND (parked IS NOT ${parked} OR failure IS NOT ${failure} OR reason IS NOT ${reason})`;
  if (state.step === 'done' && known.step !== 'done') {
    db.run`UPDATE runs SET step = 'done', updated_at = ${now()} WHERE id = ${own}`;
    db.run`DELETE FROM earlier_drafts WHERE run = ${own}`;
    noteFiled(db, own, now());
    describeNext(db, own, true);
  }
  if (parked === 'quarantined' && state.mapping === '' && known.mapping !== '') {
    db.run`UPDATE runs SET mapping = '' WHERE id = ${own}`;
    return known.instrument;
  }
  if (remap === null || db.exists`SELECT 1 FROM remaps WHERE run = ${own}`) return undefined;
  db.run`INSERT INTO remaps (run, instrument, path) VALUES (${own}, ${known.instrument}, ${remap})`;
  return known.instrument;
}
