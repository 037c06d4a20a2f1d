import { isBlank, type Line, type Pace } from '../lines.js';
import { areNumberNames, isAsWide, type Kind, kindsOf, merge } from './kinds.js';

/** Rows that belong together: lines `from` to before `to`, all cut alike, with the same kinds in the same columns. */
export interface Body {
  readonly from: number;
  readonly to: number;
  readonly kinds: readonly Kind[];
}

/** The stretch of lines, `from` to before `to`, that most surely are rows of one table. */
export async function findBody(
  lines: readonly Line[],
  from: number,
  to: number,
  pace: Pace,
): Promise<Body | undefined> {
  const isSpaced = isDoubleSpaced(lines.slice(from, to));
  let best: Body | undefined;
  let open: Body | undefined;
  for (let index = from; index < to; index++) {
    if (index % 256 === 0 && pace.due()) await pace.rest();
    const line = lines[index];
    if (!line || (isSpaced && isBlank(line))) continue;
    const row = isBlank(line) ? undefined : kindsOf(line);
    const kinds = open && row ? merge(open.kinds, row) : undefined;
    open = row && { from: open && kinds ? open.from : index, to: index + 1, kinds: kinds ?? row };
    if (open && weight(open) > weight(best)) best = open;
  }
  return best && widen(best, lines, from, to);
}

/** Some instruments write a blank line after every line: then it separates nothing. */
const isDoubleSpaced = (lines: readonly Line[]): boolean =>
  lines.length > 4 && lines.filter(isBlank).length * 5 >= lines.length * 2;

/** Long and wide is surer than short and narrow, and numbers make a table more surely than words do. */
function weight(body: Body | undefined): number {
  if (!body) return 0;
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  // A single column is a table only where it goes on for long.
  const area = (body.to - body.from) * (columns > 1 ? columns - 0.5 : 0.1);
  return body.kinds.some(isMeasure) ? area : area / 4;
}

export const isMeasure = (kind: Kind | undefined): boolean => kind === 'number' || kind === 'date';

/** A row with a stray word in a column of numbers is a row all the same. */
function widen(body: Body, lines: readonly Line[], top: number, bottom: number): Body {
  let { from, to } = body;
  const isNames = (line: Line | undefined) => line !== undefined && areNumberNames(line, body.kinds);
  while (from > top && isRow(lines[from - 1], body) && !isNames(lines[from - 1])) from--;
  const names = lines[from - 1]?.text;
  // A header that comes again and again: the rows begin below the first.
  for (let at = from - 2; at >= top; at--) {
    if (lines[at]?.text === names && names !== undefined) from = at + 1;
    else if (!isRow(lines[at], body)) break;
  }
  while (to < bottom && (isRow(lines[to], body) || (lines[to] !== undefined && lines[to]?.text === names)))
    to++;
  return { from, to, kinds: body.kinds };
}

/** Whether a line beside the rows is one of them: most of its cells are of the right kind, one of them a number. */
function isRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || isBlank(line) || kinds.length < 2 || !isAsWide(line.cells.length, kinds.length)) return false;
  const own = kindsOf(line);
  const filled = own.filter((kind) => kind !== 'any').length;
  const agreeing = own.filter((kind, n) => kind !== 'any' && kind === kinds[n]);
  if (!agreeing.some(isMeasure)) return false;
  return agreeing.length * 2 > filled || own[0] === kinds[0];
}
