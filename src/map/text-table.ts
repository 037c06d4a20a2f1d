import type { Column, Value } from '../model.js';
import { oneLine } from '../text.js';
import { headingOf, withUnit } from './wording.js';

/** A cell longer than this stands out of its column, rather than widening every row. */
const MAX_WIDTH = 32;

export interface AlignedTable {
  /** The headings, and a rule below them. */
  readonly head: string;
  line(cells: readonly Value[]): string;
}

/** A table for people who read plain text: a line a row, columns that stand below each other, numbers to the right. */
export function alignTable(columns: readonly Column[], rows: readonly (readonly Value[])[]): AlignedTable {
  const headings = columns.map((column) => oneLine(headingOf(column)));
  const widths = headings.map((heading) => Math.min(heading.length, MAX_WIDTH));
  const numeric = columns.map(() => false);
  for (const cells of rows) {
    for (let i = 0; i < widths.length; i++) {
      const cell = cells[i];
      if (!cell) continue;
      if (typeof cell.value === 'number') numeric[i] = true;
      const width = Math.min(cell.text.length, MAX_WIDTH);
      if (width > (widths[i] ?? 0)) widths[i] = width;
    }
  }
  const put = (text: string, i: number): string =>
    numeric[i] ? text.padStart(widths[i] ?? 0) : text.padEnd(widths[i] ?? 0);
  return {
    head: `${headings.map(put).join(' | ').trimEnd()}\n${widths.map((width) => '-'.repeat(width)).join('-|-')}`,
    line(cells) {
      let line = '';
      for (let i = 0; i < cells.length; i++)
        line += (i > 0 ? ' | ' : '') + put(oneLine(cells[i]?.text ?? ''), i);
      // A blank line would end the table for who reads it.
      return line.trimEnd() || '|';
    },
  };
}

/** `name: value unit`, a line each. */
export const listLine = (name: string, value: Value): string => oneLine(`${name}: ${withUnit(value)}`);
