import { isUtf8 } from 'node:buffer';
import picomatch from 'picomatch';
import type { RunKind } from '../config/run.js';
import type { DiskFile, Part } from '../model.js';

/** Which part of which run a file is. */
export interface Membership extends Part {
  /** The path of the run's folder, or of the first of those that are joined. */
  readonly run: string;
}

/** What makes files one run. Paths are relative to the watched folder, with `/` between names. */
export interface Grouping {
  /** Undefined: the file is part of no run. */
  memberOf(path: string): Membership | undefined;
  /** Where the file system has the run that is at `run` for people, seen from one of its parts. */
  locate(location: string | Buffer, part: Membership): string | Buffer;
}

/** Undefined where each file is a run. */
export function createGrouping(kind: RunKind = 'file'): Grouping | undefined {
  if (kind === 'file') return undefined;
  return 'folder' in kind ? byFolder(kind.folder) : byStem(kind.join);
}

/** The outermost folder that fits: whatever lies in a run's folder belongs to it. */
function byFolder(glob: string): Grouping {
  const fits = picomatch.makeRe(glob, { dot: true, flags: 's' });
  return {
    memberOf(path) {
      for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
        const run = path.slice(0, at);
        if (!fits.test(run)) continue;
        const name = path.slice(at + 1);
        return { run, name, role: name };
      }
      return undefined;
    },
    locate: (location, { name }) =>
      inBytes(location, (path) => path.split('/').slice(0, -name.split('/').length).join('/')),
  };
}

function byStem(patterns: readonly string[]): Grouping {
  const [first = ''] = patterns;
  // `a_raw.csv` is the `{stem}_raw.csv` of a rather than the `{stem}.csv` of a_raw.
  const pickiest = [...patterns].sort((a, b) => b.length - a.length);
  return {
    memberOf(path) {
      for (const role of pickiest) {
        const found = cut(path, role);
        if (found) return { run: found.base + fill(first, found.stem), name: fill(role, found.stem), role };
      }
      return undefined;
    },
    locate: (location, { role }) => besideIt(location, role, first),
  };
}

/** Where a run is that is known by the first of the files that are joined. */
type Place = Pick<DiskFile, 'path' | 'location'>;

/** Where all files of a joined run are, whether or not they are there. */
export function placesOf({ path, location }: Place, roles: readonly string[]): (Place & Part)[] {
  const [first = ''] = roles;
  const { base, stem } = cut(path, first) ?? { base: '', stem: '' };
  return roles.map((role) => {
    const name = fill(role, stem);
    return { path: base + name, location: besideIt(location, first, role), name, role };
  });
}

/** Where another of the joined files is, seen from one of them. */
const besideIt = (location: string | Buffer, role: string, other: string): string | Buffer =>
  inBytes(location, (path, written) => {
    const { base, stem } = cut(path, written(role)) ?? { base: '', stem: '' };
    return base + fill(written(other), stem);
  });

/** `x/y/a.csv` by `{stem}.csv`: the base `x/y/` and the stem `a`. */
function cut(path: string, pattern: string): { base: string; stem: string } | undefined {
  const [before = '', after = ''] = pattern.split('{stem}');
  if (!path.endsWith(after)) return undefined;
  const inside = path.slice(0, path.length - after.length);
  const base = inside
    .split('/')
    .slice(0, -before.split('/').length)
    .map((name) => `${name}/`)
    .join('');
  const stem = inside.slice(base.length + before.length);
  const isWhole = inside.startsWith(before, base.length) && stem !== '' && !stem.includes('/');
  return isWhole ? { base, stem } : undefined;
}

// A function, since a stem may hold what `replace` takes for an instruction, such as `$&`.
const fill = (pattern: string, stem: string): string => pattern.replace('{stem}', () => stem);

type Written = (text: string) => string;

/** Changes a path as text. Where it is bytes: one character a byte, so that what is not UTF-8 comes through untouched. */
function inBytes(
  location: string | Buffer,
  change: (path: string, written: Written) => string,
): string | Buffer {
  if (typeof location === 'string') return change(location, (text) => text);
  const asBytes: Written = (text) => Buffer.from(text).toString('latin1');
  const bytes = Buffer.from(change(location.toString('latin1'), asBytes), 'latin1');
  return isUtf8(bytes) ? bytes.toString() : bytes;
}
