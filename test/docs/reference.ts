/** A node of a JSON Schema, as far as the reference shows it. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
}

/** Described in docs/mappings.md, with examples. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  parse: '[Mappings](mappings.md#vocabulary)',
  expect: '[Mappings](mappings.md#tests)',
};

const INTRODUCTION = `# Configuration reference

This page is generated from the schema that \`labfeed check\` uses. See [Configuration](configuration.md) for an introduction.
Durations are written \`500ms\`, \`5s\`, \`2m\`, \`24h\`, \`30d\`, \`1y\`; sizes \`64KB\`, \`10MB\`; rates \`10/s\`, \`300/m\`.
`;

/** The keys of the configuration as Markdown: one table for each level. */
export function configurationReference(schema: Schema): string {
  return [INTRODUCTION, ...sections(schema, []), ''].join('\n');
}

function sections(schema: Schema, path: readonly string[]): string[] {
  return formsOf(schema).flatMap(({ properties = {}, required = [], additionalProperties }) => {
    const keys = Object.entries(properties);
    const inner = keys.flatMap(([key, value]) => (key in ELSEWHERE ? [] : sections(value, [...path, key])));
    const named = typeof additionalProperties === 'object' ? sections(additionalProperties, [...path, 'NAME']) : [];
    if (keys.length === 0) return named;
    const rows = keys.map(([key, value]) => row(key, value, required.includes(key)));
    return [`## ${path.join('.') || 'Top level'}\n`, HEAD, ...rows, '', ...inner, ...named];
  });
}

const HEAD = '| key | value | default | meaning |\n|---|---|---|---|';

function row(key: string, schema: Schema, isRequired: boolean): string {
  const fallback = isRequired ? 'required' : 'default' in schema ? code(schema.default) : '';
  const meaning = [schema.description, ELSEWHERE[key] && `See ${ELSEWHERE[key]}.`].filter(Boolean).join(' ');
  return `| \`${key}\` | ${cell(typeOf(schema))} | ${fallback} | ${cell(meaning)} |`;
}

/** The alternatives of a value, including nested ones and those of list items. */
function formsOf(schema: Schema): Schema[] {
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return forms.flatMap(formsOf);
  return schema.items ? formsOf(schema.items) : [schema];
}

function typeOf(schema: Schema): string {
  const { anyOf, oneOf, items, type, pattern = '', format } = schema;
  const forms = anyOf ?? oneOf;
  if (forms) return [...new Set(forms.map(typeOf))].join(', or ');
  if ('const' in schema) return code(schema.const);
  if (schema.enum) return schema.enum.map(code).join(', ');
  if (items) return `list of ${typeOf(items)}`;
  if (type === 'object') return schema.properties ? 'keys below' : 'names and values';
  if (pattern.includes('(ms|')) return 'duration';
  if (pattern.includes('KB')) return 'size';
  if (pattern.includes('(s|m|h)')) return 'rate';
  if (format === 'uri') return 'address';
  return type === 'string' ? 'text' : (type ?? 'any value');
}

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
