import type { Clock } from '../clock.js';
import { isMountPoint } from '../filesystem.js';
import type { Log } from '../log.js';
import type { FoundFile } from '../model.js';
import type { Hearing } from './hearing.js';
import { type Listing, list } from './list.js';
import type { Matcher } from './match.js';
import { createUnmatched, type Unmatched } from './unmatched.js';

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

export interface Scanned {
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
