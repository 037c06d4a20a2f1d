import type { Table } from '../model.js';

/** A template asked for a row that the file has and that was not kept. */
export class RowNotKept extends Error {
  readonly table: Table;
  /** Counted from 1. */
  readonly row: number;

  constructor(table: Table, row: number) {
    super(`row ${row} of ${table.name} was not kept`);
    this.table = table;
    this.row = row;
  }
}

/** Whether the file has more rows than are kept. */
export const isCut = ({ rows, count }: Pick<Table, 'rows' | 'count'>): boolean => rows.length < count;

/**
 * The rows of a cut table, as an array as long as the file has rows, that makes each when it is first asked for.
 * Who asks for one that was not kept is refused: the sum of the first rows is a wrong sum.
 */
export function cutRows<Row extends object>(
  table: Table,
  see: (cells: Table['rows'][number]) => Row,
): readonly Row[] {
  const seen: Row[] = [];
  return lazyArray(0, table.count, (index) => {
    const cells = table.rows[index];
    if (!cells) throw new RowNotKept(table, index + 1);
    seen[index] ??= see(cells);
    return seen[index];
  });
}

/** The items from one index to before another. An array to whoever asks, since nothing but an array is one to Liquid. */
function lazyArray<Item extends object>(
  from: number,
  to: number,
  itemAt: (index: number) => Item,
): readonly Item[] {
  const length = Math.max(0, to - from);
  const itemOf = (key: string | symbol): Item | undefined =>
    indexIn(key) < length ? itemAt(from + indexIn(key)) : undefined;
  // Liquid slices by `offset` first and by `limit` then: the first must not ask for what the second leaves out.
  const slice = (begin = 0, end = length): readonly Item[] =>
    lazyArray(from + inside(begin, length), from + inside(end, length), itemAt);
  return new Proxy<Item[]>([], {
    get(target, key) {
      if (key === 'length') return length;
      return key === 'slice' ? slice : (itemOf(key) ?? Reflect.get(target, key));
    },
    has: (target, key) => indexIn(key) < length || Reflect.has(target, key),
    getOwnPropertyDescriptor(target, key) {
      const value = itemOf(key);
      return value === undefined
        ? Reflect.getOwnPropertyDescriptor(target, key)
        : { value, writable: false, enumerable: true, configurable: true };
    },
  });
}

/** Not a number where the key is no index. */
const indexIn = (key: string | symbol): number =>
  typeof key === 'string' && /^\d+$/.test(key) ? Number(key) : Number.NaN;

/** As `slice` reads its arguments: from the end where negative, and never outside. */
function inside(at: number, length: number): number {
  const index = Math.trunc(Number(at)) || 0;
  return Math.min(Math.max(index < 0 ? length + index : index, 0), length);
}
