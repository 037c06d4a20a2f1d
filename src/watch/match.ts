import { isUtf8 } from 'node:buffer';
import { dirname, isAbsolute, posix, relative, sep } from 'node:path';
import picomatch from 'picomatch';
import type { Claim } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import type { DiskFile, Part } from '../model.js';
import { globDepth } from '../text.js';

export type MatchOptions = Pick<Claim, 'files' | 'ignore'> & Partial<Pick<Claim, 'ready' | 'run'>>;

/** Whether a file is a run or part of one, and the rule that decides it, which `why` shows. */
type Verdict =
  | { readonly taken: true; readonly pattern: string }
  /** `run`: it is in no folder that is a run, or is none of the joined files. */
  | { readonly taken: false; readonly rule: 'ignore' | 'doneFile' | 'run'; readonly pattern: string }
  | { readonly taken: false; readonly rule: 'files' };

/** Paths are relative to the watched folder, with `/` as separator. */
export type Matcher = ReturnType<typeof createMatcher>;

interface Rule {
  readonly pattern: string;
  readonly regex: RegExp;
}

/**
 * As in .gitignore, `ignore` applies to folders too: everything in an ignored folder is ignored.
 * So the default excludes `.snapshot` and `.Trash`, where a share keeps copies of every file.
 */
export function createMatcher({ files, ignore, ready, run }: MatchOptions) {
  const doneFile = ready?.doneFile;
  const grouping = createGrouping(run);
  const doneFiles = doneFile === undefined ? undefined : doneFileNames(doneFile);
  let compiled: ReturnType<typeof compileRules> | undefined;
  // With thousands of instruments, most folders are empty when they are first listed, and compiling takes time.
  const rules = () => {
    compiled ??= compileRules(files, ignore);
    return compiled;
  };
  return {
    /** Whether a file in a folder that was not pruned is a run or part of one. */
    takes: (path: string): boolean =>
      rules().wanted.test(path) &&
      !rules().ignored.test(path) &&
      doneFiles?.test(path) !== true &&
      (!grouping || grouping.memberOf(path) !== undefined),
    /** Whether a file in a folder that was not pruned is rejected only because no glob matches it. */
    misses: (path: string): boolean =>
      !rules().wanted.test(path) && !rules().ignored.test(path) && doneFiles?.test(path) !== true,
    /** Whether no file below this folder can be a run. Such folders are neither listed nor watched. */
    prunes: (folder: string): boolean => folder.split('/').length > rules().deepest || rules().pruned.test(folder),
    verdict(path: string): Verdict {
      const { fileRules, ignoreRules, folderRules, pruned } = rules();
      const folder = foldersAbove(path).find((above) => pruned.test(above));
      const ignored =
        folderRules.find(({ regex }) => folder !== undefined && regex.test(folder)) ??
        ignoreRules.find(({ regex }) => regex.test(path));
      if (ignored) return { taken: false, rule: 'ignore', pattern: ignored.pattern };
      if (doneFile !== undefined && doneFiles?.test(path)) {
        return { taken: false, rule: 'doneFile', pattern: doneFile };
      }
      if (grouping && !grouping.memberOf(path)) return { taken: false, rule: 'run', pattern: describe(run) };
      const taken = fileRules.find(({ regex }) => regex.test(path));
      return taken ? { taken: true, pattern: taken.pattern } : { taken: false, rule: 'files' };
    },
  };
}

/** Names that labfeed gives to files while it moves or deletes them, see `dispose.ts`. No such file is a run. */
export const PRIVATE_PREFIX = '.labfeed-';
export const PRIVATE_HINT =
  'a running labfeed gives it its own name again. If that labfeed no longer exists, rename the file';

const BEING_MOVED = `**/${PRIVATE_PREFIX}*`;

function compileRules(files: readonly string[], ignore: readonly string[]) {
  // In a list, `!x` means "but not x"; picomatch would read it as "or anything but x".
  const wanted = files.filter((pattern) => !isNegated(pattern));
  const unwanted = files.filter(isNegated).map((pattern) => pattern.slice(1));
  const fileRules = (wanted.length > 0 ? wanted : ['**']).map(compile);
  const ignoreRules = [...ignore, ...unwanted, BEING_MOVED].map(compile);
  const folderRules = ignoreRules.filter(({ pattern }) => !isNegated(pattern));
  return {
    ...{ fileRules, ignoreRules, folderRules },
    deepest: Math.max(...fileRules.map(({ pattern }) => globDepth(pattern))),
    // One expression per test: each rescan checks up to 50,000 names.
    wanted: union(fileRules),
    ignored: union(ignoreRules),
    pruned: union(folderRules),
  };
}

