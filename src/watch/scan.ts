import { isUtf8 } from 'node:buffer';
import type { BigIntStats } from 'node:fs';
import { posix } from 'node:path';
import { isForbidden, systemCode } from '../errors.js';
import type { FoundFile } from '../model.js';
import { entriesOf, type FolderEntry, statAll } from '../system/disk.js';
import { folderIdentity, isAbsent, reasonOf, stampOf } from './identify.js';
import { type Matcher, PRIVATE_PREFIX } from './match.js';

/** Maximum number of files in one batch. The listing pauses while the receiver processes a batch. */
const BATCH = 500;

/**
 * Folders read in parallel, as long as they are small: 10,000 of them take half the time they take one by one. The names
 * of large folders are not all kept in memory at once.
 */
const PARALLEL_FOLDERS = 32;
const LARGE = 1000;

/** A name in a folder, before its kind is known. */
export interface Candidate {
  /** For display. */
  readonly path: string;
  readonly location: string | Buffer;
  /** Relative to the watched folder, with `/` as separator. */
  readonly relative: string;
  /** Whether the matcher takes it, if that is known already. */
  readonly isTaken?: boolean;
}

export interface Folder extends Candidate {
  /** Differs if another folder takes the same name. */
  readonly id: string;
  /** Changes with each file that is created, renamed or removed in it. */
  readonly mtimeNs?: bigint;
}

/** A path that may exist but cannot be read. */
export interface Unread {
  readonly path: string;
  readonly reason: string;
  /** This user has no permission, as with `lost+found`. Waiting does not help. */
  readonly forbidden: boolean;
}

/** The outcome of a listing. */
export type Listing =
  | {
      readonly state: 'present';
      readonly files: number;
      /** Whether the folder contained nothing at all, not even files that do not match. */
      readonly empty: boolean;
      /** If there are any, files that were not listed may still exist. */
      readonly unread: readonly Unread[];
      /** Linked folders, which are not followed. */
      readonly links: readonly string[];
    }
  | { readonly state: 'missing' | 'unreadable'; readonly reason: string };

export interface ListOptions {
  readonly matcher: Matcher;
  readonly signal: AbortSignal;
  /** Start at this folder, relative to the watched one. */
  readonly under?: string;
  /** The location of that folder, if its name is not UTF-8. */
  readonly location?: string | Buffer;
  /** Called before a folder is read, so that a watch set here misses nothing. Returns false to skip the folder. */
  readonly enter?: (folder: Folder) => Promise<boolean>;
  /** Called for each file that matches no glob. */
  readonly unmatched?: ((path: string) => void) | undefined;
  /** Called for each file with a private name. */
  readonly hidden?: ((location: string | Buffer) => void) | undefined;
}

/**
 * Lists the matching files of a folder and its subfolders in batches, and returns the outcome.
 * Follows linked files but not linked folders: those can form cycles or lead to the whole disk.
 */
export async function* list(root: string, options: ListOptions): AsyncGenerator<FoundFile[], Listing> {
  const { matcher, signal, under = '', enter, unmatched, hidden } = options;
  const path = under === '' ? root : `${root}/${under}`;
  const folders: Candidate[] = [{ path, location: options.location ?? path, relative: under }];
  const unread: Unread[] = [];
  const links: string[] = [];
  let candidates: Candidate[] = [];
  let batch: FoundFile[] = [];
  let files = 0;
  let empty = true;
  let atOnce = 1;

  async function statCollected(): Promise<void> {
    const found = await statCandidates(candidates, matcher.takes);
    signal.throwIfAborted();
    candidates = [];
    batch.push(...found.files);
    unread.push(...found.unread);
    links.push(...found.folders.map((link) => link.path));
    files += found.files.length;
  }

  while (folders.length > 0) {
    let names = 0;
    for (const { folder, entries } of await readSome(folders, atOnce, enter)) {
      signal.throwIfAborted();
      if (entries instanceof Error) {
        if (folder.relative === under) return failure(entries);
        if (!isAbsent(entries)) unread.push(unreadOf(folder.path, entries));
        continue;
      }
      empty &&= entries.length === 0;
      names += entries.length;
      for (const entry of entries) {
        sortEntry(folder, toEntry(entry), matcher, { candidates, folders, unmatched, hidden });
        if (candidates.length >= BATCH) await statCollected();
        if (batch.length < BATCH) continue;
        yield batch.slice(0, BATCH);
        batch = batch.slice(BATCH);
      }
    }
    atOnce = names > LARGE ? 1 : Math.min(2 * atOnce, PARALLEL_FOLDERS);
  }
  if (candidates.length > 0) await statCollected();
  if (batch.length > 0) yield batch;
  return { state: 'present', files, empty, unread, links };
}

function failure(error: Error): Listing {
  return { state: systemCode(error) === 'ENOENT' ? 'missing' : 'unreadable', reason: reasonOf(error) };
}

/** Removes some folders from the list and reads them in parallel. */
async function readSome(
  folders: Candidate[],
  max: number,
  enter: ListOptions['enter'],
): Promise<{ readonly folder: Candidate; readonly entries: readonly Listed[] | Error }[]> {
  const some = folders.splice(-max);
  const stats = enter ? await statAll(some.map(({ location }) => location)) : [];
  return Promise.all(
    some.map(async (folder, index) => ({ folder, entries: await readFolder(folder, stats[index], enter) })),
  );
}

