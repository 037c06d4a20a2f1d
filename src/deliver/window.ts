import { explain, NotebookError } from '../errors.js';
import type { DeliveryContext, ExperimentRecord, WindowMemory } from './context.js';
import { isEntryStatus } from './failures.js';

/** After this many missing ids in a row, ids seem to end. That proves nothing: ids are skipped, people delete in blocks. */
export const END_OF_IDS = 8;

/** PostgreSQL skips up to 32 ids after a crash. */
export const MAX_SKIPPED = 40;

/** How far below a known id a creation without a floor is looked for. */
export const MAX_DEPTH = 200;

/** Longer runs of missing ids are not read in full, so that sparse ids do not cost a request each. */
export const MAX_GAP = 2000;

/** After this many entries that the key may not read, check that the key itself still works. */
const MAX_PRIVATE = 100;

/** An entry that failed this often although the server works cannot be read. */
const MAX_FAILURES = 3;

/** How often such an entry, and a run that may own it, is tried again. */
export const UNREADABLE_RETRY_MS = 60_000;

export interface Seen {
  readonly id: number;
  readonly record: ExperimentRecord;
}

/** A 403 is somebody else's private entry: the id exists, and is not ours. */
export async function tryRead<T>(
  id: number,
  { readExperiment }: { readExperiment(id: number): Promise<T> },
): Promise<T | 'missing' | 'private'> {
  try {
    return await readExperiment(id);
  } catch (error) {
    if (isEntryStatus(error, 404)) return 'missing';
    if (error instanceof NotebookError && error.failure === 'conflict') return 'private';
    throw error;
  }
}

/**
 * Reads ids one after the other, as part of one exclusive pass: no creation of ours is in flight. What it skips is
 * either in the journal or known not to be ours. `finish` must succeed before anything is concluded from absence.
 */
export class WindowReader {
  readonly #context: DeliveryContext;
  readonly #memory: WindowMemory;
  /** Not readable with our key, as long as the key works. */
  #private: number[] = [];
  #missing: number[] = [];
  readonly #isLate: boolean;
  #isKeyChecked = false;
  #isDoubtful = false;
  #highest = 0;
  /** Ids that could not be read: a creation of ours may be among them. */
  readonly unreadable: number[] = [];
  /** The last id of an upward walk. */
  end = 0;

  /** `isLate`: a creation of ours may still take effect, so what is missing now may exist later. */
  constructor(context: DeliveryContext, isLate = true) {
    this.#context = context;
    this.#isLate = isLate;
    this.#memory = context.unknown.window;
  }

  /** The ids above the floor: all of them through `highest`, then until `end` ids in a row are missing. */
  async *upward(floor: number, end: number, highest = 0): AsyncGenerator<Seen> {
    let missing = 0;
    for (let id = floor + 1; missing < end || id <= highest; id++) {
      if (missing >= MAX_GAP) id = Math.max(id, highest - MAX_GAP);
      const entry = await this.#read(id);
      this.end = id;
      missing = entry === 'missing' ? missing + 1 : 0;
      if (typeof entry === 'object') yield { id, record: entry };
    }
  }

  /** The ids below this one, as far down as creations without a floor are looked for. Missing ids are no end. */
  async *downward(ceiling: number): AsyncGenerator<Seen> {
    const end = Math.max(0, ceiling - 1 - MAX_DEPTH);
    for (let id = ceiling - 1; id > end; id--) {
      const entry = await this.#read(id);
      if (typeof entry === 'object') yield { id, record: entry };
    }
  }

  /** Every id from the first to the one below the second. */
  async *between(first: number, below: number): AsyncGenerator<Seen> {
    for (let id = first; id < below; id++) {
      const entry = await this.#read(id);
      if (typeof entry === 'object') yield { id, record: entry };
    }
  }

