import { seeded } from '../support/random.js';
import { DOCUMENTS } from './documents.js';
import { type Generated, pick, some, type TrueFact, two } from './generate.js';
import {
  type Body,
  inElements,
  nameAll,
  numberBelow,
  type Plain,
  range,
  rowsOf,
  type Style,
  someColumns,
  type Tree,
  wells,
} from './tree-parts.js';

/*
 * JSON and XML with facts and tables at random depths, and what a correct reading of them yields.
 */

const FACTS: readonly (readonly [string, string, number])[] = [
  ['flow rate', 'mL/min', 2],
  ['oven temperature', '°C', 90],
  ['sample volume', 'µL', 200],
  ['lamp current', 'mA', 300],
  ['path length', 'mm', 10],
  ['scan rate', 'mV/s', 100],
];
const TEXTS = ['operator', 'project', 'instrument', 'method', 'serial number', 'firmware', 'detector'];
const WORDS = ['Ada', 'R. Meier', 'north lab', 'standard', 'BX-4', 'v2.1', 'overnight run', 'PMT', 'ALPHA 200'];
const GROUPS = ['run', 'settings', 'header', 'configuration', 'details', 'environment', 'setup'];
const upper = (word: string): string => word[0]?.toUpperCase() + word.slice(1);

/** How names are written throughout a file. */
const CASES: readonly ((name: string) => string)[] = [
  (name) => name.replaceAll(' ', '_'),
  (name) => name.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase()),
  (name) => name.split(' ').map(upper).join(''),
  (name) => name.split(' ').map(upper).join('_'),
];

/** Values with names that differ from each other, in groups of random depth. */
function someFacts(style: Style): { readonly tree: { [name: string]: Tree }; readonly facts: TrueFact[] } {
  const { random, named, units, isXml } = style;
  const facts: TrueFact[] = [];
  const root: { [name: string]: Tree } = {};
  const groups = some(random, GROUPS, random.below(5)).map(named);
  const groupFor = (): [name: string, group: { [name: string]: Tree }] => {
    let at = root;
    const way = groups.slice(0, random.below(groups.length + 1));
    for (const name of way) {
      at[name] ??= {};
      at = at[name] as { [name: string]: Tree };
    }
    return [way.at(-1) ?? named('document'), at];
  };
  for (const name of some(random, TEXTS, 2 + random.below(3)).map(named)) {
    const text = pick(random, WORDS);
    const isAttribute = isXml && random.chance(0.3);
    const [at, group] = groupFor();
    group[isAttribute ? `@${name}` : name] = text;
    // An attribute is named with its element.
    facts.push({ name: isAttribute ? `${at} ${name}` : name, text, value: text, unit: undefined });
  }
  const records: Tree[] = [];
  const areRecords = random.chance(0.3);
  const own = pick(random, [
    ['name', 'value', 'unit'],
    ['Name', 'Value', 'Units'],
    ['key', 'value', 'unit'],
    ['label', 'val', 'uom'],
  ] as const);
  for (const [plain, unit, max] of some(random, FACTS, 2 + random.below(3))) {
    const value = numberBelow(random, max);
    const hasUnit = units !== 'none';
    const name = areRecords ? plain : named(plain);
    facts.push({ name, text: String(value), value, unit: hasUnit ? unit : undefined });
    if (areRecords) records.push({ [own[0]]: plain, [own[1]]: value, ...(hasUnit && { [own[2]]: unit }) });
    else {
      const [, group] = groupFor();
      group[name] = units === 'object' ? (isXml ? { '@unit': unit, '#': value } : { value, unit }) : value;
      if (units === 'beside') group[`${name}${name.includes('_') ? '_unit' : 'Unit'}`] = unit;
    }
  }
  if (areRecords) groupFor()[1][named('parameters')] = isXml ? { [named('parameter')]: records } : records;
  return { tree: root, facts };
}

function objects(style: Style): Body {
  const count = 3 + style.random.below(20);
  const first = { name: 'well', unit: undefined, values: wells(count) };
  const columns = [first, ...someColumns(style, count)];
  const rows = rowsOf(style, columns, style.random.below(2));
  return { name: 'measurements', tree: inElements(style, rows, 'measurement'), tables: [nameAll(style, columns)] };
}

/** An array for each column; in XML, numbers in the text of an element. */
function arrays(style: Style): Body {
  const { random, named, isXml } = style;
  const isDeep = !isXml && random.chance(0.5);
  const columns = someColumns(style, 6 + random.below(20), isDeep);
  const tree = Object.fromEntries(
    columns.map(({ name, unit, values }) => [
      named(name),
      isXml ? values.join(' ') : isDeep ? { unit: unit ?? '', values: values as Tree[] } : (values as Tree[]),
    ]),
  );
  return { name: 'curve', tree, tables: [nameAll(style, columns)] };
}

/** Names once, then rows of values. */
function matrix(style: Style): Body {
  if (style.isXml) return arrays(style);
  const columns = someColumns(style, 4 + style.random.below(12), false);
  const data = range(columns[0]?.values.length ?? 0).map((n) => columns.map(({ values }) => values[n] as Plain));
  const names = columns.map(({ name }) => style.named(name));
  return { name: 'result', tree: { columns: names, data }, tables: [nameAll(style, columns)] };
}

