import { createHash } from 'node:crypto';
import type { AccessRules } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import { FileChangedError, type FileError } from '../errors.js';
import { type DiskFile, type FoundFile, filesOf, type Hashed, type IdentifiedFile, type Part } from '../model.js';
import type { Copy } from '../spool.js';
import { statAll } from '../system/disk.js';
import { createGuard } from './guard.js';
import { type IdentifyOptions, identify, isAbsent, MAX_KEPT_BYTES, stampOf } from './identify.js';
import { createGrouping, type Grouping, type Matcher, placesOf } from './match.js';
import { list } from './scan.js';
import { isSame, type RunSnapshot, statFile } from './settle.js';

interface RunsOptions {
  /** The watched folder. */
  readonly root: string;
  readonly run: RunKind;
  readonly matcher: Matcher;
  readonly signal: AbortSignal;
  /** Files up to this size are returned with their content. */
  readonly keepBytes?: number;
  /** Refuses files that must not be read. Absent for files that a person names. */
  readonly access?: AccessRules | undefined;
  /** Why a file is not even opened. */
  refuse?(file: DiskFile): FileError | undefined;
  /** Whether a file belongs to another instrument. */
  isClaimed(path: string): boolean;
}

/** The runs of an instrument: single files, whole folders, or several files with the same stem. */
export interface Runs {
  /** Groups files into runs. A run may have more files than were given. */
  group(files: readonly FoundFile[]): FoundFile[];
  /** The current state of a run, with all its files. */
  stat(run: FoundFile): Promise<RunSnapshot>;
  /** Throws a FileError if a file of the run must not be read, or is too large. `copies`: for each of its files. */
  identify(run: FoundFile, copies?: readonly (Copy | undefined)[]): Promise<IdentifiedFile>;
}

export function createRuns(options: RunsOptions): Runs {
  const { run: kind, signal, root, keepBytes, access } = options;
  const reading = { signal, ...(keepBytes !== undefined && { keepBytes }), guard: access && createGuard(access) };
  const grouping = createGrouping(kind);
  function check(run: FoundFile): void {
    for (const file of filesOf(run)) {
      const problem = options.refuse?.(file);
      if (problem) throw problem;
    }
  }
  if (kind === 'file' || 'growing' in kind || !grouping) {
    return {
      group: (files) => [...files],
      stat: statFile,
      async identify(file, copies) {
        check(file);
        return identify(file, { ...reading, copy: copies?.[0] });
      },
    };
  }
  const stat = (run: FoundFile): Promise<RunSnapshot> =>
    'folder' in kind ? statFolder(run, grouping, options) : statJoined(run, kind.join, options);
  return {
    group: (files) => group(files, grouping, root),
    stat,
    async identify(run, copies) {
      check(run);
      return identifyParts(run, { stat, copies, ...reading });
    },
  };
}

type FoundPart = DiskFile & Part;

const combine = ({ path, location }: Pick<DiskFile, 'path' | 'location'>, parts: readonly FoundPart[]): FoundFile => ({
  path,
  location,
  size: parts.reduce((sum, { size }) => sum + size, 0),
  mtimeNs: parts.reduce((latest, { mtimeNs }) => (mtimeNs > latest ? mtimeNs : latest), 0n),
  inode: parts[0]?.inode ?? 0n,
  parts,
});

/** A scan can report the files of one run in several batches. */
export const mergeRuns = (known: FoundFile | undefined, more: FoundFile): FoundFile =>
  known?.parts && more.parts ? combine(more, [...known.parts, ...more.parts]) : more;

function group(files: readonly FoundFile[], grouping: Grouping, root: string): FoundFile[] {
  const runs = new Map<string, { location: string | Buffer; parts: FoundPart[] }>();
  for (const file of files) {
    const member = grouping.memberOf(file.path.slice(root.length + 1));
    if (!member) continue;
    const path = `${root}/${member.run}`;
    const run = runs.get(path) ?? { location: grouping.locate(file.location, member), parts: [] };
    run.parts.push(toPart(file, member));
    runs.set(path, run);
  }
  return [...runs].map(([path, { location, parts }]) => combine({ path, location }, parts));
}

