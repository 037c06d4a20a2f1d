import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder that is removed after the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'labfeed-test-'));
  // A process that is being killed may still write.
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }), 60_000);
  return folder;
}
