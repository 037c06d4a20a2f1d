import type { FileRecord, Table } from '../model.js';
import { cutBytes, oneLine } from '../text.js';
import { figuresOf } from './figures.js';
import { describeSource, type SourceFile } from './source.js';
import { alignTable, listLine } from './text-table.js';
import { amountOf } from './wording.js';

/** What many readings come to, in one text of at most so many bytes that says where they all are. */
export function summarize(record: FileRecord, file: SourceFile, maxBytes: number): string {
  const source = [
    `Summary of ${describeSource({ ...file, name: cutBytes(oneLine(file.name), 300) })}`,
    `sha256:${file.sha256}`,
  ];
  const lines = record.tables.length > 0 ? record.tables.flatMap(summaryOf) : factsOf(record);
  return keepLines([...source, ...lines], maxBytes);
}

function summaryOf(table: Table): string[] {
  const { columns, rows } = figuresOf(table, 'all columns');
  const { head, line } = alignTable(columns, rows);
  const size = `${amountOf(table.count, 'row')}, ${amountOf(table.columns.length, 'column')}`;
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
