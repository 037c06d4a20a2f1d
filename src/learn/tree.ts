import { quotePart } from '../parse/extract/path.js';
import { isCurve, type Node, numberTexts, UNIT, VALUE, valueAt } from '../parse/extract/tree.js';
import { isPlainNumber } from '../parse/extract/unread.js';
import { plural, unique } from '../text.js';
import { isDate } from './dates.js';
import type { TableMapping } from './describe.js';
import { type Facts, nameParts, type Part, type Spec, tableName } from './tree-names.js';
import { type FoundRecord, isKeyed, isText, itemsOf, matrixCells, NAME, recordsIn } from './tree-shapes.js';

/**
 * JSON and XML as facts and tables. Single values are facts. Lists, repeated elements and objects whose names are wells
 * or samples are rows, and the lists within them are tables of their own, with the values that identify the outer rows.
 */

export interface TreeDescription {
  readonly facts: Facts;
  readonly tables: Record<string, TableMapping>;
  readonly doubts: readonly string[];
}

/** A list of elements within each element of a level. */
interface List extends Part {
  readonly items: readonly Node[];
  /** How many steps lead from an item to the element. */
  readonly steps: number;
  readonly isKeyed: boolean;
  /** Of rows without names: the paths of their cells. */
  readonly cells?: readonly string[] | undefined;
  /** These cells with the names and units in lists beside the rows. */
  header?: readonly Part[] | undefined;
}

/** What the elements of a level contain. */
interface Content {
  readonly values: Part[];
  readonly arrays: Part[];
  readonly lists: List[];
}

/** Elements that are rows of one table, or the root. */
interface Level extends Pick<List, 'names' | 'isKeyed'> {
  /** Empty for the root. */
  readonly path: string;
  readonly nodes: readonly Node[];
  /** The values that identify the elements around a row, from the row. */
  readonly context: readonly Part[];
}

/** More facts and tables than these are no overview; the rest is named in a doubt. */
const MAX_FACTS = 300;
const MAX_TABLES = 40;
const MAX_TEXT = 1000;

interface Outline {
  readonly facts: Part[];
  readonly tables: [name: string, table: TableMapping][];
  /** Paths of what is left out. */
  readonly left: string[];
  readonly doubts: string[];
  /** Units by the names of the values, if the file lists them: `units: { Temp: °C }`. */
  readonly units: ReadonlyMap<string, string>;
}

export function describeTree(root: Node): TreeDescription {
  const outline: Outline = { facts: [], tables: [], left: [], doubts: [], units: new Map() };
  const [only] = root.children;
  // A list of one object is that object: paths do not contain lists.
  if (!root.isList) describeRoot(root, outline);
  else if (only && root.children.length === 1 && !only.isList && only.children.length > 0) describeRoot(only, outline);
  else {
    const { children: items } = root;
    const list = { path: '', names: [], nodes: [root], items, steps: 0, isKeyed: false, cells: matrixCells(items) };
    if (items.length > 0) describeList(list, [], outline);
  }
  const facts = nameFacts(outline);
  const tables: Record<string, TableMapping> = {};
  // The first table is that of the readings, so a list of plain values is behind the others.
  const sorted = outline.tables.toSorted(([, a], [, b]) => Number(isPlainList(a)) - Number(isPlainList(b)));
  for (const [name, table] of sorted.slice(0, MAX_TABLES)) tables[unique(name, tables)] = table;
  for (const [name] of sorted.slice(MAX_TABLES)) outline.left.push(name);
  return { facts, tables, doubts: [...outline.doubts, ...leftDoubt(outline.left)] };
}

const isPlainList = ({ rows, columns = {} }: TableMapping): boolean =>
  rows === undefined && Object.keys(columns).join() === 'value';

function leftDoubt(left: readonly string[]): string[] {
  if (left.length === 0) return [];
  const shown = left.slice(0, 4).join(', ');
  const more = left.length > 4 ? ` and ${plural(left.length - 4, 'further value')}` : '';
  return [`not in this mapping: ${shown}${more}. Add what you need by its path`];
}

function describeRoot(root: Node, outline: Outline): void {
  const content = collectContent([root]);
  const listed = content.values.flatMap((part) => {
    const [before = '', name = ''] = ['', ...part.names].slice(-2);
    const [, own] = UNIT.test(before) ? ['', name] : (/^(.+?)[_\s-]?units?$/i.exec(name) ?? []);
    return own !== undefined && isUnitText(part) ? [[plain(own), `/${part.path}`] as const] : [];
  });
  const units = new Map(listed.filter(([name]) => listed.filter(([other]) => other === name).length === 1));
  const own = { ...outline, units };
  const level: Level = { path: '', names: [], nodes: [root], context: [], isKeyed: false };
  outline.facts.push(...content.values.map((part) => withUnitPath(part, '/')));
  describeArrays(level, content, own);
  describeLists(level, content, own);
}

