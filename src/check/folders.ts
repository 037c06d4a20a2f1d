import { basename, join, relative } from 'node:path';
import type { Claim, Instrument, LoadedConfig } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import { plural } from '../text.js';
import { claimedBy, createMatcher, relatedClaims } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { addUnmatched, type Listing, list, type Unmatched } from '../watch/scan.js';

/** One result of `check`. */
export interface Finding {
  readonly level: 'good' | 'note' | 'wrong';
  readonly text: string;
  readonly hint?: string | undefined;
}

export async function checkFolders(config: LoadedConfig) {
  const related = relatedClaims(config.claims);
  const all = await Promise.all(
    config.instruments.map((instrument) => checkFolder(instrument, related(instrument.watch))),
  );
  return {
    findings: all.flatMap(({ findings }) => findings),
    overlaps: all.flatMap(({ overlaps }) => overlaps),
  };
}

/** `claims`: of the instruments whose folders contain this one's or are inside it, in their order. */
async function checkFolder(instrument: Instrument, claims: readonly Claim[]) {
  const { name, watch, run } = instrument;
  const { signal } = new AbortController();
  const matcher = createMatcher(instrument);
  const { group } = createRuns({ root: watch, run, matcher, signal, isClaimed: () => false });
  const runs = new Set<string>();
  const earlier = claims
    .slice(
      0,
      claims.findIndex((claim) => claim.name === name),
    )
    .map(toTaker);
  const overlaps = new Map<string, Required<Overlap>>();
  const isOthers = claimedBy(claims.filter((claim) => claim.name !== name));
  const unmatched = new Map<string, { readonly files: number; readonly example: string }>();
  const listing = list(watch, {
    matcher,
    signal,
    unmatched: (path) => {
      if (!isOthers(path)) addUnmatched(unmatched, path);
    },
  });
  let next = await listing.next();
  for (; !next.done; next = await listing.next()) {
    for (const { path } of next.value) {
      const first = earlier.find(({ takes }) => takes(path))?.claim.name;
      if (first === undefined) continue;
      const { files, example } = overlaps.get(first) ?? { files: 0, example: path };
      overlaps.set(first, { first, second: name, example, files: files + 1 });
    }
    for (const { path } of group(next.value)) runs.add(path);
  }
  const { value: result } = next;
  if (result.state !== 'present') return { findings: [noFolder(instrument, result)], overlaps: [] };
  const findings = [
    folderFinding(instrument, result.files, runs.size, unmatched),
    ...result.unread.map(
      ({ path, reason }): Finding => ({ level: 'note', text: `${name}: cannot read ${path}: ${reason}` }),
    ),
  ];
  return { findings, overlaps: [...overlaps.values()] };
}

function noFolder(
  { name, watch }: Instrument,
  { state, reason }: Extract<Listing, { readonly reason: string }>,
): Finding {
  return state === 'missing'
    ? {
        level: 'wrong',
        text: `${name}: the folder ${watch} does not exist`,
        hint: 'check `watch`, and whether the share is mounted. labfeed starts watching as soon as the folder exists',
      }
    : {
        level: 'wrong',
        text: `${name}: cannot read the folder ${watch}: ${reason}`,
        hint: `give the user that runs labfeed read access, for example: setfacl -R -m u:labfeed:rX ${watch}`,
      };
}

function folderFinding(
  { name, watch, run, files: globs }: Instrument,
  files: number,
  runs: number,
  unmatched: Unmatched,
): Finding {
  const [extension = '', most] = [...unmatched].sort(([, a], [, b]) => b.files - a.files)[0] ?? [];
  if (files === 0 && most) {
    const others = [...unmatched.values()].reduce((sum, one) => sum + one.files, 0);
    return {
      level: 'note',
      text: `${name}: no file in ${watch} matches \`files: ${globs.join(', ')}\`, but ${plural(others, 'other file is', 'other files are')} there, such as ${relative(watch, most.example)}`,
      hint: extension.length > 1 ? `to take such files, set files: "**/*${extension}"` : 'correct `files`',
    };
  }
  const grouped = run === 'file' ? '' : ` (${plural(runs, 'run')})`;
  return { level: 'good', text: `${name}: ${plural(files, 'matching file')}${grouped} in ${watch}` };
}

