import { nearest } from '../../text.js';
import type { Refuse } from '../lines.js';

/** JSON or XML, once it was read. */
export function createNodeTree(root: Node, size: number): Tree {
  return {
    root,
    size,
    rows(path) {
      const found = walk(parsePath(path).steps, [root]);
      return found.length === 0 ? undefined : found.flatMap(itemsOf);
    },
    lookup: (path) => createLookup(parsePath(path), root),
    list: (path) => listAt(parsePath(path), root),
    values: (row) => plainValues(row as Node),
    explainMissing(path, row) {
      const parsed = parsePath(path);
      return deadEnd(parsed, parsed.isAbsolute || !row ? root : (row as Node));
    },
  };
}

function createLookup({ isAbsolute, steps }: Path, root: Node): Lookup {
  if (!isAbsolute) return (row) => firstValue(walk(steps, [(row as Node | undefined) ?? root]));
  let hits: { node: Node; found: Found }[] | undefined;
  return (row?: Row) => {
    hits ??= walk(steps, [root]).flatMap((node) => {
      const found = valueAt(node);
      return found ? { node, found } : [];
    });
    return (row ? nearestHit(row as Node, hits) : hits[0])?.found;
  };
}

function firstValue(nodes: readonly Node[]): Found | undefined {
  for (const node of nodes) {
    const found = valueAt(node);
    if (found) return found;
  }
  return undefined;
}

/** One list of JSON, or elements that come again; one element may also hold all numbers as its text. */
function listAt(path: Path, root: Node): { readonly items: readonly Found[] } | Missing {
  const nodes = walk(path.steps, [root]);
  const lists = nodes.filter(({ isList }) => isList);
  const [first] = nodes;
  if (!first) return deadEnd(path, root);
  if (lists.length > 1) {
    return {
      message: `several lists of values fit \`${path.written}\``,
      hint: 'narrow it to one: by its number, `/0`, or by a condition, `[name=…]`',
      line: lists[1]?.line,
    };
  }
  if (nodes.length === 1 && !first.isList) return { items: numbersIn(first) };
  const found = nodes.flatMap(itemsOf).map(valueAt);
  const items = found.filter((item) => item !== undefined);
  return items.length === found.length ? { items } : deadEnd(path, root);
}

const NUMBER = /^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?$/;

/** A comma stands between numbers where a blank follows it or points are the decimal marks, else it may be one itself. */
function numbersIn(node: Node): Found[] {
  const found = valueAt(node);
  if (!found) return [];
  const separator = /,\s|\./.test(found.text) ? /[\s,;]+/ : /[\s;]+/;
  const texts = found.text.split(separator).filter((text) => text !== '');
  const isList = texts.length > 1 && texts.every((text) => NUMBER.test(text));
  return isList ? texts.map((text) => ({ ...found, text })) : [found];
}

/** The values that stand right in a row: its own, its attributes, and its children that are one value each. */
function* plainValues(row: Node): Generator<readonly [string, Found]> {
  const own = row.text ? valueAt(row) : undefined;
  if (own) yield [row.name === '' ? 'value' : row.name, own];
  for (const [n, child] of row.children.entries()) {
    const found = valueAt(child);
    // An element that only has attributes says nothing itself.
    const isBare = found?.text === '' && child.children.length > 0;
    if (found && !isBare) yield [child.name === '' ? `column ${n + 1}` : child.name.replace(/^@/, ''), found];
  }
}

/** How far a path leads, and what is there instead. */
function deadEnd(path: Path, from: Node): Missing {
  const { steps, written } = path;
  let reached: readonly Node[] = [from];
  for (const [n, step] of steps.entries()) {
    const next = walk(steps.slice(0, n + 1), [from]);
    if (next.length === 0) return astray(path, n, step.name, reached);
    reached = next;
  }
  return {
    message: `\`${written}\` is no single value`,
    hint: `it holds: ${namesIn(reached).slice(0, 20).join(', ')}`,
    line: reached[0]?.line,
  };
}

