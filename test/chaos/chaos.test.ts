import { test } from 'vitest';
import { KILLS, survive } from './history.js';

test(`on v2, ${KILLS} kills on two PCs, among faults of every kind and other people, leave every run filed exactly once`, async () => {
  await survive('v2');
}, 1_500_000);