const withUnitPath = (part: Part, start: string): Part => ({
  ...part,
  path: start + part.path,
  unit: part.unit === undefined ? undefined : start + part.unit,
});

/** What all elements contain, by the paths within them. */
function collectContent(nodes: readonly Node[]): Content {
  const content: Content = { values: [], arrays: [], lists: [] };
  collect(nodes, { path: '', names: [] }, content);
  return assignUnits(assignHeaders(content));
}

type Place = Pick<Part, 'path' | 'names'>;

const within = ({ path, names }: Place, name: string): Place => ({
  path: `${path}${path === '' ? '' : '/'}${quotePart(name)}`,
  names: [...names, name],
});

function collect(nodes: readonly Node[], place: Place, content: Content, isPart = (_: Node) => true): void {
  const groups = new Map<string, { readonly nodes: Node[]; isRepeated: boolean }>();
  for (const node of nodes) {
    if (node.isList) continue;
    const seen = new Set<string>();
    for (const child of node.children) {
      if (child.name === '' || !isPart(child)) continue;
      const group = groups.get(child.name) ?? { nodes: [], isRepeated: false };
      group.nodes.push(child);
      group.isRepeated ||= seen.has(child.name) || child.isList;
      seen.add(child.name);
      groups.set(child.name, group);
    }
  }
  for (const [name, { nodes: children, isRepeated }] of groups) {
    if (isRepeated) addList(children, within(place, name), content);
    else addSingle(children, within(place, name), content);
  }
}

function addSingle(nodes: readonly Node[], place: Place, content: Content): void {
  const [record, ...others] = recordsIn(nodes) ?? [];
  // Names that differ between the rows are values.
  if (record && others.length === 0 && record.value !== '' && record.nodes.length === nodes.length) {
    addRecords([record], place, content);
    return;
  }
  const filled = nodes.filter((node) => (valueAt(node)?.text ?? '') !== '');
  const texts = filled.map((node) => valueAt(node)?.text ?? '');
  if (filled.length > 0 && texts.every(isCurve)) content.arrays.push({ ...place, nodes: filled });
  else if (filled.length > 0) content.values.push({ ...place, nodes: filled });
  const branches = nodes.filter(({ children }) => children.length > 0);
  if (branches.length === 0) return;
  if (filled.length === 0 && isKeyed(branches)) {
    const items = branches.flatMap(({ children }) => children);
    const path = `${place.path}/*`;
    content.lists.push({ ...place, path, nodes, items, isKeyed: true, steps: place.names.length + 1 });
    return;
  }
  // A value with its unit is one value; what else is with it has names of its own.
  const isPart = ({ name, parent }: Node) =>
    !(UNIT.test(name) || (VALUE.test(name) && !parent?.text)) || !parent || valueAt(parent) === undefined;
  collect(branches, place, content, isPart);
}

function addRecords(records: readonly FoundRecord[], { path: list, names }: Place, content: Content): void {
  for (const { condition, value, name, unit, nodes } of records) {
    const at = `${list}[${condition}]`;
    const path = value === '' ? at : `${at}/${value}`;
    const part = { path, nodes, unit: unit === undefined ? undefined : `${at}/${unit}` };
    if (nodes.every((node) => node.isList || isCurve(valueAt(node)?.text ?? '')))
      content.arrays.push({ ...part, names: [...names, name] });
    else content.values.push({ ...part, names: [name] });
  }
}

function addList(nodes: readonly Node[], place: Place, content: Content): void {
  const items = nodes.flatMap(itemsOf);
  if (items.length === 0) return;
  const isPlain = items.every(({ children, isList }) => children.length === 0 && !isList);
  if (isPlain && nodes.some(({ isList }) => isList)) {
    content.arrays.push({ ...place, nodes });
    return;
  }
  const records = recordsIn(items);
  if (records) {
    addRecords(records, place, content);
    return;
  }
  const { length: steps } = place.names;
  const isDeep = items.every(({ isList, children }) => isList && children.some((child) => child.children.length > 0));
  const list = { ...place, nodes, items, steps, isKeyed: false, cells: matrixCells(items) };
  // The lists of a list are not named, so they are one list.
  if (isDeep) content.lists.push({ ...list, path: `${place.path}/*`, items: items.flatMap(itemsOf), cells: undefined });
  else content.lists.push(list);
}