function astray(path: Path, n: number, name: string, reached: readonly Node[]): Missing {
  const isDeep = path.steps[n]?.isDeep === true;
  const names = namesIn(isDeep ? walk(parsePath('//*').steps, reached) : reached);
  const near = nearest(
    name,
    names.map((known) => known.slice(0, 80)),
  );
  const known = names.length === 0 ? 'there is nothing' : `there is: ${names.slice(0, 20).join(', ')}`;
  const hasConditions = names.includes(name);
  return {
    message: `there is no \`${writtenTo(path, n)}\`${hasConditions ? ' for which the condition holds' : ''}`,
    hint: near === undefined || near === name ? known : `did you mean ${JSON.stringify(near)}?`,
    line: n === 0 ? undefined : reached[0]?.line,
  };
}

const MAX_NAMES = 1000;

/** What stands right below these places. Only so many names: this is a courtesy. */
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

/** A place in JSON or XML. Attributes are children whose names begin with `@`. */
export interface Node {
  /** Empty for the top and for the items of a list. */
  readonly name: string;
  readonly parent: Node | undefined;
  readonly children: Node[];
  /** What is written there; undefined where there are only further places. */
  text: string | undefined;
  readonly isList: boolean;
  /** Grows with the place in the file. */
  readonly order: number;
  readonly line: number;
}

/** More are not kept: each takes a hundred bytes, and the file may be one of commas only. */
const MAX_NODES = 3_000_000;

const NONE: Node[] = [];

/** Puts a tree together while a file is read from top to end. */
export interface TreeBuilder {
  /** Goes into a new place; what comes next belongs to it. */
  open(name: string, isList: boolean, at: Position): Node;
  close(): void;
  leaf(name: string, text: string, at: Position): void;
  /** Where we are; the top until something was opened. */
  readonly here: Node;
  readonly root: Node;
  readonly size: number;
}

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** `isList`: whether the top is a list of what the file holds. */
export function createTreeBuilder(maxNesting: number, refuse: Refuse, isList = false): TreeBuilder {
  let size = 0;
  let depth = 0;
  const root: Node = create('', undefined, isList, 1, []);
  let here = root;

  function create(name: string, parent: Node | undefined, isList: boolean, line: number, children: Node[]) {
    return { name, parent, children, text: undefined as string | undefined, isList, order: size++, line };
  }
  function add(name: string, isList: boolean, at: Position, children: Node[]): Node {
    if (size > MAX_NODES) {
      throw refuse(`the file has more than ${MAX_NODES} values, more than are read`, { at });
    }
    const node = create(name, here, isList, at.line, children);
    here.children.push(node);
    return node;
  }

  return {
    open(name, isList, at) {
      if (++depth > maxNesting) {
        throw refuse(`the file is nested more than ${maxNesting} deep`, {
          at,
          hint: `if such files are to be read, allow more: \`limits: { nesting: ${maxNesting * 10} }\``,
        });
      }
      here = add(name, isList, at, []);
      return here;
    },
    close() {
      depth--;
      here = here.parent ?? root;
    },
    leaf(name, text, at) {
      add(name, false, at, NONE).text = text;
    },
    get here() {
      return here;
    },
    root,
    get size() {
      return size;
    },
  };
}

const UNIT = /^@?units?$/i;
const VALUE = /^@?value$/i;

/** What is written at a place. `{ value, unit }` is one value; undefined where there is more than that. */
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

/** `unit: mg`, or `unit: { name: mg }`. */
function unitOf(children: readonly Node[]): string | undefined {
  const unit = children.find(({ name }) => UNIT.test(name));
  const named = unit?.text ?? unit?.children.find(({ name }) => /^@?name$/i.test(name))?.text;
  return named?.trim() || undefined;
}

/** The items where it is a list, else itself. */
const itemsOf = (node: Node): readonly Node[] => (node.isList ? node.children : [node]);

/** What a tree yields for a path: a value as it is written, and where. */
export interface Found {
  readonly text: string;
  /** The unit that stands with the value: `{ value, unit }`, or an attribute. */
  readonly unit: string | undefined;
  /** Of the file, from 1. */
  readonly line: number;
}

/** Something that can be a row. Only the tree that it came from knows what it is. */
export interface Row {
  readonly line: number;
}

