import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { parseSchema } from '../../src/config/vocabulary.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const words = /^### The words\n([\s\S]*?)^## /m.exec(readme)?.[1] ?? '';

const problems = (mapping: unknown): string[] =>
  parseSchema.safeParse(mapping).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ??
  [];

/** How an example of each table is made a whole mapping. */
const WHOLE: Readonly<Record<string, (part: object) => unknown>> = {
  'The file': (part) => part,
  'A finder': (part) => ({ meta: part }),
  'A table': (table) => ({ table }),
  'The long form': (column) => ({ table: { columns: { mine: column } } }),
};

/** The last cell of every row of the tables under this heading. */
const examplesUnder = (heading: string): string[] =>
  [...(words.split(`**${heading}**`)[1]?.split('\n**')[0] ?? '').matchAll(/^\| `.*\| `(.+)` \|$/gm)].map(
    ([, example]) => example ?? '',
  );

/** Every key that may be written in a mapping, wherever in it. */
function keysOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'properties' in schema ? Object.keys(schema.properties ?? {}) : [];
  return [...own, ...Object.values(schema).flatMap(keysOf)];
}

describe('the words of a mapping in the README', () => {
  test('every block of YAML is a mapping', () => {
    const blocks = [...words.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) => parseYaml(yaml ?? ''));
    expect(blocks.length).toBeGreaterThan(0);
    for (const { parse } of blocks) expect(problems(parse)).toEqual([]);
  });

  test.each(Object.keys(WHOLE))('every example of the table %s is accepted', (heading) => {
    const examples = examplesUnder(heading);
    expect(examples.length).toBeGreaterThan(4);
    for (const example of examples)
      expect(problems(WHOLE[heading]?.(parseYaml(example))), example).toEqual([]);
  });

  test('every key that there is has its place in one of the tables', () => {
    const keys = new Set(keysOf(z.toJSONSchema(parseSchema, { io: 'input', unrepresentable: 'any' })));
    expect(keys.size).toBeGreaterThan(40);
    for (const key of keys) expect(words, key).toMatch(new RegExp(`^\\|.*\`${key}\``, 'm'));
  });
});