/** A list of as many names as the rows beside it have cells is their header. The names can have units, or a list beside them. */
function assignHeaders({ values, arrays, lists }: Content): Content {
  const used = new Set<Part>();
  for (const list of lists) {
    const { cells, nodes } = list;
    if (!cells || new Set(nodes.map(({ parent }) => parent)).size > 1) continue;
    // In XML, around both can be elements of their own: `<columns><column/>…</columns><rows><row/>…</rows>`.
    const depth = list.items[0]?.isList ? 1 : 2;
    const fitting = [...arrays, ...lists].flatMap((part) => {
      const items = part.nodes.flatMap(itemsOf);
      const isBeside = part !== list && parentOf(part, depth) === parentOf(list, depth);
      return isBeside && items.length === cells.length ? [{ part, items }] : [];
    });
    const units = fitting.find(({ part }) => UNIT.test(part.names.at(-1) ?? ''));
    const [header, ...others] = fitting.filter(({ part, items }) => part !== units?.part && namesOf(items));
    if (!header || others.length > 0) continue;
    const own = header.items.flatMap(({ children }) => children).find(({ name }) => UNIT.test(name))?.name;
    list.header = cells.map((path, n) => {
      const at = own === undefined ? units && `${units.part.path}/${n}` : `${header.part.path}/${n}/${own}`;
      const unit = own === undefined ? units?.items[n] : header.items[n]?.children.find(({ name }) => name === own);
      return { path, names: [namesOf(header.items)?.[n] ?? ''], nodes: [], unit: unit?.text ? at : undefined };
    });
    used.add(header.part);
    if (units) used.add(units.part);
  }
  const isLeft = (part: Part) => !used.has(part);
  return { values, arrays: arrays.filter(isLeft), lists: lists.filter(isLeft) };
}

/** Different words, each an item or the name in an item. */
function namesOf(items: readonly Node[]): string[] | undefined {
  const texts = items.map(
    ({ text, children }) =>
      (children.length === 0 ? text : children.find(({ name }) => NAME.test(name))?.text)?.trim() ?? '',
  );
  return new Set(texts).size === texts.length && texts.every(isText) ? texts : undefined;
}

const plain = (name: string): string => name.toLowerCase().replace(/[@_\s-]/g, '');

const parentOf = ({ names }: Part, depth = 1): string => names.slice(0, -depth).join('/');

/** How many of these are in each parent. */
function countParents(parts: readonly Part[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const part of parts) counts.set(parentOf(part), (counts.get(parentOf(part)) ?? 0) + 1);
  return counts;
}

const isUnitText = ({ nodes: [first] }: Part): boolean => {
  const text = (first && valueAt(first)?.text) ?? '';
  return /[\p{L}%°]/u.test(text) && text.length <= 15;
};

/** `flow_rate_unit` is the unit of `flow_rate`, and `unit` that of the only array beside it. */
function assignUnits({ values, arrays, lists }: Content): Content {
  const keyOf = (names: readonly string[]) => names.map(plain).join('/');
  const byKey = new Map(values.map((part) => [keyOf(part.names), part]));
  const used = new Set<Part>();
  const beside = countParents(arrays);
  for (const [n, part] of [...arrays, ...values].entries()) {
    if (part.unit !== undefined || part.names.length === 0) continue;
    const isArray = n < arrays.length;
    // Only numbers have units.
    const items = isArray ? part.nodes.flatMap(itemsOf) : part.nodes;
    const isNumeric = (node: Node) => isPlainNumber(valueAt(node)?.text) || isCurve(valueAt(node)?.text ?? '');
    if (!items.every(isNumeric)) continue;
    const key = keyOf(part.names);
    const around = keyOf(part.names.slice(0, -1));
    const alone = isArray && beside.get(parentOf(part)) === 1;
    const keys = [`${key}unit`, `${key}units`, ...(alone ? [`${around}/unit`, `${around}/units`] : [])];
    const found = keys.map((each) => byKey.get(each)).find((each) => each !== undefined && isUnitText(each));
    if (!found) continue;
    part.unit = found.path;
    used.add(found);
  }
  return { values: values.filter((part) => !used.has(part)), arrays, lists };
}

