import type { ParseMapping } from '../../config/vocabulary.js';
import type { FileRecord, Table, Value } from '../../model.js';
import { readIso } from '../values/date.js';
import { dateForms } from '../values/date-forms.js';
import type { LineDate } from './line-date.js';
import { LOOK_ROWS } from './marks.js';

/** Where a file says when something was: the texts of its dates, and which of them are the run's. */
export interface FoundDates {
  /** Texts that are written alike. */
  readonly pools: readonly (readonly string[])[];
  /** The facts that make up the date of the run. */
  readonly fact: readonly string[] | undefined;
  /** How they are written, where nothing but their names tells that they are a date at all. */
  readonly format?: string | undefined;
  /** The date of the run, where it is no fact yet. */
  readonly inLine?: LineDate | undefined;
  /** By table: columns of days and times that belong together. */
  readonly columns: ReadonlyMap<string, readonly [day: string, time: string]>;
}

export const isDate = (text: string): boolean => readIso(text) !== undefined || dateForms(text).length > 0;
/** `30:25:37` is how long something took. */
const isTime = (text: string): boolean => /^(?:[01]?\d|2[0-3]):\d\d(:\d\d([.,]\d+)?)?( ?[AP]M)?$/i.test(text);
const hasTime = (text: string): boolean => /\d:\d\d/.test(text);

export function findDates({ meta, tables }: FileRecord): FoundDates {
  const facts = [...meta]
    .map(([name, { text }]) => ({ name, text: text.trim() }))
    // `3.12.08` is a day as well.
    .filter(({ name, text }) => hasTime(text) || !NUMBERED.test(name));
  const fact = dateFact(facts);
  const joined =
    fact && fact.length > 1 ? fact.map((name) => meta.get(name)?.text ?? '').join(' ') : undefined;
  const columns = new Map<string, readonly [string, string]>();
  const pools: string[][] = facts.filter(({ text }) => isDate(text)).map(({ text }) => [text]);
  if (joined !== undefined) pools.push([joined]);
  for (const table of tables) {
    const texts = table.columns.map((_, n) => textsOf(table, n));
    for (const [n, own] of texts.entries()) {
      if (own.length === 0 || !own.every(isDate)) continue;
      pools.push(own);
      const times = texts[n + 1] ?? [];
      const [day, time] = [table.columns[n]?.name, table.columns[n + 1]?.name];
      if (own.some(hasTime) || times.length < own.length || !times.every(isTime) || !day || !time) continue;
      pools.push(own.map((text, row) => `${text} ${times[row]}`));
      columns.set(table.name, [day, time]);
    }
  }
  return { pools, columns, ...(fact ? { fact } : compactFact(facts)) };
}

/** `20231120` and `163016` are numbers, but for what they are called. */
function compactFact(facts: readonly NamedText[]): Pick<FoundDates, 'fact' | 'format'> {
  const day = facts.find(
    ({ name, text }) => /date/i.test(name) && /^(19|20)\d\d[01]\d[0-3]\d(\d{6})?$/.test(text),
  );
  if (!day) return { fact: undefined };
  if (day.text.length === 14) return { fact: [day.name], format: 'yyyyMMddHHmmss' };
  const time = facts.find(({ name, text }) => /time/i.test(name) && /^[0-2]\d[0-5]\d[0-5]\d$/.test(text));
  return time
    ? { fact: [day.name, time.name], format: 'yyyyMMdd HHmmss' }
    : { fact: [day.name], format: 'yyyyMMdd' };
}

const textsOf = ({ rows }: Table, column: number): string[] =>
  rows
    .slice(0, LOOK_ROWS)
    .map((row) => row[column])
    .filter((value): value is Value => value !== undefined && typeof value.value !== 'number')
    .map(({ text }) => text.trim())
    .filter((text) => text !== '');

/** `Version 3.12.08` holds no date. */
export const isNumbered = (name: string): boolean => NUMBERED.test(name);

const NUMBERED = /version|serial|firmware|software|release|number|\bno\b|\bid\b/i;

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

const OURS = /acqui|measur|collect|start|run|scan|test|creat|record|analys|sampl|begin|inject|read/i;
const OTHERS =
  /report|print|export|calib|expir|version|valid|saved|modif|end|stop|finish|complet|software|due|install|manufact|birth/i;

/** The fact that most likely is the date of the run, with the time where that is a fact of its own. */
function dateFact(facts: readonly NamedText[]): string[] | undefined {
  const dates = facts
    .filter(({ text }) => isDate(text))
    .map((fact, n) => ({ ...fact, weight: meaningOf(fact) - n / 100 }))
    .sort((a, b) => b.weight - a.weight);
  const [best] = dates;
  if (!best) return undefined;
  if (hasTime(best.text)) return [best.name];
  const at = facts.findIndex(({ name }) => name === best.name);
  const wanted = best.name.replace(/date/i, '').toLowerCase();
  const time =
    facts.find(
      ({ name, text }) =>
        isTime(text) && /time/i.test(name) && name.replace(/time/i, '').toLowerCase() === wanted,
    ) ?? [facts[at + 1], facts[at - 1]].find((near) => near && isTime(near.text) && /time/i.test(near.name));
  return time ? [best.name, time.name] : [best.name];
}

/** How much speaks for a date being that of the run. */
export const meaningOf = ({ name, text }: NamedText): number =>
  (/^(date|datetime|date\/time|timestamp)$/i.test(lastOf(name)) && !OTHERS.test(name) ? 4 : 0) +
  (/date|time/i.test(lastOf(name)) ? 2 : 0) +
  (OURS.test(name) ? 2 : 0) -
  (OTHERS.test(name) ? 3 : 0) +
  (hasTime(text) ? 1 : 0);

/** Of a path in a tree, what stands at its end; all of it tells what the date is about. */
const lastOf = (name: string): string =>
  name.startsWith('/') ? name.slice(name.lastIndexOf('/') + 1) : name;

/** The words of a mapping for all that. */
export function describeDates(
  { fact, format, columns }: FoundDates,
  formats: readonly string[],
  mapping: ParseMapping,
): ParseMapping {
  const tables = mapping.table ? { readings: mapping.table } : (mapping.tables ?? {});
  const timed = Object.fromEntries(
    Object.entries(tables).map(([name, table]) => {
      const pair = columns.get(name);
      // Rows of a tree have the columns that are listed, and no others.
      return [
        name,
        pair && table.rows === undefined
          ? { ...table, columns: { ...table.columns, [pair.join(' ')]: [...pair] } }
          : table,
      ];
    }),
  );
  const isNamed = format === undefined && fact?.length === 1 && /^date$/i.test(fact[0] ?? '');
  const from = fact?.length === 1 ? (fact[0] ?? '') : [...(fact ?? [])];
  return {
    ...mapping,
    ...(formats.length > 0 &&
      !(formats.length === 1 && formats[0] === 'iso') && {
        dates: { format: formats.length === 1 ? formats[0] : [...formats] },
      }),
    ...(fact &&
      !isNamed && { facts: { ...mapping.facts, date: format === undefined ? from : { from, format } } }),
    ...(mapping.table && { table: timed['readings'] }),
    ...(mapping.tables && { tables: timed }),
  } as ParseMapping;
}
