/** What rang in one folder: these names, or too many, or something without a name. */
export type Rung = ReadonlySet<string> | 'anything';

/** More names than this in one folder, and listing it is cheaper than looking at each. */
const MANY = 200;

export interface Rings {
  ring(folder: string, name: string | undefined): void;
  /** Resolves when something has rung, or nothing will any more. */
  heard(): Promise<void>;
  /** What has rung since the last time, by folder. */
  take(): ReadonlyMap<string, Rung>;
  stop(): void;
}

/** Gathers bells, so that a burst of them is answered once. Holds a bounded number of names, however long it is. */
export function createRings(): Rings {
  let rung = new Map<string, Set<string> | 'anything'>();
  let wake: (() => void) | undefined;
  let stopped = false;

  return {
    ring(folder, name) {
      const names = rung.get(folder) ?? new Set<string>();
      // U+FFFD stands for bytes that are not UTF-8: that name opens nothing.
      const nameless = name === undefined || name === '' || name.includes('\ufffd');
      if (names === 'anything' || nameless || names.size >= MANY) rung.set(folder, 'anything');
      else rung.set(folder, names.add(name));
      wake?.();
    },
    async heard() {
      if (rung.size > 0 || stopped) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      wake = undefined;
    },
    take() {
      const taken = rung;
      rung = new Map();
      return taken;
    },
    stop() {
      stopped = true;
      wake?.();
    },
  };
}
