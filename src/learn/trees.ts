import type { ParseMapping } from '../config/vocabulary.js';
import { type Node, type Tree, valueAt } from '../parse/extract/tree.js';
import type { Records } from '../parse/formats/records.js';
import { linesOf, type Sheet } from '../parse/formats/workbook.js';
import { isBlank, type Line } from '../parse/lines.js';
import { findDates, isDate, settleDates } from './dates.js';
import type { TableMapping } from './describe.js';
import { measureLines } from './measure.js';
import type { Measured, Measuring } from './measured.js';
import type { FinderMapping } from './pairs.js';

const MAX_TREE_FACTS = 120;
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
async function withDates(mapping: ParseMapping, file: Measuring): Promise<Measured> {
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
  const found = valueAt(node);
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
    isPlain || items.some(({ children }) => children.some((child) => valueAt(child) !== undefined));
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
  if (outline.factCount >= (isDated ? 2 : 1) * MAX_TREE_FACTS) return;
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

const MAX_RECORD_FACTS = 60;

/** What records hold: those that come once are facts by their fields, the others are tables by their type. */
export async function measureRecords({ tree, lines }: Records, file: Measuring): Promise<Measured> {
  const types = new Map<string, number>();
  for (const { cells } of lines) if (cells[0]) types.set(cells[0], (types.get(cells[0]) ?? 0) + 1);
  const facts: Record<string, string> = {};
  const tables: Record<string, TableMapping> = {};
  for (const [type, times] of types) {
    const [row] = tree.rows(type) ?? [];
    if (times > 1) tables[type] = { rows: type, ...columnsOf(type, { tree, lines }) };
    else if (row) {
      for (const [name, { text }] of tree.values(row)) {
        const isTold = /[\p{L}\p{N}]/u.test(text) && Object.keys(facts).length < MAX_RECORD_FACTS;
        if (isTold) facts[name.replace('/', ' ')] = `/${name}`;
      }
    }
  }
  const date = SENT.find((path) => /^(?:19|20)\d{6}/.test(tree.lookup(path)()?.text ?? ''));
  const told = date === undefined ? facts : { ...facts, date: { from: date, format: STAMPS } };
  return withDates({ format: 'records', facts: told, tables }, file);
}

/** Where the standards put the moment at which a message was sent, and how they write it. */
const SENT = ['/MSH/7', '/H/14'];
const STAMPS = ['yyyyMMddHHmmss', 'yyyyMMddHHmmssZZZ', 'yyyyMMddHHmm', 'yyyyMMdd'];

/** The fields that some record of the type fills; where a field has parts, each of them. */
function columnsOf(type: string, { tree }: Records): TableMapping {
  const parts = new Map<string, string>();
  for (const row of (tree.rows(type) ?? []).slice(0, 200)) {
    for (const [path, { text }] of tree.values(row)) {
      const name = path.slice(path.indexOf('/') + 1);
      if (text === '') continue;
      const pieces = text.split('^');
      if (pieces.length === 1) parts.set(name, name);
      for (const [n, piece] of pieces.length === 1 ? [] : pieces.entries()) {
        if (piece !== '') parts.set(`${name}.${n + 1}`, `${name}/${n + 1}`);
      }
    }
  }
  return parts.size === 0
    ? {}
    : { columns: Object.fromEntries([...parts].map(([name, path]) => [`field ${name}`, path])) };
}

/** Pictures of data, and pages that explain it, come after the data. */
const MOST_SHEETS = 8;

/** Measures every sheet of a workbook by itself, and puts together what they are. */
export async function measureSheets(sheets: readonly Sheet[], file: Measuring): Promise<Measured> {
  const found: Measured[] = [];
  let refusal: unknown;
  for (const [n, sheet] of sheets.slice(0, MOST_SHEETS).entries()) {
    const lines = linesOf(sheet, n);
    if (lines.every(isBlank)) continue;
    try {
      found.push(await measureSheet(sheet.name, n, lines, file));
    } catch (error) {
      // A sheet of prose beside sheets of data is passed over.
      refusal ??= error;
    }
  }
  const [first, ...others] = found;
  if (!first) throw refusal ?? file.refuse('the workbook is empty');
  return others.reduce(join, first);
}

async function measureSheet(
  name: string,
  n: number,
  lines: readonly Line[],
  file: Measuring,
): Promise<Measured> {
  const own = n === 0 ? {} : { sheet: name };
  const inSheet = (mapping: ParseMapping): ParseMapping => ({
    ...mapping,
    ...placed(mapping, own),
    format: 'xlsx',
  });
  const measured = await measureLines(
    { lines, raw: ({ text }) => text, isComment: () => false, delimiter: 'tab', base: {} },
    { ...file, read: (mapping) => file.read(inSheet(mapping)) },
  );
  return { ...measured, mapping: inSheet(measured.mapping), likely: inSheet(measured.likely) };
}

type Place = { readonly sheet?: string };

function placed({ meta, table, tables }: ParseMapping, place: Place): ParseMapping {
  const finders = [meta ?? []].flat().map((finder): FinderMapping => ({ ...finder, ...place }));
  const named = table ? { readings: table } : (tables ?? {});
  return {
    ...(finders.length > 0 && { meta: finders.length === 1 && finders[0] ? finders[0] : finders }),
    ...(table && { table: { ...table, ...place } }),
    ...(tables && {
      tables: Object.fromEntries(Object.entries(named).map(([name, each]) => [name, { ...each, ...place }])),
    }),
  };
}

const join = (one: Measured, other: Measured): Measured => ({
  mapping: joinMappings(one.mapping, other.mapping),
  likely: joinMappings(one.likely, other.likely),
  doubts: [...one.doubts, ...other.doubts],
  refusal: one.refusal ?? other.refusal,
});

function joinMappings(one: ParseMapping, other: ParseMapping): ParseMapping {
  const meta = [...[one.meta ?? []].flat(), ...[other.meta ?? []].flat()];
  const tables = { ...tablesOf(one) };
  for (const [name, table] of Object.entries(tablesOf(other))) {
    const own = name in tables ? `${table.sheet ?? name} ${Object.keys(tables).length + 1}` : name;
    tables[own] = table;
  }
  const formats = [...new Set([...formatsOf(one), ...formatsOf(other)])];
  const missing = [...new Set([...[one.missing ?? []].flat(), ...[other.missing ?? []].flat()])];
  return {
    format: 'xlsx',
    ...(formats.length > 0 && { dates: { format: formats } }),
    ...(missing.length > 0 && { missing }),
    ...(meta.length > 0 && { meta }),
    facts: { ...other.facts, ...one.facts },
    ...(Object.keys(tables).length > 0 && { tables }),
  };
}

const tablesOf = ({ table, tables }: ParseMapping): Record<string, TableMapping> =>
  table ? { readings: table } : (tables ?? {});

const formatsOf = ({ dates }: ParseMapping): string[] => [dates?.format ?? []].flat();
