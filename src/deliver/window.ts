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

/** What is under an id. A 403 is somebody else's private entry: an id that exists, and is not ours. */
export async function lookAt<T>(
  id: number,
  { readExperiment }: { readExperiment(id: number): Promise<T> },
): Promise<T | 'missing' | 'private'> {
  try {
    return await readExperiment(id);
  } catch (error) {
    if (!(error instanceof NotebookError) || error.failure !== 'conflict') throw error;
    return error.status === 404 ? 'missing' : 'private';
  }
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
    const record = await lookAt(id, notebook);
    missing = record === 'missing' ? missing + 1 : 0;
    if (typeof record === 'object') yield { id, record };
  }
}

/**
 * Whether the server's numbering ends below what we have filed: so many of our last experiments are missing, and nothing
 * is above them. Fewer may well have been deleted by people.
 */
export async function isSetBack(
  last: readonly number[],
  look: (id: number) => Promise<unknown>,
): Promise<boolean> {
  const [highest = 0] = last;
  if (last.length < END_OF_IDS) return false;
  for (const id of [...last, ...Array.from({ length: END_OF_IDS }, (_, n) => highest + 1 + n)])
    if ((await look(id)) !== 'missing') return false;
  return true;
}
