import { pick, some, type TrueColumn, two } from './generate.js';
import {
  type Body,
  cell,
  inElements,
  nameAll,
  numberBelow,
  range,
  rowsOf,
  type Style,
  someColumns,
  type Tree,
  wells,
} from './tree-parts.js';

/*
 * Further ways in which JSON and XML hold tables.
 */

const column = (name: string, values: TrueColumn['values'], unit?: string): TrueColumn => ({ name, unit, values });

const inUnit = ({ name, unit }: TrueColumn): Tree => ({ name, ...(unit !== undefined && { unit }) });

/** A column of texts or times in front of the readings. */
function someReadings(style: Style, count: number): TrueColumn[] {
  const first = pick(style.random, [
    column('well', wells(count)),
    column(
      'sample',
      range(count).map((n) => `S-${two(n + 1)}`),
    ),
    column(
      'time',
      range(count).map((n) => Number((n * 0.5).toFixed(1))),
    ),
  ]);
  return [first, ...someColumns(style, count, style.units !== 'none')];
}

const cellsAt = (columns: readonly TrueColumn[], n: number): (string | number)[] =>
  columns.map(({ values }) => values[n] as string | number);

/** The names and units of columns once, then rows without names. */
function titled(style: Style): Body {
  const { random, named, isXml } = style;
  const count = 4 + random.below(15);
  const columns = nameAll(style, someReadings(style, count));
  const rows = range(count).map((n) => cellsAt(columns, n));
  if (isXml) {
    const cells = rows.map((row) => ({ [named('cell')]: row }));
    const described = columns.map(({ name, unit }) => ({
      '@name': name,
      ...(unit !== undefined && { '@unit': unit }),
    }));
    const tree = { [named('columns')]: { [named('column')]: described }, [named('rows')]: { [named('row')]: cells } };
    return { name: 'table', tree, tables: [columns] };
  }
  const hasUnits = columns.some(({ unit }) => unit !== undefined);
  const names = columns.map(({ name }) => name);
  const units = columns.map(({ unit = '' }) => unit);
  const head = pick(random, [
    { [named(pick(random, ['columns', 'header', 'fields']))]: names, ...(hasUnits && { units }) },
    { [named(pick(random, ['columns', 'fields', 'channels']))]: columns.map(inUnit) },
  ]);
  const tree = { ...head, [pick(random, ['rows', 'data', 'values'])]: rows };
  return { name: 'table', tree, tables: [columns] };
}

/** Columns with their own name, unit and values. */
function channels(style: Style): Body {
  const { random, isXml } = style;
  const columns = nameAll(style, someColumns(style, 6 + random.below(20), style.units !== 'none'));
  const separator = pick(random, [' ', ';', ', ', '\n']);
  const mark = isXml && random.chance(0.6) ? '@' : '';
  const items = columns.map(({ name, unit, values }) => {
    const own = { [`${mark}name`]: name, ...(unit !== undefined && { [`${mark}unit`]: unit }) };
    if (!isXml) return { ...own, values: values as Tree[] };
    const text = values.join(separator);
    return mark === '' ? { ...own, values: text } : { ...own, '#': text };
  });
  const name = pick(random, ['channel', 'series', 'signal']);
  return { name: `${name}s`, tree: inElements(style, items as Tree[], name), tables: [columns] };
}

/** Runs, their steps and their points. Steps count anew in each run. */
function runs(style: Style): Body {
  const { random, named, isXml } = style;
  const ids = range(2 + random.below(3)).map((n) => `R${10 + n}`);
  const steps = range(2 + random.below(2)).map((n) => n + 1);
  const sizes = ids.map(() => steps.map(() => 2 + random.below(4)));
  const total = sizes.flat().reduce((a, b) => a + b, 0);
  const columns = someColumns(style, total);
  const mark = isXml && random.chance(0.5) ? '@' : '';
  let from = 0;
  const keys: [string, number][] = [];
  const tree = ids.map((id, n) => ({
    [`${mark}${named('run id')}`]: id,
    [named('steps')]: inElements(
      style,
      steps.map((step, m) => {
        const start = from;
        from += sizes[n]?.[m] ?? 0;
        for (let at = start; at < from; at++) keys.push([id, step]);
        return {
          [`${mark}${named('step number')}`]: step,
          [named('points')]: inElements(style, rowsOf(style, columns, 0, start, from), 'point'),
        };
      }),
      'step',
    ),
  }));
  const own = [
    column(
      'run id',
      keys.map(([id]) => id),
    ),
    column(
      'step number',
      keys.map(([, step]) => step),
    ),
  ];
  return { name: 'runs', tree: inElements(style, tree, 'run'), tables: [nameAll(style, [...own, ...columns])] };
}

