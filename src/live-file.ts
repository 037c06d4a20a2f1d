import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { Live } from './live.js';

/** Where a running daemon leaves how it is, for the commands. */
const livePath = (journalPath: string): string => `${journalPath}.live`;

/** Whoever reads it finds the last one or this one, never half of it; and only who may read the journal can. */
export async function writeLive(journalPath: string, live: Live): Promise<void> {
  const path = livePath(journalPath);
  const { mode } = await stat(journalPath);
  await writeFile(`${path}.new`, JSON.stringify(live), { mode: 0o600 });
  await chmod(`${path}.new`, mode & 0o666);
  await rename(`${path}.new`, path);
}

export async function removeLive(journalPath: string): Promise<void> {
  const path = livePath(journalPath);
  await Promise.all([rm(path, { force: true }), rm(`${path}.new`, { force: true })]);
}
