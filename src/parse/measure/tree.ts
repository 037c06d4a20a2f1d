import type { ParseMapping } from '../../config/vocabulary.js';
import { type Node, type Tree, writtenAt } from '../extract/tree.js';
import type { TableMapping } from './describe.js';
import type { Measured, Measuring } from './measured.js';
import { settleDates } from './settle-dates.js';
import { findDates, isDate } from './when.js';

const MOST_FACTS = 120;
const MOST_TABLES = 20;

interface Outline {
  readonly facts: Record<string, string>;
  /** Counted here: there may be a million values in a file. */
  factCount: number;
  readonly tables: Record<string, TableMapping>;
}

/** What a tree holds: single values are facts, and what comes again and again is a table. */
export async function measureTree(format: 'json' | 'xml', tree: Tree, file: Measuring): Promise<Measured> {
  const outline: Outline = { facts: {}, factCount: 0, tables: {} };
  if (tree.root) visit(tree.root, '', outline);
  const { facts, tables } = outline;
  return withDates({ format, facts, tables }, file);
}

/** Reads it once, to see which of its texts are dates. */
export async function withDates(mapping: ParseMapping, file: Measuring): Promise<Measured> {
  const { meta, tables } = await file.read(mapping);
  const paths = new Map(Object.entries(mapping.facts ?? {}));
  // Facts of a tree are known by their paths, which also say what a date belongs to: to a run, or to a calibration.
  const byPath = new Map([...meta].map(([name, value]) => [String(paths.get(name) ?? name), value]));
  const { fact: dated, ...found } = findDates({ meta: byPath, tables });
  const fact = paths.has('date') ? undefined : dated;
  const dates = settleDates({ ...found, fact }, file.name, paths.has('date'));
  const { doubts } = dates;
  return { mapping: dates.sure(mapping), likely: dates.likely(mapping), doubts, refusal: undefined };
}

function visit(node: Node, path: string, outline: Outline): void {
  const groups = new Map<string, Node[]>();
  for (const [n, child] of node.children.entries()) {
    // The items of a list have no names; they are counted.
    const name = child.name === '' ? String(n) : child.name;
    const known = groups.get(name);
    if (known) known.push(child);
    else groups.set(name, [child]);
  }
  for (const [name, children] of groups) {
    const [first] = children;
    if (!first) continue;
    const own = `${path}/${quoted(name)}`;
    const items = children.length === 1 && first.isList ? first.children : children;
    if (items.length > 1 || (first.isList && items.length > 0)) takeSeveral(name, own, items, outline);
    else takeOne(name, own, first, outline);
  }
}

function takeOne(name: string, path: string, node: Node, outline: Outline): void {
  const found = writtenAt(node);
  if (found && isNumbers(found.text) && Object.keys(outline.tables).length < MOST_TABLES) {
    outline.tables[unique(cleaned(name), outline.tables)] = { columns: { [cleaned(name)]: path } };
  } else if (found && found.text !== '' && found.text.length <= 200)
    addFact(nameOf(name, node), path, outline, isDate(found.text));
  // A value with its unit is one thing; attributes beside a value are others.
  if (!found || node.children.some(({ children }) => children.length > 0)) visit(node, path, outline);
  else
    for (const child of node.children)
      if (child.name.startsWith('@')) takeOne(child.name, `${path}/${child.name}`, child, outline);
}

/** Many numbers with blanks between them are the points of a curve, written as one text. */
const isNumbers = (text: string): boolean =>
  /^\s*(?:[-+\d.,]+(?:[eE][-+]?\d+)?;?\s+){5}/.test(text) && /^[-+\d.,;eE\s]+$/.test(text);

/** Plain values are a column, things of one kind are rows; and where they are few, each is looked into. */
function takeSeveral(name: string, path: string, items: readonly Node[], outline: Outline): void {
  if (Object.keys(outline.tables).length >= MOST_TABLES) return;
  const isPlain = items.every(({ children }) => children.length === 0);
  const hasValues =
    isPlain || items.some(({ children }) => children.some((child) => writtenAt(child) !== undefined));
  const own = unique(isNumber(name) ? 'readings' : cleaned(name), outline.tables);
  if (hasValues) outline.tables[own] = isPlain ? { columns: { value: path } } : { rows: path };
  if (isPlain) return;
  const [first] = items;
  const isDeep = ({ children }: Node) => children.some((child) => child.children.length > 0);
  if (items.length <= FEW) {
    for (const [n, item] of items.entries()) if (isDeep(item)) visit(item, `${path}/${n}`, outline);
  } else if (first && isDeep(first)) visitLong(first, path, outline);
}

const FEW = 5;
const isNumber = (name: string): boolean => /^\d+$/.test(name);

/** Of many rows, only what is long in itself is looked into: the points of each scan. */
function visitLong(node: Node, path: string, outline: Outline): void {
  for (const child of node.children) {
    const own = `${path}/${quoted(child.name)}`;
    if (child.isList && child.children.length > 1) takeSeveral(child.name, own, child.children, outline);
    else if (child.name !== '' && child.children.length > 0) visitLong(child, own, outline);
  }
}

/** `isDated`: what says when something was is wanted even where there is too much else. */
function addFact(name: string, path: string, outline: Outline, isDated: boolean): void {
  if (outline.factCount >= (isDated ? 2 : 1) * MOST_FACTS) return;
  outline.facts[unique(name, outline.facts)] = path;
  outline.factCount += 1;
}

/** Attributes say what their element is: `Sample name`. */
const nameOf = (name: string, { parent }: Node): string =>
  name.startsWith('@') && parent ? `${cleaned(parent.name)} ${cleaned(name)}`.trim() : cleaned(name);

const cleaned = (name: string): string => name.replace(/^@/, '').trim();

function unique(name: string, taken: object): string {
  let own = name;
  for (let n = 2; own in taken; n++) own = `${name} ${n}`;
  return own;
}

/** A name that has a sign of the path in it stands in quotes. */
const quoted = (name: string): string => (/[/[\]"*]/.test(name) ? `"${name}"` : name);
