import { areaOf } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { type Cut, cutLine } from '../formats/cut.js';
import { compileSplit } from '../grammar/split.js';
import type { Line } from '../lines.js';
import type { Context } from './context.js';

/** The part of a file that a table or a finder looks at. */
export interface Place {
  /** The line as it is seen there; undefined where it lies outside. To be shown every line, once. */
  see(line: Line): Line | undefined;
  readonly cut: Cut;
}

/** `sheet`, `area` and a `delimiter` of its own narrow what a table or a finder sees. */
export function createPlace(
  { sheet, area, delimiter }: Pick<TableOptions, 'sheet' | 'area' | 'delimiter'>,
  context: Context,
): Place {
  const cut: Cut =
    delimiter === undefined ? context.cut : { split: compileSplit(delimiter), quote: context.cut.quote };
  const wanted = sheetNumber(sheet, context);
  const within = area === undefined ? undefined : rectangle(area);
  const recut = delimiter === undefined ? (line: Line) => line : (line: Line) => cutLine(line, cut);
  if (context.sheets.length === 0 && !within) return { see: recut, cut };
  return {
    cut,
    see(line) {
      if ((line.sheet ?? 0) !== wanted) return undefined;
      const own = recut(line);
      return within ? within(own) : own;
    },
  };
}

function sheetNumber(sheet: string | number | undefined, { sheets, refuse }: Context): number {
  if (sheet === undefined || sheets.length === 0) return 0;
  const index = typeof sheet === 'number' ? sheet - 1 : sheets.indexOf(sheet);
  if (sheets[index] !== undefined) return index;
  throw refuse(`there is no sheet ${JSON.stringify(sheet)}`, {
    hint: `the sheets are: ${sheets.slice(0, 20).join(', ')}`,
    isAbsent: true,
  });
}

/** Lines of text are counted as they come: in a spreadsheet, a quoted cell with line breaks stands in one line. */
function rectangle(area: string): (line: Line) => Line | undefined {
  const { fromLine = 1, toLine = Number.POSITIVE_INFINITY, fromCell = 1, toCell } = areaOf(area) ?? {};
  let counted = 0;
  return (line) => {
    const place = line.sheet === undefined ? ++counted : line.number;
    if (place < fromLine || place > toLine) return undefined;
    const cells = line.cells.slice(fromCell - 1, toCell);
    return { ...line, cells, text: cells.join('\t') };
  };
}
