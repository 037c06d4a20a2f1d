import { z } from 'zod';
import { nearest } from '../text.js';
import { ARROW, regexMistake } from './grammar.js';

/**
 * What a test of a mapping may expect. The key names a part of the run as templates do (`title`, `readings[0].A260`,
 * `meta["Sample ID"]`), the value is what it must be. Text is literal unless it is in slashes.
 */

export type Scalar = string | number | boolean | null;

interface InTable {
  /** Undefined: the first table. */
  readonly table: string | undefined;
}

/** What can be expected, and where it is in the record. */
interface Targets {
  title: unknown;
  date: unknown;
  body: unknown;
  tags: unknown;
  comments: unknown;
  quarantined: unknown;
  fact: { readonly name: string };
  factUnit: { readonly name: string };
  rows: InTable;
  columns: InTable;
  columnUnit: InTable & { readonly column: string };
  /** Rows count from 0, or from -1 at the end. */
  cell: InTable & { readonly row: number; readonly column: string };
}

type Kind = keyof Targets;
type Target = { [Of in Kind]: { readonly of: Of } & Targets[Of] }[Kind];

/** One expectation: the key as written, what it refers to, and the expected value. */
export type Expectation = {
  [Of in Kind]: {
    readonly key: string;
    readonly of: Of;
    readonly wanted: z.output<(typeof WANTED)[Of]>;
  } & Targets[Of];
}[Kind];

const TEXT = 'text or /regex/';
const LIST = 'a list of text';
const VALUE = 'a number, text, /regex/, true, false or null';

/** A title that is a number in YAML is text too. */
const wantedText = z
  .union([z.string(), z.number().transform(String)], { error: `expected ${TEXT}` })
  .superRefine(checkRegex);
const wantedTexts = z.union([z.array(wantedText), wantedText.transform((one) => [one])], {
  error: `expected ${LIST}`,
});
const count = z.int({ error: 'expected a whole number' }).min(0, 'expected 0 or more');
const unit = z.union([z.string(), z.null()], { error: 'expected a unit, or null for none' });
const value = z
  .union([z.string(), z.number(), z.boolean(), z.null()], { error: `expected ${VALUE}` })
  .superRefine(checkRegex);

function checkRegex(written: unknown, context: z.RefinementCtx): void {
  const message = typeof written === 'string' ? regexMistake(written) : undefined;
  if (message) context.addIssue({ code: 'custom', message });
}

const WANTED = {
  title: wantedText.describe('The title: text or /regex/.'),
  date: wantedText.describe('The date, such as 2026-04-03.'),
  body: wantedText.describe('Text that the body must contain, or /regex/.'),
  tags: wantedTexts.describe('The tags, in any order.'),
  comments: z
    .union([count, wantedTexts], { error: `expected a number of comments, or ${LIST} that they contain` })
    .describe('The number of comments, or a list of text or /regex/ that each must contain.'),
  quarantined: z
    .union([z.literal(true), z.string()], { error: 'expected true, or text that the reason must contain' })
    .superRefine(checkRegex)
    .describe('The file must be quarantined: true, text that the reason must contain, or /regex/.'),
  fact: value.describe('A fact of the file: meta.Operator or meta["Sample ID"].'),
  factUnit: unit.describe('The unit of a fact: meta.Weight.unit.'),
  rows: count.describe('The number of rows.'),
  columns: z
    .array(z.string({ error: `expected ${LIST}` }), { error: `expected ${LIST}` })
    .describe('The names of the columns, in order.'),
  columnUnit: unit.describe('The unit of a column: columns.A260.unit.'),
  cell: value.describe('A value of a row: readings[0].A260, readings[-1]["Sample ID"]. Rows are numbered from 0.'),
} as const satisfies Record<Kind, z.ZodType>;

const SIMPLE = ['title', 'date', 'body', 'tags', 'comments', 'quarantined'] as const;
const ROOTS = [...SIMPLE, 'readings', 'columns', 'meta', 'tables'] as const;

/** A map of expectations, read as a list. */
export const expectSchema = z
  .record(z.string(), z.unknown(), {
    error: `expected a map${ARROW}write, for example, expect: { title: …, readings: 12 }`,
  })
  .meta(forEditors())
  .describe('What the mapping must produce. {}: only that the file can be read.')
  .transform((written, context): Expectation[] => {
    const expectations: Expectation[] = [];
    const report = (key: string, message: string) =>
      context.addIssue({ code: 'custom', path: [key], message, input: written[key] });
    for (const [key, wanted] of Object.entries(written)) {
      const target = targetOf(key);
      if (typeof target === 'string') report(key, target);
      else {
        const checked = WANTED[target.of].safeParse(wanted);
        if (checked.success) expectations.push({ key, ...target, wanted: checked.data } as Expectation);
        else for (const { message } of checked.error.issues.slice(0, 1)) report(key, message);
      }
    }
    if ('quarantined' in written && Object.keys(written).length > 1)
      report('quarantined', 'quarantined cannot be combined with other expectations');
    return expectations;
  });

