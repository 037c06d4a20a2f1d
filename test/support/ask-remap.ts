import type { Database } from '../../src/journal/database.js';
import { createRemap } from '../../src/journal/drafts.js';
import { createStanding } from '../../src/journal/requests.js';

/** What a person asks for with `retry --remap`, of a file that is only played; false where it is refused. */
export function askRemap(database: Database, run: number, path: string, at: number): boolean {
  const standing = createStanding(database)(run);
  return standing !== undefined && createRemap(database)(standing, { path, has: 'itsBytes' }, at).done;
}
