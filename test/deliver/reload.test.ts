import { expect, test } from 'vitest';
import { LOST, setUp } from './trouble.js';

test('a run whose creation times out after a reload continues as soon as that has ended', async () => {
  let creations = 0;
  const scene = setUp(({ operation }) => (operation === 'createExperiment' && ++creations === 2 ? LOST : undefined));
  await scene.drop('first');
  await scene.until(() => scene.filedAt.size === 1, 1000);
  await scene.drop('slow');
  await scene.until(() => creations === 2, 2000);
  await scene.reload(200);
  expect(scene.notebook.experiments.size).toBe(1);
  await scene.until(() => scene.filedAt.size === 2, 10_000);
  expect(scene.titles()).toEqual(['first', 'slow']);
});