  /** The first entries above this id, and the last ones: in between, ids are only probed to find the end. Reads at most `max` ids. */
  async *sample(highest: number, max: number): AsyncGenerator<Seen> {
    let reads = 0;
    const seen = new Map<number, boolean>();
    const found: Seen[] = [];
    const exists = async (id: number): Promise<boolean> => {
      const known = seen.get(id);
      if (known !== undefined) return known;
      reads += 1;
      const entry = await this.#read(id);
      if (typeof entry === 'object') found.push({ id, record: entry });
      seen.set(id, entry !== 'missing');
      return entry !== 'missing';
    };
    const [first, last] = [0.4 * max, 0.25 * max].map(Math.floor) as [number, number];
    let [top, missing] = [highest, 0];
    for (let id = highest + 1; missing < END_OF_IDS && reads < first; id++) {
      missing = (await exists(id)) ? 0 : missing + 1;
      if (missing === 0) top = id;
    }
    if (missing < END_OF_IDS) {
      let above = top + first;
      for (let step = 2 * first; (await exists(above)) && reads < max; step *= 2) {
        top = above;
        above += step;
      }
      while (above - top > 1 && reads < max - last) {
        const middle = Math.floor((top + above) / 2);
        if (await exists(middle)) top = middle;
        else above = middle;
      }
      for (let id = top - 1; id > highest && reads < max; id--) await exists(id);
    }
    yield* found.sort((a, b) => a.id - b.id);
  }

  /**
   * Ensures that what was not shown is absent or somebody else's: a proxy that has lost its backend answers 404 to
   * everything, a refused key may get 403 everywhere. Then the highest id is stored: later creations are above it.
   */
  async finish(): Promise<void> {
    const { notebook, server } = this.#context;
    if (this.#isDoubtful) await notebook.listKeys();
    this.#isDoubtful = false;
    for (const id of this.#private) this.#memory.foreign.add(id);
    this.#private = [];
    const { highest = 0 } = await server.facts();
    for (const id of this.#missing) if (!this.#isLate && id < this.#highest) this.#memory.missing.add(id);
    this.#missing = [];
    if (this.#highest > highest) await server.learn({ seen: this.#highest });
  }

  async #read(id: number): Promise<ExperimentRecord | 'missing' | 'foreign' | 'unreadable'> {
    const { notebook, server, stopping } = this.#context;
    stopping.throwIfAborted();
    if (this.#memory.missing.has(id)) return 'missing';
    if (this.#memory.foreign.has(id) || (await server.hasExperiment(id))) return this.#saw(id, 'foreign');
    let entry = await this.#tryRead(id);
    if (entry === 'private' && !this.#isKeyChecked) {
      // Read again: the check may have waited until a refused key was replaced.
      await notebook.listKeys();
      this.#isKeyChecked = true;
      entry = await this.#tryRead(id);
    }
    this.#isDoubtful ||= entry === 'missing' || entry === 'private';
    if (entry === 'missing') {
      this.#missing.push(id);
      return entry;
    }
    if (entry !== 'private') return this.#saw(id, entry);
    this.#private.push(id);
    this.#saw(id, entry);
    if (this.#private.length >= MAX_PRIVATE) await this.finish();
    return 'foreign';
  }

  #saw<T>(id: number, entry: T): T {
    if (entry !== 'unreadable') this.#highest = Math.max(this.#highest, id);
    return entry;
  }

  /** One entry that the server cannot show must not stop everything. Only a run that may own it waits. */
  async #tryRead(id: number): Promise<ExperimentRecord | 'missing' | 'private' | 'unreadable'> {
    const { notebook, clock } = this.#context;
    const { unreadable, failures, log } = this.#memory;
    const skip = () => {
      this.unreadable.push(id);
      return 'unreadable' as const;
    };
    if ((unreadable.get(id) ?? 0) > clock.monotonic()) return skip();
    try {
      const entry = await tryRead(id, notebook);
      unreadable.delete(id);
      failures.delete(id);
      return entry;
    } catch (error) {
      if (!(error instanceof NotebookError) || error.failure !== 'server') throw error;
      const count = (failures.get(id) ?? 0) + 1;
      failures.set(id, count);
      if (count < MAX_FAILURES) throw error;
      // If the server fails altogether, this is what is reported.
      await notebook.listKeys();
      if (!unreadable.has(id))
        log?.warn({ experiment: id, reason: explain(error) }, 'an entry of the notebook cannot be read, skipping it');
      unreadable.set(id, clock.monotonic() + UNREADABLE_RETRY_MS);
      return skip();
    }
  }
}
