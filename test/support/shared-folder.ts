import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NAME = 'LABFEED_SHARED_FOLDER';

/** What the workers of one run of the tests share. Before they start, Vitest calls this; at the end, what it returns. */
export default function createSharedFolder(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'labfeed-tests-'));
  // Servers that run as another user start in it.
  chmodSync(folder, 0o755);
  process.env[NAME] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Benchmarks run without Vitest. */
export function sharedFolder(): string {
  if (process.env[NAME] === undefined) process.once('exit', createSharedFolder());
  return process.env[NAME] ?? '';
}
