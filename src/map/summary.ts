import type { Column, FileRecord, Table, Value } from '../model.js';
import { cutBytes, oneLine } from './clean.js';
import { alignTable, listLine } from './text-table.js';
import type { SourceFile } from './view.js';
import { amountOf, countOf } from './wording.js';

const COLUMNS: readonly Column[] = ['column', 'unit', 'n', 'min', 'median', 'max'].map((name) => ({ name }));

/** What many readings come to, in one text of at most so many bytes that says where they all are. */
export function summarize(record: FileRecord, file: SourceFile, maxBytes: number): string {
  const source = [`Summary of ${cutBytes(oneLine(file.name), 300)}`, `sha256:${file.sha256}`];
  const lines = record.tables.length > 0 ? record.tables.flatMap(summaryOf) : factsOf(record);
  return keepLines([...source, ...lines], maxBytes);
}

function summaryOf(table: Table): string[] {
  const rows = table.columns.map((column, i) => describeColumn(column, i, table));
  const { head, line } = alignTable(COLUMNS, rows);
  const size = `${amountOf(table.rows.length, 'row')}, ${amountOf(table.columns.length, 'column')}`;
  return [
    '',
    oneLine(`${table.name}: ${size}; all rows are in the raw file`),
    ...head.split('\n'),
    ...rows.map(line),
  ];
}

const factsOf = ({ meta }: FileRecord): string[] => [
  '',
  `${amountOf(meta.size, 'fact')}; all are in the raw file`,
  ...Array.from(meta, ([name, value]) => listLine(name, value)),
];

/** Least, middle and greatest are given as written, where they were written. */
function describeColumn({ name, unit }: Column, at: number, { rows }: Table): Value[] {
  const numbers = new Float64Array(rows.length);
  let n = 0;
  let filled = 0;
  for (const row of rows) {
    const value = row[at]?.value;
    if (value !== null && value !== undefined && value !== '') filled++;
    if (typeof value === 'number' && Number.isFinite(value)) numbers[n++] = value;
  }
  const sorted = numbers.subarray(0, n).sort();
  const written = (number: number | undefined): Value => {
    if (number === undefined) return { value: null, text: '' };
    const text = rows.find((row) => row[at]?.value === number)?.[at]?.text;
    return { value: number, text: text ?? String(Number(number.toPrecision(12))) };
  };
  return [
    { value: name, text: name },
    { value: unit ?? null, text: unit ?? '' },
    { value: n || filled, text: countOf(n || filled) },
    written(sorted[0]),
    written(medianOf(sorted)),
    written(sorted.at(-1)),
  ];
}

function medianOf(sorted: Float64Array): number | undefined {
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  // Halved before they are added: the sum of two great numbers is infinite.
  return upper === undefined || lower === undefined || upper === lower ? upper : lower / 2 + upper / 2;
}

/** As many lines as there is room for, and how many there would have been. */
function keepLines(lines: readonly string[], maxBytes: number): string {
  const sizes = lines.map((line) => Buffer.byteLength(line) + 1);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total - 1 <= maxBytes) return lines.join('\n');
  const left = (n: number) => `… ${amountOf(n, 'more line')}; all is in the raw file`;
  let room = maxBytes - Buffer.byteLength(left(lines.length));
  const kept: string[] = [];
  for (const [i, line] of lines.entries()) {
    room -= sizes[i] ?? 0;
    if (room < 0) break;
    kept.push(line);
  }
  return [...kept, left(lines.length - kept.length)].join('\n');
}
