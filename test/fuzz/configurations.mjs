import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { loadConfig } from '../../dist/config/load.js';
import { checkMapping } from '../../dist/map/draft.js';

/*
 * Mutated configurations, and included files.
 */

const EXAMPLE = readFileSync(new URL('../../config.example.yaml', import.meta.url), 'utf8');
const INCLUDED = 'instruments:\n  reader: { watch: /srv/reader, parse: { table: {} } }\n';
const STRANGE = [
  '*',
  '&a',
  '*a',
  '!!binary x',
  '? ',
  '- ',
  '{',
  '}',
  '[',
  ']',
  ': ',
  '\t',
  '"',
  "'",
  '|',
  '>',
  '%',
  '@',
  '`',
  'null',
  '~',
  '1e999',
  '0x7f',
  '.nan',
  '2026-02-30',
  '<<: *a',
  '__proto__: 1',
  'watch:',
  '{{',
  '{% raw %}',
  '/(a+)+$/',
  '\0',
  '\uFEFF',
  '---\n',
  '...\n',
  'é'.repeat(300),
];

const place = fc.nat({ max: 999_999 }).map((n) => n / 1_000_000);
const change = fc.oneof(
  fc.record({ kind: fc.constant('insert'), place, text: fc.constantFrom(...STRANGE) }),
  fc.record({ kind: fc.constant('drop'), place }),
  fc.record({ kind: fc.constant('double'), place }),
  fc.record({ kind: fc.constant('indent'), place, by: fc.integer({ min: -4, max: 4 }) }),
  fc.record({ kind: fc.constant('character'), place, code: fc.nat(0x2fff) }),
  fc.record({ kind: fc.constant('aliases'), place, count: fc.integer({ min: 1, max: 2000 }) }),
  fc.record({ kind: fc.constant('nest'), place, depth: fc.integer({ min: 1, max: 3000 }) }),
);
const arbitrary = fc.record({ changes: fc.array(change, { minLength: 1, maxLength: 6 }), inIncluded: fc.boolean() });

function apply(text, { kind, place: where, ...rest }) {
  const lines = text.split('\n');
  const n = Math.floor(where * lines.length);
  const at = Math.floor(where * text.length);
  if (kind === 'insert') return text.slice(0, at) + rest.text + text.slice(at);
  if (kind === 'character') return text.slice(0, at) + String.fromCodePoint(rest.code) + text.slice(at + 1);
  if (kind === 'drop') return lines.toSpliced(n, 1).join('\n');
  if (kind === 'double') return lines.toSpliced(n, 0, lines[n]).join('\n');
  if (kind === 'indent')
    return lines.with(n, rest.by < 0 ? lines[n].slice(-rest.by) : ' '.repeat(rest.by) + lines[n]).join('\n');
  if (kind === 'aliases')
    return `${text}\nx: &x [1]\ny: [${Array.from({ length: rest.count }, () => '*x').join(', ')}]\n`;
  return `${text}\nz: ${'['.repeat(rest.depth)}${']'.repeat(rest.depth)}\n`;
}

export function createCase(seed) {
  const [{ changes, inIncluded }] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  return {
    what: `the ${inIncluded ? 'included file' : 'example'} after ${JSON.stringify(changes)}`,
    async perform(folder) {
      mkdirSync(join(folder, 'instruments.d'), { recursive: true });
      const file = join(folder, 'labfeed.yaml');
      writeFileSync(file, inIncluded ? EXAMPLE : changes.reduce(apply, EXAMPLE));
      writeFileSync(join(folder, 'instruments.d/more.yaml'), inIncluded ? changes.reduce(apply, INCLUDED) : INCLUDED);
      const { problems, instruments } = loadConfig(file);
      for (const instrument of instruments) problems.push(...checkMapping(instrument));
      for (const { where, message } of problems) {
        if (!where?.file || message === '') return `reports ${JSON.stringify({ where, message })}, which helps nobody`;
      }
      // The mistake in an included file leaves the notebook and the other instruments as they are.
      const stopped = problems.find(({ stops }) => stops === 'daemon');
      return inIncluded && stopped ? `stops the daemon: ${stopped.message}` : undefined;
    },
  };
}
