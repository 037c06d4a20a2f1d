import { suggestName } from '../lines.js';
import { type Condition, type Path, parsePath, type Step, writtenTo } from './path.js';
import { isPlainNumber, type LineRange, MIN_SHORT_ROWS, spanOf } from './unread.js';

/** A value as the file writes it. */
export interface Found {
  readonly text: string;
  /** The unit given with the value: `{ value, unit }`, or an attribute. */
  readonly unit: string | undefined;
  /** From 1; 0 if it is not in a line of the file. */
  readonly line: number;
}

/** Something that can be a row. Only the tree that it comes from knows its content. */
export interface Row {
  readonly line: number;
}

/** Looks up a path from a row, or from the root without one. Undefined if the file has nothing there. */
export type Lookup = (row?: Row) => Found | undefined;

/** Why a path leads nowhere. */
export interface Missing {
  readonly message: string;
  readonly hint: string;
  readonly line: number | undefined;
}

/** A file that is not made of lines: JSON, XML, or records that belong together by their order. */
export interface Tree {
  /** Not set for records. */
  readonly root?: Node;
  /** How many values the file has; limits the size of sparse tables. */
  readonly size: number;
  /** All matches; undefined if nothing matches, empty if the file has an empty list there. */
  rows(path: string): readonly Row[] | undefined;
  lookup(path: string | number): Lookup;
  /** The list at a path, for columns that are parallel arrays. */
  list(path: string | number): { readonly items: readonly Found[] } | Missing;
  /** What is at a path of a row, if that may be an array. */
  items?(path: string | number): (row: Row) => Items | undefined;
  /** The plain values of a row by their names, which may repeat. */
  values(row: Row): Iterable<readonly [name: string, found: Found]>;
  /** The values that were not looked up. */
  unread(): UnreadValues;
  /** From a row if the path is relative. */
  explainMissing(path: string | number, row?: Row): Missing;
}

/** The items of an array, or a single value as one item. */
interface Items {
  readonly items: readonly Found[];
  /** `text`: numbers in one text. */
  readonly isArray: boolean | 'text';
  /** Marks them as read. */
  take(): void;
}

export interface UnreadValues {
  /** The lines of those that do not look like readings. */
  readonly others: readonly LineRange[];
  readonly readings: readonly UnreadReadings[];
  /** How many numbers were looked up. */
  readonly used: number;
}

/** Numbers that repeat at one path, but were not looked up. */
interface UnreadReadings extends LineRange {
  readonly path: string;
  readonly count: number;
}

/** A place in JSON or XML. Attributes are children whose names start with `@`. */
export interface Node {
  /** Empty for the root and for items of a list. */
  readonly name: string;
  readonly parent: Node | undefined;
  readonly children: Node[];
  /** Undefined if there are only children. */
  text: string | undefined;
  readonly isList: boolean;
  /** Increases in file order. */
  readonly order: number;
  readonly line: number;
  /** If its text spans several lines. */
  lastLine?: number;
}

/** The tree of a JSON or XML file. `comments`: the lines of comments, which are no values. */
export function createNodeTree(root: Node, size: number, comments: readonly LineRange[] = []): Tree {
  const used = new Set<Node>();
  const use = (node: Node) => used.add(node);
  return {
    root,
    size,
    rows(path) {
      const found = walk(parsePath(path).steps, [root]);
      return found.length === 0 ? undefined : found.flatMap(itemsOf);
    },
    lookup: (path) => createLookup(parsePath(path), root, use),
    list: (path) => listAt(parsePath(path), root, use),
    items: (path) => createItems(parsePath(path), use),
    values: (row) => plainValues(row as Node, use),
    unread: () => unusedValues(root, used, comments),
    explainMissing(path, row) {
      const parsed = parsePath(path);
      return explainMissing(parsed, parsed.isAbsolute || !row ? root : (row as Node));
    },
  };
}

/** Called for each node whose value becomes part of the record. */
type Use = (node: Node) => void;

