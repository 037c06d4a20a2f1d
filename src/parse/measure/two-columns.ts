import type { FileError } from '../../errors.js';
import { isBlank, type Line, type Refuse } from '../lines.js';
import { kindsOf } from './kinds.js';

/**
 * Names with values, or a small table of two columns? `a,b` above `x,1` can be either, and taken for facts
 * its header would become one. Nobody but a person can tell.
 */
export function refuseTwoColumns(lines: readonly Line[], refuse: Refuse): FileError | undefined {
  for (const [header, ...rows] of blocksOf(lines)) {
    if (
      !header ||
      rows.length === 0 ||
      !isPair(header, 'text') ||
      !rows.every((row) => isPair(row, 'number'))
    )
      continue;
    return refuse('these lines can be a table of two columns, or names with values', {
      line: header,
      hint: 'say which: `parse: { table: {} }`, or `parse: { meta: { separator: "," } }`',
    });
  }
  return undefined;
}

/** A text first, and this after it. */
function isPair(line: Line, second: 'text' | 'number'): boolean {
  const kinds = kindsOf(line);
  return kinds.length === 2 && kinds[0] === 'text' && kinds[1] === second;
}

/** Lines that stand together, without a blank one between them. */
function blocksOf(lines: readonly Line[]): Line[][] {
  const blocks: Line[][] = [[]];
  for (const line of lines) {
    if (isBlank(line)) blocks.push([]);
    else blocks.at(-1)?.push(line);
  }
  return blocks;
}
