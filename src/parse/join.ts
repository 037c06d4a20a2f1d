import type { DateHabits, FileRecord, Value } from '../model.js';
import { createUniqueNames } from './table/names.js';

/** What several files of one run say, as one record. A name that comes again gets ` (2)`. */
export function join(main: FileRecord, others: readonly FileRecord[]): FileRecord {
  if (others.length === 0) return main;
  const records = [main, ...others];
  const factName = createUniqueNames();
  const tableName = createUniqueNames();
  return {
    meta: new Map(
      records.flatMap(({ meta }) => [...meta].map(([name, value]) => [factName(name), value] as const)),
    ),
    tables: records.flatMap(({ tables }) =>
      tables.map((table) => ({ ...table, name: tableName(table.name) })),
    ),
    dates: { ...main.dates, known: datesIn(others, main.dates) },
  };
}

const ISO = /^\d{4}-\d{2}-\d{2}(?!\d)/;

/** What files that write dates in another way than the main one mean by theirs. */
function datesIn(others: readonly FileRecord[], mains: DateHabits | undefined): ReadonlyMap<string, string> {
  const differing = others.filter(({ dates }) => JSON.stringify(dates) !== JSON.stringify(mains));
  return new Map(differing.flatMap(({ meta }) => [...meta.values()].flatMap(asDate)));
}

const asDate = ({ value, text }: Value): [string, string][] =>
  typeof value === 'string' && ISO.test(value) && text !== value ? [[text.trim(), value]] : [];
