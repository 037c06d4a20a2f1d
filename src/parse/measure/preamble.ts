import { compileSplit } from '../grammar/split.js';
import { isBlank, type Line } from '../lines.js';

/** What lines are cut at, into name and value; undefined where they are not such lines. */
export function findSeparator(lines: readonly Line[], delimiter: string | undefined): string | undefined {
  const filled = lines.filter((line) => !isBlank(line));
  const candidates = [...(delimiter === undefined ? [] : [delimiter]), ':', '=', 'tab'];
  let best: { separator: string; hits: number } | undefined;
  for (const separator of new Set(candidates)) {
    const { cutOnce } = compileSplit(separator);
    const cut = filled.filter(({ text }) => cutOnce(text)).length;
    const names = namesIn(filled, separator, delimiter);
    const hits = new Set(names).size;
    // Facts have names, and mostly names of their own; where few have, it is no list of facts.
    if (names.length * 2 >= cut && hits * 4 > names.length && hits > (best?.hits ?? 0))
      best = { separator, hits };
  }
  return best?.separator;
}

/** The names of the lines that are a name and a value. */
export function namesIn(lines: readonly Line[], separator: string, delimiter: string | undefined): string[] {
  const split = compileSplit(separator);
  const other = delimiter === undefined || delimiter === separator ? undefined : compileSplit(delimiter).text;
  return lines.flatMap(({ text }) => {
    const parts = split.cutOnce(text);
    return parts && isPair(parts, other) ? [parts[0]] : [];
  });
}

/** A name is a few words; one with a `:` or `=` within, or a value that begins with a delimiter, was cut wrongly. */
function isPair([name, value]: readonly [string, string], delimiter: string | undefined): boolean {
  if (!/\p{L}/u.test(name) || name.length > 60 || /[:=]\s*[^\s:=]/.test(name)) return false;
  return delimiter === undefined || !value.startsWith(delimiter.trim() || delimiter);
}

const MARKS = ['#', '!', '~', '%', '//', '*'];

/** What the lines above the rows begin with, where each of them does: they are comments. */
export function findCommentMark(texts: readonly string[]): string | undefined {
  const filled = texts.filter((text) => text.trim() !== '');
  const mark = MARKS.find((candidate) => filled[0]?.trimStart().startsWith(candidate));
  if (mark === undefined) return undefined;
  const end = filled.findIndex((text) => !text.trimStart().startsWith(mark));
  return end >= 2 && filled.slice(end).every((text) => !text.trimStart().startsWith(mark)) ? mark : undefined;
}
