import type { TableOptions } from '../../config/vocabulary.js';
import type { CellContext } from './table-from.js';
import type { Found, Tree } from './tree.js';
import type { FoundColumn, FoundTable } from './tree-table.js';

/** A table whose columns are lists of their own, and whose n-th row is the n-th of each. */
export function readLists(
  name: string,
  { columns: wanted }: TableOptions,
  tree: Tree,
  context: CellContext,
): FoundTable {
  const { refuse } = context;
  if (!wanted || Array.isArray(wanted)) {
    throw refuse(`it is not said where the rows of table ${name} are`, {
      hint: `say where: \`rows: //Reading\`, or a list for each column: \`columns: { time: //times, signal: //values }\``,
    });
  }
  const columns = Object.entries(wanted).map(
    ([given, spec]): FoundColumn => ({
      name: given,
      spec,
      cells: spec.start === undefined ? cellsOf(spec.from ?? [given], tree, context) : [],
    }),
  );
  const lists = columns.filter(({ spec }) => spec?.start === undefined);
  const [first, ...others] = lists;
  const other = others.find(({ cells }) => cells.length !== first?.cells.length);
  if (other) {
    throw refuse(
      `the lists of table ${name} differ: ${first?.name} has ${first?.cells.length}, ${other.name} has ${other.cells.length}`,
      {
        at: placeOf(other.cells),
        hint: 'lists side by side must be equally long; else make a table of each',
      },
    );
  }
  return { columns, lines: (first?.cells ?? []).map((cell) => cell?.line ?? 1), keeps: () => true };
}

const placeOf = ([first]: FoundColumn['cells']) => first && { line: first.line };

/** Several lists of one column are joined item by item. */
function cellsOf(paths: readonly (string | number)[], tree: Tree, { refuse }: CellContext): readonly Found[] {
  const [first = [], ...others] = paths.map((path) => {
    const list = tree.list(path);
    if ('items' in list) return list.items;
    const { message, hint, line } = list;
    throw refuse(message, { hint, at: line === undefined ? undefined : { line } });
  });
  if (others.length === 0) return first;
  if (others.some((other) => other.length !== first.length)) {
    throw refuse(`lists that are to be joined differ in length: ${paths.join(', ')}`, { at: placeOf(first) });
  }
  return first.map((item, n) => {
    const texts = [item, ...others.map((other) => other[n])].map((found) => found?.text ?? '');
    return { ...item, text: texts.filter((text) => text !== '').join(' ') };
  });
}