/** An object whose names are wells or samples. */
function keyed(style: Style): Body {
  if (style.isXml) return objects(style);
  const { random } = style;
  const count = 3 + random.below(12);
  const ids = random.chance(0.5) ? wells(count) : range(count).map((n) => `sample-${two(n + 1)}`);
  const isPlain = random.chance(0.3) && (ids[0] === 'A1' || count > 5);
  const columns = isPlain ? [] : someColumns(style, count);
  const plain = range(count).map(() => numberBelow(random, 3));
  const rows = columns.length > 0 ? rowsOf(style, columns, 0) : plain;
  const isWell = ids[0] === 'A1';
  const key = { name: isWell ? 'well' : style.named('sample'), unit: undefined, values: ids };
  const tables =
    columns.length > 0 ? [key, ...nameAll(style, columns)] : [key, { name: 'value', unit: undefined, values: plain }];
  return {
    name: isWell ? 'wells' : 'samples',
    tree: Object.fromEntries(ids.map((id, n) => [id, rows[n] ?? 0])),
    tables: [tables],
  };
}

/** A table in each element of a list. */
function nested(style: Style): Body {
  const { random, named } = style;
  const outer = 2 + random.below(7);
  const sizes = range(outer).map(() => 2 + random.below(5));
  const total = sizes.reduce((a, b) => a + b, 0);
  const columns = someColumns(style, total);
  const samples = range(outer).map((n) => `S-${two(n + 1)}`);
  const doses = range(outer).map(() => numberBelow(random, 9));
  const areArrays = !style.isXml && random.chance(0.4);
  const plain = columns.map((each) => ({ ...each, unit: undefined }));
  let from = 0;
  const rows = sizes.map((size, n) => {
    const own = { [named('sample name')]: samples[n] ?? '', [named('dose')]: doses[n] ?? 0 };
    const start = from;
    from += size;
    if (areArrays) {
      const lists = plain.map(({ name, values }) => [named(name), values.slice(start, from) as Tree[]] as const);
      return { ...own, [named('trace')]: Object.fromEntries(lists) };
    }
    return { ...own, [named('points')]: inElements(style, rowsOf(style, columns, 0, start, from), 'point') };
  });
  const repeated = sizes.flatMap((size, n) => range(size).map(() => samples[n] ?? ''));
  const inner = [{ name: 'sample name', unit: undefined, values: repeated }, ...(areArrays ? plain : columns)];
  return { name: 'series', tree: inElements(style, rows, 'serie'), tables: [nameAll(style, inner)] };
}

const BODIES = { objects, arrays, matrix, keyed, nested, ...DOCUMENTS };
export type TreeShape = keyof typeof BODIES;
export const TREE_SHAPES = Object.keys(BODIES) as TreeShape[];

/** One file. The same seed always gives the same bytes. */
export function generateTree(shape: TreeShape, seed: number): Generated {
  const random = seeded(seed);
  const isXml = random.chance(0.5);
  const style: Style = {
    ...{ random, isXml, named: pick(random, CASES), units: pick(random, ['object', 'beside', 'none'] as const) },
    prefix: random.chance(0.15) ? 'm:' : '',
  };
  const { named } = style;
  const { tree: head, facts } = someFacts(style);
  const body = BODIES[shape](style);
  const date = `2023-${two(1 + random.below(12))}-${two(1 + random.below(28))}`;
  const started = random.chance(0.7) ? { [named('start time')]: `${date}T10:${two(random.below(60))}:07` } : {};
  const outer =
    shape === 'keyed' || shape === 'dictionary'
      ? []
      : some(random, ['data', 'output', 'payload'], random.below(3)).map(named);
  const content = outer.reduce((inner: Tree, name) => ({ [name]: inner }), body.tree);
  const own = body.isOpen ? (content as { readonly [name: string]: Tree }) : { [named(body.name)]: content };
  const root = { ...started, ...head, ...own };
  const text = isXml
    ? `<?xml version="1.0" encoding="utf-8"?>\n${toXml(`${style.prefix}${named('document')}`, root, '', style.prefix)}`
    : `${JSON.stringify(root, null, pick(random, [0, 2]))}\n`;
  const { tables } = body;
  const known = started[named('start time')] === undefined ? undefined : date;
  return { bytes: Buffer.from(text), text, extension: isXml ? 'xml' : 'json', facts, tables, date: known };
}

const escaped = (text: Plain): string => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function toXml(name: string, tree: Tree, indent: string, prefix: string): string {
  if (Array.isArray(tree)) return tree.map((each) => toXml(name, each, indent, prefix)).join('');
  if (typeof tree !== 'object') return `${indent}<${name}>${escaped(tree)}</${name}>\n`;
  const entries = Object.entries(tree as { readonly [name: string]: Tree });
  const attributes = entries.filter(([key]) => key.startsWith('@'));
  const space = indent === '' && prefix !== '' ? ` xmlns:${prefix.slice(0, -1)}="urn:example"` : '';
  const own = attributes.map(([key, value]) => ` ${key.slice(1)}="${escaped(value as Plain)}"`).join('') + space;
  const text = (tree as { readonly '#'?: Plain })['#'];
  if (text !== undefined) return `${indent}<${name}${own}>${escaped(text)}</${name}>\n`;
  const inner = entries.filter(([key]) => !key.startsWith('@'));
  const lines = inner.map(([key, value]) => toXml(`${prefix}${key}`, value, `${indent}  `, prefix)).join('');
  return lines === '' ? `${indent}<${name}${own}/>\n` : `${indent}<${name}${own}>\n${lines}${indent}</${name}>\n`;
}
