import { expect } from 'vitest';
import { FileError } from '../../src/errors.js';
import type { FileRecord } from '../../src/model.js';
import { type Random, seeded } from './random.js';
import { read } from './reading.js';

/** `bytes`: the text in its encoding. */
interface WrittenFile {
  readonly text: string;
  readonly bytes?: Uint8Array;
}

/** One of the values of each property. */
export const chooseWays = <W extends Record<string, readonly unknown[]>>(ways: W, { below }: Random) =>
  Object.fromEntries(Object.entries(ways).map(([name, values]) => [name, values[below(values.length)]])) as {
    [K in keyof W]: W[K][number];
  };

/**
 * Reads as many files as `count`, written at random. None may be read wrongly. Returns the share of those that are read
 * completely. A file that is refused is not among them.
 */
export async function shareOfComplete<F extends WrittenFile>(
  { seed, count }: { readonly seed: number; readonly count: number },
  write: (random: Random) => F,
  compare: (record: FileRecord, file: F) => { readonly wrong: readonly string[]; readonly isComplete: boolean },
): Promise<number> {
  const random = seeded(seed);
  let complete = 0;
  for (let n = 0; n < count; n++) {
    const file = write(random);
    const record = await read(file.bytes ?? file.text, undefined, 'runs/scan.csv').catch((error: unknown) => {
      if (error instanceof FileError) return undefined;
      throw error;
    });
    if (!record) continue;
    const { wrong, isComplete } = compare(record, file);
    expect(wrong, file.text).toEqual([]);
    if (isComplete) complete += 1;
  }
  return complete / count;
}
