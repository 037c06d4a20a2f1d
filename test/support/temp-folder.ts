import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder that is removed after the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'labfeed-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }), 60_000);
  return folder;
}
