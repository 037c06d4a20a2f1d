import { test } from 'vitest';
import { allFiled, expectEachOnce, setUp, withOneFiled } from '../daemon/scene.js';
import { weighing } from '../support/daemon-process.js';

for (const write of [1, 2, 3]) {
  for (const fate of ['cutBefore', 'cutAfter'] as const) {
    test(`the running daemon reconciles write ${write} if its ${fate === 'cutBefore' ? 'request' : 'response'} is lost`, async () => {
      const scene = await setUp();
      const daemon = await withOneFiled(scene);
      const done = scene.sandbox.control.writes().length;
      let cut = false;
      scene.sandbox.control.decide = (request) => {
        if (cut || request.method === 'GET' || scene.sandbox.control.writes().length < done + write) return 'pass';
        cut = true;
        return fate;
      };
      scene.site.drop('w1.csv', weighing(1));
      await allFiled(daemon, 2);
      await daemon.stop();
      expectEachOnce(scene, 2);
    });
  }
}
