import { nearest } from '../../text.js';
import { nearestHit } from './nearest-hit.js';
import { itemsOf, type Node, writtenAt } from './node.js';
import { type Path, parsePath, writtenTo } from './path.js';
import type { DeadEnd, Found, Lookup, Row, Tree } from './tree.js';
import { walk } from './walk.js';

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
    deadEnd(path, row) {
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
      const found = writtenAt(node);
      return found ? { node, found } : [];
    });
    return (row ? nearestHit(row as Node, hits) : hits[0])?.found;
  };
}

function firstValue(nodes: readonly Node[]): Found | undefined {
  for (const node of nodes) {
    const found = writtenAt(node);
    if (found) return found;
  }
  return undefined;
}

/** One list of JSON, or elements that come again; one element may also hold all numbers as its text. */
function listAt(path: Path, root: Node): { readonly items: readonly Found[] } | DeadEnd {
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
  const found = nodes.flatMap(itemsOf).map(writtenAt);
  const items = found.filter((item) => item !== undefined);
  return items.length === found.length ? { items } : deadEnd(path, root);
}

const NUMBER = /^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?$/;

/** A comma stands between numbers where a blank follows it or points are the decimal marks, else it may be one itself. */
function numbersIn(node: Node): Found[] {
  const found = writtenAt(node);
  if (!found) return [];
  const separator = /,\s|\./.test(found.text) ? /[\s,;]+/ : /[\s;]+/;
  const texts = found.text.split(separator).filter((text) => text !== '');
  const isList = texts.length > 1 && texts.every((text) => NUMBER.test(text));
  return isList ? texts.map((text) => ({ ...found, text })) : [found];
}

/** The values that stand right in a row: its own, its attributes, and its children that are one value each. */
function* plainValues(row: Node): Generator<readonly [string, Found]> {
  const own = row.text ? writtenAt(row) : undefined;
  if (own) yield [row.name === '' ? 'value' : row.name, own];
  for (const [n, child] of row.children.entries()) {
    const found = writtenAt(child);
    // An element that only has attributes says nothing itself.
    const isBare = found?.text === '' && child.children.length > 0;
    if (found && !isBare) yield [child.name === '' ? `column ${n + 1}` : child.name.replace(/^@/, ''), found];
  }
}

/** How far a path leads, and what is there instead. */
function deadEnd(path: Path, from: Node): DeadEnd {
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

function astray(path: Path, n: number, name: string, reached: readonly Node[]): DeadEnd {
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

const MOST_NAMES = 1000;

/** What stands right below these places. Only so many names: this is a courtesy. */
function namesIn(nodes: readonly Node[]): string[] {
  const names = new Set<string>();
  for (const node of nodes) {
    for (const item of itemsOf(node)) {
      for (const { name } of item.children) if (name !== '') names.add(name);
    }
    if (names.size > MOST_NAMES) break;
  }
  return [...names].slice(0, MOST_NAMES);
}
