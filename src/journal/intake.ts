import { type Backfill, type Existing, skipBeforeNs } from '../config/schema.js';
import { ERASED, erasedCopy, erasedPath } from '../markers.js';
import { type DiskFile, type FoundFile, filesOf, type IdentifiedFile } from '../model.js';
import type { ContentKey, Taken, UnreadRun } from '../outbox.js';
import type { SeenFolder } from '../system/mounts.js';
import { type Connection, raw } from './database.js';
import type { Store } from './store.js';

interface Backlog {
  readonly files: number;
  /** How many of them are to be filed; the others are skipped. */
  readonly toFile: number;
}

export interface SourceFile {
  readonly path: string;
  readonly size: number;
  /** When it was modified, in nanoseconds; undefined if that is unknown. */
  readonly mtimeNs?: bigint | undefined;
}

/** Of a folder with more files than this, the others are not checked. */
const MAX_SOURCES = 100;

/**
 * The intake half of the journal: which files of this machine's folders were seen, and what became of them. It knows
 * runs only by their content, so that the outbox may be elsewhere. Losing an entry costs one hash of the file.
 */
export type IntakeJournal = ReturnType<typeof createIntakeJournal>;

export function createIntakeJournal(store: Store) {
  const { db, commit, now } = store;
  /** Paths that are remembered with the next commit. */
  const pending = new Set<string>();
  const flushIfPending = (file: FoundFile): void => {
    if (filesOf(file).some(({ path }) => pending.has(path))) store.flush();
  };
  return {
    /**
     * Those of these files that are new or whose size, time or inode has changed, and of the others that were taken,
     * those to be hashed again. `isRechecked`: whether to do so, given that only the time of change differs or nothing.
     */
    async unknown(
      instrument: string,
      files: readonly FoundFile[],
      isRechecked: (isTouched: boolean) => boolean = (isTouched) => isTouched,
    ) {
      files.forEach(flushIfPending);
      // Within one transaction, the lookups of a batch cost half as much.
      db.run`BEGIN`;
      try {
        const known = knownAlike(db, instrument, files);
        if (known) return known === 'taken' ? files.filter(() => isRechecked(false)) : [];
        const near = readNear(db, instrument, files);
        return files.filter((file) => !isKnown(db, instrument, file, near.get(file.path), isRechecked));
      } finally {
        db.run`COMMIT`;
      }
    },
    /** Whether a run with other content was taken from there before. */
    async wasTaken(instrument: string, file: IdentifiedFile) {
      flushIfPending(file);
      return filesOf(file)
        .flatMap(({ path }) => [path, erasedPath(instrument, path)])
        .some((path) => wasTakenWithOtherBytes(db, instrument, path, file.sha256));
    },
    /** What was last taken from there. */
    async lastTaken(instrument: string, file: FoundFile): Promise<ContentKey | undefined> {
      flushIfPending(file);
      for (const { path } of filesOf(file)) {
        const taken = takenFrom(db, instrument, path);
        if (taken) return taken;
      }
      return undefined;
    },
    /** The run that these files are the rest of: unchanged since it was taken, but fewer. */
    async partOf(instrument: string, file: FoundFile) {
      flushIfPending(file);
      return file.parts && findRest(db, instrument, file.parts);
    },
    /** To be called after the outbox has the run. Not awaited: after a crash the file is hashed again. */
    remember(instrument: string, file: FoundFile, taken: Taken): void {
      for (const { path } of filesOf(file)) pending.add(path);
      store.writeLater(() => {
        for (const { path } of filesOf(file)) pending.delete(path);
        remember(db, instrument, file, taken);
      });
    },
    skip: (instrument: string, files: readonly FoundFile[]) =>
      commit(() => {
        for (const file of files.flatMap(filesOf)) skip(db, instrument, file);
      }),
    /** Marks the files of these runs to be hashed again, and returns how many there are. */
    recheck: (instrument: string, runs: readonly UnreadRun[]) =>
      commit(() => runs.reduce((sum, run) => sum + recheck(db, instrument, run), 0)),
    /** The same for other files with this content, which the run of this file no longer has. */
    async recheckCopies(instrument: string, file: FoundFile, content: ContentKey): Promise<void> {
      store.flush();
      const own = new Set(filesOf(file).map(({ path }) => path));
      const copies = pathsOf(db, instrument, content).filter((path) => !own.has(path));
      if (copies.length === 0) return;
      await commit(() => {
        for (const path of copies)
          db.run`UPDATE files SET mtime_ns = -1 WHERE instrument = ${instrument} AND path = ${path}`;
      });
    },
    /** When the instrument's folder was first listed completely. */
    firstScanAt: async (instrument: string) =>
      db.value<number>`SELECT first_scan_at AS at FROM instruments WHERE name = ${instrument}`,
    /** To be called only after a complete listing: an unavailable share looks like an empty folder. */
    endFirstScan: (instrument: string) =>
      commit(() => {
        db.run`
          INSERT INTO instruments (name, first_scan_at, backlog)
            VALUES (${instrument}, ${now()}, (SELECT count(*) FROM files WHERE instrument = ${instrument}
            AND verdict = 'backlog')) ON CONFLICT (name) DO UPDATE SET backlog = excluded.backlog`;
      }),
    async lastSeen(folder: string): Promise<SeenFolder | undefined> {
      const [row] = db.rows<{ point: string; empty: number }>`SELECT point, empty FROM folders WHERE path = ${folder}`;
      return row && { point: row.point, isEmpty: row.empty === 1 };
    },
    see: (folder: string, { point, isEmpty }: SeenFolder): Promise<void> =>
      commit(() => {
        db.run`INSERT OR REPLACE INTO folders (path, point, empty) VALUES (${folder}, ${point}, ${Number(isEmpty)})`;
      }),
    /** Holds these files until a person or the configuration decides about the backlog. */
    holdBacklog: (instrument: string, files: readonly FoundFile[]) =>
      commit(() => {
        for (const file of files.flatMap(filesOf)) put(db, instrument, file, 'backlog', { sha256: null, copy: '' });
      }),
    /** The number of files that are held, by instrument. */
    async backlogs(): Promise<ReadonlyMap<string, number>> {
      const rows = db.rows<{ name: string; backlog: number }>`
        SELECT name, backlog FROM instruments WHERE backlog > 0`;
      return new Map(rows.map((row) => [row.name, row.backlog]));
    },
    /** What `decideBacklog` would do. */
    countBacklog: async (instrument: string, existing: Backfill) => countBacklog(db, instrument, existing),
    decideBacklog: (instrument: string, existing: Existing) => commit(() => decideBacklog(db, instrument, existing)),
    /** The same for a decision of a person, who can undo what was skipped. */
    backfill: (instrument: string, existing: Backfill) =>
      commit(() => (existing === 'undo' ? undoSkip(db, instrument) : decideBacklog(db, instrument, existing, now()))),
    /** The paths where this content was seen. */
    async pathsOf(instrument: string, content: ContentKey) {
      store.flush();
      return pathsOf(db, instrument, content);
    },
    /** The files of a run that was taken from this path: the file itself, or those in the folder. */
    async sourcesOf(instrument: string, { sha256, copy }: ContentKey, path: string): Promise<SourceFile[]> {
      store.flush();
      // As text, because JavaScript's numbers cannot hold nanoseconds.
      const rows = db.rows<{ path: string; size: number; mtimeNs: string }>`
        SELECT path, size, CAST(mtime_ns AS TEXT) AS mtimeNs FROM files WHERE instrument = ${instrument}
          AND sha256 = ${sha256} AND copy = ${copy} AND (path = ${path} OR path > ${path} || '/'
          AND path < ${path} || '0') ORDER BY path LIMIT ${MAX_SOURCES} + 0`;
      return rows.map(({ mtimeNs, ...file }) => ({ ...file, mtimeNs: mtimeNs === '-1' ? undefined : BigInt(mtimeNs) }));
    },
    /** Replaces the names of this content's files, so that they can be recognised but not read. */
    erase: (instrument: string, content: ContentKey) => commit(() => eraseNames(db, instrument, content)),
  };
}

