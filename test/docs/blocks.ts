import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Everything that users read, except the generated reference and the changelog. */
export const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

export const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** The code blocks in this language. A block inside a list is indented; its content is not. */
export const blocks = (page: string, language: string): string[] =>
  [...read(page).matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, 'gm'))].map(
    ([, indent = '', text = '']) => text.replace(new RegExp(`^${indent}`, 'gm'), ''),
  );