async function readFolder(
  folder: Candidate,
  stats: BigIntStats | Error | undefined,
  enter: ListOptions['enter'],
): Promise<readonly Listed[] | Error> {
  if (stats instanceof Error) return stats;
  try {
    if (stats && enter && !(await enter({ ...folder, id: folderIdentity(stats), mtimeNs: stats.mtimeNs }))) return [];
    return await folderEntries(folder.location);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Sorts an entry into files to stat and folders to list. Only stat shows whether a link is a file or a folder. */
function sortEntry(
  folder: Candidate,
  entry: Entry,
  matcher: Matcher,
  into: {
    readonly candidates: Candidate[];
    readonly folders: Candidate[];
    readonly unmatched: ListOptions['unmatched'];
    readonly hidden: ListOptions['hidden'];
  },
): void {
  const relative = folder.relative === '' ? entry.name : `${folder.relative}/${entry.name}`;
  const isFile = entry.kind === 'file' && matcher.takes(relative);
  const isFolder = entry.kind === 'folder' && !matcher.prunes(relative);
  const isLink = entry.kind === 'link' && (matcher.takes(relative) || !matcher.prunes(relative));
  if (!isFile && !isFolder && !isLink) {
    if (entry.kind === 'file' && matcher.misses(relative)) into.unmatched?.(`${folder.path}/${entry.name}`);
    if (entry.name.startsWith(PRIVATE_PREFIX) && entry.kind === 'file')
      into.hidden?.(locationOf(folder.location, entry));
    return;
  }
  const location = locationOf(folder.location, entry);
  const path = typeof location === 'string' ? location : `${folder.path}/${entry.name}`;
  if (isFolder) into.folders.push({ path, location, relative });
  else into.candidates.push(isFile ? { path, location, relative, isTaken: true } : { path, location, relative });
}

/** Stats each candidate once. Returns the files that `takes` accepts, all folders, and what has disappeared. */
export async function statCandidates(candidates: readonly Candidate[], takes: (relative: string) => boolean) {
  const files: FoundFile[] = [];
  const folders: Folder[] = [];
  const absent: Candidate[] = [];
  const unread: Unread[] = [];
  const results = await statAll(candidates.map(({ location }) => location));
  candidates.forEach((candidate, index) => {
    const stats = results[index];
    if (stats === undefined) return;
    if (stats instanceof Error) {
      if (isAbsent(stats)) absent.push(candidate);
      else unread.push(unreadOf(candidate.path, stats));
    } else if (stats.isDirectory()) {
      folders.push({ ...candidate, id: folderIdentity(stats) });
    } else if (stats.isFile() && (candidate.isTaken ?? takes(candidate.relative))) {
      files.push(Object.assign(stampOf(stats), { path: candidate.path, location: candidate.location }));
    }
  });
  return { files, folders, absent, unread };
}

const unreadOf = (path: string, error: unknown): Unread => ({
  path,
  reason: reasonOf(error),
  forbidden: isForbidden(systemCode(error)),
});

interface Entry {
  /** For display. Bytes that are not UTF-8 are written as `\xNN`. */
  readonly name: string;
  /** Set if the name is not UTF-8. */
  readonly bytes?: Buffer;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** Of most files only the name is kept: objects for all files of a large folder would make the heap grow. */
type Listed = string | FolderEntry;

const listedName = (listed: Listed): string | Buffer => (typeof listed === 'string' ? listed : listed.name);

/** In the order of their names, in which the journal can be read fastest. The list is changed in place. */
async function folderEntries(location: string | Buffer): Promise<Listed[]> {
  const entries: Listed[] = await entriesOf(location);
  for (const [index, entry] of entries.entries())
    if (typeof entry !== 'string' && typeof entry.name === 'string' && entry.isFile()) entries[index] = entry.name;
  return entries.sort((a, b) => (listedName(a) < listedName(b) ? -1 : 1));
}

function toEntry(listed: Listed): Entry {
  if (typeof listed === 'string') return { name: listed, kind: 'file' };
  const { name } = listed;
  if (typeof name === 'string') return { name, kind: kindOf(listed) };
  return isUtf8(name)
    ? { name: name.toString(), kind: kindOf(listed) }
    : { name: displayName(name), bytes: name, kind: kindOf(listed) };
}

/** Below a folder whose location is bytes, all locations are bytes. */
function locationOf(folder: string | Buffer, { name, bytes }: Entry): string | Buffer {
  if (typeof folder === 'string' && bytes === undefined) {
    return folder.endsWith('/') ? folder + name : `${folder}/${name}`;
  }
  return Buffer.concat([Buffer.from(folder), Buffer.from('/'), bytes ?? Buffer.from(name)]);
}

function kindOf(entry: FolderEntry): Entry['kind'] {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

/** Decodes UTF-8 and writes other bytes as `\xNN`. */
export function displayName(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((n) => at + n <= bytes.length && isUtf8(bytes.subarray(at, at + n)));
    text += length
      ? bytes.toString('utf8', at, at + length)
      : `\\x${(bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, '0')}`;
    at += length ?? 1;
  }
  return text;
}

/** Files with one extension (`.csv`) that match no glob. */
interface UnmatchedFiles {
  readonly files: number;
  /** The last one by name. If names start with a date or a number, this is the newest. */
  readonly example: string;
}

/** The unmatched files of one listing, by extension: there are too many names to keep. */
export type Unmatched = ReadonlyMap<string, UnmatchedFiles>;

/** A name can end in anything: further extensions are counted together. */
const MAX_EXTENSIONS = 50;
const OTHER_EXTENSIONS = '*';

export function addUnmatched(counts: Map<string, UnmatchedFiles>, path: string): void {
  const own = posix.extname(path).toLowerCase();
  const extension = counts.has(own) || counts.size < MAX_EXTENSIONS ? own : OTHER_EXTENSIONS;
  const { files, example } = counts.get(extension) ?? { files: 0, example: path };
  counts.set(extension, { files: files + 1, example: path > example ? path : example });
}
