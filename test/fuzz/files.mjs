import fc from 'fast-check';
import { MAPPINGS, readBytes } from './reading.mjs';
import { SAMPLES, sampleAmong } from './samples.mjs';

/*
 * Mutated instrument files.
 */

const STRANGE = [
  '"',
  "'",
  '\0',
  '\uFEFF',
  '\r',
  '\n\n',
  ',,,,',
  '\t',
  '=',
  ':',
  '-',
  'e308',
  '1e999',
  'NaN',
  '9'.repeat(400),
  '(mg)',
  '<',
  '&#0;',
  '{"',
  '[[',
  '##',
  '2026-02-30',
  '31/12/99',
  '\u202E',
  '\u001B[2J',
  '%PDF',
  'PK\u0003\u0004',
];

const name = sampleAmong(Object.keys(SAMPLES));
// Otherwise most places are at the beginning or the end: for a single sample, `noBias` below has no effect.
const place = fc.noBias(fc.nat({ max: 999_999 })).map((n) => n / 1_000_000);
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('byte'), place, byte: fc.nat(255) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('insert'), place, text: fc.constantFrom(...STRANGE) }) },
  fc.record({ kind: fc.constant('cut'), place, length: fc.nat(200) }),
  fc.record({
    kind: fc.constant('repeat'),
    place,
    length: fc.integer({ min: 1, max: 80 }),
    times: fc.integer({ min: 2, max: 20_000 }),
  }),
  fc.record({ kind: fc.constant('end'), place }),
  fc.record({ kind: fc.constant('splice'), place, other: name }),
);
const arbitrary = fc.record({
  sample: name,
  mapping: fc.constantFrom('none', 'none', ...MAPPINGS),
  changes: fc.array(change, { minLength: 1, maxLength: 5 }),
  extension: fc.option(fc.constantFrom('csv', 'txt', 'xlsx', 'json', 'xml', 'jdx', 'dat')),
});

/** Larger ones are refused by their size, which a unit test shows. */
const MAX_BYTES = 8_000_000;

function apply(bytes, { kind, place: where, ...rest }) {
  const at = Math.floor(where * bytes.length);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  if (kind === 'byte') return Buffer.concat([before, Buffer.from([rest.byte]), after.subarray(1)]);
  if (kind === 'insert') return Buffer.concat([before, Buffer.from(rest.text), after]);
  if (kind === 'cut') return Buffer.concat([before, after.subarray(rest.length)]);
  if (kind === 'end') return before;
  if (kind === 'splice') return Buffer.concat([before, SAMPLES[rest.other].bytes]);
  const part = after.subarray(0, rest.length);
  const times = Math.min(rest.times, Math.floor((MAX_BYTES - bytes.length) / Math.max(1, part.length)));
  return Buffer.concat([before, ...Array.from({ length: Math.max(0, times) }, () => part), after]);
}

export function createCase(seed) {
  const [{ sample, mapping, changes, extension }] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  return {
    what: `the sample ${sample}, read with the mapping ${mapping} after ${JSON.stringify(changes)},`,
    async perform(folder) {
      const bytes = changes.reduce(apply, SAMPLES[sample].bytes);
      const { draft } = await readBytes(folder, { bytes, extension: extension ?? SAMPLES[sample].extension, mapping });
      if (draft.title.trim() === '') return 'has no title';
      return /^\d{4}-\d\d-\d\d$/.test(draft.date) ? undefined : `has the date ${draft.date}`;
    },
  };
}
