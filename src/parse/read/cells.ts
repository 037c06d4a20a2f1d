import { type CellReference, cellReference } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { Line } from '../lines.js';
import type { Context } from './context.js';

/** The single cells that a mapping refers to, `=C3`, as they go by. */
export interface WatchedCells {
  take(line: Line): void;
  /** What stands in a cell; undefined where the text names none. Refused where there is no such cell. */
  at(written: string): { readonly text: string; readonly line: Line | undefined } | undefined;
}

export function createWatchedCells(context: Context): WatchedCells {
  const { refuse, sheets } = context;
  const wanted = new Map<string, { reference: CellReference; sheet: number }>();
  for (const written of referencesIn(context.options)) {
    const reference = cellReference(written);
    if (reference) wanted.set(written, { reference, sheet: sheetOf(reference, sheets) });
  }
  const lines = new Map<string, Line>();
  // As in a spreadsheet, a quoted cell with line breaks stands in one line: lines are counted, not looked up.
  const counted: number[] = [];
  return {
    take(line) {
      if (wanted.size === 0) return;
      const sheet = line.sheet ?? 0;
      const place = (counted[sheet] ?? 0) + 1;
      counted[sheet] = place;
      for (const [written, { reference, sheet: own }] of wanted) {
        if (own === sheet && reference.line === place) lines.set(written, line);
      }
    },
    at(written) {
      const cell = wanted.get(written)?.reference.cell;
      if (cell === undefined) return undefined;
      const line = lines.get(written);
      const text = line?.cells[cell - 1];
      if (text === undefined)
        throw refuse(`there is no cell ${written}, or it lies below`, { line, isAbsent: true });
      return { text, line };
    },
  };
}

const sheetOf = ({ sheet }: CellReference, sheets: readonly string[]): number =>
  sheet === undefined ? 0 : sheets.indexOf(sheet);

/** All texts of a mapping that may name a cell, wherever they stand in it. */
function referencesIn(part: ParseOptions | unknown): string[] {
  if (typeof part === 'string') return part.startsWith('=') ? [part] : [];
  return typeof part === 'object' && part !== null ? Object.values(part).flatMap(referencesIn) : [];
}