const describe = (run: RunKind = 'file'): string =>
  run === 'file' ? run : 'folder' in run ? run.folder : 'join' in run ? run.join.join(', ') : 'growing';

function compile(pattern: string): Rule {
  // `s`: a name may contain a newline, and `**` compiles to dots.
  return { pattern, regex: picomatch.makeRe(pattern, { dot: true, flags: 's' }) };
}

function union(rules: readonly Rule[]): RegExp {
  return rules.length === 0 ? /(?!)/ : new RegExp(rules.map(({ regex }) => regex.source).join('|'), 's');
}

/** `!x`, but not the group `!(x|y)`. */
function isNegated(pattern: string): boolean {
  return pattern.startsWith('!') && !pattern.startsWith('!(');
}

/** `a/b/c.csv` → `a`, `a/b`. */
function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

/** The run that a file belongs to, and its part in it. */
interface Membership extends Part {
  /** The path of the run's folder, or of the first joined file. */
  readonly run: string;
}

/** How files form runs. Paths are relative to the watched folder, with `/` as separator. */
export interface Grouping {
  /** Undefined if the file belongs to no run. */
  memberOf(path: string): Membership | undefined;
  /** The location of a run, derived from the location of one of its parts. */
  locate(location: string | Buffer, part: Membership): string | Buffer;
}

/** Undefined if each file is a run. */
export function createGrouping(kind: RunKind = 'file'): Grouping | undefined {
  if (kind === 'file' || 'growing' in kind) return undefined;
  return 'folder' in kind ? byFolder(kind.folder) : byStem(kind.join);
}

/** Tells the path of the run that a path belongs to: its folder, its first joined file, or the path itself. */
export function createRunPaths({ watch, run }: Pick<Claim, 'watch' | 'run'>): (path: string) => string {
  const grouping = createGrouping(run);
  return (path) => {
    const member = path.startsWith(`${watch}/`) ? grouping?.memberOf(path.slice(watch.length + 1)) : undefined;
    return member ? `${watch}/${member.run}` : path;
  };
}

/** The outermost folder that matches: everything below it belongs to the run. */
function byFolder(glob: string): Grouping {
  const folders = picomatch.makeRe(glob, { dot: true, flags: 's' });
  return {
    memberOf(path) {
      for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
        const run = path.slice(0, at);
        if (!folders.test(run)) continue;
        const name = path.slice(at + 1);
        return { run, name, role: name };
      }
      return undefined;
    },
    locate: (location, { name }) =>
      changePath(location, (path) => path.split('/').slice(0, -name.split('/').length).join('/')),
  };
}

function byStem(patterns: readonly string[]): Grouping {
  const [first = ''] = patterns;
  // Longest first: `a_raw.csv` is the `{stem}_raw.csv` of a, not the `{stem}.csv` of a_raw.
  const longestFirst = [...patterns].sort((a, b) => b.length - a.length);
  return {
    memberOf(path) {
      for (const role of longestFirst) {
        const found = cut(path, role);
        if (found) return { run: found.base + fill(first, found.stem), name: fill(role, found.stem), role };
      }
      return undefined;
    },
    locate: (location, { role }) => locateSibling(location, role, first),
  };
}

/** The location of a joined run is that of its first file. */
type Place = Pick<DiskFile, 'path' | 'location'>;

/** The locations of all files of a joined run, whether or not they exist. */
export function placesOf({ path, location }: Place, roles: readonly string[]): (Place & Part)[] {
  const [first = ''] = roles;
  const { base, stem } = cut(path, first) ?? { base: '', stem: '' };
  return roles.map((role) => {
    const name = fill(role, stem);
    return { path: base + name, location: locateSibling(location, first, role), name, role };
  });
}

/** The location of another joined file. */
const locateSibling = (location: string | Buffer, role: string, other: string): string | Buffer =>
  changePath(location, (path, encode) => {
    const { base, stem } = cut(path, encode(role)) ?? { base: '', stem: '' };
    return base + fill(encode(other), stem);
  });

/** `x/y/a.csv` with `{stem}.csv`: the base `x/y/` and the stem `a`. */
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

// A function, because a stem may contain replacement patterns such as `$&`.
const fill = (pattern: string, stem: string): string => pattern.replace('{stem}', () => stem);

/**
 * Changes a path as text. A path that is not UTF-8 is treated as one character per byte, so that its bytes stay
 * unchanged; `encode` converts other text in the same way.
 */
