import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml, stringify } from 'yaml';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.js';
import { jsonSchema } from '../../src/config/problems.js';
import { parseSchema } from '../../src/config/vocabulary.js';
import { checkMapping } from '../../src/map/draft.js';
import { createMapping } from '../../src/mapping/mapping.js';
import { openSample } from '../../src/mapping/sample.js';
import { tempFolder } from '../support/temp-folder.js';
import { blocks, PAGES, ROOT, read } from './blocks.js';
import { configurationReference, type Schema } from './reference.js';

describe('README', () => {
  test('has at most 900 words', () => {
    expect(read('README.md').split(/\s+/).length).toBeLessThanOrEqual(900);
  });
});

describe('links', () => {
  const slug = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-');
  const anchors = (page: string): string[] =>
    [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slug(heading));
  const packaged = z.object({ files: z.array(z.string()) }).parse(JSON.parse(read('package.json'))).files;
  const isPackaged = (path: string): boolean =>
    ['README.md', 'LICENSE', 'package.json'].includes(path) ||
    packaged.some((file) => path === file || path.startsWith(`${file}/`));

  test.each(PAGES)('every link of %s leads somewhere', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    for (const link of links.filter((one) => !/^https?:/.test(one))) {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? page : relative(ROOT, join(ROOT, dirname(page), file));
      expect(existsSync(join(ROOT, target)), `${link} in ${page}`).toBe(true);
      if (anchor !== undefined) expect(anchors(target), `${link} in ${page}`).toContain(anchor);
      // The published npm package has no dead links either.
      if (isPackaged(page)) expect(isPackaged(target), `${target} is in the package, for ${page}`).toBe(true);
    }
  });
});

describe('YAML', () => {
  const all = PAGES.flatMap((page) =>
    blocks(page, 'yaml').map((text, index) => ({ page, text, name: `${page}, block ${index + 1}` })),
  );

  /** A part of a configuration, completed to a whole one. */
  function complete(part: Record<string, unknown>): Record<string, unknown> {
    const { parse, ...rest } = part;
    const given = (rest['instruments'] ?? {}) as Record<string, unknown>;
    const instruments = parse === undefined ? given : { ...given, example: { watch: '/srv/example', parse } };
    return {
      notebook: { url: 'https://eln.example.org', key: { file: 'api-key' } },
      ...rest,
      instruments: Object.keys(instruments).length > 0 ? instruments : { example: { watch: '/srv/example' } },
    };
  }

  test.each(all)('$name is valid', ({ text }) => {
    const part = parseYaml(text) as Record<string, unknown>;
    // Rules for Prometheus: the metrics they name are checked with the metrics.
    if ('groups' in part) return;
    const folder = tempFolder();
    writeFileSync(join(folder, 'api-key'), 'key');
    writeFileSync(join(folder, 'labfeed.yaml'), stringify(complete(part)));
    const { problems, instruments } = loadConfig(join(folder, 'labfeed.yaml'));
    expect([...problems, ...instruments.flatMap(checkMapping)].map(({ message }) => message)).toEqual([]);
  });

  test('no block is missed', () => {
    const written = PAGES.flatMap((page) => read(page).match(/```yaml/g) ?? []);
    expect(all.length).toBe(written.length);
    expect(all.length).toBeGreaterThan(0);
  });
});

describe('mappings', () => {
  const page = read('docs/mappings.md');
  const vocabulary = page.slice(page.indexOf('\n## Vocabulary'));
  const examples = [...page.matchAll(/### (.+)\n\n```text\n([\s\S]*?)```\n\n```yaml\n([\s\S]*?)```/g)].map(
    ([, name = '', text = '', yaml = '']) => ({ name, text, yaml }),
  );

  test.each(examples)('the example "$name" reads its file', async ({ text, yaml }) => {
    const folder = tempFolder();
    const sample = join(folder, 'sample.txt');
    writeFileSync(sample, text);
    const { parse } = parseYaml(yaml) as { parse: unknown };
    writeFileSync(join(folder, 'labfeed.yaml'), stringify({ instruments: { example: { watch: '.', parse } } }));
    const [instrument] = loadConfig(join(folder, 'labfeed.yaml')).instruments;
    if (!instrument) throw new Error('the mapping is wrong');
    const record = await createMapping(instrument).parse(await openSample(sample));
    expect(record.tables[0]?.rows.length).toBeGreaterThan(1);
  });

  const problems = (mapping: unknown): string[] =>
    parseSchema.safeParse(mapping).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
  /** How an example of each table becomes a whole mapping. */
  const WHOLE: Readonly<Record<string, (part: object) => unknown>> = {
    'The file': (part) => part,
    'A finder': (part) => ({ meta: part }),
    'A table': (table) => ({ table }),
    'The long form of a fact or column': (column) => ({ table: { columns: { mine: column } } }),
  };

  test.each(Object.keys(WHOLE))('every example in the table "%s" is valid', (heading) => {
    const section = vocabulary.split(`### ${heading}\n`)[1]?.split('\n### ')[0] ?? '';
    const cells = [...section.matchAll(/^\| `.*\| `(.+)` \|$/gm)].map(([, example = '']) => example);
    expect(cells.length).toBeGreaterThan(4);
    for (const example of cells) expect(problems(WHOLE[heading]?.(parseYaml(example))), example).toEqual([]);
  });

  test('every key of a mapping is in the vocabulary', () => {
    const keys = new Set(keysOf(z.toJSONSchema(parseSchema, { io: 'input', unrepresentable: 'any' })));
    expect(keys.size).toBeGreaterThan(40);
    for (const key of keys) expect(vocabulary, key).toMatch(new RegExp(`^\\|.*\`${key}\``, 'm'));
  });
});

/** Every key that may be written in a mapping, at any depth. */
function keysOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'properties' in schema ? Object.keys(schema.properties ?? {}) : [];
  return [...own, ...Object.values(schema).flatMap(keysOf)];
}

test('the configuration reference is the one generated from the schema (update: vitest -u)', async () => {
  await expect(configurationReference(jsonSchema() as Schema)).toMatchFileSnapshot(
    '../../docs/configuration-reference.md',
  );
});