/** The nodes with a text that is not part of the value of a used node. Many numbers at one path are readings. */
function unusedValues(root: Node, used: ReadonlySet<Node>, comments: readonly LineRange[]): UnreadValues {
  const paths = new Map<string, { count: number; readonly lines: LineRange[] }>();
  const others = [...comments];
  let usedNumbers = 0;
  const open = [{ node: root, path: '' }];
  for (let at = open.pop(); at; at = open.pop()) {
    const { node, path } = at;
    const { text, line, lastLine = line } = node;
    if (text !== undefined && text !== '') {
      const numbers = numbersIn({ text, line, unit: undefined }).filter((each) => isPlainNumber(each.text)).length;
      const range = { from: line, to: lastLine };
      if (isUsed(node, used)) usedNumbers += numbers;
      else if (numbers === 0 || COUNT.test(node.name) || isColumnOfUsed(node, used)) others.push(range);
      else {
        const known = paths.get(path) ?? { count: 0, lines: [] };
        known.count += numbers;
        known.lines.push(range);
        paths.set(path, known);
      }
    }
    for (const child of node.children) {
      open.push({ node: child, path: child.name === '' ? path : `${path}/${child.name}` });
    }
  }
  const readings: UnreadReadings[] = [];
  for (const [path, { count, lines }] of paths) {
    if (count < MIN_SHORT_ROWS) others.push(...lines);
    else readings.push({ path, count, ...spanOf(lines) });
  }
  return { others, readings, used: usedNumbers };
}

/** Numbers that describe the structure of the file. */
const COUNT = /^@?(?:id|index|length|count|size)$/i;

/** The mapping leaves out a column if it reads others of the same rows: values of one node, or arrays of one length. */
function isColumnOfUsed(node: Node, used: ReadonlySet<Node>): boolean {
  const { parent } = node;
  if (!parent) return false;
  if (!parent.isList) return used.has(parent) || parent.children.some((child) => used.has(child));
  const arrays = parent.parent?.children.filter(({ children }) => children.length === parent.children.length) ?? [];
  return [parent, ...arrays].some(({ children }) => children[0] !== undefined && used.has(children[0]));
}

/** Used itself, or as the `value` or `unit` of its parent, which may be `unit: { name }`. */
function isUsed(node: Node, used: ReadonlySet<Node>): boolean {
  const { name, parent } = node;
  if (used.has(node)) return true;
  if (!parent) return false;
  if (VALUE.test(name)) return used.has(parent);
  const isName = UNIT.test(parent.name) && /^@?name$/i.test(name);
  const owner = isName ? parent.parent : UNIT.test(name) ? parent : undefined;
  return owner !== undefined && used.has(owner) && isPlainNumber(valueAt(owner)?.text);
}

function createLookup({ isAbsolute, steps }: Path, root: Node, use: Use): Lookup {
  if (!isAbsolute) return (row) => firstValue(walk(steps, [(row as Node | undefined) ?? root]), use);
  let hits: { node: Node; found: Found }[] | undefined;
  return (row) => {
    hits ??= walk(steps, [root]).flatMap((node) => {
      const found = valueAt(node);
      return found ? { node, found } : [];
    });
    const hit = row ? nearestHit(row as Node, hits) : hits[0];
    if (hit) use(hit.node);
    return hit?.found;
  };
}

function firstValue(nodes: readonly Node[], use: Use): Found | undefined {
  for (const node of nodes) {
    const found = valueAt(node);
    if (found) use(node);
    if (found) return found;
  }
  return undefined;
}

/** A JSON array, repeated XML elements, or one element whose text is a list of numbers. */
function listAt(path: Path, root: Node, use: Use): { readonly items: readonly Found[] } | Missing {
  const nodes = walk(path.steps, [root]);
  const lists = nodes.filter(({ isList }) => isList);
  const [first] = nodes;
  if (!first) return explainMissing(path, root);
  if (lists.length > 1) {
    return {
      message: `\`${path.written}\` matches ${lists.length} lists`,
      hint: 'select one by its index, `/0`, or by a condition, `[name=…]`',
      line: lists[1]?.line,
    };
  }
  const listed = nodes.flatMap(itemsOf);
  listed.forEach(use);
  const only = nodes.length === 1 && !first.isList ? valueAt(first) : undefined;
  if (only) return { items: numbersIn(only) };
  const found = listed.map(valueAt);
  const items = found.filter((item) => item !== undefined);
  return items.length === found.length ? { items } : explainMissing(path, root);
}

/** A JSON array of a row, or a text that is a list of numbers. */
function createItems({ isAbsolute, steps }: Path, use: Use): (row: Row) => Items | undefined {
  if (isAbsolute) return () => undefined;
  return (row) => {
    const [first, ...others] = walk(steps, [row as Node]);
    if (!first || others.length > 0) return undefined;
    if (first.isList) {
      const items = first.children.map(valueAt);
      const areValues = items.every((item) => item !== undefined);
      return areValues ? { items, isArray: true, take: () => first.children.forEach(use) } : undefined;
    }
    const only = valueAt(first);
    const items = only && only.text !== '' ? numbersIn(only) : [];
    const isArray = items.length >= MIN_POINTS ? 'text' : false;
    return { items: isArray ? items : only && only.text !== '' ? [only] : [], isArray, take: () => use(first) };
  };
}

