import type { CommentOptions } from '../config/schema.js';
import { MARK_BYTES } from '../markers.js';
import type { FileRecord, Table } from '../model.js';
import { cutBytes, manyLines, oneLine } from '../text.js';
import { packSections, packText, type Room, rangeOf, type Section } from './pack.js';
import { isCut } from './rows.js';
import type { SourceFile } from './source.js';
import { summarize } from './summary.js';
import { alignTable, listLine } from './text-table.js';
import { countOf, type WhereAll } from './wording.js';

export interface Comments {
  readonly comments: readonly string[];
  /** Where a reader of the body finds every row. */
  readonly allRows: WhereAll;
}

export interface CommentSources {
  readonly record: FileRecord;
  readonly file: SourceFile;
  readonly options: CommentOptions;
  /** The filled-in template, where there is one: it takes the place of the readings. */
  readonly text: string | undefined;
}

/** The comments of one run: plain text, none empty, none longer than allowed once it bears its mark. */
export function makeComments({ record, file, options, text }: CommentSources): Comments {
  const room: Room = { maxBytes: options.maxBytes - MARK_BYTES, maxParts: options.maxComments };
  const summary = () => [summarize(record, file, room.maxBytes)];
  if (text !== undefined) return { comments: packText(manyLines(text), room) ?? summary(), allRows: 'file' };
  if (options.readings === 'none') return { comments: [], allRows: 'file' };
  const tables = record.tables.filter(({ count }) => count > 0);
  if (tables.length === 0)
    return { comments: commentFacts(record, file, room) ?? summary(), allRows: 'file' };
  const comments = commentTables(tables, options.readings, file, room);
  if (!comments) return { comments: summary(), allRows: 'file' };
  // What was cut off ends so; what merely ends so is in the file as well.
  return { comments, allRows: comments.some((comment) => comment.endsWith('…')) ? 'file' : 'comments' };
}

/** Nothing where the rows are too many, or not all there, or not asked for. */
function commentTables(
  tables: readonly Table[],
  readings: 'table' | 'each' | 'summary',
  file: SourceFile,
  room: Room,
): string[] | undefined {
  if (tables.some(isCut)) return undefined;
  switch (readings) {
    case 'table':
      return isHopeless(tables, room)
        ? undefined
        : packSections(
            tables.map((table) => sectionOf(table, file, room)),
            room,
          );
    case 'each':
      return commentEach(tables, file, room);
    case 'summary':
      return undefined;
  }
}

/** The separators alone would be too much: not worth laying out a million rows. */
function isHopeless(tables: readonly Table[], { maxBytes, maxParts }: Room): boolean {
  const least = tables.reduce(
    (sum, { rows, columns }) => sum + rows.length * Math.max(2, 3 * columns.length - 3),
    0,
  );
  return least > maxBytes * maxParts;
}

function sectionOf({ name, columns, rows }: Table, file: SourceFile, { maxBytes }: Room): Section {
  const { head, line } = alignTable(columns, rows);
  const [title, headings] = [cutBytes(oneLine(name), maxBytes / 8), cutLines(head, maxBytes / 8)];
  return {
    heading: (first, last) =>
      `${title}: ${rangeOf(first, last, rows.length)}, from ${source(file, maxBytes)}\n${headings}`,
    count: rows.length,
    line: (index) => line(rows[index] ?? []),
  };
}

/** A heading leaves room for what it heads, however many columns there are. */
const cutLines = (text: string, maxBytesPerLine: number): string =>
  text
    .split('\n')
    .map((line) => cutBytes(line, maxBytesPerLine))
    .join('\n');

const source = ({ name }: SourceFile, maxBytes: number): string => cutBytes(oneLine(name), maxBytes / 4);

function commentEach(
  tables: readonly Table[],
  file: SourceFile,
  { maxBytes, maxParts }: Room,
): string[] | undefined {
  if (tables.reduce((sum, { rows }) => sum + rows.length, 0) > maxParts) return undefined;
  return tables.flatMap(({ name, columns, rows }) =>
    rows.map((cells, i) => {
      const place = `${cutBytes(oneLine(name), maxBytes / 8)}: row ${countOf(i + 1)} of ${countOf(rows.length)}`;
      const lines = columns.map(({ name, unit }, c) => {
        const cell = cells[c] ?? { value: null, text: '' };
        return listLine(name, unit === undefined || cell.unit ? cell : { ...cell, unit });
      });
      return cutBytes([`${place}, from ${source(file, maxBytes)}`, ...lines].join('\n'), maxBytes);
    }),
  );
}

/** A file without readings still says something. */
function commentFacts({ meta }: FileRecord, file: SourceFile, room: Room): string[] | undefined {
  if (meta.size === 0) return [];
  const lines = Array.from(meta, ([name, value]) => listLine(name, value));
  const heading = `facts, from ${source(file, room.maxBytes)}`;
  const section: Section = {
    heading: () => heading,
    count: lines.length,
    line: (index) => lines[index] ?? '',
  };
  return packSections([section], room);
}