function describeLists(level: Level, { lists }: Content, outline: Outline): void {
  const keys = level.path === '' ? [] : keysOf(level);
  for (const list of lists) {
    const up = '../'.repeat(list.steps);
    const context = [...level.context, ...keys].map((part) => ({ ...part, path: up + part.path }));
    if (level.path !== '' && keys.length === 0 && level.nodes.length > 1) {
      outline.doubts.push(
        `nothing in the file tells apart to which ${level.names.at(-1) ?? 'row'} the rows of ${list.names.at(-1) ?? 'it'} belong`,
      );
    }
    const header = list.header?.map((part) => ({ ...part, unit: part.unit && below(level, part.unit) }));
    describeList({ ...list, header, path: below(level, list.path) }, context, outline);
  }
}

/** The root is `/`. */
const below = ({ path }: Level, inner: string): string => `${path === '/' ? '' : path}/${inner}`;

function describeList(list: List, context: readonly Part[], outline: Outline): void {
  const { path, names, items: nodes, isKeyed: keyed, cells, header } = list;
  const level: Level = { path: path || '/', names, nodes, context, isKeyed: keyed };
  const name = tableName(names);
  // In XML, cells without names are repeated elements.
  if (cells && (header || nodes[0]?.isList)) {
    const own = header ?? cells.map((cell, n): Part => ({ path: cell, names: [`column ${n + 1}`], nodes: [] }));
    const columns = header || context.length > 0 ? toColumns(nameParts([...context, ...own])) : undefined;
    outline.tables.push([name, { rows: level.path, ...(columns && { columns }) }]);
    return;
  }
  const isPlain = nodes.every(({ children, isList }) => children.length === 0 && !isList);
  if (isPlain && context.length === 0 && !keyed) {
    outline.tables.push([name, { columns: { value: level.path } }]);
    return;
  }
  const content = collectContent(nodes);
  describeRows(level, content, outline);
  describeArrays(level, content, outline);
  describeLists(level, content, outline);
}

/** A row for each element. */
function describeRows(level: Level, { values: found, arrays, lists }: Content, outline: Outline): void {
  const { path, nodes, context, isKeyed: keyed } = level;
  const own = nodes.filter((node) => (node.text || node.children.length === 0 || keyed) && valueAt(node)?.text);
  const ownName = keyed || nodes[0]?.name === '' ? 'value' : (nodes[0]?.name ?? 'value');
  const self: Part[] = own.length > 0 ? [{ path: '.', names: [ownName], nodes: own }] : [];
  const values = [...self, ...found, ...arrays.filter((part) => isVector(part, level)).flatMap(vectorItems)];
  if (values.length === 0) return;
  const parts = values.map((part) => {
    const hasUnit = part.nodes.some((node) => valueAt(node)?.unit !== undefined || !isPlainNumber(valueAt(node)?.text));
    return { ...part, unit: part.unit ?? (hasUnit ? undefined : outline.units.get(plain(part.names.at(-1) ?? ''))) };
  });
  const keys: Part[] = keyed ? [keyOf(level)] : [];
  // Without `columns`, repeated elements would be columns too.
  const hasLists = lists.length > 0 || arrays.some((part) => part.nodes.some(({ isList }) => !isList));
  const isSimple = !hasLists && context.length + keys.length === 0 && parts.every(isDirect);
  const columns = toColumns(nameParts([...context, ...keys, ...parts]));
  outline.tables.push([tableName(level.names), { rows: path, ...(!isSimple && { columns }) }]);
}

const isDirect = ({ path, unit, names: [name = '', ...others] }: Part): boolean =>
  others.length === 0 && unit === undefined && (path === '.' || path === quotePart(name));

/** Up to this number of values, a list in each row is a position or a range. */
const MAX_VECTOR = 3;

/** A short list without a partner, of the same length in all rows. */
function isVector({ nodes, names }: Part, { nodes: rows, path }: Level): boolean {
  const lengths = new Set(nodes.map(({ isList, children }) => (isList ? children.length : 0)));
  const [length = 0] = lengths;
  return path !== '' && rows.length > 1 && lengths.size === 1 && length > 0 && length <= MAX_VECTOR && names.length > 0;
}

const vectorItems = ({ path, names, nodes: [first], unit }: Part): Part[] =>
  (first?.children ?? []).map((child, n, all) => ({
    path: `${path}/${n}`,
    names: all.length === 1 ? names : [...names.slice(0, -1), `${names.at(-1)} ${n + 1}`],
    nodes: [child],
    unit,
  }));

