import { basename, join, relative } from 'node:path';
import type { Claim } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import { claimedBy } from '../watch/match.js';
import type { Finding } from './findings.js';

/** Two instruments that want the same files. */
export interface Overlap {
  /** Who stands first in the configuration, and gets them. */
  readonly first: string;
  readonly second: string;
  readonly example: string;
  /** How many of the files that are there now; undefined where only the globs were looked at. */
  readonly files?: number;
}

/** Finds instruments whose globs can fit the same file, whether or not there is such a file now. */
export function possibleOverlaps(claims: readonly Claim[]): Overlap[] {
  const takers = claims.map((claim): Taker => ({ claim, takes: claimedBy([claim]) }));
  return takers.flatMap((second, n) =>
    takers.slice(0, n).flatMap((first) => {
      const example = fileOfBoth(first, second);
      return example === undefined ? [] : [{ first: first.claim.name, second: second.claim.name, example }];
    }),
  );
}

interface Taker {
  readonly claim: Claim;
  takes(path: string): boolean;
}

/** What was seen in the folders says more than what the globs allow. */
export const mergeOverlaps = (seen: readonly Overlap[], possible: readonly Overlap[]): Overlap[] => [
  ...seen,
  ...possible.filter(
    (one) => !seen.some(({ first, second }) => first === one.first && second === one.second),
  ),
];

export function overlapFinding({ first, second, example, files }: Overlap): Finding {
  const which =
    files === undefined
      ? `a file such as ${example} would fit both, and go to ${first}`
      : `${files} of its files, such as ${example}, ${files === 1 ? 'goes' : 'go'} to ${first}`;
  return {
    level: 'note',
    text: `${second} overlaps with ${first}, which stands before it: ${which}`,
    hint: 'a file goes to the first instrument that matches it; make the globs tell them apart',
  };
}

/** A path that both instruments take. Tried, not proved: globs that only a strange name fits are not noticed. */
function fileOfBoth(first: Taker, second: Taker): string | undefined {
  const folders = [first.claim.watch, second.claim.watch];
  const [outer = '', inner = ''] = folders.toSorted((a, b) => a.length - b.length);
  if (relative(outer, inner).startsWith('..')) return undefined;
  const names = [...namesFor(first.claim, second.claim), ...namesFor(second.claim, first.claim)];
  return folders
    .flatMap((folder) => names.flatMap((name) => [join(folder, name), join(folder, basename(name))]))
    .sort((a, b) => a.length - b.length)
    .find((path) => first.takes(path) && second.takes(path));
}

/** Names that fit the globs of one instrument; among them some that may fit those of the other as well. */
function namesFor(one: Claim, other: Claim): string[] {
  const ends = [...other.files.flatMap((glob) => fill(glob, 'x')), ...partsFor(other.run)];
  const words = ['x', ...ends.map((name) => basename(name))];
  const names = one.files.flatMap((glob) => words.flatMap((word) => fill(glob, word)));
  return [...names, ...partsFor(one.run), ...[one.run, other.run].flatMap((run) => foldersFor(run, names))];
}

/** Names of files that are joined. */
const partsFor = (run: RunKind): string[] =>
  run !== 'file' && 'join' in run ? run.join.map((name) => name.replace('{stem}', 'x')) : [];

/** The same names in a folder that is a run. */
const foldersFor = (run: RunKind, names: readonly string[]): string[] =>
  run !== 'file' && 'folder' in run
    ? fill(run.folder, 'x').flatMap((folder) => names.map((name) => `${folder}/${basename(name)}`))
    : [];

/** A glob with a word for its stars: `{a,b}/run-*.csv` makes `a/run-x.csv` and `b/run-x.csv`. */
function fill(glob: string, word: string): string[] {
  const [braces, inside] = /\{([^{}]*)\}/.exec(glob) ?? [];
  if (braces !== undefined && inside?.includes(','))
    return inside.split(',').flatMap((part) => fill(glob.replace(braces, part), word));
  return [
    glob
      .replace(/\*\*\//g, '')
      .replace(/\*+/g, word)
      .replace(/\?/g, 'x')
      .replace(/\[([^\]!^])[^\]]*\]/g, '$1')
      .replace(/\\(.)/g, '$1'),
  ];
}
