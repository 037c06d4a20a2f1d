import { type ColumnSummary, medianOf, type Value } from '../../model.js';

/** Counts the numbers of a column of which not all are kept. */
export interface Summary {
  add(value: Value): void;
  /** Undefined where there was no number. */
  finish(): ColumnSummary | undefined;
}

/**
 * Least and greatest are exact. The middle one is that of a fair sample once there are more numbers than
 * `sampleSize`; which ones are in it depends on nothing but their count, so one file always gives one summary.
 */
export function createSummary(earlier: readonly Value[], sampleSize: number): Summary {
  // It grows with the numbers: of ten thousand columns, most may have a few only.
  let sample = new Float64Array(Math.min(16, sampleSize));
  const random = createRandom();
  let n = 0;
  let min: Value | undefined;
  let max: Value | undefined;

  function add(value: Value): void {
    const number = value.value;
    if (typeof number !== 'number') return;
    if (min === undefined || number < Number(min.value)) min = value;
    if (max === undefined || number > Number(max.value)) max = value;
    const place = n < sampleSize ? n : Math.floor(random() * (n + 1));
    if (place >= sample.length && place < sampleSize) sample = grown(sample, sampleSize);
    if (place < sampleSize) sample[place] = number;
    n++;
  }

  earlier.forEach(add);
  return {
    add,
    finish() {
      if (!min || !max) return undefined;
      const median = medianOf(sample.subarray(0, Math.min(n, sampleSize)).sort());
      return { n, min, median, isMedianExact: n <= sampleSize, max };
    },
  };
}

function grown(numbers: Float64Array, most: number): Float64Array<ArrayBuffer> {
  const more = new Float64Array(Math.min(2 * numbers.length, most));
  more.set(numbers);
  return more;
}

/** Even enough for a sample, and the same every time (a linear congruential generator, Numerical Recipes). */
function createRandom(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
