/** Completes keys and values of a mapping from the schema of the configuration. No DOM is needed here. */

/** The parts of JSON Schema that are used here. */
export interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly type?: string;
}

export interface Completion {
  /** Where the unfinished word begins. */
  readonly from: number;
  readonly suggestions: readonly { readonly text: string; readonly meaning: string }[];
}

const MAX_SUGGESTIONS = 8;

/** What the word before the cursor can become. */
export function complete(schema: Schema, text: string, cursor: number): Completion {
  const above = text.slice(0, cursor).split('\n');
  const line = above.pop() ?? '';
  const [, indent = '', dashes = '', key, value] = /^( *)((?:- +)*)(?:([\w.-]+): +)?([\w.-]*)$/.exec(line) ?? [];
  if (value === undefined) return { from: cursor, suggestions: [] };
  const parents = pathAt(above, indent.length, dashes !== '');
  const path = key === undefined ? parents : [...parents, key];
  const forms = path.reduce(
    (level, part) => level.flatMap((one) => childOf(one, part)).flatMap(formsOf),
    formsOf(schema),
  );
  const found = key === undefined ? forms.flatMap(keysOf) : forms.flatMap(valuesOf);
  const unique = new Map(found.map((one) => [one.text, one]));
  const suggestions = [...unique.values()].filter(({ text: word }) => word.startsWith(value) && word.trim() !== value);
  return { from: cursor - value.length, suggestions: suggestions.slice(0, MAX_SUGGESTIONS) };
}

type Part = string | number;

/** The keys around a line with this indentation. `isInList`: it begins an item of a list. */
function pathAt(above: readonly string[], indent: number, isInList: boolean): Part[] {
  const path: Part[] = isInList ? [0] : [];
  let limit = indent;
  let mayBeEqual = isInList;
  for (const line of [...above].reverse()) {
    const [, spaces, dashes = '', name] = /^( *)((?:- +)*)["']?([^:#"']+)["']?:/.exec(line) ?? [];
    if (spaces === undefined || name === undefined) continue;
    const column = spaces.length + dashes.length;
    const isItem = dashes !== '' && spaces.length < limit;
    // A list may have the indentation of its key.
    const isParent = column < limit || (mayBeEqual && dashes === '' && column === limit);
    if (isParent) path.unshift(name);
    if (isItem) path.unshift(0);
    if (!isParent && !isItem) continue;
    limit = spaces.length;
    mayBeEqual = isItem;
  }
  return path;
}

/** A schema and its alternatives. */
const formsOf = (schema: Schema): Schema[] => [
  schema,
  ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].flatMap(formsOf),
];

function childOf({ items, properties, additionalProperties }: Schema, part: Part): Schema[] {
  const child = typeof part === 'number' ? items : (properties?.[part] ?? additionalProperties);
  return typeof child === 'object' ? [child] : [];
}

const keysOf = ({ properties = {} }: Schema) =>
  Object.entries(properties).map(([name, child]) => ({ text: `${name}: `, meaning: meaningOf(child) }));

const meaningOf = (schema: Schema): string => formsOf(schema).find(({ description }) => description)?.description ?? '';

function valuesOf(schema: Schema) {
  const values = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  const all = schema.type === 'boolean' ? [true, false] : values;
  return all.map((value) => ({ text: String(value), meaning: schema.description ?? '' }));
}
