import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/** Loaded into a daemon: at each SIGUSR2 it prints the longest delay of its event loop since the one before. */
if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on('SIGUSR2', () => {
    console.log(JSON.stringify({ msg: 'loop delay', maxMs: delay.max / 1e6 }));
    delay.reset();
  });
}
