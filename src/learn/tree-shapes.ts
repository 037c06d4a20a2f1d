import { quotePart } from '../parse/extract/path.js';
import { isCurve, type Node, UNIT, VALUE, valueAt } from '../parse/extract/tree.js';
import { isPlainNumber } from '../parse/extract/unread.js';

/** What the elements of JSON and XML are: rows, records of a name and a value, curves. */

export const itemsOf = (node: Node): readonly Node[] => (node.isList ? node.children : [node]);

export const isText = (text: string): boolean => /\p{L}/u.test(text) && text.length <= 60;

/** Rows without names: the path of each cell. Undefined if the rows are not all of one width. */
export function matrixCells(items: readonly Node[]): string[] | undefined {
  const [first] = items;
  const names = new Set(items.flatMap(({ children }) => children.map(({ name }) => name)));
  const width = first?.children.length ?? 0;
  const isRow = ({ isList, children, text }: Node) =>
    isList === first?.isList &&
    !text &&
    children.length === width &&
    children.every((child) => child.children.length === 0 && !child.isList);
  const [name = ''] = names;
  if (width < (name === '' ? 1 : 2) || names.size > 1 || name.startsWith('@') || !items.every(isRow)) return undefined;
  return first?.children.map((_, n) => (name === '' ? `${n}` : `${quotePart(name)}/${n}`));
}

const ID = /^(?:[A-P]\d{1,2}|\d[\d\W_]*)$/;
const shapeOf = (name: string): string => name.replace(/\d+/g, '#').replace(/#(?:[-_.]#)+$/, '#');

/** Fewer single values with numbered names are facts. */
const MIN_KEYED_VALUES = 6;
const MIN_KEYED = 3;

/** Whether the names in these objects are wells, samples or the like: their contents are alike. */
export function isKeyed(objects: readonly Node[]): boolean {
  const children = objects.flatMap((each) => (each.isList ? [] : each.children));
  const most = objects.reduce((size, each) => Math.max(size, each.children.length), 0);
  const isRepeated = (each: Node) => new Set(each.children.map(({ name }) => name)).size < each.children.length;
  if (most < 2 || objects.some(isRepeated) || children.some(({ name }) => name.startsWith('@') || name === ''))
    return false;
  const areIds = children.every(({ name }) => ID.test(name));
  const isNumbered = children.every(({ name }) => /\d/.test(name));
  const shapes = new Set(children.map(({ name }) => shapeOf(name)));
  const areValues = children.every((child) => valueAt(child) !== undefined);
  if (areValues) {
    const areNumbers = children.every((child) => isPlainNumber(valueAt(child)?.text));
    return areNumbers && (areIds || (isNumbered && shapes.size === 1 && most >= MIN_KEYED_VALUES));
  }
  if (children.some((child) => child.isList || child.children.length === 0 || valueAt(child))) return false;
  if (areIds || (isNumbered && shapes.size === 1 && most >= MIN_KEYED)) return areAlike(children, 0.5);
  const isFew = most < MIN_KEYED_VALUES;
  return most >= MIN_KEYED && areAlike(children, isFew ? 1 : 0.7) && (!isFew || children.every(isFlat));
}

const isFlat = ({ children }: Node): boolean =>
  children.length > 1 && children.every((child) => !child.isList && valueAt(child) !== undefined);

/** Whether the elements have at least this share of all their names. */
function areAlike(elements: readonly Node[], share: number): boolean {
  const names = new Set(elements.flatMap(({ children }) => children.map(({ name }) => name)));
  const own = elements.reduce((sum, { children }) => sum + new Set(children.map(({ name }) => name)).size, 0);
  return own >= share * names.size * elements.length;
}

/**
 * A name and its value in an element of their own, as `{ name: Flow, value: 2, unit: mL }` or `<Item key="Flow">2</Item>`.
 * The value can be an array.
 */
export interface FoundRecord {
  readonly name: string;
  /** What finds the element among the others, as `name=Flow`. */
  readonly condition: string;
  /** Empty if the element itself is the value. */
  readonly value: string;
  readonly unit: string | undefined;
  readonly nodes: readonly Node[];
}

/** `1.5`, `<0.5`, `0.6 H`. */
const startsWithNumber = (node: Node): boolean => /^\W*\d/.test(valueAt(node)?.text ?? '');

const isArray = (node: Node): boolean =>
  node.isList ? node.children.every((item) => valueAt(item) !== undefined) : isCurve(valueAt(node)?.text ?? '');

export const NAME = /^@?(?:name|key|label|parameter|property|title|field|tag|id|code)$/i;
/** What describes a value but is not one. */
const ASIDE =
  /^@?(?:type|data_?type|value_?type|index|order|accession|(?:unit)?cv_?ref|unit_?accession|id|oid|guid|uuid)$/i;
/** More of them are a table. */
const MAX_RECORDS = 60;

/** Undefined if the elements are no such records, or if some could not be distinguished. */
export function recordsIn(items: readonly Node[]): FoundRecord[] | undefined {
  const [first] = items;
  if (!first || items.some(({ isList }) => isList)) return undefined;
  const own = first.children.find(({ name, text }) => NAME.test(name) && isText(text ?? ''));
  if (!own) return undefined;
  const value = first.text ? '' : first.children.find((each) => VALUE.test(each.name) || isArray(each))?.name;
  if (value === undefined) return undefined;
  const found = new Map<string, { unit: string | undefined; nodes: Node[]; parents: Set<Node | undefined> }>();
  for (const item of items) {
    const label = item.children.find(({ name }) => name === own.name)?.text?.trim() ?? '';
    const held = value === '' ? item : item.children.find(({ name }) => name === value);
    const others = item.children.filter(({ name }) => ![own.name, value].includes(name));
    if (!isText(label) || /[[\]="'\n]/.test(label) || others.some(({ name }) => !UNIT.test(name) && !ASIDE.test(name)))
      return undefined;
    const content = held && valueAt(held);
    if (held && !content && !isArray(held)) return undefined;
    const known = found.get(label) ?? { unit: undefined, nodes: [], parents: new Set() };
    if (known.parents.has(item.parent)) return undefined;
    known.parents.add(item.parent);
    const unit = others.find(({ name }) => UNIT.test(name));
    // Words have no unit.
    const hasNumbers =
      held && isArray(held)
        ? (held.isList ? held.children : [held]).some(startsWithNumber)
        : isPlainNumber(content?.text);
    if (unit?.text && hasNumbers) known.unit = unit.name;
    if (held && content?.text !== '') known.nodes.push(held);
    found.set(label, known);
  }
  const labels = [...found.keys()];
  const areRows = labels.length > 2 && new Set(labels.map(shapeOf)).size === 1 && /\d/.test(labels[0] ?? '');
  if (labels.length > MAX_RECORDS || areRows || labels.every((label) => ID.test(label))) return undefined;
  return labels.flatMap((name) => {
    const { unit, nodes } = found.get(name) ?? { unit: undefined, nodes: [] };
    return nodes.length === 0 ? [] : [{ name, condition: `${own.name}=${name}`, value, unit, nodes }];
  });
}