/** Some file systems number inodes beyond SQLite's signed integers; only equality matters. */
export const signed = (inode: bigint): bigint => BigInt.asIntN(64, inode);

function put(
  db: Connection,
  instrument: string,
  { path, size, mtimeNs, ctimeNs = null, inode }: StoredFile,
  verdict: 'taken' | 'backlog',
  { sha256, copy }: { readonly sha256: string | null; readonly copy: string },
): void {
  db.run`
    INSERT OR REPLACE INTO files
      VALUES (${instrument}, ${path}, ${size}, ${mtimeNs}, ${signed(inode)}, ${verdict}, ${sha256}, ${copy},
        ${ctimeNs}, NULL)`;
}

/** A run that was taken from there before is not forgotten. */
function skip(db: Connection, instrument: string, { path, size, mtimeNs, ctimeNs = null, inode }: StoredFile): void {
  db.run`
    INSERT INTO files
      VALUES (${instrument}, ${path}, ${size}, ${mtimeNs}, ${signed(inode)}, 'skipped', NULL, '',
        ${ctimeNs}, NULL) ON CONFLICT
      (instrument, path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, inode =
      excluded.inode, ctime_ns = excluded.ctime_ns, verdict = iif(verdict = 'taken', 'taken', 'skipped')`;
}

