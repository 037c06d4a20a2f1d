import { isBlank, type Line, type Pace } from '../lines.js';
import { type Body, findBody, isMeasure } from './body.js';
import { findHeading, type Heading } from './heading.js';
import { type FoundPlate, findPlates } from './plates.js';

/** A table of rows: its names and its rows, lines `from` to before `to`. */
export interface FoundRows {
  readonly kind: 'rows';
  readonly from: number;
  readonly to: number;
  readonly body: Body;
  readonly heading: Heading;
}

export type Found = FoundRows | FoundPlate;

const MOST_TABLES = 40;
/** Two lines that look alike are found anywhere; so often, what stands above and below them is looked through too. */
const MOST_TRIES = 8;

export interface Layout {
  /** In the order of the lines. */
  readonly tables: readonly Found[];
  /** The first of some lines that look like rows, and that nothing names. */
  readonly nameless: Line | undefined;
}

/** Where the tables of a file are. */
export async function findLayout(lines: readonly Line[], pace: Pace): Promise<Layout> {
  const plates = findPlates(lines);
  const found: Found[] = [...plates];
  const nameless: Line[] = [];
  let top = 0;
  for (const { from, to } of [...plates, { from: lines.length, to: lines.length }]) {
    await search(lines, top, from, { found, nameless, pace, tries: MOST_TRIES });
    top = to;
  }
  return { tables: found.sort((a, b) => a.from - b.from), nameless: nameless[0] };
}

interface Search {
  readonly found: Found[];
  readonly nameless: Line[];
  readonly pace: Pace;
  /** How often a find of a line or two that is no table is no reason to stop. */
  tries: number;
}

/** The surest table first; then what is above and below it is looked through in the same way. */
async function search(lines: readonly Line[], top: number, bottom: number, all: Search): Promise<void> {
  const { found, nameless, pace } = all;
  if (bottom - top < 2 || found.length >= MOST_TABLES) return;
  const body = await findBody(lines, top, bottom, pace);
  if (!body) return;
  const heading = findHeading(lines, body, top);
  const from = heading.rows === 0 ? body.from : heading.from;
  const isFound = isTable(body, heading, lines, top, bottom);
  if (isFound) found.push({ kind: 'rows', from, to: body.to, body, heading });
  else if (isNameless(body, heading, lines, top, bottom)) nameless.push(...lines.slice(from, from + 1));
  // What is no table may still have one beside it, as long as there is none.
  if (!isFound && body.to - body.from < 3 && (found.length > 0 || all.tries-- <= 0)) return;
  await search(lines, top, isFound ? from : body.from, all);
  await search(lines, body.to, bottom, all);
}

/** Names with values can look like a table; this tells whether it is one. */
function isTable(body: Body, heading: Heading, lines: readonly Line[], top: number, bottom: number): boolean {
  const rows = body.to - body.from - Number(heading.from === body.from && heading.rows > 0);
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  if (rows < 3 && !standsAlone(lines, heading.from, body.to, top, bottom)) return false;
  if (columns < 2) return columns === 1 && body.kinds.some(isMeasure) && rows >= 10;
  const hasNumbers = body.kinds.some(isMeasure);
  if (heading.rows === 0) {
    if (body.kinds[0] !== 'text') return rows >= 3;
    // Each line with a name of its own is a list of facts; lines of one type are records.
    return columns >= 3 && rows >= 3 && repeats(lines, body) >= 0.5;
  }
  if (isListOfFacts(lines, body, heading)) return false;
  if (columns >= 3) return rows >= (hasNumbers ? 1 : 3);
  if (body.kinds[0] !== 'text') return true;
  // A unit behind a name is what headers have, and facts have not.
  if (/[([][^)\]]+[)\]]$/.test(lines[heading.from]?.cells.at(-1)?.trim() ?? '')) return true;
  const filled = lines.slice(top, bottom).filter((line) => !isBlank(line)).length;
  return rows >= 3 && lines.slice(top, heading.from).every(isBlank) && rows * 5 > filled * 3;
}

/** Rows of several columns that begin with a word, by themselves: facts have one value each. */
const isNameless = (
  body: Body,
  heading: Heading,
  lines: readonly Line[],
  top: number,
  bottom: number,
): boolean =>
  heading.rows === 0 &&
  body.kinds[0] === 'text' &&
  body.to - body.from >= 2 &&
  body.kinds.filter((kind) => kind === 'number' || kind === 'date').length >= 2 &&
  standsAlone(lines, body.from, body.to, top, bottom);

/** A line or two with other lines right above or below them are no table of their own. */
function standsAlone(lines: readonly Line[], from: number, to: number, top: number, bottom: number): boolean {
  const isFree = (index: number) => {
    const line = index < top || index >= bottom ? undefined : lines[index];
    return !line || isBlank(line) || line.cells.filter((cell) => cell !== '').length === 1;
  };
  return isFree(from - 1) && isFree(to);
}

/** How many of the first cells say what another one says as well. */
function repeats(lines: readonly Line[], { from, to }: Body): number {
  const first = lines.slice(from, to).map(({ cells }) => cells[0] ?? '');
  return 1 - (new Set(first).size - 1) / Math.max(1, first.length - 1);
}

/** Name, value, unit, limits: a fact has no more to it. */
const WIDE = 6;

/** Names of their own with values and units behind them; what stands above them names less than they hold. */
function isListOfFacts(lines: readonly Line[], body: Body, heading: Heading): boolean {
  if (body.kinds[0] !== 'text') return false;
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  const named = (heading.names[0]?.cells ?? []).filter((cell) => cell !== '').length;
  const areNames = repeats(lines, body) < 0.5;
  if (named < columns) return areNames;
  // Lines that go on above and below in another way are facts, some of which look alike.
  const rows = body.to - body.from;
  if (areNames && rows < 30 && columns < WIDE && !standsAlone(lines, heading.from, body.to, 0, lines.length))
    return true;
  return (
    !body.kinds.some(isMeasure) && heading.from === body.from && (lines[body.from - 1]?.cells.length ?? 0) > 1
  );
}
