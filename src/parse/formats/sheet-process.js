import { writeFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

// @ts-check
/**
 * A process of its own for workbooks. Where memory runs out, a thread can end its whole process, whatever its limit. And
 * the limit on backtracking that labfeed sets for expressions in mappings makes the library slow and take much memory.
 * Each workbook gets a new thread: what the library keeps of one must not change how it reads the next.
 */

const MAX_MEMORY_MB = 1024;

process.on('message', (workbook) => {
  const worker = new Worker(new URL('./sheet-worker.js', import.meta.url), {
    workerData: workbook,
    resourceLimits: { maxOldGenerationSizeMb: MAX_MEMORY_MB },
  });
  // Exactly one: a second answer would be taken for that of the next workbook.
  const answer = (/** @type {unknown} */ read) => {
    worker.removeAllListeners().on('error', () => undefined);
    void worker.terminate();
    process.send?.(read);
  };
  worker.once('message', answer);
  worker.once('error', (error) => {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    answer({ problem: code === 'ERR_WORKER_OUT_OF_MEMORY' ? code : message });
  });
  worker.once('exit', () => answer({ problem: '' }));
});
// Where the machine runs out of memory, Linux ends this process first, not the daemon.
try {
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // As before.
}
// It ends with the process or thread that started it.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
