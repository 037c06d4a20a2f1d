import { test } from 'vitest';
import { expectEachOnce, setUp, withOneFiled } from '../daemon/scene.js';
import { startCrashing, startDaemon, weighing } from '../support/daemon-process.js';

for (const write of [1, 2, 3]) {
  for (const fate of ['cutBefore', 'cutAfter'] as const) {
    test(`a daemon killed ${fate === 'cutBefore' ? 'before' : 'after'} write ${write} of a run takes effect files it once after a restart`, async () => {
      const scene = await setUp();
      const first = await withOneFiled(scene);
      const done = scene.sandbox.control.writes().length;
      scene.sandbox.control.decide = async () => {
        if (scene.sandbox.control.writes().length < done + write) return 'pass';
        if (fate === 'cutBefore') await first.kill();
        // The response is lost.
        else setTimeout(() => void first.kill(), 50);
        return fate;
      };
      scene.site.drop('w1.csv', weighing(1));
      await first.ended;
      scene.sandbox.control.decide = () => 'pass';
      const second = startDaemon(scene.site.config);
      await second.logged('run filed');
      await second.stop();
      expectEachOnce(scene, 2);
    });
  }
}

test('a daemon killed after a run is in the outbox, before intake records its file, files it once after a restart', async () => {
  const scene = await setUp();
  await (await withOneFiled(scene)).stop();
  const first = startCrashing(scene.site.config, 2, { when: 'before', kind: 'remembered' });
  scene.site.drop('w1.csv', weighing(1));
  await first.ended;
  const second = startDaemon(scene.site.config);
  await second.logged('run filed');
  await second.stop();
  expectEachOnce(scene, 2);
});
