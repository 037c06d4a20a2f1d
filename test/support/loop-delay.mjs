import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded into a daemon: at each SIGUSR2 it prints for how long its event loop was blocked at most since the one before.
 * `maxMs` includes times in which other processes had the processor, `cpuMs` does not.
 */
if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  /** Nanoseconds of processor time of this thread. */
  const used = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]);
  let last = used();
  let longest = 0;
  setInterval(() => {
    const now = used();
    longest = Math.max(longest, now - last);
    last = now;
  }, 5).unref();
  process.on('SIGUSR2', () => {
    console.log(JSON.stringify({ msg: 'loop delay', maxMs: delay.max / 1e6, cpuMs: longest / 1e6 }));
    delay.reset();
    longest = 0;
  });
}
