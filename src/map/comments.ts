import type { CommentOptions } from '../config/schema.js';
import { MARK_BYTES } from '../markers.js';
import type { FileRecord, Table } from '../model.js';
import { formatCount, multiLine, plural, singleLine, splitBytes, truncateBytes } from '../text.js';
import { describeSource, type SourceFile } from './date.js';
import { alignTable, figuresOf, isCut, listLine, type WhereAll } from './tables.js';

interface Comments {
  readonly comments: readonly string[];
  /** Where a reader of the body finds every row. */
  readonly allRows: WhereAll;
}

interface CommentSources {
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
  if (text !== undefined) return { comments: packText(multiLine(text), room) ?? summary(), allRows: 'file' };
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
  const [title, headings] = [truncateBytes(singleLine(name), maxBytes / 8), cutLines(head, maxBytes / 8)];
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
    .map((line) => truncateBytes(line, maxBytesPerLine))
    .join('\n');

const source = ({ name }: SourceFile, maxBytes: number): string =>
  truncateBytes(singleLine(name), maxBytes / 4);

function commentEach(
  tables: readonly Table[],
  file: SourceFile,
  { maxBytes, maxParts }: Room,
): string[] | undefined {
  if (tables.reduce((sum, { rows }) => sum + rows.length, 0) > maxParts) return undefined;
  return tables.flatMap(({ name, columns, rows }) =>
    rows.map((cells, i) => {
      const place = `${truncateBytes(singleLine(name), maxBytes / 8)}: row ${formatCount(i + 1)} of ${formatCount(rows.length)}`;
      const lines = columns.map(({ name, unit }, c) => {
        const cell = cells[c] ?? { value: null, text: '' };
        return listLine(name, unit === undefined || cell.unit ? cell : { ...cell, unit });
      });
      return truncateBytes([`${place}, from ${source(file, maxBytes)}`, ...lines].join('\n'), maxBytes);
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

/** Lines that belong together under a heading, which is repeated wherever they are continued. */
interface Section {
  /** What stands above the lines from `first` to `last`, counted from 1. */
  heading(first: number, last: number): string;
  readonly count: number;
  line(index: number): string;
}

interface Room {
  readonly maxBytes: number;
  readonly maxParts: number;
}

/** `12 rows`, or `rows 1–500 of 2,000` where these are not all. */
function rangeOf(first: number, last: number, count: number): string {
  if (first === 1 && last === count) return count === 1 ? '1 row' : `${formatCount(count)} rows`;
  return `rows ${formatCount(first)}–${formatCount(last)} of ${formatCount(count)}`;
}

/**
 * Texts that hold every line of every section exactly once, as few as it goes, cut between lines only.
 * Nothing where more of them would be needed than are allowed.
 */
function packSections(sections: readonly Section[], { maxBytes, maxParts }: Room): string[] | undefined {
  const parts: string[] = [];
  let current = '';
  let used = 0;
  const finish = (): void => {
    if (current !== '') parts.push(current);
    current = '';
    used = 0;
  };
  for (const section of sections) {
    for (let from = 0; from < section.count; ) {
      const gap = current === '' ? '' : '\n\n';
      const block = takeLines(section, from, maxBytes - used - gap.length, current === '');
      if (block) {
        current += gap + block.text;
        used += gap.length + block.bytes;
        from = block.next;
      }
      if (from < section.count) finish();
      if (parts.length + (current === '' ? 0 : 1) > maxParts) return undefined;
    }
  }
  finish();
  return parts.length > maxParts ? undefined : parts;
}

/** The heading and as many lines as fit; nothing where not even one does, unless there will never be more room. */
function takeLines(
  section: Section,
  from: number,
  maxBytes: number,
  isAllRoom: boolean,
): { text: string; bytes: number; next: number } | undefined {
  // The longest that the heading can be, since its numbers are known only afterwards.
  const headingBytes = Buffer.byteLength(section.heading(section.count, section.count));
  let bytes = headingBytes;
  const lines: string[] = [];
  let next = from;
  for (; next < section.count; next++) {
    const line = section.line(next);
    const size = Buffer.byteLength(line) + 1;
    if (bytes + size > maxBytes) break;
    lines.push(line);
    bytes += size;
  }
  if (next === from) {
    if (!isAllRoom) return undefined;
    lines.push(truncateBytes(section.line(next++), maxBytes - bytes - 1));
  }
  const text = `${section.heading(from + 1, next)}\n${lines.join('\n')}`;
  return { text, bytes: Buffer.byteLength(text), next };
}

/** A text cut between its lines, and within a line only where that alone is too long. */
function packText(text: string, { maxBytes, maxParts }: Room): string[] | undefined {
  const parts: string[] = [];
  let lines: string[] = [];
  let bytes = 0;
  const finish = (): void => {
    const part = lines
      .join('\n')
      .replace(/^\s*\n/, '')
      .trimEnd();
    if (part !== '') parts.push(part);
    lines = [];
    bytes = 0;
  };
  for (const line of text.split('\n')) {
    for (const piece of splitBytes(line, maxBytes)) {
      const size = Buffer.byteLength(piece) + 1;
      if (bytes + size - 1 > maxBytes) finish();
      lines.push(piece);
      bytes += size;
    }
    if (parts.length > maxParts) return undefined;
  }
  finish();
  return parts.length > maxParts ? undefined : parts;
}

/** What many readings come to, in one text of at most so many bytes that says where they all are. */
function summarize(record: FileRecord, file: SourceFile, maxBytes: number): string {
  const source = [
    `Summary of ${describeSource({ ...file, name: truncateBytes(singleLine(file.name), 300) })}`,
    `sha256:${file.sha256}`,
  ];
  const lines = record.tables.length > 0 ? record.tables.flatMap(summaryOf) : factsOf(record);
  return keepLines([...source, ...lines], maxBytes);
}

function summaryOf(table: Table): string[] {
  const { columns, rows } = figuresOf(table, 'all columns');
  const { head, line } = alignTable(columns, rows);
  const size = `${plural(table.count, 'row')}, ${plural(table.columns.length, 'column')}`;
  return [
    '',
    singleLine(`${table.name}: ${size}; all rows are in the raw file`),
    ...head.split('\n'),
    ...rows.map(line),
  ];
}

const factsOf = ({ meta }: FileRecord): string[] => [
  '',
  `${plural(meta.size, 'fact')}; all are in the raw file`,
  ...Array.from(meta, ([name, value]) => listLine(name, value)),
];

/** As many lines as there is room for, and how many there would have been. */
function keepLines(lines: readonly string[], maxBytes: number): string {
  const sizes = lines.map((line) => Buffer.byteLength(line) + 1);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total - 1 <= maxBytes) return lines.join('\n');
  const left = (n: number) => `… ${plural(n, 'more line')}; all is in the raw file`;
  let room = maxBytes - Buffer.byteLength(left(lines.length));
  const kept: string[] = [];
  for (const [i, line] of lines.entries()) {
    room -= sizes[i] ?? 0;
    if (room < 0) break;
    kept.push(line);
  }
  return [...kept, left(lines.length - kept.length)].join('\n');
}
