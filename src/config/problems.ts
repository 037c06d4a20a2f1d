import { z } from 'zod';
import { explainProblem, type Problem } from '../errors.js';
import { nearest } from '../text.js';
import { configSchema } from './schema.js';
import type { ConfigPath, YamlFile } from './yaml.js';

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Where a checked value stands: in which file, below which path, and what a mistake in it stops. */
export interface CheckContext {
  readonly yaml: YamlFile;
  readonly path: ConfigPath;
  readonly stops: Problem['stops'];
}

type Checked<T> =
  | { readonly value: T; readonly problems: readonly [] }
  | { readonly value: undefined; readonly problems: readonly Problem[] };

/** Holds a value against its schema; every mistake is told at its line, with what was expected. */
export function checkValue<S extends z.ZodType>(
  schema: S,
  value: unknown,
  context: CheckContext,
): Checked<z.output<S>> {
  const result = schema.safeParse(value, { error: expectation });
  if (result.success) return { value: result.data, problems: [] };
  const problems = result.error.issues.flatMap((issue) => toProblems(issue, context));
  // A value of the wrong kind can break several rules of its schema that are told in the same words.
  return {
    value: undefined,
    problems: [...new Map(problems.map((one) => [explainProblem(one), one])).values()],
  };
}

/** Words of our own for what zod says by itself; what the schema says in its own words goes before. */
function expectation(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${article(String(issue['expected']))}, found ${kindOf(issue.input)}`;
    case 'invalid_value':
      return `expected ${(issue['values'] as unknown[]).map(String).join(' or ')}`;
    case 'too_small':
      return `expected at least ${issue['minimum']}`;
    case 'too_big':
      return `expected at most ${issue['maximum']}`;
    default:
      return undefined;
  }
}

function toProblems(issue: Issue, context: CheckContext): Problem[] {
  const { yaml, stops } = context;
  const path = [
    ...context.path,
    ...issue.path.map((part) => (typeof part === 'number' ? part : String(part))),
  ];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey({ yaml, path, stops }, key));
  }
  if (issue.code === 'invalid_union') {
    const branch = likelyBranch(issue.errors);
    if (branch) return branch.flatMap((inner) => toProblems(inner, { ...context, path }));
  }
  if (issue.input === undefined && !('input' in issue) && valueAt(yaml.value, path) === undefined) {
    return [{ where: yaml.placeOf(path), message: `${labelOf(path)} is missing: ${issue.message}`, stops }];
  }
  const hint =
    issue.code === 'invalid_value'
      ? didYouMean(valueAt(yaml.value, path), issue.values.map(String))
      : ownHint(issue);
  return [{ where: yaml.placeOf(path), message: `${labelOf(path)}: ${issue.message}`, stops, ...hint }];
}

/** How people call a place: `notebook.url`, or within an instrument `experiment.tags[1]`. */
function labelOf(path: ConfigPath): string {
  const within = path[0] === 'instruments' ? path.slice(path.length > 2 ? 2 : 1) : path;
  return within.reduce<string>(
    (label, part) => (typeof part === 'number' ? `${label}[${part}]` : label ? `${label}.${part}` : part),
    '',
  );
}

/** `known`: those that may stand in this very file, where they are fewer than the schema's. */
export function unknownKey(
  { yaml, path, stops }: CheckContext,
  key: string,
  known: readonly string[] = knownKeys(path),
): Problem {
  const elsewhere = knownKeys(path).includes(key)
    ? { hint: 'it belongs into the configuration that includes this file' }
    : undefined;
  const guess = elsewhere ?? didYouMean(key, known);
  const hint = guess ?? (known.length > 0 ? { hint: `known keys here: ${known.join(', ')}` } : {});
  return {
    where: yaml.placeOfKey([...path, key]),
    message: `unknown key ${JSON.stringify(key)}`,
    stops,
    ...hint,
  };
}

function didYouMean(found: unknown, known: readonly string[]): { hint: string } | undefined {
  const guess = typeof found === 'string' ? nearest(found, known) : undefined;
  return guess === undefined ? undefined : { hint: `did you mean ${guess}?` };
}

/** What a rule of the schema knows to say beside its message. */
function ownHint(issue: Issue): { hint: string } | undefined {
  const hint: unknown = issue.code === 'custom' ? issue.params?.['hint'] : undefined;
  return typeof hint === 'string' ? { hint } : undefined;
}

/** Of the forms that a value may take, the one that was evidently meant: of the right kind, wrong within. */
function likelyBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const right = branches.filter((issues) =>
    issues.every(
      (issue) =>
        issue.path.length > 0 ||
        issue.code === 'unrecognized_keys' ||
        issue.code === 'invalid_union' ||
        ownHint(issue) !== undefined,
    ),
  );
  return right.length === 1 ? right[0] : undefined;
}

function valueAt(value: unknown, path: ConfigPath): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null
        ? (inner as Record<string | number, unknown>)[part]
        : undefined,
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
  string: 'a text',
  boolean: 'true or false',
};

const article = (kind: string): string => KINDS[kind] ?? `a ${kind}`;

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The configuration's JSON Schema, as editors want it: of what is written, before defaults and units are applied. */
export const jsonSchema = (): JsonSchema =>
  z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any', reused: 'inline' });

/** The keys that the schema knows at this place of the configuration. */
function knownKeys(path: ConfigPath): string[] {
  let level: JsonSchema[] = forms(jsonSchema());
  for (const part of path) level = level.flatMap((schema) => inner(schema, part)).flatMap(forms);
  return [...new Set(level.flatMap((schema) => Object.keys(schema.properties ?? {})))];
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null;

/** A schema and the alternatives within it. */
const forms = (schema: JsonSchema): JsonSchema[] => [
  schema,
  ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
    .filter(isSchema)
    .flatMap(forms),
];

function inner(schema: JsonSchema, part: string | number): JsonSchema[] {
  const found =
    typeof part === 'number' ? schema.items : (schema.properties?.[part] ?? schema.additionalProperties);
  return isSchema(found) && !Array.isArray(found) ? [found] : [];
}