function changePath(
  location: string | Buffer,
  change: (path: string, encode: (text: string) => string) => string,
): string | Buffer {
  if (typeof location === 'string') return change(location, (text) => text);
  const encode = (text: string): string => Buffer.from(text).toString('latin1');
  const bytes = Buffer.from(change(location.toString('latin1'), encode), 'latin1');
  return isUtf8(bytes) ? bytes.toString() : bytes;
}

const PLACEHOLDER = /\{(name|stem)\}/g;

/** The done-file of a file: for `a.csv`, `{name}.done` is `a.csv.done` and `{stem}.ok` is `a.ok`. */
export const doneFileOf = (location: string | Buffer, pattern: string): string | Buffer =>
  changePath(location, (path, encode) => {
    const { dir, base, name } = posix.parse(path);
    // A function, because a name may contain replacement patterns such as `$&`.
    const filled = encode(pattern).replace(PLACEHOLDER, (_, part: string) => (part === 'name' ? base : name));
    return posix.join(dir, filled);
  });

/** Matches the paths of all done-files. */
function doneFileNames(pattern: string): RegExp {
  const name = pattern
    .split(/\{(?:name|stem)\}/)
    .map((literal) => literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('[^/]+');
  return new RegExp(`(?:^|/)${name}$`);
}

/** Finds the claims whose folders contain a folder or are inside it, in their order. */
function relatedClaims(claims: readonly Claim[]): (folder: string) => readonly Claim[] {
  const [at, below] = [new Map<string, Claim[]>(), new Map<string, Claim[]>()];
  const add = (map: Map<string, Claim[]>, folder: string, claim: Claim): void => {
    const list = map.get(folder);
    if (list) list.push(claim);
    else map.set(folder, [claim]);
  };
  for (const claim of claims) add(at, claim.watch, claim);
  for (const claim of claims)
    for (const folder of ancestorsOf(claim.watch)) if (at.has(folder)) add(below, folder, claim);
  const order = new Map(claims.map((claim, index) => [claim, index]));
  const positionOf = (claim: Claim): number => order.get(claim) ?? 0;
  const known = new Map<string, readonly Claim[]>();
  return (folder) => {
    const found =
      known.get(folder) ??
      [folder, ...ancestorsOf(folder)]
        .flatMap((above) => at.get(above) ?? [])
        .concat(below.get(folder) ?? [])
        .sort((a, b) => positionOf(a) - positionOf(b));
    known.set(folder, found);
    return found;
  };
}

/** `/a/b` → `/a`, `/`. */
function ancestorsOf(folder: string): string[] {
  const found: string[] = [];
  for (let [at, above] = [folder, dirname(folder)]; above !== at; [at, above] = [above, dirname(above)])
    found.push(above);
  return found;
}

export type Claims = ReturnType<typeof createClaims>;

/** Which files belong to which instrument: to the first that matches them. Only related folders are compared. */
export function createClaims(claims: readonly Claim[]) {
  const related = relatedClaims(claims);
  const matchers = new Map<Claim, Matcher>();
  function takes(claim: Claim, path: string): boolean {
    const inside = pathInside(claim.watch, path);
    if (inside === undefined) return false;
    const matcher = matchers.get(claim) ?? createMatcher(claim);
    matchers.set(claim, matcher);
    return matcher.takes(inside) && !foldersAbove(inside).some(matcher.prunes);
  }
  return {
    related,
    takes,
    /** The instrument before this one that the file belongs to. One with a mistake counts: its files wait for the correction. */
    before({ name, watch }: Pick<Claim, 'name' | 'watch'>, path: string): Claim | undefined {
      for (const claim of related(watch)) {
        if (claim.name === name) return undefined;
        if (takes(claim, path)) return claim;
      }
      return undefined;
    },
    /** Whether the file belongs to another instrument than this one. */
    isOthers: ({ name, watch }: Pick<Claim, 'name' | 'watch'>, path: string): boolean =>
      related(watch).some((claim) => claim.name !== name && takes(claim, path)),
  };
}

/** The path relative to a folder, with `/` as separator; undefined if it is not inside the folder. */
export function pathInside(folder: string, path: string): string | undefined {
  const inside = plainlyInside(folder, path) ?? relative(folder, path);
  if (inside === '' || inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) return undefined;
  return sep === '/' ? inside : inside.replaceAll(sep, '/');
}

/** Without resolving `.` and `..`, which takes most of the time that finding the instrument of a file takes. */
const plainlyInside = (folder: string, path: string): string | undefined =>
  path.startsWith(`${folder}${sep}`) && !path.includes(`${sep}.`) && !path.includes(`${sep}${sep}`)
    ? path.slice(folder.length + 1)
    : undefined;