const NUMBER = /^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?$/;

/** The numbers of a text that is a list of several; empty if it is none. */
export function numberTexts(text: string): string[] {
  // A comma separates numbers if a blank follows it or if there are decimal points; otherwise it may be a decimal mark.
  const texts = text.split(/,\s|\./.test(text) ? /[\s,;]+/ : /[\s;]+/).filter((each) => each !== '');
  return texts.length > 1 && texts.every((each) => NUMBER.test(each)) ? texts : [];
}

/** A text with fewer numbers is a single value, such as a position. */
const MIN_POINTS = 5;
/** Many numbers in one text are the points of a curve. */
export const isCurve = (text: string): boolean => numberTexts(text).length >= MIN_POINTS;

function numbersIn(found: Found): Found[] {
  const texts = numberTexts(found.text);
  return texts.length === 0 ? [found] : texts.map((text) => ({ ...found, text }));
}

/** A row's own text, its attributes, and its children that are single values. */
function* plainValues(row: Node, use: Use): Generator<readonly [string, Found]> {
  const own = row.text ? valueAt(row) : undefined;
  if (own) use(row);
  if (own) yield [row.name === '' ? 'value' : row.name, own];
  for (const [n, child] of row.children.entries()) {
    const found = valueAt(child);
    // An element that has only attributes has no value of its own.
    const isBare = found?.text === '' && child.children.length > 0;
    if (found && !isBare) use(child);
    if (found && !isBare) yield [child.name === '' ? `column ${n + 1}` : child.name.replace(/^@/, ''), found];
  }
}

