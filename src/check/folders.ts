import { constants } from 'node:fs';
import { basename, join, relative } from 'node:path';
import PQueue from 'p-queue';
import type { Claim, Instrument, LoadedConfig } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import { isForbidden, systemCode } from '../errors.js';
import type { LiveInstrument } from '../live.js';
import { change, slowMountOf } from '../system/disk.js';
import { missingMount } from '../system/mounts.js';
import { formatDuration, plural } from '../text.js';
import { whySlow } from '../watch/events.js';
import { DisposalError, display, explaining } from '../watch/file-moves.js';
import { explainPermission } from '../watch/guard.js';
import { NO_RESPONSE } from '../watch/identify.js';
import { type Claims, createClaims, createMatcher, PRIVATE_HINT } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { addUnmatched, type Listing, list, type Unmatched } from '../watch/scan.js';
import { checkTarget } from '../watch/target.js';

/** One result of `check`. */
export interface Finding {
  readonly level: 'good' | 'note' | 'wrong';
  readonly text: string;
  readonly hint?: string | undefined;
}

/** Folders that are listed at the same time. */
const PARALLEL_FOLDERS = 16;
/** More instruments in one folder would each list it. */
const MAX_IN_ONE_FOLDER = 100;

/** `live`: what the daemon knows about the folders, if it runs. */
export async function checkFolders(config: LoadedConfig, live: readonly LiveInstrument[] = []) {
  const claims = createClaims(config.claims);
  const watched = config.claims.map(({ watch }) => watch);
  const { signal } = new AbortController();
  const counts = new Map<string, number>();
  const listed = config.instruments.filter(({ watch }) => {
    counts.set(watch, (counts.get(watch) ?? 0) + 1);
    return (counts.get(watch) ?? 0) <= MAX_IN_ONE_FOLDER;
  });
  const queue = new PQueue({ concurrency: PARALLEL_FOLDERS });
  const all = await queue.addAll(
    listed.map((instrument) => () => {
      const known = live.find(({ name }) => name === instrument.name);
      return checkFolder(instrument, known, claims, watched, signal);
    }),
  );
  return {
    findings: [
      ...all.flatMap(({ findings }) => findings),
      ...[...counts].filter(([, count]) => count > MAX_IN_ONE_FOLDER).map(([folder]) => tooMany(folder)),
    ],
    overlaps: all.flatMap(({ overlaps }) => overlaps),
    /** Folders that could be read. */
    listed: all.flatMap(({ listed }) => listed),
  };
}

const tooMany = (folder: string): Finding => ({
  level: 'note',
  text: `more than ${MAX_IN_ONE_FOLDER} instruments watch ${folder}: only the first were compared with the files there`,
});

async function checkFolder(
  instrument: Instrument,
  known: LiveInstrument | undefined,
  claims: Claims,
  watched: readonly string[],
  signal: AbortSignal,
) {
  const { name, watch, run } = instrument;
  const matcher = createMatcher(instrument);
  const { group } = createRuns({ root: watch, run, matcher, signal, isClaimed: () => false });
  const runs = new Set<string>();
  const overlaps = new Map<string, Required<Overlap>>();
  const unmatched = new Map<string, { readonly files: number; readonly example: string }>();
  const hidden: string[] = [];
  const forbidden: string[] = [];
  let tried = 0;
  const listing = list(watch, {
    matcher,
    signal,
    hidden: (location) => hidden.push(display(Buffer.from(location))),
    unmatched: (path) => {
      if (!claims.isOthers(instrument, path)) addUnmatched(unmatched, path);
    },
  });
  let next = await listing.next();
  for (; !next.done; next = await listing.next()) {
    for (const { path } of next.value) {
      const first = claims.before(instrument, path)?.name;
      if (first === undefined) continue;
      const { files, example } = overlaps.get(first) ?? { files: 0, example: path };
      overlaps.set(first, { first, second: name, example, files: files + 1 });
    }
    for (const { path } of group(next.value)) runs.add(path);
    const sample = next.value.slice(0, MAX_TRIED - tried);
    tried += sample.length;
    for (const { path, location } of sample) if (await isForbiddenFile(location)) forbidden.push(path);
  }
  const { value: result } = next;
  if (result.state !== 'present') return { findings: [noFolder(instrument, result)], overlaps: [], listed: [] };
  const findings = [
    (result.empty ? await awayFinding(instrument, known) : undefined) ??
      folderFinding(instrument, result.files, runs.size, unmatched),
    ...pollingFindings(instrument, known),
    ...(await checkSource(instrument, watched)),
    ...(hidden.length === 0 ? [] : [hiddenFinding(instrument, hidden)]),
    ...(forbidden.length === 0 ? [] : [forbiddenFinding(instrument, forbidden)]),
    ...result.unread.map(
      ({ path, reason }): Finding => ({ level: 'note', text: `${name}: cannot read ${path}: ${reason}` }),
    ),
  ];
  return { findings, overlaps: [...overlaps.values()], listed: [watch] };
}

