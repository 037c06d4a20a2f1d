import type { ParseMapping } from '../../config/vocabulary.js';
import type { Line } from '../lines.js';
import { createNumberReader, type Marks } from '../values/value.js';
import type { Body } from './body.js';
import { looksNumeric } from './kinds.js';

/** What more rows could tell, the reading of them tells as well: it refuses what does not fit. */
export const LOOK_ROWS = 2000;

/** Reads `1.234` as everybody does, so it needs no proof. */
const PLAIN: Marks = { decimal: undefined, thousands: undefined };
const plain = createNumberReader(PLAIN);
const CANDIDATES: readonly Marks[] = [
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

const written = ({ decimal, thousands }: Marks): MarksMapping => ({
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
