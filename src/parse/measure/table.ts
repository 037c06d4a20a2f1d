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
  const filled = lines.filter((line) => !isBlank(line)).length;
  refusePlate(lines[body.from], refuse);
  if (heading.rows === 0) return rows >= 3 && body.kinds[0] !== 'text';
  if (columns >= 3) return rows >= (body.kinds.some((kind) => kind === 'number' || kind === 'date') ? 1 : 3);
  if (body.kinds[0] === 'text') return rows >= 3 && isFirst(heading.from, lines) && rows * 5 > filled * 3;
  return columns > 0;
}

const isFirst = (index: number, lines: readonly Line[]): boolean => lines.slice(0, index).every(isBlank);

/** A plate's column numbers look like a row of numbers. Reading a plate as rows would be wrong without a sign of it. */
function refusePlate(line: Line | undefined, refuse: Refuse): void {
  const [corner, ...numbers] = line?.cells ?? [];
  const wells = numbers.filter((cell) => cell !== '');
  if (corner !== '' || wells.length < 6 || wells.some((cell, n) => cell !== String(n + 1))) return;
  throw refuse('this looks like a plate, which is not available in this version', { line });
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
      : describeHeader(lines[heading.from] as Line, own, lines, raw);
  return {
    ...place,
    ...(heading.rows > 1 && { headerRows: heading.rows }),
    ...(heading.units !== 'inHeader' && { units: heading.units }),
    ...(until !== undefined && { until }),
  };
}

function describeStart(body: Body, lines: readonly Line[], own: readonly Line[]): TableMapping {
  const first = lines[body.from];
  const above = lines.slice(0, body.from).findLast((line) => !isBlank(line));
  const isTop = own.find((line) => !isBlank(line)) === first;
  return { header: 'none', ...(above && !isTop && { after: above.number }) };
}

/** By the text that it begins with, if no line above begins so too; else by its number. */
function describeHeader(
  header: Line,
  own: readonly Line[],
  lines: readonly Line[],
  raw: (line: Line) => string,
): TableMapping {
  if (own.find((line) => !isBlank(line)) === header) return {};
  const text = raw(header).trimStart();
  const name = header.cells.find((cell) => cell !== '') ?? '';
  const start = text.slice(0, text.indexOf(name) + name.length);
  const earlier = lines.slice(0, lines.indexOf(header));
  const isClear =
    start.length > 1 && !/^\/.*\/$/.test(start) && !['first', 'none', 'blank', 'eof'].includes(start);
  const isOnly = !earlier.some((line) => raw(line).trimStart().startsWith(start));
  return { header: isClear && isOnly ? start : header.number };
}

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