/** For an empty folder whose share is not mounted, or has come back without its files. */
async function awayFinding(
  { name, watch }: Instrument,
  known: LiveInstrument | undefined,
): Promise<Finding | undefined> {
  const { state, reason = '' } = known?.folder ?? {};
  if (known && state !== 'present') return { level: 'wrong', text: `${name}: the folder ${watch} is empty: ${reason}` };
  const point = await missingMount(watch);
  if (point === undefined) return undefined;
  const text = `${name}: the folder ${watch} is empty: /etc/fstab names ${point}, but nothing is mounted there`;
  return { level: 'wrong', text, hint: `run: mount ${point}` };
}

/** Why files may be noticed late. */
function pollingFindings({ name, watch, poll }: Instrument, known: LiveInstrument | undefined): Finding[] {
  const mount = slowMountOf(watch);
  const because = mount ? whySlow(mount) : known?.polling?.because;
  if (because === undefined) return [];
  const text = `${name}: ${watch} sends no events for new files (${because})`;
  if (poll === 'never' && mount)
    return [{ level: 'wrong', text, hint: 'remove `poll: never`, so that labfeed scans the folder regularly' }];
  const how =
    typeof poll === 'number' ? `every ${formatDuration(poll)}` : 'every 10 s, or less often if that takes long';
  return [{ level: 'good', text: `${text}, so labfeed scans it ${how}` }];
}

/** Whether files can be moved away or deleted. */
async function checkSource({ name, source, watch }: Instrument, watched: readonly string[]): Promise<Finding[]> {
  if (source === 'keep') return [];
  try {
    await explaining(`move or delete files in ${watch}`, () =>
      change('access', watch, constants.W_OK | constants.X_OK),
    );
    if (typeof source !== 'string') await checkTarget(source.move, watched);
    return [];
  } catch (error) {
    if (!(error instanceof DisposalError)) throw error;
    return [{ level: 'wrong', text: `${name}: ${error.message}`, hint: error.hint }];
  }
}

/** More files would take long on a share. */
const MAX_TRIED = 1000;
const MAX_NAMED = 10;

/** Whether this user may not read the file. Other failures are left to the daemon. */
const isForbiddenFile = (location: string | Buffer): Promise<boolean> =>
  change('access', location, constants.R_OK).then(
    () => false,
    (error: unknown) => isForbidden(systemCode(error)),
  );

function forbiddenFinding({ name, watch }: Instrument, paths: readonly string[]): Finding {
  const named = paths.slice(0, MAX_NAMED).map((path) => relative(watch, path));
  const more = paths.length > named.length ? ' and others' : '';
  const { reason, hint } = explainPermission(paths[0] ?? '');
  const text = `${name}: cannot read ${plural(paths.length, 'file')} in ${watch}: ${named.join(', ')}${more}; ${named[0]}: ${reason}`;
  return { level: 'wrong', text, hint };
}

const hiddenFinding = ({ name, watch }: Instrument, hidden: readonly string[]): Finding => ({
  level: 'note',
  text: `${name}: ${plural(hidden.length, 'file')} in ${watch} ${hidden.length === 1 ? 'has' : 'have'} the name that labfeed gives a file while it moves or deletes it, such as ${relative(watch, hidden[0] ?? '')}`,
  hint: PRIVATE_HINT,
});

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
        hint: reason.includes(NO_RESPONSE)
          ? 'check the share or disk. labfeed continues with the other folders'
          : `give the user that runs labfeed read access, for example: setfacl -R -m u:labfeed:rX ${watch}`,
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
  const { related, takes } = createClaims(claims);
  const found: Overlap[] = [];
  let pairs = 0;
  for (const second of claims) {
    for (const first of related(second.watch)) {
      if (first === second || pairs++ >= MAX_PAIRS) break;
      const example = fileOfBoth(first, second, takes);
      if (example !== undefined) found.push({ first: first.name, second: second.name, example });
    }
  }
  return { overlaps: found, isComplete: pairs <= MAX_PAIRS };
}

export const NOT_ALL_COMPARED: Finding = {
  level: 'note',
  text: `more than ${MAX_PAIRS} pairs of instruments watch the same folders: not all were compared for files that match both`,
};

/** Overlaps that were found in the folders replace those that are only possible. */
export function mergeOverlaps(seen: readonly Overlap[], possible: readonly Overlap[]): Overlap[] {
  const keyOf = ({ first, second }: Overlap): string => JSON.stringify([first, second]);
  const known = new Set(seen.map(keyOf));
  return [...seen, ...possible.filter((one) => !known.has(keyOf(one)))];
}

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
function fileOfBoth(first: Claim, second: Claim, takes: Claims['takes']): string | undefined {
  const folders = [first.watch, second.watch];
  const [outer = '', inner = ''] = folders.toSorted((a, b) => a.length - b.length);
  if (relative(outer, inner).startsWith('..')) return undefined;
  const names = [...namesFor(first, second), ...namesFor(second, first)];
  const paths = folders.flatMap((folder) =>
    names.flatMap((name) => [join(folder, name), join(folder, basename(name))]),
  );
  return [...new Set(paths)]
    .sort((a, b) => a.length - b.length)
    .find((path) => takes(first, path) && takes(second, path));
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
