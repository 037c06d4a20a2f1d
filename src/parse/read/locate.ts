import type { TableOptions } from '../../config/vocabulary.js';
import { compileCaptures, compileLine, type LineMatcher } from '../grammar/line.js';
import { isBlank, type Line } from '../lines.js';
import { type Context, isComment, recut, withoutMark } from './context.js';
import { indexOfLine, requireLine } from './find-line.js';

/** A stretch of a table with the header that is valid in it. */
export interface Block {
  /** Lines with the names, without comment marks; none where the file has none. */
  readonly header: readonly Line[];
  readonly units: Line | undefined;
  readonly rows: readonly Line[];
  /** What the line that begins the block says about all of its rows. */
  readonly captures: ReadonlyMap<string, string>;
}

export interface LocatedTable {
  readonly name: string;
  readonly options: TableOptions;
  readonly blocks: readonly Block[];
  /** The next line with something in it, where a blank one ended the table. */
  readonly afterBlank: { readonly line: Line; readonly index: number } | undefined;
}

/** One mark a line: it belongs to a table, and `meta` passes it over. */
export type Claims = Uint8Array;

interface Range {
  readonly from: number;
  readonly to: number;
  readonly captures: ReadonlyMap<string, string>;
}

interface Head {
  readonly header: readonly Line[];
  readonly units: Line | undefined;
  /** The lines of this block that are not rows. */
  readonly claimed: readonly number[];
  /** Where rows begin. */
  readonly next: number;
}

/** Finds the lines of a table: where each of its blocks begins, its header, its rows, and where it ends. */
export async function locate(
  name: string,
  options: TableOptions,
  file: Context,
  claims: Claims,
): Promise<LocatedTable> {
  const context = await recut(file, options.delimiter);
  const isRow = compileRow(options, context);
  const until = compileLine(options.until, context.lines);
  const blocks: Block[] = [];
  let afterBlank: LocatedTable['afterBlank'];
  for (const range of ranges(options, context)) {
    const head = locateHead(options, range, blocks.at(-1), context);
    const body = await locateRows(range, head, until, isRow, context, claims);
    for (const index of head.claimed) claims[index] = 1;
    afterBlank = body.afterBlank ?? afterBlank;
    blocks.push({ header: head.header, units: head.units, rows: body.rows, captures: range.captures });
  }
  if (options.rows !== undefined && blocks.every(({ rows }) => rows.length === 0)) {
    throw context.refuse(`no line fits \`rows: ${options.rows}\``, { hint: 'correct `rows` in the mapping' });
  }
  return { name, options, blocks, afterBlank };
}

function ranges({ after, every }: TableOptions, context: Context): Range[] {
  const { lines } = context;
  const from = after === undefined ? 0 : requireLine('after', after, context) + 1;
  if (every === undefined) return [{ from, to: lines.length, captures: new Map() }];
  const begins = compileLine(every, lines);
  const capture = compileCaptures(every);
  const starts: { index: number; captures: Range['captures'] }[] = [];
  for (let index = requireLine('every', every, context, from); index < lines.length; index++) {
    const line = lines[index];
    if (line && begins(line)) starts.push({ index, captures: capture(line) });
  }
  return starts.map(({ index, captures }, n) => ({
    from: index + 1,
    to: starts[n + 1]?.index ?? lines.length,
    captures,
  }));
}

function compileRow(options: TableOptions, context: Context): LineMatcher {
  const skip = options.skip ? compileLine(options.skip, context.lines) : () => false;
  const rows = options.rows === undefined ? undefined : compileLine([options.rows], context.lines);
  return (line) => !isBlank(line) && !isComment(line, context) && !skip(line) && (rows?.(line) ?? true);
}

function locateHead(options: TableOptions, range: Range, earlier: Block | undefined, context: Context): Head {
  const { lines } = context;
  const claimed: number[] = [];
  let next = range.from;
  const take = (): Line[] => {
    const index = indexOfLine(lines, (line) => !isBlank(line), next, range.to);
    const line = lines[index];
    if (!line) return [];
    claimed.push(index);
    next = index + 1;
    return [withoutMark(line, context)];
  };
  let header: Line[] = [];
  if (options.header[0] !== 'none' && options.rows === undefined) {
    const start = headerStart(options, range, earlier, context);
    if (start === undefined) return { header: earlier?.header ?? [], units: earlier?.units, claimed, next };
    next = start;
    header = Array.from({ length: options.headerRows }, take).flat();
  }
  const [units] = options.units === 'nextRow' ? take() : [];
  return { header, units, claimed, next: Math.max(next, range.from) };
}

/** In the block, else the last one above it; undefined where an earlier block has read that already. */
function headerStart(
  { header, skip }: TableOptions,
  range: Range,
  earlier: Block | undefined,
  context: Context,
): number | undefined {
  const { lines, refuse } = context;
  const isFirst = header[0] === 'first';
  const skipped = skip ? compileLine(skip, lines) : () => false;
  const matches: LineMatcher = isFirst
    ? (line) => !isBlank(line) && !isComment(line, context) && !skipped(line)
    : compileLine(header, lines);
  const index = indexOfLine(lines, matches, range.from, range.to);
  if (index >= 0) return index;
  if (earlier) return undefined;
  if (isFirst)
    throw refuse('there is no table: only blank lines', { line: lines[range.from] ?? lines.at(-1) });
  const above = lines.slice(0, range.from).findLastIndex(matches);
  return above >= 0 ? above : requireLine('header', header, context);
}

async function locateRows(
  range: Range,
  head: Head,
  until: LineMatcher,
  isRow: LineMatcher,
  context: Context,
  claims: Claims,
): Promise<{ rows: Line[]; afterBlank: LocatedTable['afterBlank'] }> {
  const { lines, pace } = context;
  const names = new Set(head.header.map(({ text }) => text));
  const rows: Line[] = [];
  let hasBegun = head.next > range.from;
  for (let index = head.next; index < range.to; index++) {
    if (index % 512 === 0 && pace.due()) await pace.rest();
    const line = lines[index];
    if (!line || (!hasBegun && isBlank(line))) continue;
    if (until(line))
      return { rows, afterBlank: isBlank(line) ? nextLine(index, range.to, context) : undefined };
    if (!isRow(line) || names.has(line.text)) continue;
    hasBegun = true;
    rows.push(line);
    claims[index] = 1;
  }
  return { rows, afterBlank: undefined };
}

function nextLine(from: number, to: number, context: Context): LocatedTable['afterBlank'] {
  const index = indexOfLine(context.lines, (line) => !isBlank(line) && !isComment(line, context), from, to);
  const line = context.lines[index];
  return line && { line, index };
}
