import { writeFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { endWithStarter } from '../../system/process.js';

/**
 * The process in which workbooks are read. If a thread runs out of memory, it can end its whole process, whatever its
 * limit, and that must not be the daemon. The limit that labfeed sets on backtracking is not set here either: it makes the
 * library slow, and take much memory. Each workbook gets a new thread: what the library keeps of one must not change how it
 * reads the next.
 */

const MAX_MEMORY_MB = 1024;

process.on('message', (workbook) => {
  const worker = new Worker(new URL('./sheet-worker.js', import.meta.url), {
    workerData: workbook,
    resourceLimits: { maxOldGenerationSizeMb: MAX_MEMORY_MB },
    // The worker is plain JavaScript, so it needs no loader for TypeScript.
    execArgv: [],
  });
  // Exactly one: a second answer would be taken for that of the next workbook.
  const answer = (result: unknown): void => {
    worker.removeAllListeners().on('error', () => undefined);
    void worker.terminate();
    process.send?.(result);
  };
  worker.once('message', answer);
  worker.once('error', (error: NodeJS.ErrnoException) => {
    answer({ problem: error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? error.code : error.message });
  });
  worker.once('exit', () => answer({ problem: '' }));
});

try {
  // If the machine runs out of memory, Linux ends this process rather than the daemon.
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // Without /proc, Linux chooses as it does for any process.
}
endWithStarter();
