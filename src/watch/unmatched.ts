import { posix } from 'node:path';

/** Files of one ending (`.csv`) that no glob fits. */
export interface Ending {
  readonly files: number;
  /** The last one by name: where names begin with a date or a number, the newest. */
  readonly example: string;
}

/** Files that no glob fits, as one listing met them: counted by their endings, since their names are too many to keep. */
export type Unmatched = ReadonlyMap<string, Ending>;

/** Endings beyond these are counted as one: a name can end in anything. */
const MOST_ENDINGS = 50;
const OTHER_ENDINGS = '*';

/** Counts while a folder is listed. */
export function createUnmatched(): { readonly found: Unmatched; add(path: string): void } {
  const found = new Map<string, Ending>();
  return {
    found,
    add(path) {
      const own = posix.extname(path).toLowerCase();
      const ending = found.has(own) || found.size < MOST_ENDINGS ? own : OTHER_ENDINGS;
      const { files, example } = found.get(ending) ?? { files: 0, example: path };
      found.set(ending, { files: files + 1, example: path > example ? path : example });
    },
  };
}