interface SeenFile {
  readonly path: string;
  /** See `stampOf`. */
  readonly stamp: string;
  readonly ctimeNs: string | null;
  readonly isTaken: number;
}

const stampOf = ({ size, mtimeNs, inode }: StoredFile): string => `${size} ${mtimeNs} ${signed(inode)}`;

/** Batches of fewer files are looked up one by one. */
const MIN_NEAR = 50;

/** The first and the last name. */
function rangeOf(files: readonly StoredFile[]): { readonly first: string; readonly last: string } {
  let first = files[0]?.path ?? '';
  let last = first;
  for (const { path } of files) {
    if (path < first) first = path;
    else if (path > last) last = path;
  }
  return { first, last };
}

/**
 * Whether all of these files were taken, or none was, if they are exactly those known from the first name to the last
 * and none has changed. This is true of most batches of a scan. One long text is compared, which takes a third of the time
 * of reading rows. No path contains `//`.
 */
function knownAlike(
  db: Connection,
  instrument: string,
  files: readonly StoredFile[],
): 'taken' | 'not taken' | undefined {
  if (files.length < MIN_NEAR) return undefined;
  const { first, last } = rangeOf(files);
  const known = db.row<{ text: string | null; taken: number | null }>`
    SELECT group_concat(path || '//' || size || ' ' || mtime_ns || ' ' || inode || ' ' || ctime_ns, '//') AS text,
      sum(verdict = 'taken') AS taken FROM (SELECT * FROM files WHERE instrument = ${instrument}
      AND path BETWEEN ${first} AND ${last} LIMIT ${files.length + 1} + 0)`;
  if (known?.text !== files.map((file) => `${file.path}//${stampOf(file)} ${file.ctimeNs}`).join('//'))
    return undefined;
  if (known.taken === files.length) return 'taken';
  return known.taken === 0 ? 'not taken' : undefined;
}

/**
 * What is known of the names from the first to the last of these: a scan lists a folder in this order, and one read of
 * its rows costs a quarter of as many lookups. Empty if there are many more, such as those of files that were removed.
 */
