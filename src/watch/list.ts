import type { BigIntStats } from 'node:fs';
import { systemCode } from '../errors.js';
import type { FoundFile } from '../model.js';
import { type Entry, folderEntries, locationOf } from './folder-entries.js';
import { type Candidate, type Folder, look, type Unread, unreadOf } from './look.js';
import type { Matcher } from './match.js';
import { reasonOf } from './reason.js';
import { identityOf, isAbsent, statAll } from './stamp.js';

/** The most files in one batch: what is handed on at once, and what is held back while the receiver is busy. */
const BATCH = 500;

/** Folders read side by side: 10,000 small ones take half the time that they take one by one. */
const FOLDERS = 32;

/** What became of a listing. */
export type Listing =
  | {
      readonly state: 'present';
      readonly files: number;
      /** Whether the folder held nothing at all, not even what does not match. */
      readonly empty: boolean;
      /** While there is any, a file that was not listed may still exist. */
      readonly unread: readonly Unread[];
      /** Linked folders, which are not followed. */
      readonly links: readonly string[];
    }
  | { readonly state: 'missing' | 'unreadable'; readonly reason: string };

export interface ListOptions {
  readonly matcher: Matcher;
  readonly signal: AbortSignal;
  /** Begin at this folder, as seen from the watched one. */
  readonly under?: string;
  /** Where that folder is, should its name not be text. */
  readonly location?: string | Buffer;
  /** The most stats under way at once. */
  readonly parallel?: number;
  /** Called before a folder is read, so that a watch set there misses nothing. False: pass it over. */
  readonly enter?: (folder: Folder) => Promise<boolean>;
  /** Told of each file that no glob fits. */
  readonly unmatched?: ((path: string) => void) | undefined;
}

/**
 * Lists the runs of a folder and of all below it, in batches, and returns what became of the listing.
 * Linked files are followed; linked folders are not: they can lead in circles, or to the whole disk.
 */
export async function* list(root: string, options: ListOptions): AsyncGenerator<FoundFile[], Listing> {
  const { matcher, signal, under = '', parallel = BATCH, enter, unmatched } = options;
  const path = under === '' ? root : `${root}/${under}`;
  const waiting: Candidate[] = [{ path, location: options.location ?? path, relative: under }];
  const unread: Unread[] = [];
  const links: string[] = [];
  let batch: FoundFile[] = [];
  let files = 0;
  let empty = true;

  while (waiting.length > 0) {
    const candidates: Candidate[] = [];
    for (const { folder, entries } of await readSome(waiting, Math.min(parallel, FOLDERS), enter)) {
      if (entries instanceof Error) {
        if (folder.relative === under) return failure(entries);
        if (!isAbsent(entries)) unread.push(unreadOf(folder.path, entries));
        continue;
      }
      empty &&= entries.length === 0;
      sort(folder, entries, matcher, { candidates, folders: waiting, unmatched });
    }
    signal.throwIfAborted();
    for (let from = 0; from < candidates.length; from += parallel) {
      const looked = await look(candidates.slice(from, from + parallel), matcher.takes);
      signal.throwIfAborted();
      batch.push(...looked.files);
      unread.push(...looked.unread);
      links.push(...looked.folders.map((link) => link.path));
      files += looked.files.length;
      if (batch.length >= BATCH) {
        yield batch.slice(0, BATCH);
        batch = batch.slice(BATCH);
      }
    }
  }
  if (batch.length > 0) yield batch;
  return { state: 'present', files, empty, unread, links };
}

interface ReadFolder {
  readonly folder: Candidate;
  readonly entries: readonly Entry[] | Error;
}

/** Takes some folders from those that wait, and reads them side by side. */
async function readSome(
  waiting: Candidate[],
  most: number,
  enter: ListOptions['enter'],
): Promise<ReadFolder[]> {
  const folders = waiting.splice(-most);
  const seen = enter ? await statAll(folders.map(({ location }) => location)) : [];
  return Promise.all(
    folders.map(async (folder, index) => ({ folder, entries: await read(folder, seen[index], enter) })),
  );
}

async function read(
  folder: Candidate,
  stats: BigIntStats | Error | undefined,
  enter: ListOptions['enter'],
): Promise<readonly Entry[] | Error> {
  if (stats instanceof Error) return stats;
  try {
    if (stats && enter && !(await enter({ ...folder, id: identityOf(stats) }))) return [];
    return await folderEntries(folder.location);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Sorts entries into what is to be looked at and what is to be listed. A link may be either: only a look tells. */
function sort(
  folder: Candidate,
  entries: readonly Entry[],
  matcher: Matcher,
  into: {
    readonly candidates: Candidate[];
    readonly folders: Candidate[];
    readonly unmatched: ListOptions['unmatched'];
  },
): void {
  for (const entry of entries) {
    const relative = folder.relative === '' ? entry.name : `${folder.relative}/${entry.name}`;
    const isFile = entry.kind === 'file' && matcher.takes(relative);
    const isFolder = entry.kind === 'folder' && !matcher.prunes(relative);
    const isLink = entry.kind === 'link' && (matcher.takes(relative) || !matcher.prunes(relative));
    if (!isFile && !isFolder && !isLink) {
      if (entry.kind === 'file' && matcher.misses(relative)) into.unmatched?.(`${folder.path}/${entry.name}`);
      continue;
    }
    const location = locationOf(folder.location, entry);
    const path = typeof location === 'string' ? location : `${folder.path}/${entry.name}`;
    (isFolder ? into.folders : into.candidates).push({ path, location, relative });
  }
}

function failure(error: Error): Listing {
  return { state: systemCode(error) === 'ENOENT' ? 'missing' : 'unreadable', reason: reasonOf(error) };
}
