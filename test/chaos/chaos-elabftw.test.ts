import { test } from 'vitest';
import { KILLS, survive } from './history.js';

test(`on eLabFTW, ${KILLS} kills on two PCs, among faults of every kind and other people, leave every run filed exactly once`, async () => {
  await survive('elabftw');
}, 1_500_000);