const SAMPLES = ['blank', 'control', 'standard', 'water', 'quality check', 'reference', 'buffer', 'lysate'];

/** Objects whose names are samples or times; in XML, attributes. */
function dictionary(style: Style): Body {
  const { random, named, isXml } = style;
  const count = 3 + random.below(5);
  const isTime = random.chance(0.5);
  const ids = isTime
    ? range(count).map((n) => pick(random, [`${n * 30}`]))
    : some(random, SAMPLES, count).map((each) => named(each));
  const columns = someColumns(style, count, style.units === 'object');
  const rows = rowsOf(style, columns, 0);
  const key = isTime ? 'time' : 'sample';
  const truth = [column(named(key), isTime ? ids.map(Number) : ids), ...nameAll(style, columns)];
  if (isXml) {
    const items = ids.map((id, n) => ({ [`@${named(key)}`]: id, ...(rows[n] as object) }) as Tree);
    return { name: `${key}s`, tree: { [named('entry')]: items }, tables: [truth] };
  }
  return { name: `${key}s`, tree: Object.fromEntries(ids.map((id, n) => [id, rows[n] ?? 0])), tables: [truth] };
}

/** Rows as attributes, or objects of which some lack a value. */
function attributes(style: Style): Body {
  const { random, isXml } = style;
  const count = 4 + random.below(20);
  const plain = someReadings({ ...style, units: 'none' }, count);
  const columns = nameAll(style, plain).map((each, at) => ({
    ...each,
    values: each.values.map((value) => (at > 1 && random.chance(0.1) ? null : value)),
  }));
  const rows = range(count).map((n) =>
    Object.fromEntries(
      columns.flatMap(({ name, values }): [string, string | number | null][] => {
        const value = values[n];
        if (value === null || value === undefined) return isXml || random.chance(0.5) ? [] : [[name, null]];
        return [[isXml ? `@${name}` : name, value]];
      }),
    ),
  );
  return { name: 'log', tree: inElements(style, rows as Tree[], 'entry'), tables: [columns] };
}

/** Rows between the facts, without an element of their own around them. */
function siblings(style: Style): Body {
  const { random, named } = style;
  const count = 3 + random.below(12);
  const columns = someReadings(style, count);
  const [first, ...others] = columns.map((each) => (style.units === 'object' ? each : { ...each, unit: undefined }));
  const own = [first as TrueColumn, ...others];
  const rows = range(count).map((n) =>
    Object.fromEntries(
      own.map(({ name, unit, values }) => [named(name), cell(style, values[n] as string | number, unit)]),
    ),
  );
  return { name: 'reading', tree: { [named('reading')]: rows }, tables: [nameAll(style, own)], isOpen: true };
}

/** Wells, each with a curve. */
function curves(style: Style): Body {
  const { random, named, isXml } = style;
  const ids = wells(2 + random.below(4));
  const size = 5 + random.below(6);
  const times = range(size).map((n) => n * 10);
  const values = ids.map(() => range(size).map(() => numberBelow(random, 3)));
  const separator = pick(random, [' ', ';', ', ']);
  const list = (numbers: readonly number[]): Tree => (isXml ? numbers.join(separator) : numbers);
  const items = ids.map((id, n) => ({
    [isXml ? `@${named('well')}` : named('well')]: id,
    [named('time')]: list(times),
    [named('absorbance')]: list(values[n] ?? []),
  }));
  const truth = [
    column(
      named('well'),
      ids.flatMap((id) => times.map(() => id)),
    ),
    column(
      named('time'),
      ids.flatMap(() => times),
    ),
    column(named('absorbance'), values.flat()),
  ];
  return { name: 'curves', tree: inElements(style, items as Tree[], 'curve'), tables: [truth] };
}

export const DOCUMENTS = { titled, channels, runs, dictionary, attributes, siblings, curves };
