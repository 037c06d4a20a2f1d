import type { BigIntStats } from 'node:fs';
import { posix } from 'node:path';
import type { Clock } from '../clock.js';
import { systemCode } from '../errors.js';
import { isMountPoint } from '../filesystem.js';
import type { Log } from '../log.js';
import type { FoundFile } from '../model.js';
import type { Hearing } from './events.js';
import {
  type Candidate,
  type Entry,
  type Folder,
  folderEntries,
  locationOf,
  look,
  type Unread,
  unreadOf,
} from './folder.js';
import { identityOf, isAbsent, reasonOf, statAll } from './identify.js';
import type { Matcher } from './match.js';

/**
 * Stats under way at once on a share. A share that hangs keeps each of them, and Node has four threads
 * for all file access: half of them stay free for the other instruments.
 */
const PARALLEL_ON_SHARE = 2;

export interface ScanDeps {
  readonly root: string;
  readonly matcher: Matcher;
  readonly hearing: Hearing;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
  offer(files: FoundFile[]): Promise<void>;
  isNetwork(path: string): Promise<boolean>;
  /** Whether a file that no glob of this instrument fits is no business of its: another's, or not of an instrument at all. */
  isOthers(path: string): boolean;
}

interface Scanned {
  readonly listing: Listing;
  readonly network: boolean;
  /** How long the listing took, without the time for which its receiver held it back. */
  readonly tookMs: number;
  readonly unmatched: Unmatched;
}

/** Makes the function that lists the whole folder once, hangs bells on the way, and offers what it finds. */
export function createScan(deps: ScanDeps): () => Promise<Scanned> {
  const { root, hearing } = deps;
  const unlessUnmounted = createMountCheck(root);
  const tell = createTeller(deps.log);

  return async () => {
    const network = await deps.isNetwork(root).catch(() => true);
    hearing.beginScan();
    const { listing: listed, ...rest } = await listAll(deps, network);
    const listing = await unlessUnmounted(listed);
    if (listing.state === 'present') hearing.endScan();
    else hearing.forgetAll();
    tell(listing);
    return { listing, network, ...rest };
  };
}

async function listAll(deps: ScanDeps, network: boolean): Promise<Omit<Scanned, 'network'>> {
  const { root, matcher, hearing, signal, clock } = deps;
  const unmatched = createUnmatched();
  const found = list(root, {
    matcher,
    signal,
    ...(network && { parallel: PARALLEL_ON_SHARE }),
    enter: async (folder) => {
      await hearing.listenTo(folder);
      return true;
    },
    unmatched(path) {
      if (!deps.isOthers(path)) unmatched.add(path);
    },
  });
  let tookMs = 0;
  for (;;) {
    const since = clock.monotonic();
    const next = await found.next();
    tookMs += clock.monotonic() - since;
    if (next.done) return { listing: next.value, tookMs, unmatched: unmatched.found };
    await deps.offer(next.value);
    signal.throwIfAborted();
  }
}

/** A share that was unmounted leaves an empty folder behind, which says nothing about its files. */
function createMountCheck(root: string): (listing: Listing) => Promise<Listing> {
  let wasMounted = false;

  return async (listing) => {
    if (listing.state !== 'present') return listing;
    const mounted = await isMountPoint(root).catch(() => false);
    if (listing.empty && wasMounted && !mounted) {
      return { state: 'missing', reason: 'the share or disk that was mounted there is gone' };
    }
    wasMounted = mounted;
    return listing;
  };
}

/** Makes the function that names what a listing passed over, each once for as long as that lasts. */
function createTeller(log: Log): (listing: Listing) => void {
  let told = new Set<string>();

  return (listing) => {
    if (listing.state !== 'present') return;
    for (const { path, reason } of listing.unread) {
      if (!told.has(path)) log.warn({ path, reason }, 'cannot be looked into, the rest goes on');
    }
    for (const path of listing.links) {
      if (!told.has(path)) log.warn({ path }, 'a linked folder is not followed: watch what it leads to');
    }
    told = new Set([...listing.unread.map(({ path }) => path), ...listing.links]);
  };
}

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

/** Files of one ending (`.csv`) that no glob fits. */
interface Ending {
  readonly files: number;
  /** The last one by name: where names begin with a date or a number, the newest. */
  readonly example: string;
}

/** Files that no glob fits, as one listing met them: counted by their endings, since their names are too many to keep. */
export type Unmatched = ReadonlyMap<string, Ending>;

/** Endings beyond these are counted as one: a name can end in anything. */
const MOST_ENDINGS = 50;
const OTHER_ENDINGS = '*';

/** Counts while a folder is listed. */
export function createUnmatched(): { readonly found: Unmatched; add(path: string): void } {
  const found = new Map<string, Ending>();
  return {
    found,
    add(path) {
      const own = posix.extname(path).toLowerCase();
      const ending = found.has(own) || found.size < MOST_ENDINGS ? own : OTHER_ENDINGS;
      const { files, example } = found.get(ending) ?? { files: 0, example: path };
      found.set(ending, { files: files + 1, example: path > example ? path : example });
    },
  };
}
