import { createHash } from 'node:crypto';
import type { RunKind } from '../config/schema.js';
import { FileChangedError } from '../errors.js';
import type { DiskFile, FoundFile, Hashed, IdentifiedFile, Part } from '../model.js';
import { type IdentifyOptions, identify, isAbsent, KEEP_BYTES, stampOf, statAll } from './identify.js';
import { createGrouping, type Grouping, type Matcher, placesOf } from './match.js';
import { list } from './scan.js';
import { isSame, type RunSnapshot, statFile } from './settle.js';

interface RunsOptions {
  /** The watched folder. */
  readonly root: string;
  readonly run: RunKind;
  readonly matcher: Matcher;
  readonly signal: AbortSignal;
  /** Files up to this size are handed on with their content. */
  readonly keepBytes?: number;
  /** Whether a file belongs to another instrument. */
  isClaimed(path: string): boolean;
}

/** What is one run: a file, all that lies in a folder, or files of one stem. */
export interface Runs {
  /** The runs of these files, as far as these show them. */
  group(files: readonly FoundFile[]): FoundFile[];
  /** A run as it is now, with all that belongs to it. */
  stat(run: FoundFile): Promise<RunSnapshot>;
  identify(run: FoundFile): Promise<IdentifiedFile>;
}

export function createRuns(options: RunsOptions): Runs {
  const { run: kind, signal, root, keepBytes } = options;
  const reading = { signal, ...(keepBytes !== undefined && { keepBytes }) };
  const grouping = createGrouping(kind);
  if (kind === 'file' || !grouping) {
    return {
      group: (files) => [...files],
      stat: statFile,
      identify: (file) => identify(file, reading),
    };
  }
  const look = (run: FoundFile): Promise<RunSnapshot> =>
    'folder' in kind ? lookIntoFolder(run, grouping, options) : lookAtJoined(run, kind.join, options);
  return {
    group: (files) => gather(files, grouping, root),
    stat: look,
    identify: (run) => identifyAll(run, { look, ...reading }),
  };
}

type FoundPart = DiskFile & Part;

/** Several files as one. */
const together = (
  { path, location }: Pick<DiskFile, 'path' | 'location'>,
  parts: readonly FoundPart[],
): FoundFile => ({
  path,
  location,
  size: parts.reduce((sum, { size }) => sum + size, 0),
  mtimeNs: parts.reduce((latest, { mtimeNs }) => (mtimeNs > latest ? mtimeNs : latest), 0n),
  inode: parts[0]?.inode ?? 0n,
  parts,
});

/** A run of which a listing brought further files. */
export const mergeRuns = (known: FoundFile | undefined, more: FoundFile): FoundFile =>
  known?.parts && more.parts ? together(more, [...known.parts, ...more.parts]) : more;

function gather(files: readonly FoundFile[], grouping: Grouping, root: string): FoundFile[] {
  const runs = new Map<string, { location: string | Buffer; parts: FoundPart[] }>();
  for (const file of files) {
    const member = grouping.memberOf(file.path.slice(root.length + 1));
    if (!member) continue;
    const path = `${root}/${member.run}`;
    const run = runs.get(path) ?? { location: grouping.locate(file.location, member), parts: [] };
    run.parts.push(toPart(file, member));
    runs.set(path, run);
  }
  return [...runs].map(([path, { location, parts }]) => together({ path, location }, parts));
}

const toPart = (file: DiskFile, { name, role }: Part): FoundPart => ({ ...file, name, role });

/** All that lies in a folder now, or nothing as long as some of it cannot be seen. */
async function lookIntoFolder(
  run: FoundFile,
  grouping: Grouping,
  { root, matcher, signal, isClaimed }: RunsOptions,
): Promise<RunSnapshot> {
  const parts: FoundPart[] = [];
  const { path, location } = run;
  const found = list(root, { matcher, signal, under: path.slice(root.length + 1), location });
  for (;;) {
    const next = await found.next();
    if (next.done) {
      if (next.value.state === 'missing') return 'absent';
      const isSeen = next.value.state === 'present' && next.value.unread.every(({ forbidden }) => forbidden);
      if (!isSeen) return 'no answer';
      break;
    }
    for (const file of next.value) {
      const member = grouping.memberOf(file.path.slice(root.length + 1));
      if (member && !isClaimed(file.path)) parts.push(toPart(file, member));
    }
  }
  // The order in which a folder is listed says nothing.
  return parts.length === 0
    ? 'absent'
    : together(
        run,
        parts.sort((a, b) => (a.name < b.name ? -1 : 1)),
      );
}

/** The files of one stem that are there now; `lacks` names the first that is not. */
async function lookAtJoined(
  run: FoundFile,
  roles: readonly string[],
  { isClaimed }: RunsOptions,
): Promise<RunSnapshot> {
  const places = placesOf(run, roles);
  const seen = await statAll(places.map((place) => place.location));
  const parts: FoundPart[] = [];
  let lacks: string | undefined;
  for (const [n, place] of places.entries()) {
    const stats = seen[n];
    if (stats === undefined || (stats instanceof Error && !isAbsent(stats))) return 'no answer';
    if (stats instanceof Error || !stats.isFile() || isClaimed(place.path)) lacks ??= place.path;
    else parts.push({ ...place, ...stampOf(stats) });
  }
  if (parts.length === 0) return 'absent';
  return { ...together(run, parts), ...(lacks !== undefined && { missing: lacks }) };
}

interface IdentifyAllOptions extends IdentifyOptions {
  look(run: FoundFile): Promise<RunSnapshot>;
}

/**
 * Hashes every file of a run that has settled, and holds the run against what settled once more: a file that came
 * meanwhile belongs to it. As many contents are handed on as are kept of a single file.
 */
async function identifyAll(
  run: FoundFile,
  { look, signal, keepBytes = KEEP_BYTES }: IdentifyAllOptions,
): Promise<IdentifiedFile> {
  const parts: (DiskFile & Part & Hashed)[] = [];
  let left = keepBytes;
  for (const part of run.parts ?? []) {
    const hashed = await identify(part, { signal, keepBytes: left });
    if (hashed.content) left -= hashed.size;
    parts.push({ ...part, ...hashed });
  }
  const now = await look(run);
  if (typeof now === 'string' || now.missing !== undefined || !isSame(now, run)) {
    throw new FileChangedError('the run is no longer the same: a file was added, taken away or written to', {
      where: { file: run.path },
    });
  }
  return { ...run, sha256: hashOf(parts), parts };
}

/** As `sha256sum` would print them in the order of their names, so that anybody can compute it again. */
function hashOf(parts: readonly (Part & Hashed)[]): string {
  const lines = parts
    .map(({ role, sha256 }) => ({
      role: Buffer.from(role),
      line: `${sha256}  ${role.replace(/[\\\n]/g, '\\$&')}\n`,
    }))
    .sort((a, b) => Buffer.compare(a.role, b.role))
    .map(({ line }) => line);
  return createHash('sha256').update(lines.join('')).digest('hex');
}
