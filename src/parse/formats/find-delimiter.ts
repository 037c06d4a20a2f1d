import { compileSplit } from '../grammar/split.js';

/** In the order in which they are believed where several cut equally well: `1,5;2,5` is cut at `;`. */
const SIGNS = ['tab', ';', '|', ','];
const BLANKS = ['spaces', 'whitespace'];
export const LOOK_LINES = 1000;

interface Candidate {
  readonly delimiter: string;
  /** How many lines in a row it cuts alike, and into how many cells. */
  readonly run: number;
  readonly width: number;
}

/** The delimiter that cuts the most lines in a row into equally many cells; undefined where none does. */
export function findDelimiter(texts: readonly string[]): string | undefined {
  const look = texts.slice(0, LOOK_LINES).map((text) => text.replace(/"[^"]*"/g, 'q'));
  const sign = best(SIGNS, look);
  const blank = best(BLANKS, look);
  // Words of a sentence are cut by blanks too, so blanks must be by far the more regular.
  const isBlanks = blank !== undefined && blank.run >= 3 && blank.run > 2 * (sign?.run ?? 0);
  return (isBlanks ? blank : sign)?.delimiter;
}

function best(delimiters: readonly string[], texts: readonly string[]): Candidate | undefined {
  let found: Candidate | undefined;
  for (const delimiter of delimiters) {
    const candidate = longestRun(delimiter, texts);
    if (candidate.run > 0 && (!found || isBetter(candidate, found))) found = candidate;
  }
  return found;
}

/** One odd line does not decide; but what cuts twice as fine at least as regularly is the better delimiter. */
const isBetter = (later: Candidate, found: Candidate): boolean =>
  later.run > 1.2 * found.run || (1.2 * later.run >= found.run && later.width >= 2 * found.width);

function longestRun(delimiter: string, texts: readonly string[]): Candidate {
  const split = compileSplit(delimiter);
  let longest: Candidate = { delimiter, run: 0, width: 0 };
  let run = 0;
  let width = 0;
  for (const text of texts) {
    if (text.trim() === '') continue;
    const cells = split.cut(text).length;
    run = cells > 1 && cells === width ? run + 1 : Number(cells > 1);
    width = cells;
    if (run > longest.run) longest = { delimiter, run, width };
  }
  return longest;
}
