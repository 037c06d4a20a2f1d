/** Files of one ending that no glob fits. */
interface Ending {
  readonly files: number;
  readonly example: string;
}

/** Tells files that come where runs should come from those that always lie beside them. */
export interface Strangers {
  /**
   * After each listing of the folder: what no glob fits, by its ending; how many files fit; and how many have come
   * so far that fit.
   */
  listed(endings: ReadonlyMap<string, Ending>, files: number, came: number): void;
  /** On how many occasions strange files have come since a run did, and one of them. */
  seen(): { readonly occasions: number; readonly example: string | undefined };
}

/**
 * Usual is every ending that lies in the folder when a run has come: the logs and pictures that the instrument writes
 * beside it. Anything else is strange, and so is everything where no run ever came. An occasion is a listing that
 * finds more strange files than the one before: a person who copies a hundred files into the folder makes one.
 */
export function createStrangers(): Strangers {
  let usual: ReadonlySet<string> = new Set();
  let before: ReadonlyMap<string, Ending> | undefined;
  let cameBefore = 0;
  let occasions = 0;
  let example: string | undefined;

  return {
    listed(endings, files, came) {
      const hasRuns = before === undefined ? files > 0 : came > cameBefore;
      if (hasRuns) {
        usual = new Set(endings.keys());
        occasions = 0;
        example = undefined;
      } else if (before !== undefined) {
        const more = [...endings].filter(
          ([ending, { files }]) => !usual.has(ending) && files > (before?.get(ending)?.files ?? 0),
        );
        if (more.length > 0) occasions += 1;
        example = more.at(-1)?.[1].example ?? example;
      }
      before = endings;
      cameBefore = came;
    },
    seen: () => ({ occasions, example }),
  };
}
