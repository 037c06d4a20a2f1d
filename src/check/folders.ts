import { basename, join, relative } from 'node:path';
import type { Claim, Instrument, LoadedConfig } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import { plural } from '../text.js';
import { claimedBy, claimsBefore, createMatcher } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { list } from '../watch/scan.js';

/** One thing that `check` looked at. */
export interface Finding {
  readonly level: 'good' | 'note' | 'wrong';
  readonly text: string;
  readonly hint?: string;
}

/** What a look into the watched folders shows. */
interface FolderFindings {
  readonly findings: readonly Finding[];
  readonly overlaps: readonly Overlap[];
}

export async function examineFolders(config: LoadedConfig): Promise<FolderFindings> {
  const all = await Promise.all(
    config.instruments.map((instrument) => examineFolder(instrument, claimsBefore(instrument, config))),
  );
  return {
    findings: all.flatMap(({ findings }) => findings),
    overlaps: all.flatMap(({ overlaps }) => overlaps),
  };
}

async function examineFolder(instrument: Instrument, earlier: readonly Claim[]): Promise<FolderFindings> {
  const { name, watch, run, ready } = instrument;
  const { signal } = new AbortController();
  const matcher = createMatcher({ ...instrument, doneFile: ready.doneFile });
  const listing = list(watch, { matcher, signal });
  const { group: gather } = createRuns({ root: watch, run, matcher, signal, isClaimed: () => false });
  const runs = new Set<string>();
  const claimed = countClaimed(name, earlier);
  for (;;) {
    const next = await listing.next();
    if (!next.done) {
      for (const { path } of next.value) claimed.look(path);
      for (const { path } of gather(next.value)) runs.add(path);
      continue;
    }
    const { value: result } = next;
    if (result.state !== 'present') {
      const hint = 'it is picked up when it appears; check the path, the mount and the permissions';
      const text = `${name}: the folder ${watch} is ${result.state}: ${result.reason}`;
      return { findings: [{ level: 'wrong', text, hint }], overlaps: [] };
    }
    const grouped = run === 'file' ? '' : `, of ${plural(runs.size, 'run')}`;
    const text = `${name}: ${watch} is there, ${plural(result.files, 'file')} ${result.files === 1 ? 'matches' : 'match'}${grouped}`;
    const found: Finding = { level: 'good', text };
    const unread = result.unread.map(
      ({ path, reason }): Finding => ({ level: 'note', text: `${name}: ${path} cannot be read: ${reason}` }),
    );
    return { findings: [found, ...unread], overlaps: claimed.overlaps() };
  }
}

/** Counts the files of an instrument that go to others, by who gets them. */
function countClaimed(second: string, earlier: readonly Claim[]) {
  const claims = earlier.map((claim) => ({ first: claim.name, takes: claimedBy([claim]) }));
  const found = new Map<string, { example: string; files: number }>();
  return {
    look(path: string): void {
      const first = claims.find(({ takes }) => takes(path))?.first;
      if (first === undefined) return;
      const { example, files } = found.get(first) ?? { example: path, files: 0 };
      found.set(first, { example, files: files + 1 });
    },
    overlaps: (): Overlap[] => [...found].map(([first, counted]) => ({ first, second, ...counted })),
  };
}

/** Two instruments that want the same files. */
interface Overlap {
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
