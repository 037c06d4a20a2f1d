import type { ParseMapping } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import type { Line, Refuse, TimeSlice } from '../parse/lines.js';
import { createNumberReader, type NumberMarks } from '../parse/values/value.js';
import { type Body, looksNumeric } from './layout.js';

/** How a file is to be read, in the words of a mapping, as far as the file itself tells. */
export interface Measured {
  readonly mapping: ParseMapping;
  /** The same with the likelier answer to each question that the file leaves open. */
  readonly likely: ParseMapping;
  /** Those questions, in words. */
  readonly doubts: readonly string[];
  /** Why the file cannot be read without a person's word. */
  readonly refusal: FileError | undefined;
}

/** What measuring needs beside what it measures. */
export interface Measuring {
  readonly name: string;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
  /** Reads the file as a mapping says: what is measured is tried before it is believed. */
  read(mapping: ParseMapping): Promise<FileRecord>;
}

/** A pattern for lines that say the same about different things; its group is what differs. */
export function titlePattern(titles: readonly string[], group: string): string | undefined {
  const texts = [...new Set(titles.map((title) => title.trim()))];
  if (texts.length !== titles.length || texts.length === 0) return undefined;
  const skeletons = new Set(texts.map(skeleton));
  // Some titles stand above the middle of their table.
  const begin = titles.some((title) => /^\s/.test(title)) ? '^\\s*' : '^';
  if (skeletons.size === 1 && texts.length > 1) return `/${begin}(?<${group}>${[...skeletons][0]})\\s*$/`;
  const start = commonStart(texts);
  if (texts.length > 1 && start.replace(/\W/g, '').length >= 4) {
    // Of `Group: A` and `Group: B`, the letter is what differs.
    return `/${begin}${escaped(start)}(?<${group}>.+?)\\s*$/`;
  }
  return texts.length <= 12 ? `/${begin}(?<${group}>${texts.map(escaped).join('|')})\\s*$/` : undefined;
}

/** The text with its numbers left open: `2) Hold` and `3) Hold` are alike. */
const skeleton = (text: string): string =>
  text
    .split(/(\d+)/)
    .map((part, n) => (n % 2 === 1 ? '\\d+' : escaped(part)))
    .join('');

function commonStart(texts: readonly string[]): string {
  const [first = '', ...others] = texts;
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--;
  // Not within a word, nor within a number.
  return first.slice(0, length).replace(/[\p{L}\p{N}]+$/u, '');
}

/** A text as a pattern that fits nothing else. */
export const escaped = (text: string): string =>
  text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\t/g, '\\t');

/** What more rows could tell, the reading of them tells as well: it refuses what does not fit. */
export const LOOK_ROWS = 2000;

/** Reads `1.234` as everybody does, so it needs no proof. */
const PLAIN: NumberMarks = { decimal: undefined, thousands: undefined };
const plain = createNumberReader(PLAIN);
const CANDIDATES: readonly NumberMarks[] = [
  { decimal: ',', thousands: undefined },
  { decimal: undefined, thousands: ',' },
  { decimal: ',', thousands: '.' },
  { decimal: undefined, thousands: ' ' },
  { decimal: ',', thousands: ' ' },
  { decimal: undefined, thousands: "'" },
];

export type MarksMapping = Pick<ParseMapping, 'decimal' | 'thousands'>;

/** A number that the marks of the file leave open, and the marks under which it would be one. */
export interface Doubt {
  readonly line: Line | undefined;
  readonly cell: number;
  readonly settledBy: readonly MarksMapping[];
}

/** The one way to write numbers that all numbers of the tables allow; a doubt where there are several, or none. */
export function findMarks(lines: readonly Line[], bodies: readonly Body[]): MarksMapping | Doubt {
  const cells = bodies.flatMap((body) => numbersOf(lines, body));
  if (cells.every(({ text }) => plain.read(text) !== undefined)) return {};
  const fitting = CANDIDATES.map((marks) => ({ marks, read: createNumberReader(marks).read })).filter(
    ({ read }) => cells.every(({ text }) => read(text) !== undefined),
  );
  const [first, ...others] = fitting;
  const doubtful = cells.find(({ text }) =>
    first ? others.some(({ read }) => read(text) !== first.read(text)) : plain.read(text) === undefined,
  );
  if (first && !doubtful) return written(first.marks);
  return {
    line: doubtful?.line,
    cell: doubtful?.cell ?? 0,
    settledBy: fitting.map(({ marks }) => written(marks)),
  };
}

const written = ({ decimal, thousands }: NumberMarks): MarksMapping => ({
  ...(decimal && { decimal }),
  ...(thousands && { thousands }),
});

interface NumberCell {
  readonly line: Line;
  readonly cell: number;
  readonly text: string;
}

function numbersOf(lines: readonly Line[], { from, to, kinds }: Body): NumberCell[] {
  return lines
    .slice(from, Math.min(to, from + LOOK_ROWS))
    .flatMap((line) =>
      line.cells
        .map((text, cell) => ({ line, cell, text }))
        .filter(({ cell, text }) => kinds[cell] === 'number' && looksNumeric(text)),
    );
}
