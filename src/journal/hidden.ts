import { createHash } from 'node:crypto';
import type { Database } from './database.js';

/**
 * What stands in the place of a name that was erased: a file of that name is known again, but nobody reads the name
 * from it. No path begins so, since paths are absolute.
 */
const hide = (...parts: readonly string[]): string =>
  `${HIDDEN}${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;

const HIDDEN = 'erased:';

/** As SQL: whether a path in `files` can be read. */
export const READABLE = `path NOT GLOB '${HIDDEN}*'`;

export const hiddenPath = (instrument: string, path: string): string => hide(instrument, path);

/** What tells equal files at several paths apart, and is a path itself. */
interface Copy {
  readonly instrument: string;
  readonly sha256: string;
  readonly copy: string;
}

/** Hidden once and for all runs of these bytes at this path, also those to come. */
export const hiddenCopy = ({ instrument, sha256, copy }: Copy): string =>
  copy.startsWith(HIDDEN) ? copy : hide(instrument, sha256, copy);

/** As what the journal knows a copy: by its path, or hidden where one of its runs was erased. */
export function createCopyOf(database: Database): (run: Copy) => string {
  const find = database.prepare(
    'SELECT 1 FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ? LIMIT 1',
  );
  return (run) => {
    if (run.copy === '') return '';
    const hidden = hiddenCopy(run);
    return find.get(run.instrument, run.sha256, hidden) === undefined ? run.copy : hidden;
  };
}
