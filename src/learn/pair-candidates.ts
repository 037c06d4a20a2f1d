import { compileSplit } from '../parse/cells.js';
import type { Line } from '../parse/lines.js';
import { describePieces, type FinderMapping } from './pieces.js';

/** The ways in which pairs of name and value can be written. */

/** A way to read pairs, and the evidence that it needs. */
export interface Candidate {
  readonly finder: FinderMapping;
  /** In lines of one pair each: what separates name and value. */
  readonly signs: readonly string[];
  /** How many facts it must add to be worth it. */
  readonly cost: number;
  readonly minHits: number;
}

/** Name, type, value, unit, comment. */
export const MAX_PIECES = 5;

/** How each sign is written in a pattern. What is looked for comes first: looking back at each character takes long. */
const AS_PATTERN: Readonly<Record<string, string>> = {
  tab: '\\t',
  spaces: '(?<=\\S) {2,}(?![ :=])',
  '|': '\\|',
  dots: ' ?\\.{2,}[ :=]?',
  quote: '\\s(?=")',
  bracket: '\\](?<=^\\s*\\[[^\\]]*\\])',
  dash: ' - (?<=^[^-:=#|,;\\t]+ - )(?!- )',
};

/** A colon that is not within a time of day, brackets, a path or an address. */
const SURE_COLON = ':(?<!\\d:(?=\\d)|\\([^)]{0,80})(?![\\\\/])';

/** The first colon of a line that is not within brackets, if nothing stands beside the value. */
const ONLY_PAIR = ':(?<=^[^:(]*(?:\\([^)]*\\)[^:(]*)?:)(?![\\\\/]|\\s*\\S.* {2}[A-Za-z]|.*[A-Za-z]: {2,}\\S)';

/** Two or more spaces after words that do not start with a digit: `14-Mar-2019   11:07` is no name and value. */
const AFTER_WORD = ' (?<=\\S )(?<!^ *\\d\\S* ) +(?![ :=])';

/** One pair per line, split at the first of one to three signs. */
export function pairsPerLine(lines: readonly Line[], delimiter: string | undefined): Candidate[] {
  const own = delimiter === undefined || delimiter === 'whitespace' ? [] : [delimiter];
  const signs = [...new Set([...own, ':', '=', 'tab', 'spaces', 'dots', 'quote', 'bracket', 'dash'])].filter((sign) => {
    const pattern = new RegExp(AS_PATTERN[sign] ?? sign);
    return lines.some(({ text }) => pattern.test(text));
  });
  // Beside other signs, a dash is part of a value.
  const isAlone = (set: readonly string[]) => set.length === 1 || !set.includes('dash');
  const sets = signs.flatMap((one, n) => [
    [one],
    ...signs
      .slice(n + 1)
      .flatMap((two, m) => [[one, two], ...signs.slice(n + m + 2).map((three) => [one, two, three])]),
  ]);
  return sets.filter(isAlone).flatMap((set) =>
    separatorsOf(set, lines, delimiter).map((finder, n) => ({
      finder,
      signs: set,
      cost: 0.1 * n + set.slice(1).reduce((sum, sign) => sum + (/^[:=]$/.test(sign) ? 0.6 : 1.5), 0),
      // Spaces and dashes separate words too, so they need more evidence.
      minHits: set.every((sign) => sign === 'spaces' || sign === 'dash') ? 4 : set.length === 1 ? 1 : 2,
    })),
  );
}

/** The ways to write a set of signs, simplest first. The last one leaves out rows: `B1=1,326,0,730,1570,687`. */
function separatorsOf(
  signs: readonly string[],
  lines: readonly Line[],
  delimiter: string | undefined,
): FinderMapping[] {
  const [first = ':', ...others] = signs;
  const isWord = first in AS_PATTERN && !['tab', 'spaces', '|'].includes(first);
  const plain =
    others.length > 0 || isWord ? [] : [{ separator: first, ...(first === delimiter && describePieces(lines)) }];
  // Delimiters directly after the sign only move the value to the right.
  const sign = delimiter === undefined ? undefined : compileSplit(delimiter).text;
  const padding = sign === undefined || sign === '\t' ? '[\\s]*' : `[\\s${sign}]*`;
  const write = (colon: string) => {
    const patterns = signs.map((each) => (each === ':' ? colon : (AS_PATTERN[each] ?? each)));
    return {
      separator: patterns.length === 1 ? `/${patterns[0]}${padding}/` : `/(?:${patterns.join('|')})${padding}/`,
    };
  };
  const isPadded = first !== delimiter || others.length > 0;
  return [
    ...plain,
    ...(isPadded ? [write(':')] : []),
    ...(signs.includes(':') ? [write(SURE_COLON)] : []),
    ...(first === ':' && others.length === 0 ? [{ separator: `/${ONLY_PAIR}${padding}/` }] : []),
    ...(first === 'spaces' && others.length === 0 ? [{ separator: `/${AFTER_WORD}/` }] : []),
    ...(first === '=' && others.length === 0 && (sign === ',' || sign === ';')
      ? [{ separator: `/=(?!(?:[^${sign}]*${sign}){${MAX_PIECES}})\\s*/` }]
      : []),
  ];
}

