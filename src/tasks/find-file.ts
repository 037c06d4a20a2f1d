import { lstatSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { Claim } from '../config/load.js';
import type { JournalReader } from '../journal/reader.js';
import type { Live } from '../live.js';
import { createMatcher } from '../watch/match.js';
import { list } from '../watch/scan.js';
import { asWatched } from './watched-path.js';

export interface Places {
  readonly claims: readonly Claim[];
  readonly reader: JournalReader | undefined;
  readonly live: Live | undefined;
  /** Where a relative path begins. */
  readonly folder: string;
}

export interface FoundFiles {
  readonly paths: readonly string[];
  /** There are more than these. */
  readonly more: boolean;
  /** Folders that did not answer in time, or could not be read to the end. */
  readonly unsearched: readonly string[];
}

/** More nobody reads. */
const MOST = 100;
/** How long a folder may take to be searched: a share may not answer at all. */
const SEARCH_MS = 10_000;

/**
 * The files that somebody means by a path, a name or a part of one: the very file where there is one, else all that the
 * journal, the daemon and the folders know by that text. Also files that are gone.
 */
export async function findFile(asked: string, places: Places): Promise<FoundFiles> {
  const { claims, reader, live, folder } = places;
  const path = asWatched(resolve(folder, asked), claims);
  const isKnown = reader?.files(path, MOST).some((one) => one.path === path) ?? false;
  if (isKnown || lstatSync(path, { throwIfNoEntry: false })) return only(path);
  const remembered = reader?.files(asked, MOST + 1).map((one) => one.path) ?? [];
  const waiting = live?.instruments.flatMap(({ waiting }) => waiting.first.map((one) => one.path)) ?? [];
  const searched = await Promise.all(
    [...new Set(claims.map(({ watch }) => watch))].map((root) => search(root, asked)),
  );
  const all = new Set([
    ...remembered,
    ...waiting.filter((one) => one.includes(asked)),
    ...searched.flatMap(({ found }) => found),
  ]);
  const unsearched = searched.flatMap(({ root, ended }) => (ended ? [] : [root]));
  if (all.size === 0 && asked.includes('/')) return { ...only(path), unsearched };
  const paths = [...all].sort((a, b) => rank(a, asked) - rank(b, asked) || (a < b ? -1 : 1));
  return { paths: paths.slice(0, MOST), more: paths.length > MOST, unsearched };
}

const only = (path: string): FoundFiles => ({ paths: [path], more: false, unsearched: [] });

/** The very name first, then names that hold it, then folders that do. */
function rank(path: string, asked: string): number {
  const name = basename(path);
  return name === asked ? 0 : name.includes(asked) ? 1 : 2;
}

async function search(root: string, asked: string) {
  const found: string[] = [];
  const signal = AbortSignal.timeout(SEARCH_MS);
  const tooLate = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    const listing = list(root, { matcher: createMatcher({ files: ['**'], ignore: [] }), signal });
    for (;;) {
      const next = await Promise.race([listing.next(), tooLate]);
      if (next.done) return { root, found, ended: next.value.state === 'present' };
      found.push(...next.value.map(({ path }) => path).filter((path) => path.includes(asked)));
    }
  } catch {
    return { root, found, ended: false };
  }
}
