import fc from 'fast-check';
import { contentOf, readBytes } from './reading.mjs';
import { TEXTS } from './samples.mjs';

/*
 * Files in which one digit is changed: it is read as changed, or the file is refused.
 */

const arbitrary = fc.record({
  sample: fc.constantFrom(...Object.keys(TEXTS)),
  nth: fc.noBias(fc.nat()),
  by: fc.integer({ min: 1, max: 9 }),
});

const originals = new Map();

async function originalOf(folder, sample) {
  if (!originals.has(sample))
    originals.set(sample, contentOf(await readBytes(folder, { ...TEXTS[sample], mapping: 'none' })));
  return originals.get(sample);
}

export function createCase(seed) {
  const [{ sample, nth, by }] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  const { text } = TEXTS[sample];
  const digits = [...text.matchAll(/\d/g)].map(({ index }) => index);
  const at = digits[nth % digits.length];
  const changed = `${text.slice(0, at)}${(Number(text[at]) + by) % 10}${text.slice(at + 1)}`;
  const line = changed.slice(0, at).split('\n').length;
  return {
    what: `the sample ${sample} with another digit in line ${line} (${JSON.stringify(changed.split('\n')[line - 1].slice(0, 120))})`,
    async perform(folder) {
      const before = await originalOf(folder, sample);
      const file = { ...TEXTS[sample], bytes: Buffer.from(changed) };
      const after = contentOf(await readBytes(folder, { ...file, mapping: 'none' }));
      return before === after ? 'is read like the original' : undefined;
    },
  };
}
