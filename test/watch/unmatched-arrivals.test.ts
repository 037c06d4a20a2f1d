import { expect, test } from 'vitest';
import { createUnmatchedArrivals } from '../../src/watch/activity.js';

/** One folder that is listed again and again. */
function folder() {
  const arrivals = createUnmatchedArrivals();
  const endings = new Map<string, { files: number; example: string }>();
  let runs = 0;
  let came = 0;
  return {
    run() {
      runs += 1;
      came += 1;
    },
    stray(ending: string, count = 1) {
      const files = (endings.get(ending)?.files ?? 0) + count;
      endings.set(ending, { files, example: `/data/${files}${ending}` });
    },
    list() {
      arrivals.listed(new Map(endings), runs, came);
      return arrivals.seen();
    },
  };
}

test('each listing that finds more files which no glob fits is an occasion; what lay there before is none', () => {
  const { stray, list } = folder();
  stray('.txt', 5);
  expect(list()).toEqual({ occasions: 0, example: undefined });
  stray('.txt');
  expect(list().occasions).toBe(1);
  expect(list().occasions).toBe(1);
  stray('.txt', 100);
  expect(list()).toEqual({ occasions: 2, example: '/data/106.txt' });
});

test('what the instrument writes beside its runs is usual, however many come before the next run', () => {
  const { stray, run, list } = folder();
  list();
  run();
  stray('.log');
  stray('.png', 3);
  expect(list().occasions).toBe(0);
  for (let n = 0; n < 10; n += 1) {
    stray('.log');
    expect(list().occasions).toBe(0);
  }
  stray('.csv');
  expect(list()).toEqual({ occasions: 1, example: '/data/1.csv' });
});

test('a run that comes makes an end of it', () => {
  const { stray, run, list } = folder();
  list();
  for (const _ of [1, 2, 3]) {
    stray('.csv');
    list();
  }
  expect(list().occasions).toBe(3);
  run();
  expect(list().occasions).toBe(0);
  stray('.csv');
  expect(list().occasions).toBe(0);
});

test('at a start, what lies beside runs is usual', () => {
  const { stray, run, list } = folder();
  run();
  stray('.log', 3);
  list();
  stray('.log');
  expect(list().occasions).toBe(0);
  stray('.tsv');
  expect(list().occasions).toBe(1);
});
