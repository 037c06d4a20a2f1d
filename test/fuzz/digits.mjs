import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { LabfeedError } from '../../dist/errors.js';
import { binaryKind } from '../../dist/parse/source.js';
import { contentOf, isReported, lineOfChange, readBytes } from './reading.mjs';
import { FOLDER, SAMPLES, sampleAmong, TEXTS } from './samples.mjs';

/*
 * Files in which one digit is changed: it is read as changed, or the file is refused. In files of a folder, it can also
 * be in a line that is reported as not read.
 */

const isText = ({ bytes }) => binaryKind(bytes) === undefined && /\d/.test(bytes.toString('latin1'));
const FILES =
  FOLDER === undefined ? TEXTS : Object.fromEntries(Object.entries(SAMPLES).filter(([, file]) => isText(file)));

const arbitrary = fc.record({
  sample: sampleAmong(Object.keys(FILES)),
  nth: fc.noBias(fc.nat()),
  by: fc.integer({ min: 1, max: 9 }),
});

const hashOf = (read) => createHash('sha256').update(contentOf(read)).digest('hex');

const originals = new Map();

/** A hash of what the file says; undefined if it is refused. */
async function originalOf(folder, sample) {
  if (!originals.has(sample)) originals.set(sample, await hashOrRefusal(folder, FILES[sample]));
  return originals.get(sample);
}

async function hashOrRefusal(folder, file) {
  try {
    return hashOf(await readBytes(folder, { ...file, mapping: 'none' }));
  } catch (error) {
    if (error instanceof LabfeedError) return undefined;
    throw error;
  }
}

export function createCase(seed) {
  const [{ sample, nth, by }] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  // One byte per character, so that any encoding keeps its bytes.
  const text = FILES[sample].bytes.toString('latin1');
  // The version of XML and the names of its schemas are no content.
  const masked = text.replace(/<\?xml[^>]*>|\s(?:xmlns|\w+:schemaLocation)[\w:]*="[^"]*"/g, (part) =>
    ' '.repeat(part.length),
  );
  const digits = [...masked.matchAll(/\d/g)].map(({ index }) => index);
  const at = digits[nth % digits.length];
  const changed = `${text.slice(0, at)}${(Number(text[at]) + by) % 10}${text.slice(at + 1)}`;
  const line = lineOfChange(text, changed);
  const shown = changed.slice(Math.max(0, at - 60), at + 60);
  return {
    what: `the sample ${sample} with another digit in line ${line} (${JSON.stringify(shown)})`,
    async perform(folder) {
      const before = await originalOf(folder, sample);
      if (before === undefined && FOLDER === undefined) return 'is refused without the change';
      const after = await readBytes(folder, {
        ...FILES[sample],
        bytes: Buffer.from(changed, 'latin1'),
        mapping: 'none',
      });
      if (before !== hashOf(after) || (FOLDER !== undefined && isReported(after, line))) return undefined;
      return 'is read like the original';
    },
  };
}