/** Looks a path up from a row, or from the top where there is none; undefined where the file has nothing there. */
export type Lookup = (row?: Row) => Found | undefined;

/** Why a path leads nowhere: for people. */
export interface Missing {
  readonly message: string;
  readonly hint: string;
  readonly line: number | undefined;
}

/** A file that is no table: JSON, XML, or records that belong to each other by their order. */
export interface Tree {
  /** The top, where the file is made of places within places. */
  readonly root?: Node;
  /** How many values the file holds, so that a table is not let grow out of proportion to it. */
  readonly size: number;
  /** Everything that fits; undefined where nothing does, empty where the file has an empty list there. */
  rows(path: string): readonly Row[] | undefined;
  lookup(path: string | number): Lookup;
  /** The list that a path leads to, for columns that stand beside each other, where it is clear which. */
  list(path: string | number): { readonly items: readonly Found[] } | Missing;
  /** The plain values of a row by their names, which may come again. */
  values(row: Row): Iterable<readonly [name: string, found: Found]>;
  /** Asked of a row where the path does not begin at the top. */
  explainMissing(path: string | number, row?: Row): Missing;
}

/** Everything that some steps lead to, in the order of the file. */
function walk(steps: readonly Step[], from: readonly Node[]): readonly Node[] {
  let nodes = from;
  for (const [n, step] of steps.entries()) {
    if (nodes.length === 0) break;
    nodes = take(step, nodes, n === 0);
  }
  return nodes;
}

function take(step: Step, from: readonly Node[], isFirst: boolean): readonly Node[] {
  const found = step.isDeep ? below(step, from) : rightBelow(step, from, isFirst);
  if (step.conditions.length === 0) return found;
  return found
    .flatMap((node) => itemsOf(node))
    .filter((node) => step.conditions.every((condition) => holds(condition, node)));
}

const fits = ({ name }: Node, wanted: string): boolean =>
  wanted === '*' ? !name.startsWith('@') : name === wanted;

function rightBelow({ name, place }: Step, from: readonly Node[], isFirst: boolean): readonly Node[] {
  const named = place !== undefined && from[0]?.isList ? [] : from.flatMap((node) => childrenOf(node, name));
  return place === undefined || named.length > 0 ? named : nth(place, from, isFirst);
}

/** A list has no names of its own: what is asked of it is asked of its items. */
function childrenOf(node: Node, name: string): readonly Node[] {
  if (!node.isList) return node.children.filter((child) => fits(child, name));
  return name === '*' ? node.children : node.children.flatMap((item) => childrenOf(item, name));
}

/** The n-th item of a list, from 0; in XML, the n-th of the elements of that name that stand in the same one. */
function nth(place: number, from: readonly Node[], isFirst: boolean): Node[] {
  const seen = new Map<Node | undefined, number>();
  return from.flatMap((node) => {
    if (node.isList) return node.children[place] ?? [];
    const before = seen.get(node.parent) ?? 0;
    seen.set(node.parent, before + 1);
    return before === place && !isFirst && !node.parent?.isList ? node : [];
  });
}

/** At any depth. Places within each other would be found twice, so each is looked through once. */
function below({ name }: Step, from: readonly Node[]): Node[] {
  const found: Node[] = [];
  let last = -1;
  for (const top of from) {
    if (top.order <= last) continue;
    const open = [...top.children].reverse();
    for (let node = open.pop(); node; node = open.pop()) {
      last = node.order;
      if (node.name !== '' && fits(node, name)) found.push(node);
      for (let n = node.children.length - 1; n >= 0; n--) {
        const child = node.children[n];
        if (child) open.push(child);
      }
    }
  }
  return found;
}

const holds = ({ key, value }: Condition, node: Node): boolean =>
  walk(key, [node]).some((child) => valueAt(child)?.text.trim() === value);

/**
 * Of all hits of a path from the top, the one that belongs to a row: it stands in the row, else in the innermost
 * place that holds both. So `//Sample/@name` is the row's own sample, and `//Serial_number` the only one there is.
 */