/** Arrays of one length are the columns of a table, each alone otherwise. */
function describeArrays(level: Level, { arrays: all }: Content, outline: Outline): void {
  const isRoot = level.path === '';
  const arrays = all.filter((part) => isRoot || !isVector(part, level));
  const keys = isRoot ? [] : keysOf(level);
  for (const group of zipped(arrays)) {
    const [first] = group;
    if (!first) continue;
    const around = first.names.at(
      group.length === 1 ? -1 : -1 - (group[1]?.names.at(-2) === first.names.at(-2) ? 1 : 2),
    );
    const name = tableName(around === undefined ? level.names : [around]);
    if (isRoot) {
      const named = nameParts(group.map((part) => withUnitPath(ofValues(part), '/')));
      const [only] = named;
      const columns = only && group.length === 1 && first.nodes[0]?.isList ? [['value', only[1]] as const] : named;
      outline.tables.push([name, { columns: toColumns(columns) }]);
    } else {
      const columns = toColumns(nameParts([...level.context, ...keys, ...group.map(ofValues)]));
      outline.tables.push([name, { rows: level.path, columns }]);
    }
  }
}

/** The array of `time: { values: […] }` is `time`. */
const ofValues = (part: Part): Part =>
  part.names.length > 1 && /^(?:values?|data|points|array|list|samples)$/i.test(part.names.at(-1) ?? '')
    ? { ...part, names: part.names.slice(0, -1) }
    : part;

/** Groups arrays that have the same lengths and the same parent, or are each alone in an object beside the others. */
function zipped(arrays: readonly Part[]): Part[][] {
  const lengthsOf = ({ nodes }: Part) =>
    nodes.map((node) => (node.isList ? node.children.length : numberTexts(valueAt(node)?.text ?? '').length));
  const groups = new Map<string, Part[]>();
  const beside = countParents(arrays);
  for (const part of arrays) {
    const isAlone = beside.get(parentOf(part)) === 1;
    const around = isAlone && part.names.length > 1 ? `${part.names.slice(0, -2).join('/')}/*` : parentOf(part);
    const key = `${around} ${lengthsOf(part)}`;
    const known = groups.get(key);
    if (known) known.push(part);
    else groups.set(key, [part]);
  }
  return [...groups.values()];
}

/** The values that identify the rows of a level: one if possible. */
function keysOf(level: Level): Part[] {
  const { nodes, isKeyed: keyed } = level;
  if (keyed) return [keyOf(level)];
  const { values } = collectContent(nodes);
  const candidates = values.filter(({ nodes: own }) => own.length === nodes.length && own.every(isLabel));
  const textOf = (node: Node | undefined) => (node && valueAt(node)?.text) ?? '';
  const isDistinct = (parts: readonly Part[]) =>
    new Set(nodes.map((_, n) => parts.map(({ nodes: own }) => textOf(own[n])).join('\n'))).size === nodes.length;
  const rank = ({ names }: Part) => (names.length > 1 ? 2 : NAMING.test(names.at(-1) ?? '') ? 0 : 1);
  const ranked = candidates.toSorted((a, b) => rank(a) - rank(b));
  const one = ranked.find((part) => isDistinct([part]));
  if (one) return [one].map((part) => inLevel(part, level));
  const few = ranked.slice(0, 3);
  return isDistinct(few) ? few.map((part) => inLevel(part, level)) : [];
}

const NAMING = /(?:name|id|label|well|sample|title|number|no)$/i;

/** A short text or a whole number, not a reading. */
const isLabel = (node: Node): boolean => {
  const text = valueAt(node)?.text ?? '';
  return text !== '' && text.length <= 60 && !/^[-+]?\d*[.,]\d+(?:e[-+]?\d+)?$/i.test(text);
};

/** `name` says nothing below its element, so it is `Sample name` there. */
const inLevel = (part: Part, { names }: Level): Part => ({ ...part, names: [...names.slice(-1), ...part.names] });

function keyOf({ names, nodes }: Level): Part {
  const isWell = nodes.every(({ name }) => /^[A-P]\d{1,2}$/.test(name));
  const [own = 'key'] = names.slice(-1);
  const single = /[^s]s$/.test(own) ? own.slice(0, -1) : own;
  return { path: 'name()', names: [isWell ? 'well' : single], nodes };
}

const toColumns = (named: readonly (readonly [string, Spec])[]): Record<string, Spec> => Object.fromEntries(named);

/** Dates are added even if there are already many facts. */
function nameFacts({ facts: parts, left }: Outline): Facts {
  const kept: Part[] = [];
  for (const part of parts) {
    const text = (part.nodes[0] && valueAt(part.nodes[0])?.text) ?? '';
    const isLong = text.length > MAX_TEXT || /\S{200}/.test(text);
    const isMany = kept.length >= MAX_FACTS && !(kept.length < 2 * MAX_FACTS && isDate(text));
    if (isLong || isMany) left.push(part.path);
    else kept.push(part);
  }
  return Object.fromEntries(nameParts(kept));
}
