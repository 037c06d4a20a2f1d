import { regexSource } from '../../config/grammar.js';
import type { ParseMapping } from '../../config/vocabulary.js';
import { isBlank, type Line } from '../lines.js';
import type { Refuse } from '../refuse.js';
import type { Body } from './body.js';
import type { Heading } from './heading.js';
import { kindsOf, merge } from './kinds.js';

type TableMapping = NonNullable<ParseMapping['table']>;

/** Names with values can look like a table of two columns; this tells whether it is one. */
export function isTable(body: Body, heading: Heading, lines: readonly Line[], refuse: Refuse): boolean {
  const rows = body.to - body.from;
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  const hasNumbers = body.kinds.some((kind) => kind === 'number' || kind === 'date');
  if (heading.rows === 0) {
    if (body.kinds[0] !== 'text') return rows >= 3;
    if (columns < 3 || rows < 2) return false;
    throw refuse('these look like rows of a table, and no line above names their columns', {
      line: lines[body.from],
      hint: 'if the file has no header: `parse: { table: { header: none } }`',
    });
  }
  if (columns >= 3) return rows >= (hasNumbers ? 1 : 3);
  if (body.kinds[0] !== 'text') return columns > 0;
  // A unit behind a name is what headers have, and facts have not.
  if (/[([][^)\]]+[)\]]$/.test(lines[heading.from]?.cells.at(-1)?.trim() ?? '')) return true;
  const filled = lines.filter((line) => !isBlank(line)).length;
  return rows >= 3 && lines.slice(0, heading.from).every(isBlank) && rows * 5 > filled * 3;
}

/** A plate's column numbers look like a row, and reading a plate as rows would be wrong without a sign of it. */
export function refusePlate(lines: readonly Line[], refuse: Refuse): void {
  const plate = lines.find(({ cells: [corner, ...numbers] }) => {
    const wells = numbers[0] === '1' ? numbers.filter((cell) => cell !== '') : [];
    return corner === '' && wells.length >= 6 && wells.every((cell, n) => cell === String(n + 1));
  });
  if (plate) throw refuse('this looks like a plate, which is not available in this version', { line: plate });
}

/** The words for where a table begins, ends and has its names. `raw`: the lines with their comment marks. */
export function describeTable(
  body: Body,
  heading: Heading,
  lines: readonly Line[],
  raw: (line: Line) => string,
  isComment: (line: Line) => boolean,
): TableMapping {
  const own = lines.filter((line) => !isComment(line));
  const until = describeEnd(body, heading, lines);
  const place =
    heading.rows === 0
      ? describeStart(body, lines, own)
      : describeHeader(lines[heading.from], own, lines, raw);
  return {
    ...place,
    ...(heading.rows > 1 && { headerRows: heading.rows }),
    ...(heading.units !== 'inHeader' && { units: heading.units }),
    ...(heading.skip.length > 0 && { skip: heading.skip.map(({ number }) => number) }),
    ...(until !== undefined && { until }),
  };
}

function describeStart(body: Body, lines: readonly Line[], own: readonly Line[]): TableMapping {
  const first = lines[body.from];
  const above = lines.slice(0, body.from).findLast((line) => !isBlank(line));
  const isTop = own.find((line) => !isBlank(line)) === first;
  return { header: 'none', ...(above && !isTop && { after: above.number }) };
}

/** By its first name, or by all of it, if no line above begins so too; else by its number. */
function describeHeader(
  header: Line | undefined,
  own: readonly Line[],
  lines: readonly Line[],
  raw: (line: Line) => string,
): TableMapping {
  if (!header || own.find((line) => !isBlank(line)) === header) return {};
  const text = raw(header).trimStart();
  const name = header.cells.find((cell) => cell !== '') ?? '';
  const earlier = lines.slice(0, lines.indexOf(header)).map((line) => raw(line).trimStart());
  const isOnly = (start: string) => !isWord(start) && !earlier.some((line) => line.startsWith(start));
  const starts = [text.slice(0, text.indexOf(name) + name.length), text];
  return { header: starts.find((start) => start.length > 1 && isOnly(start)) ?? header.number };
}

/** What a mapping would not take for the beginning of a line. */
const isWord = (start: string): boolean =>
  regexSource(start) !== undefined || ['first', 'none', 'blank', 'eof'].includes(start);

/** Undefined where the first blank line ends the table, or the file does. */
function describeEnd(
  { to, kinds }: Body,
  heading: Heading,
  lines: readonly Line[],
): string | number | undefined {
  const next = lines.slice(to).find((line) => !isBlank(line));
  const hasBlanks = lines.slice(heading.from, to).some(isBlank);
  const isRow = (line: Line) => isBlank(line) || merge(kinds, kindsOf(line)) !== undefined;
  if (hasBlanks) return !next || lines.slice(to).every(isRow) ? 'eof' : next.number;
  if (!next) return undefined;
  if (next === lines[to]) return next.number;
  return lines.slice(to).every(isRow) ? 'eof' : undefined;
}
