import { isBlank, type Line } from '../lines.js';
import type { Pace } from '../pace.js';
import { quote, type Refuse } from '../refuse.js';
import { isAsWide, type Kind, kindsOf, merge } from './kinds.js';

/** The rows of the file's table: lines `from` to before `to`, all cut alike, with the same kinds in the same columns. */
export interface Body {
  readonly from: number;
  readonly to: number;
  readonly kinds: readonly Kind[];
}

/** Finds the rows of the file's table. */
export async function findBody(
  lines: readonly Line[],
  pace: Pace,
  refuse: Refuse,
): Promise<Body | undefined> {
  const best = await bestStretch(lines, pace);
  return best && widen(best, lines, refuse);
}

/** A second table beside the first cannot be passed over in silence. */
export async function refuseSecond(lines: readonly Line[], pace: Pace, refuse: Refuse): Promise<void> {
  const second = await bestStretch(lines, pace);
  if (!second || second.to - second.from < 3) return;
  const columns = second.kinds.filter((kind) => kind !== 'any');
  if (!columns.some(isMeasure) || (columns.length < 3 && !columns.every(isMeasure))) return;
  throw refuse('the file has more than one table, and only a mapping can say which is which', {
    line: lines[second.from],
    hint: 'name them: `tables: { first: { after: "…" }, second: { after: "…" } }`',
  });
}

/** The stretch of lines that most surely are rows of one table. */
async function bestStretch(lines: readonly Line[], pace: Pace): Promise<Body | undefined> {
  const isSpaced = isDoubleSpaced(lines);
  let best: Body | undefined;
  let open: Body | undefined;
  for (const [index, line] of lines.entries()) {
    if (index % 256 === 0 && pace.due()) await pace.rest();
    if (isSpaced && isBlank(line)) continue;
    const row = isBlank(line) || line.cells.length < 2 ? undefined : kindsOf(line);
    const kinds = open && row ? merge(open.kinds, row) : undefined;
    open = row && { from: open && kinds ? open.from : index, to: index + 1, kinds: kinds ?? row };
    if (open && weight(open) > weight(best)) best = open;
  }
  return best;
}

/** Some instruments write a blank line after every line: then it separates nothing. */
const isDoubleSpaced = (lines: readonly Line[]): boolean =>
  lines.length > 4 && lines.filter(isBlank).length * 5 >= lines.length * 2;

/** Long and wide is surer than short and narrow, and numbers make a table more surely than words do. */
function weight(body: Body | undefined): number {
  if (!body) return 0;
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  const area = (body.to - body.from) * (columns - 0.5);
  return body.kinds.some(isMeasure) ? area : area / 4;
}

const isMeasure = (kind: Kind | undefined): boolean => kind === 'number' || kind === 'date';

/** A row with a stray word in a column of numbers is a row all the same. */
function widen(body: Body, lines: readonly Line[], refuse: Refuse): Body {
  let { from, to } = body;
  while (isRow(lines[from - 1], body, refuse)) from--;
  const names = lines[from - 1]?.text;
  while (isRow(lines[to], body, refuse) || (lines[to] !== undefined && lines[to]?.text === names)) to++;
  refuseMore(lines, to, body, refuse);
  return { from, to, kinds: body.kinds };
}

/** Whether a line beside the rows is one of them: most of its cells are of the right kind, one of them a number. */
function isRow(line: Line | undefined, { kinds }: Body, refuse: Refuse): boolean {
  if (!line || isBlank(line) || !isAsWide(line.cells.length, kinds.length)) return false;
  const own = kindsOf(line);
  const filled = own.filter((kind) => kind !== 'any').length;
  const agreeing = own.filter((kind, n) => kind !== 'any' && kind === kinds[n]);
  if (!agreeing.some(isMeasure)) return false;
  if (agreeing.length * 2 > filled) return true;
  if (own[0] !== kinds[0]) return false;
  const stray = line.cells.find((_, n) => own[n] !== 'any' && own[n] !== kinds[n]) ?? '';
  throw refuse(`${quote(stray)} stands in a column of numbers`, {
    line,
    cell: line.cells.indexOf(stray),
    hint: `if it means no value: \`missing: [${JSON.stringify(stray)}]\``,
  });
}

/** Where rows come again below other lines, nobody but a person knows what those are. */
function refuseMore(lines: readonly Line[], to: number, { kinds }: Body, refuse: Refuse): void {
  const odd = lines[to];
  if (!odd || isBlank(odd)) return;
  const end = lines.findIndex((line, index) => index > to && isBlank(line));
  const rest = lines.slice(to + 1, end < 0 ? lines.length : end);
  if (!rest.some((line) => merge(kinds, kindsOf(line)))) return;
  throw refuse('the table stops here and goes on below', {
    line: odd,
    hint: `if this is no row: \`table: { skip: ${JSON.stringify(odd.text.trim().slice(0, 40))} }\``,
  });
}
