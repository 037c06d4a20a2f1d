import { z } from 'zod';
import { configSchema } from './schema.js';
import type { ConfigPath } from './yaml.js';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The configuration's JSON Schema, as editors want it: of what is written, before defaults and units are applied. */
export const jsonSchema = (): JsonSchema =>
  z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any', reused: 'inline' });

/** The keys that the schema knows at this place of the configuration. */
export function knownKeys(path: ConfigPath): string[] {
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
