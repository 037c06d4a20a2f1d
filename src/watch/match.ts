import picomatch from 'picomatch';
import type { RunKind } from '../config/run.js';
import { doneFileNames } from './done-file.js';
import { createGrouping } from './grouping.js';

export interface MatchOptions {
  readonly files: readonly string[];
  readonly ignore: readonly string[];
  readonly doneFile?: string | undefined;
  readonly run?: RunKind | undefined;
}

/** Whether a file is a run, or part of one, and the rule that says so: `why` shows it to people. */
export type Verdict =
  | { readonly taken: true; readonly pattern: string }
  | { readonly taken: false; readonly rule: 'ignore' | 'doneFile'; readonly pattern: string }
  /** It lies in no folder that is a run, or is none of the files that are joined. */
  | { readonly taken: false; readonly rule: 'run'; readonly pattern: string }
  | { readonly taken: false; readonly rule: 'files' };

/** Paths are relative to the watched folder, with `/` between names. */
export interface Matcher {
  /** Whether a file in a folder that was not pruned is a run, or part of one. */
  takes(path: string): boolean;
  /** Whether a file in a folder that was not pruned is no run only because no glob fits it. */
  misses(path: string): boolean;
  /** Whether nothing below this folder can be a run: it is neither listed nor watched. */
  prunes(folder: string): boolean;
  verdict(path: string): Verdict;
}

interface Rule {
  readonly pattern: string;
  readonly regex: RegExp;
}

/**
 * `ignore` speaks of folders too, as in .gitignore: what lies in an ignored folder is ignored.
 * So the default keeps out `.snapshot` and `.Trash`, where a share keeps copies of every file.
 */
export function createMatcher({ files, ignore, doneFile, run }: MatchOptions): Matcher {
  const grouping = createGrouping(run);
  // In a list, `!x` means "but not x"; picomatch would read it as "or anything but x".
  const wanted = files.filter((pattern) => !isNegated(pattern));
  const unwanted = files.filter(isNegated).map((pattern) => pattern.slice(1));
  const fileRules = (wanted.length > 0 ? wanted : ['**']).map(compile);
  const ignoreRules = [...ignore, ...unwanted].map(compile);
  const folderRules = ignoreRules.filter(({ pattern }) => !isNegated(pattern));
  const deepest = Math.max(...fileRules.map(({ pattern }) => reach(pattern)));
  const doneFiles = doneFile === undefined ? undefined : doneFileNames(doneFile);

  // One expression for each question: 50,000 names are asked at every rescan.
  const wantedRegex = union(fileRules);
  const ignoredRegex = union(ignoreRules);
  const prunedRegex = union(folderRules);

  return {
    takes: (path) =>
      wantedRegex.test(path) &&
      !ignoredRegex.test(path) &&
      doneFiles?.test(path) !== true &&
      (!grouping || grouping.memberOf(path) !== undefined),
    misses: (path) => !wantedRegex.test(path) && !ignoredRegex.test(path) && doneFiles?.test(path) !== true,
    prunes: (folder) => folder.split('/').length > deepest || prunedRegex.test(folder),
    verdict(path) {
      const folder = foldersAbove(path).find((above) => prunedRegex.test(above));
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

const describe = (run: RunKind = 'file'): string =>
  run === 'file' ? run : 'folder' in run ? run.folder : run.join.join(', ');

function compile(pattern: string): Rule {
  // `s`: a name may hold a newline, and `**` is made of dots.
  return { pattern, regex: picomatch.makeRe(pattern, { dot: true, flags: 's' }) };
}

function union(rules: readonly Rule[]): RegExp {
  return rules.length === 0 ? /(?!)/ : new RegExp(rules.map(({ regex }) => regex.source).join('|'), 's');
}

/** `!x`, but not the group `!(x|y)`. */
function isNegated(pattern: string): boolean {
  return pattern.startsWith('!') && !pattern.startsWith('!(');
}

/** How many folders deep a pattern can reach; `*.csv` needs no listing of the archive below it. */
function reach(pattern: string): number {
  if (pattern.includes('**') || pattern.includes('(')) return Number.POSITIVE_INFINITY;
  return pattern.split('/').length - 1;
}

/** `a/b/c.csv` → `a`, `a/b`. */
function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}