function readNear(db: Connection, instrument: string, files: readonly StoredFile[]): ReadonlyMap<string, SeenFile> {
  const near = new Map<string, SeenFile>();
  if (files.length < MIN_NEAR) return near;
  const { first, last } = rangeOf(files);
  const most = 2 * files.length;
  const rows = db.rows<SeenFile>`
    SELECT path, size || ' ' || mtime_ns || ' ' || inode AS stamp, CAST(ctime_ns AS TEXT) AS ctimeNs,
      verdict = 'taken' AS isTaken FROM files WHERE instrument = ${instrument}
      AND path BETWEEN ${first} AND ${last} LIMIT ${most + 1} + 0`;
  if (rows.length <= most) for (const row of rows) near.set(row.path, row);
  return near;
}

function isKnown(
  db: Connection,
  instrument: string,
  file: StoredFile,
  near: SeenFile | undefined,
  isRechecked: (isTouched: boolean) => boolean,
): boolean {
  const { ctimeNs = null } = file;
  const known = near?.stamp === stampOf(file) ? near : findSeen(db, instrument, file);
  if (!known) return false;
  // A skipped file has no fingerprint to compare: that its attributes change is no reason to file it.
  if (known.isTaken === 0) return true;
  if (known.ctimeNs === null && ctimeNs !== null)
    db.run`UPDATE files SET ctime_ns = ${ctimeNs} WHERE instrument = ${instrument} AND path = ${known.path}`;
  return !isRechecked(known.ctimeNs !== null && ctimeNs !== null && known.ctimeNs !== String(ctimeNs));
}

const findSeen = (
  db: Connection,
  instrument: string,
  { path, size, mtimeNs, inode }: StoredFile,
): SeenFile | undefined =>
  db.row<SeenFile>`
    SELECT path, '' AS stamp, CAST(ctime_ns AS TEXT) AS ctimeNs, verdict = 'taken' AS isTaken
      FROM files WHERE instrument = ${instrument} AND path IN (${path}, ${erasedPath(instrument, path)})
      AND size = ${size} AND mtime_ns = ${mtimeNs} AND inode = ${signed(inode)} LIMIT 1`;

type StoredFile = Omit<DiskFile, 'ctimeNs'> & { readonly ctimeNs?: bigint | null };

const takenFrom = (db: Connection, instrument: string, path: string): ContentKey | undefined =>
  db.row<ContentKey>`
    SELECT sha256, copy FROM files WHERE instrument = ${instrument} AND path = ${path} AND verdict = 'taken'
      AND sha256 IS NOT NULL`;

const wasTakenWithOtherBytes = (db: Connection, instrument: string, path: string, sha256: string): boolean =>
  db.exists`
    SELECT 1 FROM files WHERE instrument = ${instrument} AND path = ${path} AND verdict = 'taken'
      AND sha256 <> ${sha256}`;

function findRest(db: Connection, instrument: string, parts: readonly DiskFile[]): ContentKey | undefined {
  // A file that is to be hashed again has no stored time, so only size and inode are compared.
  const contents = parts.map(
    ({ path, size, inode, mtimeNs }) => db.row<ContentKey>`
      SELECT sha256, copy FROM files WHERE instrument = ${instrument}
        AND path IN (${path}, ${erasedPath(instrument, path)}) AND size = ${size} AND inode = ${signed(inode)}
        AND mtime_ns IN (${mtimeNs}, -1) AND sha256 IS NOT NULL`,
  );
  const [first] = contents;
  if (first === undefined) return undefined;
  if (!contents.every((one) => one?.sha256 === first.sha256 && one.copy === first.copy)) return undefined;
  const files = db.value<number>`
    SELECT count(*) FROM files WHERE instrument = ${instrument} AND sha256 = ${first.sha256}
      AND copy = ${first.copy}`;
  return parts.length < (files ?? 0) ? first : undefined;
}

function remember(db: Connection, instrument: string, file: FoundFile, taken: Taken): void {
  for (const part of filesOf(file)) {
    const path = taken.isErased ? erasedPath(instrument, part.path) : part.path;
    put(db, instrument, { ...part, path }, 'taken', taken);
  }
}