const toPart = (file: DiskFile, { name, role }: Part): FoundPart => ({ ...file, name, role });

/** A folder counts only if all of it can be seen. */
async function statFolder(
  run: FoundFile,
  grouping: Grouping,
  { root, matcher, signal, isClaimed }: RunsOptions,
): Promise<RunSnapshot> {
  const parts: FoundPart[] = [];
  const { path, location } = run;
  const listing = list(root, { matcher, signal, under: path.slice(root.length + 1), location });
  let next = await listing.next();
  for (; !next.done; next = await listing.next()) {
    for (const file of next.value) {
      const member = grouping.memberOf(file.path.slice(root.length + 1));
      if (member && !isClaimed(file.path)) parts.push(toPart(file, member));
    }
  }
  if (next.value.state === 'missing') return 'absent';
  const isComplete = next.value.state === 'present' && next.value.unread.every(({ forbidden }) => forbidden);
  if (!isComplete) return 'no answer';
  if (parts.length === 0) return 'absent';
  // The order of a listing is arbitrary.
  return combine(
    run,
    parts.sort((a, b) => (a.name < b.name ? -1 : 1)),
  );
}

async function statJoined(run: FoundFile, roles: readonly string[], { isClaimed }: RunsOptions): Promise<RunSnapshot> {
  const places = placesOf(run, roles);
  const results = await statAll(places.map((place) => place.location));
  const parts: FoundPart[] = [];
  let missing: string | undefined;
  for (const [n, place] of places.entries()) {
    const stats = results[n];
    if (stats === undefined || (stats instanceof Error && !isAbsent(stats))) return 'no answer';
    if (stats instanceof Error || !stats.isFile() || isClaimed(place.path)) missing ??= place.path;
    else parts.push({ ...place, ...stampOf(stats) });
  }
  if (parts.length === 0) return 'absent';
  return { ...combine(run, parts), ...(missing !== undefined && { missing }) };
}

interface PartsOptions extends IdentifyOptions, Pick<Runs, 'stat'> {
  readonly copies: readonly (Copy | undefined)[] | undefined;
}

/**
 * Hashes every file of a settled run, then checks the run again: a file that was added meanwhile belongs to it.
 * The contents returned for all files together are no larger than those of a single file.
 */
async function identifyParts(
  run: FoundFile,
  { stat, copies, signal, keepBytes = MAX_KEPT_BYTES, guard }: PartsOptions,
): Promise<IdentifiedFile> {
  const parts: (DiskFile & Part & Hashed)[] = [];
  let left = keepBytes;
  for (const [index, part] of (run.parts ?? []).entries()) {
    // By other threads: a run may have thousands of files.
    const hashed = await identify(
      { ...part, isLocal: false },
      { signal, keepBytes: left, guard, copy: copies?.[index] },
    );
    if (hashed.content) left -= hashed.size;
    parts.push({ ...hashed, ...part });
  }
  const now = await stat(run);
  if (typeof now === 'string' || now.missing !== undefined || !isSame(now, run)) {
    throw new FileChangedError('the run has changed: a file was added, removed or written to', {
      where: { file: run.path },
    });
  }
  return { ...run, sha256: fingerprintOf(parts), parts };
}

/** Hashes the output of `sha256sum` for the files sorted by name, so that anyone can reproduce it. */
function fingerprintOf(parts: readonly (Part & Hashed)[]): string {
  const lines = parts
    .map(({ role, sha256 }) => ({
      role: Buffer.from(role),
      line: `${sha256}  ${role.replace(/[\\\n]/g, '\\$&')}\n`,
    }))
    .sort((a, b) => Buffer.compare(a.role, b.role))
    .map(({ line }) => line);
  return createHash('sha256').update(lines.join('')).digest('hex');
}