function nearestHit<H extends { readonly node: Node }>(row: Node, hits: readonly H[]): H | undefined {
  if (hits.length < 2) return hits[0];
  // Hits are in the order of the file, so those that share most with the row stand right before or after it.
  const after = firstFrom(row.order, hits);
  const before = commonOf(row, hits[after - 1]?.node);
  const behind = commonOf(row, hits[after]?.node);
  const common = before && behind ? innerOf(before, behind) : (before ?? behind);
  return hits[firstFrom(common?.order ?? 0, hits)];
}

/** Where the first hit is that stands at or below this order. */
function firstFrom(order: number, hits: readonly { readonly node: Node }[]): number {
  let low = 0;
  let high = hits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((hits[middle]?.node.order ?? 0) < order) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The innermost place that holds both. */
function commonOf(row: Node, hit: Node | undefined): Node | undefined {
  if (!hit) return undefined;
  let [one, other]: (Node | undefined)[] = [row, hit];
  // What stands later in the file is never outside of what stands earlier.
  while (one && other && one !== other) {
    if (one.order > other.order) one = one.parent;
    else other = other.parent;
  }
  return one;
}

/** One holds the other, since both hold the row. */
const innerOf = (one: Node, other: Node): Node => (one.order > other.order ? one : other);

/** A path into a tree: `/a/b`, `//b`, `peak list/0/@id`, `//Series[@name=Value]/F`. */
export interface Path {
  readonly written: string;
  /** From the top of the file; else from the row. */
  readonly isAbsolute: boolean;
  readonly steps: readonly Step[];
}

export interface Step {
  /** As the file has it, `@` before an attribute; `*` is any, a number is the n-th item. */
  readonly name: string;
  /** Undefined where the name is no number. */
  readonly place: number | undefined;
  /** At any depth below, not only right below. */
  readonly isDeep: boolean;
  /** `[key=value]`: only where this holds. */
  readonly conditions: readonly Condition[];
}

export interface Condition {
  readonly key: readonly Step[];
  readonly value: string;
}

/** A row's own place is `.`; the top is `/`. A name with a slash or a bracket in it can stand in double quotes. */
export function parsePath(written: string | number): Path {
  const text = String(written).trim();
  const steps: Step[] = [];
  let isDeep = false;
  for (const [n, piece] of cutAtSlashes(text).entries()) {
    if (piece === '') isDeep = n > 0;
    else if (piece !== '.') {
      steps.push(stepOf(piece, isDeep));
      isDeep = false;
    }
  }
  return { written: text, isAbsolute: text.startsWith('/'), steps };
}

/** Slashes within brackets and quotes belong to a name: `Flow [mL/min]`. */
function cutAtSlashes(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    const close = sign === '"' ? text.indexOf('"', at + 1) : sign === '[' ? text.indexOf(']', at) : -1;
    if (close > at) at = close;
    else if (sign === '/') {
      pieces.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...pieces, text.slice(from).trim()];
}

const CONDITIONS = /^(.*?)((?:\[[^[\]=]+=[^[\]]*\])+)$/s;

function stepOf(piece: string, isDeep: boolean): Step {
  const [, before = piece, brackets = ''] = CONDITIONS.exec(piece) ?? [];
  const isQuoted = before.length > 2 && before.startsWith('"') && before.endsWith('"');
  const name = isQuoted ? before.slice(1, -1) : before.trim();
  const place = !isQuoted && /^\d{1,9}$/.test(name) ? Number(name) : undefined;
  return { name: name === '' ? '*' : name, place, isDeep, conditions: conditionsIn(brackets) };
}

function conditionsIn(brackets: string): Condition[] {
  return [...brackets.matchAll(/\[([^=]+)=([^\]]*)\]/g)].map(([, key = '', value = '']) => ({
    key: parsePath(key).steps,
    value: value.trim().replace(/^(["'])(.*)\1$/s, '$2'),
  }));
}

/** A path as a mapping writes it, up to and with the n-th of its steps: for people. */
function writtenTo({ isAbsolute, steps }: Path, n: number): string {
  const parts = steps.slice(0, n + 1).map(({ name, isDeep }) => (isDeep ? `/${name}` : name));
  return `${isAbsolute ? '/' : ''}${parts.join('/')}`;
}
