import type { ParseOptions } from '../../../config/vocabulary.js';
import type { TextRow } from '../../trees/table-from.js';
import { createPointWriter } from '../decimal-mark.js';
import type { WholeFile } from '../whole.js';
import type { Variable } from './data.js';
import { type LabelledRecord, written } from './record.js';

const LONGEST_LINE = 10_000;

/** Reads `(XY..XY)`, numbers in groups; or `(XYA)`, a group in brackets with a text in angle brackets. */
export async function readTuples(
  record: LabelledRecord,
  variables: readonly Variable[],
  isGrouped: boolean,
  file: WholeFile,
  options: ParseOptions,
): Promise<TextRow[]> {
  const writePoint = createPointWriter(options);
  const separator = options.decimal === ',' ? /[\s;]+/ : /[\s,;]+/;
  const rows: TextRow[] = [];
  for (const [n, content] of record.lines.entries()) {
    if (n === 0 || content === '') continue;
    const line = record.number + n;
    const tuples = isGrouped ? groupsIn(content, separator, variables.length) : bracketsIn(content);
    if (!tuples) {
      throw file.refuse(`this is no line of data in groups of ${variables.length}`, {
        at: { line },
        hint: 'the file may be cut short',
      });
    }
    for (const tuple of tuples) {
      const cells = variables.map(({ factor }, at) => scaled(tuple[at] ?? '', factor, writePoint));
      rows.push({ line, cells });
    }
    if (n % 64 === 0 && file.pace.due()) await file.pace.rest();
  }
  return rows;
}

function scaled(text: string, factor: number, writePoint: (number: string) => string): string {
  const [, inner] = /^<(.*)>$/.exec(text) ?? [];
  if (inner !== undefined) return inner.trim();
  const number = text === '' ? Number.NaN : Number(text);
  if (factor !== 1 && Number.isFinite(number)) return writePoint(written(number * factor));
  return Number.isFinite(number) ? writePoint(text) : text;
}

function groupsIn(content: string, separator: RegExp, size: number): string[][] | undefined {
  const items = content.split(separator).filter((item) => item !== '');
  if (items.length % size !== 0) return undefined;
  return Array.from({ length: items.length / size }, (_, n) => items.slice(n * size, (n + 1) * size));
}

function bracketsIn(content: string): string[][] | undefined {
  // People write these lines, and a pattern with brackets in brackets takes its time for a long one.
  if (content.length > LONGEST_LINE) return undefined;
  const groups = [...content.matchAll(/\(((?:<[^>]*>|[^<>()])*)\)/g)];
  if (groups.length === 0) return undefined;
  return groups.map(([, inner = '']) =>
    [...inner.matchAll(/<[^>]*>|[^,<>]+/g)].map(([item]) => item.trim()).filter((item) => item !== ''),
  );
}