/** Two or more spaces, but not those that align the separators: `Method   :  A     Vial : 1`. */
const GAPS = '/(?<![ :=]) {2,}(?![ :=])/';

/** `VC:2f31 SV:2.1  SN:12-0117` */
const BEFORE_SHORT_NAME = '/\\s+(?=[A-Z]{2,4}:\\S)/';

/** Several pairs per line, each in one cell (`User: A, Test: 3`) or in two (`User:` `A` `Test:` `3`). */
export function pairsInCells(delimiter: string | undefined): Candidate[] {
  const delimiters = new Set([
    ...(delimiter === undefined || delimiter === 'whitespace' ? [] : [delimiter]),
    ',',
    ';',
    'spaces',
    'tab',
    GAPS,
    BEFORE_SHORT_NAME,
  ]);
  const signs = [':', `/${SURE_COLON}\\s*/`, '='];
  const beforeName = [',', ';', '/', '|'].flatMap((sign) =>
    [':', '='].map((mark) => ({
      // `mV/div` is a unit.
      delimiter: `/${AS_PATTERN[sign] ?? (sign === '/' ? '(?:\\s\\/|\\/\\s)' : sign)}\\s*(?=[A-Za-z][^${sign === '/' ? '\\/' : sign}${mark}]+${mark})/`,
      separator: mark === ':' ? `/${SURE_COLON}\\s*/` : mark,
    })),
  );
  const finders: FinderMapping[] = [
    ...[...delimiters].flatMap((each) => signs.map((separator) => ({ delimiter: each, separator }))),
    ...beforeName,
  ].map((each) => ({
    ...(each.delimiter !== delimiter && { delimiter: each.delimiter }),
    in: 'cells',
    separator: each.separator,
  }));
  const alternating: FinderMapping[] = [...delimiters].map((each) => ({
    ...(each !== delimiter && { delimiter: each }),
    separator: 'cell',
  }));
  return [...finders, ...alternating].map((finder) => ({
    finder,
    signs: [],
    cost: finder.delimiter === undefined ? 0.2 : 0.6,
    minHits: finder.delimiter === undefined ? 2 : 3,
  }));
}

/** A sign marks the names: `$CM_MAG 5000`, `<RATE>= 5 Hz`. After `%` and `!`, words may be a remark. */
export const SIGNED_NAMES = [
  { line: /^[$@]+[A-Za-z][\w.]*\s+\S/, delimiter: '/^[$@]+(?=[A-Za-z])|\\s+(?<=^[$@]+[A-Za-z][\\w.]*\\s+)/' },
  {
    line: /^[%!]+[A-Z][A-Z\d_]+\s+\S/,
    delimiter: '/^[%!]+(?=[A-Z])|\\s+(?<=^[%!]+[A-Z][A-Z\\d_]+\\s+)/',
  },
  { line: /^<[A-Za-z][^<>]*>\s*[=:]/, delimiter: '/^<(?=[A-Za-z])|>\\s*[=:]\\s*(?<=^<[^<>]*>\\s*[=:]\\s*)/' },
];

/** Most lines that are no rows have such a name. */
export function pairsWithSigns(lines: readonly Line[]): Candidate[] {
  return SIGNED_NAMES.filter(({ line }) => lines.filter(({ text }) => line.test(text)).length * 2 > lines.length).map(
    ({ delimiter }) => ({ finder: { delimiter, separator: 'cell' }, signs: [], cost: 0.2, minHits: 2 }),
  );
}