export const UNIT = /^@?(?:units?|uom|unit_?(?:name|text)|units?_?of_?measure)$/i;
export const VALUE = /^(?:@?(?:value|val|magnitude)|#text|\$)$/i;

/** The value of a node; undefined if it is more than a single value. `{ value, unit }` is a single value. */
export function valueAt(node: Node): Found | undefined {
  const { text, children, line, isList } = node;
  if (children.length === 0 && text !== undefined) return { text, unit: undefined, line };
  if (isList) return undefined;
  const unit = unitOf(children);
  if (text) return { text, unit, line };
  const value = children.find(({ name }) => VALUE.test(name));
  const isOneValue = unit !== undefined || children.length === 1;
  if (value?.text !== undefined && isOneValue) return { text: value.text, unit, line };
  return text === undefined ? undefined : { text, unit, line };
}

/** `unit: mg` or `unit: { name: mg }`. */
function unitOf(children: readonly Node[]): string | undefined {
  const unit = children.find(({ name }) => UNIT.test(name));
  const named = unit?.text ?? unit?.children.find(({ name }) => /^@?name$/i.test(name))?.text;
  return named?.trim() || undefined;
}

const itemsOf = (node: Node): readonly Node[] => (node.isList ? node.children : [node]);

/** Describes how far a path leads and what is there instead. */
function explainMissing(path: Path, from: Node): Missing {
  let reached: readonly Node[] = [from];
  for (const n of path.steps.keys()) {
    const next = walk(path.steps.slice(0, n + 1), [from]);
    if (next.length === 0) return explainStep(path, n, reached);
    reached = next;
  }
  return {
    message: `\`${path.written}\` is not a single value`,
    hint: `it contains: ${namesIn(reached).slice(0, 20).join(', ')}`,
    line: reached[0]?.line,
  };
}

function explainStep(path: Path, n: number, reached: readonly Node[]): Missing {
  const { name = '', isDeep = false } = path.steps[n] ?? {};
  const names = namesIn(isDeep ? walk(parsePath('//*').steps, reached) : reached);
  const isKnown = names.includes(name);
  return {
    message: `there is no \`${writtenTo(path, n)}\`${isKnown ? ' that meets the condition' : ''}`,
    hint: suggestName(isKnown ? '' : name, names, 'the names there are'),
    line: n === 0 ? undefined : reached[0]?.line,
  };
}

const MAX_NAMES = 1000;

/** The names directly below these nodes. */
function namesIn(nodes: readonly Node[]): string[] {
  const names = new Set<string>();
  for (const node of nodes) {
    for (const item of itemsOf(node)) {
      for (const { name } of item.children) if (name !== '') names.add(name);
    }
    if (names.size > MAX_NAMES) break;
  }
  return [...names].slice(0, MAX_NAMES);
}

/** All nodes to which the steps lead, in file order. */
function walk(steps: readonly Step[], from: readonly Node[]): readonly Node[] {
  let nodes = from;
  for (const [n, step] of steps.entries()) {
    if (nodes.length === 0) break;
    nodes = takeStep(step, nodes, n === 0);
  }
  return nodes;
}

function takeStep(step: Step, from: readonly Node[], isFirst: boolean): readonly Node[] {
  if (step.turn === 'up') return [...new Set(from.flatMap((node) => containerOf(node) ?? []))];
  if (step.turn === 'name') return from.map(nameNode);
  const found = step.isDeep ? descendants(step, from) : children(step, from, isFirst);
  if (step.conditions.length === 0) return found;
  return found
    .flatMap((node) => itemsOf(node))
    .filter((node) => step.conditions.every((condition) => meets(condition, node)));
}

/** What contains a node. Lists are not in paths, so an item is in what contains its list. */
function containerOf({ parent }: Node): Node | undefined {
  let node = parent;
  while (node?.isList) node = node.parent;
  return node;
}

/** The name of a node as a value. */
const nameNode = (node: Node): Node => ({ ...node, name: 'name()', parent: node, children: [], text: node.name });

const matches = ({ name }: Node, wanted: string): boolean => (wanted === '*' ? !name.startsWith('@') : name === wanted);

function children({ name, index }: Step, from: readonly Node[], isFirst: boolean): readonly Node[] {
  const named = index !== undefined && from[0]?.isList ? [] : from.flatMap((node) => childrenOf(node, name));
  return index === undefined || named.length > 0 ? named : nth(index, from, isFirst);
}

/** A name below a list is looked up in each of its items. */
function childrenOf(node: Node, name: string): readonly Node[] {
  if (!node.isList) return node.children.filter((child) => matches(child, name));
  return name === '*' ? node.children : node.children.flatMap((item) => childrenOf(item, name));
}

/** The n-th item of a list, from 0; in XML, the n-th sibling with that name. */
function nth(index: number, from: readonly Node[], isFirst: boolean): Node[] {
  const seen = new Map<Node | undefined, number>();
  return from.flatMap((node) => {
    if (node.isList) return node.children[index] ?? [];
    const before = seen.get(node.parent) ?? 0;
    seen.set(node.parent, before + 1);
    return before === index && !isFirst && !node.parent?.isList ? node : [];
  });
}

/** Nested start nodes would yield nodes twice, so each part of the tree is searched once. */
function descendants({ name }: Step, from: readonly Node[]): Node[] {
  const found: Node[] = [];
  let last = -1;
  for (const top of from) {
    if (top.order <= last) continue;
    const open = [...top.children].reverse();
    for (let node = open.pop(); node; node = open.pop()) {
      last = node.order;
      if (node.name !== '' && matches(node, name)) found.push(node);
      for (let n = node.children.length - 1; n >= 0; n--) {
        const child = node.children[n];
        if (child) open.push(child);
      }
    }
  }
  return found;
}

const meets = ({ key, value }: Condition, node: Node): boolean =>
  walk(key, [node]).some((child) => valueAt(child)?.text.trim() === value);

/**
 * The hit of an absolute path that belongs to a row: inside the row, otherwise inside the innermost node that contains
 * both. So `//Sample/@name` is the row's own sample, and `//Serial_number` the only one in the file.
 */
function nearestHit<H extends { readonly node: Node }>(row: Node, hits: readonly H[]): H | undefined {
  if (hits.length < 2) return hits[0];
  const firstFrom = (order: number) => countWhile(hits.length, (n) => (hits[n]?.node.order ?? 0) < order);
  // Hits are in file order, so those with the innermost common node are next to the row.
  const after = firstFrom(row.order);
  const before = commonNode(row, hits[after - 1]?.node);
  const behind = commonNode(row, hits[after]?.node);
  const common = before && behind ? (before.order > behind.order ? before : behind) : (before ?? behind);
  return hits[firstFrom(common?.order ?? 0)];
}

/** How many of the first items meet a condition that no item after them meets, by binary search. */
export function countWhile(length: number, isMet: (n: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isMet(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The innermost node that contains both. */
function commonNode(row: Node, hit: Node | undefined): Node | undefined {
  if (!hit) return undefined;
  let [one, other]: (Node | undefined)[] = [row, hit];
  // A node that is later in the file cannot contain an earlier one.
  while (one && other && one !== other) {
    if (one.order > other.order) one = one.parent;
    else other = other.parent;
  }
  return one;
}