/** What a key refers to, or what is wrong with it. */
function targetOf(key: string): Target | string {
  const [root, ...rest] = partsOf(key) ?? [];
  const simple = SIMPLE.find((name) => name === root);
  if (simple) return rest.length === 0 ? { of: simple } : `${simple} has no parts${ARROW}write ${simple}`;
  switch (root) {
    case 'meta':
      return factOf(rest);
    case 'readings':
      return tableOf(undefined, rest) ?? rowHint('readings');
    case 'columns':
      return tableOf(undefined, ['columns', ...rest]) ?? 'expected columns or columns.NAME.unit';
    case 'tables': {
      const [name, ...parts] = rest;
      if (typeof name !== 'string') return 'expected the name of a table: tables.NAME';
      return tableOf(name, parts) ?? rowHint(`tables.${name}`);
    }
    default:
      return unknown(key);
  }
}

function factOf(rest: readonly (string | number)[]): Target | string {
  const [name, part] = rest;
  if (typeof name === 'string' && rest.length === 1) return { of: 'fact', name };
  if (typeof name === 'string' && rest.length === 2 && part === 'unit') return { of: 'factUnit', name };
  return `expected meta.NAME${ARROW}write meta["NAME"] if the name contains dots or brackets`;
}

function tableOf(table: string | undefined, rest: readonly (string | number)[]): Target | undefined {
  const [first, column, part] = rest;
  if (rest.length === 0) return { of: 'rows', table };
  if (first === 'columns') {
    if (rest.length === 1) return { of: 'columns', table };
    const isUnit = rest.length === 3 && typeof column === 'string' && part === 'unit';
    return isUnit ? { of: 'columnUnit', table, column } : undefined;
  }
  const isCell = rest.length === 2 && typeof first === 'number' && typeof column === 'string';
  return isCell ? { of: 'cell', table, row: first, column } : undefined;
}

const rowHint = (table: string): string =>
  `expected ${table} (the number of rows), ${table}[0].COLUMN, ${table}.columns or ${table}.columns.NAME.unit` +
  `${ARROW}write ["NAME"] if a name contains dots or brackets`;

function unknown(key: string): string {
  const [word = key] = /^\w+/.exec(key) ?? [];
  const guess = nearest(word, ROOTS);
  const hint = guess && guess !== word ? `did you mean ${guess}${key.slice(word.length)}?` : `use ${ROOTS.join(', ')}`;
  return `unknown key${ARROW}${hint}`;
}

/** `readings[0]["Sample ID"]` gives readings, 0, Sample ID. Undefined for any other notation. */
function partsOf(key: string): (string | number)[] | undefined {
  const parts: (string | number)[] = [];
  let rest = key.trim();
  while (rest !== '') {
    const found = (parts.length === 0 ? FIRST : NEXT).exec(rest);
    if (!found) return undefined;
    const [all, name, double, single, row] = found;
    parts.push(row === undefined ? ((name ?? double ?? single) as string) : Number(row));
    rest = rest.slice(all.length);
  }
  return parts;
}

const FIRST = /^([A-Za-z]+)/;
const NEXT = /^(?:\.([^.[\]]+)|\["([^"]+)"\]|\['([^']+)'\]|\[(-?\d+)\])/;

/** Editors complete the keys with a fixed name and describe the others. */
function forEditors() {
  const schema = (of: Kind) => {
    const { $schema: _, ...rest } = z.toJSONSchema(WANTED[of], { io: 'input' });
    return rest;
  };
  const properties = Object.fromEntries([
    ...SIMPLE.map((of) => [of, schema(of)]),
    ['readings', schema('rows')],
    ['columns', schema('columns')],
  ]);
  const patternProperties = {
    '^meta[.[].*\\.unit$': schema('factUnit'),
    '^meta[.[](?!.*\\.unit$)': schema('fact'),
    '^tables(\\.[^.[]+|\\[["\'].+["\']\\])$': schema('rows'),
    '^(readings|tables.+)\\[-?\\d+\\]': schema('cell'),
    '^(readings|tables.+)\\.columns$': schema('columns'),
    '^(readings\\.|tables.+\\.)?columns[.[].*\\.unit$': schema('columnUnit'),
  };
  return { properties, patternProperties, additionalProperties: false };
}
