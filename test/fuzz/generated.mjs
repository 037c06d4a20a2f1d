import fc from 'fast-check';
import { saysNothing } from '../../dist/parse/lines.js';
import { binaryKind } from '../../dist/parse/source.js';
import { generate } from '../reading/generate.js';
import { contentOf, isReported, lineOfChange, readBytes } from './reading.mjs';
import { FOLDER, SAMPLES, sampleAmong } from './samples.mjs';

/*
 * Generated instrument files and the samples, with lines cut, repeated or swapped, bytes flipped, the end missing, or one
 * digit changed. A changed digit is read as changed, is in a line that is reported as not read, or the file is refused.
 */

const KINDS = ['digit', 'digit', 'flip', 'cut line', 'repeat line', 'swap lines', 'end', 'drop cell'];

const sample = sampleAmong(Object.keys(SAMPLES).filter((name) => name !== 'bomb'));
const arbitrary = fc.record({
  sample: FOLDER === undefined ? fc.oneof(sample, { weight: 3, arbitrary: fc.constant(null) }) : sample,
  file: fc.noBias(fc.nat()),
  kinds: fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 4 }),
  places: fc.noBias(fc.array(fc.nat({ max: 999_999 }), { minLength: 8, maxLength: 8 })),
  by: fc.integer({ min: 1, max: 9 }),
});

/** Bytes of a file in one byte per character, so that any encoding keeps its bytes. */
const toText = (bytes) => Buffer.from(bytes).toString('latin1');
const toBytes = (text) => Buffer.from(text, 'latin1');
const at = (place, length) => Math.floor((place / 1_000_000) * length);

function change(text, kind, [one, two], by) {
  const lines = text.split('\n');
  const [first, second] = [at(one, lines.length), at(two, lines.length)];
  switch (kind) {
    case 'digit': {
      const digits = [...text.matchAll(/\d/g)].map(({ index }) => index);
      const index = digits[at(one, digits.length)];
      if (index === undefined) return text;
      return `${text.slice(0, index)}${(Number(text[index]) + by) % 10}${text.slice(index + 1)}`;
    }
    case 'flip': {
      const index = at(one, text.length);
      const flipped = String.fromCharCode((text.charCodeAt(index) ^ (1 << (by % 8))) & 0xff);
      return text.slice(0, index) + flipped + text.slice(index + 1);
    }
    case 'cut line':
      return lines.toSpliced(first, 1).join('\n');
    case 'repeat line':
      return lines.toSpliced(second, 0, lines[first] ?? '').join('\n');
    case 'swap lines':
      return lines
        .with(first, lines[second] ?? '')
        .with(second, lines[first] ?? '')
        .join('\n');
    case 'end':
      return text.slice(0, at(one, text.length));
    default:
      return lines.with(first, (lines[first] ?? '').replace(/[,;\t][^,;\t]*/, '')).join('\n');
  }
}

export function createCase(seed) {
  const [{ sample: name, file, kinds, places, by }] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  const { bytes, extension } = name === null ? generate(file) : SAMPLES[name];
  const before = toText(bytes);
  const after = kinds.reduce((text, kind, n) => change(text, kind, places.slice(2 * n, 2 * n + 2), by), before);
  const isDigit = kinds.length === 1 && kinds[0] === 'digit' && after !== before && binaryKind(bytes) === undefined;
  return {
    what: `${name === null ? `the generated file ${file}` : `the sample ${name}`} after ${kinds.join(', ')} (${places.slice(0, 2)} by ${by})`,
    async perform(folder) {
      const changed = await readBytes(folder, { bytes: toBytes(after), extension, mapping: 'none' });
      if (!/^\d{4}-\d\d-\d\d$/.test(changed.draft.date)) return `has the date ${changed.draft.date}`;
      if (!isDigit) return undefined;
      const original = await readBytes(folder, { bytes, extension, mapping: 'none' });
      const line = lineOfChange(before, after);
      if (contentOf(original) !== contentOf(changed) || isReported(changed, line)) return undefined;
      // The years of a copyright notice are no content.
      if (saysNothing({ text: after.split(/\r\n|\n|\r/)[line - 1] ?? '' })) return undefined;
      return `is read like the original, in line ${line}`;
    },
  };
}
