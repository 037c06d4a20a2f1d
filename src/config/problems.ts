import { z } from 'zod';
import { explainProblem, type Problem } from '../errors.js';
import { nearest } from '../text.js';
import { ARROW } from './grammar.js';
import { configSchema } from './schema.js';
import type { ConfigPath, YamlFile } from './yaml.js';

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Where a value is: in which file, at which path, and what a mistake in it stops. */
export interface CheckContext {
  readonly yaml: YamlFile;
  readonly path: ConfigPath;
  readonly stops: Problem['stops'];
}

type Checked<T> =
  | { readonly value: T; readonly problems: readonly [] }
  | { readonly value: undefined; readonly problems: readonly Problem[] };

/** Validates a value. Every mistake is reported with its location and what was expected. */
export function checkValue<S extends z.ZodType>(
  schema: S,
  value: unknown,
  context: CheckContext,
): Checked<z.output<S>> {
  const result = schema.safeParse(value, { error: defaultMessage });
  if (result.success) return { value: result.data, problems: [] };
  const misspelt = result.error.issues.flatMap((issue) => misspeltKeys(issue, context.path));
  const problems = result.error.issues
    .filter(({ path }) => !misspelt.includes(path.join('.')) || valueAt(value, path.map(String)) !== undefined)
    .flatMap((issue) => toProblems(issue, context));
  // A value of the wrong type can violate several rules with the same message.
  return {
    value: undefined,
    problems: [...new Map(problems.map((one) => [explainProblem(one), one])).values()],
  };
}

/** The keys that unknown keys probably stand for: they are not missing, but misspelt. */
function misspeltKeys(issue: Issue, base: ConfigPath): string[] {
  if (issue.code !== 'unrecognized_keys') return [];
  const path = pathOf(issue);
  const known = knownKeys([...base, ...path]);
  return issue.keys.flatMap((key) => {
    const guess = nearest(key, known);
    return guess === undefined ? [] : [[...path, guess].join('.')];
  });
}

const pathOf = ({ path }: Issue): ConfigPath => path.map((part) => (typeof part === 'number' ? part : String(part)));

/** For rules that have no message of their own in the schema. */
function defaultMessage(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${article(String(issue['expected']))}, found ${kindOf(issue.input)}${isQuotedNumber(issue) ? `${ARROW}remove the quotes` : ''}`;
    case 'invalid_value':
      return `unknown value ${typeof issue.input === 'object' ? kindOf(issue.input) : JSON.stringify(issue.input)}`;
    case 'too_small':
      return `expected at least ${issue['minimum']}`;
    case 'too_big':
      return `expected at most ${issue['maximum']}`;
    default:
      return undefined;
  }
}

const isQuotedNumber = ({ input, expected }: RawIssue): boolean =>
  (expected === 'number' || expected === 'int') && typeof input === 'string' && /^\d+$/.test(input);

function toProblems(issue: Issue, context: CheckContext): Problem[] {
  const { yaml, stops } = context;
  const path = [...context.path, ...pathOf(issue)];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey({ yaml, path, stops }, key));
  }
  if (issue.code === 'invalid_union') {
    const form = likelyForm(issue.errors);
    if (form) return form.flatMap((inner) => toProblems(inner, { ...context, path }));
  }
  const value = valueAt(yaml.value, path);
  const [what = '', advice] = issue.message.split(ARROW);
  const [message, hint] =
    value === undefined
      ? [`${labelOf(path)} is missing`, advice ?? what.replace(/^expected/, 'add')]
      : [`${labelOf(path)}: ${what}`, advice ?? (issue.code === 'invalid_value' ? choose(value, issue) : undefined)];
  return [{ where: yaml.placeOf(path), message, stops, hint }];
}

/** Which of the allowed values was probably meant, or all of them. */
function choose(value: unknown, { values }: { readonly values: readonly unknown[] }): string {
  const allowed = values.map(String);
  return didYouMean(value, allowed) ?? `use ${new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(allowed)}`;
}

/** `notebook.url`, or within an instrument `experiment.tags[1]`. */
function labelOf(path: ConfigPath): string {
  const within = path[0] === 'instruments' ? path.slice(path.length > 2 ? 2 : 1) : path;
  return within.reduce<string>(
    (label, part) => (typeof part === 'number' ? `${label}[${part}]` : label ? `${label}.${part}` : part),
    '',
  );
}

/** `known`: the keys allowed in this file, if they are fewer than those of the schema. */
export function unknownKey(
  { yaml, path, stops }: CheckContext,
  key: string,
  known: readonly string[] = knownKeys(path),
): Problem {
  const isElsewhere = !known.includes(key) && knownKeys(path).includes(key);
  const hint = isElsewhere
    ? 'move it to the main configuration file'
    : (didYouMean(key, known) ?? (known.length > 0 ? `known keys: ${known.join(', ')}` : undefined));
  return { where: yaml.placeOfKey([...path, key]), message: `unknown key ${JSON.stringify(key)}`, stops, hint };
}

function didYouMean(found: unknown, known: readonly string[]): string | undefined {
  const guess = typeof found === 'string' ? nearest(found, known) : undefined;
  return guess === undefined ? undefined : `did you mean ${guess}?`;
}

/** Of the forms that a value may have, the one that was evidently meant: the right type, with a mistake inside. */
function likelyForm(forms: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const likely = forms.filter((issues) =>
    issues.every(
      (issue) =>
        issue.path.length > 0 ||
        issue.code === 'unrecognized_keys' ||
        issue.code === 'invalid_union' ||
        saysWhatToWrite(issue),
    ),
  );
  return likely.length === 1 ? likely[0] : undefined;
}

/** A rule that recognised a mistake, or an amount such as `10min`. */
const saysWhatToWrite = ({ code, message }: Issue): boolean =>
  message.includes(ARROW) && (code === 'custom' || /^"?\d/.test(message));

function valueAt(value: unknown, path: ConfigPath): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string | number, unknown>)[part] : undefined,
    value,
  );
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a map' : article(typeof value);
}

const KINDS: Record<string, string> = {
  object: 'a map',
  record: 'a map',
  array: 'a list',
  int: 'a whole number',
  string: 'text',
  boolean: 'true or false',
};

const article = (kind: string): string => KINDS[kind] ?? `a ${kind}`;

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The JSON Schema of what is written, before defaults and units are applied. */
export const jsonSchema = (): JsonSchema => ({
  ...z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any', reused: 'inline' }),
  // There is an instrument, here or in an included file.
  if: { not: { required: ['include'] } },
  // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
  then: { required: ['instruments'], properties: { instruments: { minProperties: 1 } } },
});

/** The keys that the schema has at this path. */
function knownKeys(path: ConfigPath): string[] {
  let level: JsonSchema[] = formsOf(jsonSchema());
  for (const part of path) level = level.flatMap((schema) => schemasOf(schema, part)).flatMap(formsOf);
  return [...new Set(level.flatMap((schema) => Object.keys(schema.properties ?? {})))];
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null;

/** A schema and its alternatives. */
const formsOf = (schema: JsonSchema): JsonSchema[] => [
  schema,
  ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].filter(isSchema).flatMap(formsOf),
];

function schemasOf(schema: JsonSchema, part: string | number): JsonSchema[] {
  const found = typeof part === 'number' ? schema.items : (schema.properties?.[part] ?? schema.additionalProperties);
  return isSchema(found) && !Array.isArray(found) ? [found] : [];
}