function recheck(db: Connection, instrument: string, { sha256, copy, path }: UnreadRun): number {
  const byContent = db.run`
    UPDATE files SET mtime_ns = -1 WHERE sha256 = ${sha256} AND instrument = ${instrument} AND copy = ${copy}
      AND mtime_ns <> -1`;
  if (path === undefined) return byContent.changes;
  const byPath = db.run`
    UPDATE files SET mtime_ns = -1 WHERE instrument = ${instrument} AND (path = ${path} OR path > ${path} || '/'
      AND path < ${path} || '0') AND mtime_ns <> -1 AND verdict <> 'backlog'`;
  return byContent.changes + byPath.changes;
}

function countBacklog(db: Connection, instrument: string, existing: Backfill): Backlog {
  if (existing === 'undo') {
    const files = db.value<number>`
      SELECT count(*) FROM files WHERE instrument = ${instrument} AND skipped_at IS NOT NULL AND verdict = 'skipped'`;
    return { files: files ?? 0, toFile: 0 };
  }
  return (
    db.row<Backlog>`
      SELECT count(*) AS files, ifnull(sum(mtime_ns >= ${skipBeforeNs(existing)}), 0) AS toFile
        FROM files INDEXED BY files_backlog WHERE instrument = ${instrument} AND verdict = 'backlog'` ?? {
      files: 0,
      toFile: 0,
    }
  );
}

function undoSkip(db: Connection, instrument: string): Backlog {
  const { changes } = db.run`
    UPDATE files SET verdict = 'backlog', skipped_at = NULL WHERE instrument = ${instrument} AND skipped_at IS NOT NULL
      AND verdict = 'skipped'`;
  db.run`UPDATE instruments SET backlog = backlog + ${changes} WHERE name = ${instrument}`;
  return { files: changes, toFile: 0 };
}

/** `at`: when a person decided; null if the configuration did. */
function decideBacklog(db: Connection, instrument: string, existing: Existing, at: number | null = null): Backlog {
  const backlog = countBacklog(db, instrument, existing);
  if (backlog.files === 0) return backlog;
  db.run`
    UPDATE files SET verdict = 'skipped', skipped_at = ${at} WHERE instrument = ${instrument} AND verdict = 'backlog'
      AND mtime_ns < ${skipBeforeNs(existing)}`;
  // What is forgotten is found as new by the next scan.
  db.run`DELETE FROM files WHERE instrument = ${instrument} AND verdict = 'backlog'`;
  db.run`UPDATE instruments SET backlog = 0 WHERE name = ${instrument}`;
  return backlog;
}

export function pathsOf(db: Connection, instrument: string, { sha256, copy }: ContentKey): string[] {
  return db.values<string>`
    SELECT path FROM files WHERE sha256 = ${sha256} AND instrument = ${instrument} AND copy = ${copy}
      AND ${raw(READABLE)} ORDER BY path`;
}

/** As SQL: whether a path can be read. */
export const READABLE = `path NOT GLOB '${ERASED}*'`;

/** After a crash the content may be named by the stand-in of its copy, while files still have the path. */
function eraseNames(db: Connection, instrument: string, content: ContentKey): void {
  const copy = erasedCopy({ instrument, ...content });
  const rows = db.rows<{ path: string; copy: string }>`
    SELECT path, copy FROM files WHERE sha256 = ${content.sha256} AND instrument = ${instrument}
      AND ${raw(READABLE)}`;
  for (const row of rows) {
    if (erasedCopy({ instrument, sha256: content.sha256, copy: row.copy }) !== copy) continue;
    db.run`
      UPDATE OR REPLACE files SET path = ${erasedPath(instrument, row.path)}, copy = ${copy}
        WHERE instrument = ${instrument} AND path = ${row.path}`;
  }
}
