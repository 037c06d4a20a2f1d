import { isBlank, type Line } from '../lines.js';
import { dateForms } from '../values/date-forms.js';
import type { FinderMapping } from './pairs.js';
import { escaped } from './title-pattern.js';
import { isNumbered, meaningOf } from './when.js';

/** A date within a line that is no fact by itself: `Performed 22.06.2020 10:31:55`. */
export interface LineDate {
  readonly finder: FinderMapping;
  readonly text: string;
  /** False where the words before it rather say when something was printed or saved. */
  readonly isOfRun: boolean;
}

const CLOCK = String.raw`\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M\b)?`;
const DAYS = [
  String.raw`\d{4}([-/.])\d{1,2}\1\d{1,2}`,
  String.raw`\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d)`,
  String.raw`\d{1,2}([-/. ])[A-Z]{3,9}\3\d{2,4}`,
  String.raw`[A-Z]{3,9} +\d{1,2},? \d{4}`,
];
const DAY = `(?:${DAYS.join('|')})`;
/** A day with a time is one wherever it stands; a day alone could be a version or a part of a path. */
const MOMENT = new RegExp(
  String.raw`(?<![\w./\\-]|\d:)(?:${DAY}(?:,| at| on|T)? *${CLOCK}|[A-Z]{3,9} +\d{1,2} ${CLOCK} \d{4})(?![\w./\\:-])`,
  'i',
);
const REVERSE = new RegExp(String.raw`(?<![\w./\\-]|\d:)${CLOCK} +(?:on )?${DAY}(?![\w/\\:-])`, 'i');
const ALONE = new RegExp(String.raw`(?<![\w./\\-]|\d:)${DAY}(?![\w/\\:-])`, 'i');
const STAMP = /(?<!\d)20\d{6}[_-]\d{6}(?!\d)/;

const MOST_LINES = 2000;
const LONGEST = 300;
/** Each of them is looked for in all lines. */
const MOST_HITS = 20;

/** The date that most likely is that of the run, among lines that are in no table. */
export function findLineDate(lines: readonly Line[]): LineDate | undefined {
  const told = lines.filter((line) => !isBlank(line) && line.text.length <= LONGEST).slice(0, MOST_LINES);
  const hits = told.flatMap(dateIn).sort((a, b) => b.weight - a.weight);
  for (const { before, text, weight } of hits.slice(0, MOST_HITS)) {
    const pattern = patternFor(before, text);
    const first = told.map((line) => new RegExp(pattern).exec(line.text)).find((found) => found !== null);
    if (first?.groups?.['date'] === text)
      return { finder: { match: `/${pattern}/` }, text, isOfRun: weight > 0 };
  }
  return undefined;
}

interface Hit {
  /** What the line says before the date. */
  readonly before: string;
  readonly text: string;
  readonly weight: number;
}

function dateIn({ text }: Line): Hit[] {
  for (const pattern of [MOMENT, REVERSE, STAMP, ALONE]) {
    const found = pattern.exec(text);
    if (!found || dateForms(found[0]).length === 0) continue;
    const before = text.slice(0, found.index);
    const weight = meaningOf({ name: before, text: found[0] });
    if (pattern === ALONE && (isNumbered(before) || weight <= 0)) return [];
    return [{ before, text: found[0], weight }];
  }
  return [];
}

/** The words right before the date, and the date with its digits and months left open. */
function patternFor(before: string, text: string): string {
  const words = /(?:\S+\s+){0,3}\S*\s*$/.exec(before.slice(-40))?.[0] ?? '';
  const start = words.length === before.length ? '^' : '';
  return `${start}${open(words)}(?<date>${open(text)})`;
}

const open = (text: string): string =>
  text
    .split(/(\d+|\s+)/)
    .map((part) => (/^\d/.test(part) ? '\\d+' : /^\s/.test(part) ? '\\s+' : lettersOpen(part)))
    .join('');

/** Names of months and AM change; the words before a date do not. */
const lettersOpen = (part: string): string =>
  MONTH.test(part) || /^[ap]m$/i.test(part) ? part.replace(/[A-Za-z]+/, '[A-Za-z]+') : escaped(part);

const MONTH = /^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*$/i;
