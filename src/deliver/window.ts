import { NotebookError } from '../errors.js';
import type { DeliverDeps, ExperimentRecord } from './deps.js';

/** After so many missing ids in a row, the end of the server's numbering is taken to be reached. */
export const END_OF_IDS = 8;

/** Without a floor, how far below a known id a lost experiment is looked for: others may have created many since. */
const DEEPEST = 200;

export interface Seen {
  readonly id: number;
  readonly record: ExperimentRecord;
}

/** Every experiment above this id. The window has no ceiling: what was cut off can come late, with a higher id. */
export const readUpward = (floor: number, deps: DeliverDeps): AsyncGenerator<Seen> =>
  read(floor + 1, 1, deps);

/** The experiments below this id, as far as a lost one can lie. */
export const readDownward = (ceiling: number, deps: DeliverDeps): AsyncGenerator<Seen> =>
  read(ceiling - 1, -1, deps);

async function* read(from: number, step: 1 | -1, { notebook, goOn }: DeliverDeps): AsyncGenerator<Seen> {
  const end = step === 1 ? Number.POSITIVE_INFINITY : Math.max(0, from - DEEPEST);
  for (let id = from, missing = 0; missing < END_OF_IDS && id !== end && id > 0; id += step) {
    goOn();
    try {
      yield { id, record: await notebook.readExperiment(id) };
      missing = 0;
    } catch (error) {
      if (!(error instanceof NotebookError) || error.failure !== 'conflict') throw error;
      // A 403 is somebody else's private entry: an id that exists, and is not ours.
      missing = error.status === 404 ? missing + 1 : 0;
    }
  }
}