/** Two instruments whose globs match the same files. */
interface Overlap {
  /** The one that comes first in the configuration, and gets the files. */
  readonly first: string;
  readonly second: string;
  readonly example: string;
  /** The number of existing files; undefined if only the globs were compared. */
  readonly files?: number;
}

/** With thousands of instruments in one folder, comparing all pairs would take minutes. */
const MAX_PAIRS = 20_000;

/** Finds instruments whose globs can match the same file, whether or not such a file exists. */
export function possibleOverlaps(claims: readonly Claim[]): { overlaps: Overlap[]; isComplete: boolean } {
  const takers = new Map(claims.map((claim) => [claim, toTaker(claim)]));
  const related = relatedClaims(claims);
  const found: Overlap[] = [];
  let pairs = 0;
  for (const [claim, second] of takers) {
    for (const other of related(claim.watch)) {
      const first = takers.get(other);
      if (other === claim || first === undefined || pairs++ >= MAX_PAIRS) break;
      const example = fileOfBoth(first, second);
      if (example !== undefined) found.push({ first: other.name, second: claim.name, example });
    }
  }
  return { overlaps: found, isComplete: pairs <= MAX_PAIRS };
}

export const NOT_ALL_COMPARED: Finding = {
  level: 'note',
  text: `more than ${MAX_PAIRS} pairs of instruments watch the same folders: not all were compared for files that match both`,
};

type Taker = ReturnType<typeof toTaker>;

function toTaker(claim: Claim) {
  let takes: ((path: string) => boolean) | undefined;
  return {
    claim,
    // Most are never asked, and compiling globs takes time.
    takes(path: string): boolean {
      takes ??= claimedBy([claim]);
      return takes(path);
    },
  };
}

/** Overlaps that were found in the folders replace those that are only possible. */
export const mergeOverlaps = (seen: readonly Overlap[], possible: readonly Overlap[]): Overlap[] => [
  ...seen,
  ...possible.filter((one) => !seen.some(({ first, second }) => first === one.first && second === one.second)),
];

export function overlapFinding({ first, second, example, files }: Overlap): Finding {
  const which =
    files === undefined
      ? `a file such as ${example} would match both and go to ${first}`
      : `${plural(files, 'file')} that ${files === 1 ? 'matches' : 'match'} both, such as ${example}, ${files === 1 ? 'goes' : 'go'} to ${first}`;
  return {
    level: 'note',
    text: `${second} overlaps with ${first}: ${which}`,
    hint: 'a file goes to the first instrument that matches it. Change `files` so that only one matches',
  };
}

/** A path that both instruments match. Found by trial: unusual globs may be missed. */
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

/** Names that match the globs of one instrument, some of which may match those of the other. */
function namesFor(one: Claim, other: Claim): string[] {
  const ends = [...other.files.flatMap((glob) => fill(glob, 'x')), ...partsFor(other.run)];
  const words = ['x', ...ends.map((name) => basename(name))];
  const names = one.files.flatMap((glob) => words.flatMap((word) => fill(glob, word)));
  return [...names, ...partsFor(one.run), ...[one.run, other.run].flatMap((run) => foldersFor(run, names))];
}

/** Names of the joined files. */
const partsFor = (run: RunKind): string[] =>
  run !== 'file' && 'join' in run ? run.join.map((name) => name.replace('{stem}', 'x')) : [];

/** The same names inside the folder of a run. */
const foldersFor = (run: RunKind, names: readonly string[]): string[] =>
  run !== 'file' && 'folder' in run
    ? fill(run.folder, 'x').flatMap((folder) => names.map((name) => `${folder}/${basename(name)}`))
    : [];

/** A glob with a word in place of its wildcards: `{a,b}/run-*.csv` gives `a/run-x.csv` and `b/run-x.csv`. */
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
