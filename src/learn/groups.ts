import { isBlank, type Line } from '../parse/lines.js';
import { generalise } from './anchors.js';
import { mergeKinds } from './kinds.js';
import type { FoundRows, FoundTable } from './layout.js';

/** Which tables of a file are parts of one, and the titles of the parts. */

/** Parts of a file that are one table: the same columns under several titles, or several plates. */
export interface Group<T extends FoundTable = FoundTable> {
  readonly parts: readonly T[];
  /** The line above each part that says what it is, if there is one. */
  readonly titles: readonly (Line | undefined)[];
}

export function groupTables(found: readonly FoundTable[], lines: readonly Line[]): Group[] {
  const groups: { parts: FoundTable[]; titles: (Line | undefined)[] }[] = [];
  const above = found.map((next, n) => titleOf(next, lines, found[n - 1]?.to ?? 0));
  for (const [n, next] of found.entries()) {
    const title = endsAbove(found, n, above, lines) ? undefined : above[n];
    const open = groups.at(-1);
    if (open && belongsTo(open, next, title)) {
      open.parts.push(next);
      open.titles.push(title);
    } else groups.push({ parts: [next], titles: [title] });
  }
  return joinPages(groups, lines);
}

/**
 * Whether the line that could be the title of a table is the last of the table above it: `Cycle 1 total 1.23 Ah`. It is
 * directly below those rows, a blank line is below it or a line like it is below the last rows, and the first table has
 * another title.
 */
function endsAbove(
  found: readonly FoundTable[],
  n: number,
  titles: readonly (Line | undefined)[],
  lines: readonly Line[],
): boolean {
  const [title, before, last] = [titles[n], found[n - 1], found.at(-1)];
  if (!title || before?.kind !== 'rows' || found[n]?.kind !== 'rows' || SECTION.test(title.text)) return false;
  const at = lines.indexOf(title, before.to);
  const wordOf = (line: Line | undefined) => /\p{L}+/u.exec(line?.text ?? '')?.[0];
  if (at < before.to || lines.slice(before.to, at).some(isBlank) || wordOf(titles[0]) === wordOf(title)) return false;
  const next = lines[at + 1];
  const below = lines.slice(last?.to);
  const end = below.findIndex(isBlank);
  const shape = generalise(title.text.trim());
  return (
    (next !== undefined && isBlank(next)) ||
    below.slice(0, end < 0 ? undefined : end).some(({ text }) => generalise(text.trim()) === shape)
  );
}

/** Titles that recur, such as `Page 2`, do not show which table a part belongs to. They are joined, without titles. */
function joinPages(groups: readonly Group[], lines: readonly Line[]): Group[] {
  const all = groups.flatMap(({ titles }) => titles.map((title) => title?.text.trim()));
  const isOnce = (title: Line | undefined) => all.indexOf(title?.text.trim()) === all.lastIndexOf(title?.text.trim());
  return groups.map((group) => {
    const [first, ...others] = group.parts;
    const last = others.at(-1);
    if (first?.kind !== 'rows' || !last || group.titles.every(isOnce)) return group;
    const titles = group.titles.slice(1).filter((title) => title !== undefined);
    const isPart = (line: Line, n: number) =>
      isBlank(line) || titles.includes(line) || group.parts.some(({ from, to }) => n >= from && n < to);
    if (!lines.slice(first.from, last.to).every((line, n) => isPart(line, first.from + n))) return group;
    const between = [...(first.body.between ?? []), ...titles];
    const body = { ...first.body, to: last.to, between };
    return { parts: [{ ...first, to: last.to, body }], titles: group.titles.slice(0, 1) };
  });
}

function belongsTo({ parts, titles }: Group, next: FoundTable, title: Line | undefined): boolean {
  const [first] = parts;
  // Without titles, nothing marks where one part ends and the next begins.
  if (!first || !title || titles[0] === undefined || first.kind !== next.kind) return false;
  if (next.kind === 'rows' && next.described) return false;
  if (JSON.stringify(first.delimiter) !== JSON.stringify(next.delimiter)) return false;
  // The labels of plates are their titles. A fact above a plate says nothing about it.
  if (first.kind === 'plate') return !isFact(title) || title.text.trim().endsWith(':');
  return next.kind === 'rows' && hasSameColumns(first, next);
}

function hasSameColumns(first: FoundRows, next: FoundRows): boolean {
  if (mergeKinds(first.body.kinds, next.body.kinds) === undefined) return false;
  return next.header.rows === 0 || namesOf(next) === namesOf(first);
}

const namesOf = ({ header }: FoundRows): string => header.names.map(({ cells }) => cells.join('\t').trim()).join('\n');

/** The nearest line above a table, if it is a few words; the line between distant names and rows. */
function titleOf(found: FoundTable, lines: readonly Line[], top: number): Line | undefined {
  if (found.kind === 'rows' && found.header.skip.length > 0 && found.header.title) return found.header.title;
  const before = lines.slice(top, Math.max(top, found.from));
  const above = before.findLast((line) => !isBlank(line));
  // `[Peak Table(Ch 1)]`, then facts, then the table.
  const section = above && isFact(above) ? before.findLast((line) => isBlank(line) || !isFact(line)) : undefined;
  if (section && SECTION.test(section.text)) return section;
  const filled = above && found.kind === 'plate' ? piecesOf(above) : above?.cells.filter((cell) => cell !== '');
  return (filled?.length ?? 0) <= 2 && (above?.text.trim().length ?? 0) <= 100 ? above : undefined;
}

const SECTION = /^\s*\[[^\]]+\]\W*$/;

/** `Temperature: 25.3 °C` differs in every file, so it cannot be a label. `Read 2:600` is one. */
export const isFact = (line: Line): boolean =>
  /[:=]\s*\S/.test(line.text.replace(/ \d+:(?=\d)/, ' ')) || piecesOf(line).length > 1;

/** Its cells. Blanks that separate the cells of a plate separate also the words above it, which are one. */
const piecesOf = ({ text, cells }: Line): readonly string[] =>
  /[\t;|]|,(?!\d)|(?<!\d),/.test(text) ? cells.filter((cell) => cell !== '') : text.trim().split(/\s{2,}/);
