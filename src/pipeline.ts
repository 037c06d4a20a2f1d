import type { Instrument } from './config/load.js';
import { FileError } from './errors.js';
import {
  type Draft,
  type FileRecord,
  type FoundFile,
  type IdentifiedFile,
  type Shape,
  shapeOf,
} from './model.js';
import type { OpenRun, RunChange } from './outbox.js';

/** A run as the journal takes it in. */
interface IngestedRun {
  readonly instrument: string;
  readonly file: IdentifiedFile;
  /** The path, where the instrument files equal bytes at other paths as runs of their own. */
  readonly copy: string;
  readonly backlog: boolean;
  readonly mapping: string;
}

/** What each stage does for one instrument, handed in by the daemon. */
export interface Stages {
  /** Waits until nobody writes to the file any more; undefined when it is gone. */
  settle(found: FoundFile): Promise<FoundFile | undefined>;
  /** A few at a time: whoever is let in holds a file's content until it is in the journal. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** Reads the whole content once, for its SHA-256. */
  identify(file: FoundFile): Promise<IdentifiedFile>;
  parse(file: IdentifiedFile): Promise<FileRecord>;
  map(record: FileRecord, file: IdentifiedFile): Draft;
  readonly journal: {
    knows(run: IngestedRun): Promise<boolean>;
    /** Whether a run was taken from its path before, with other bytes. */
    wasTaken(instrument: string, file: IdentifiedFile): Promise<boolean>;
    skip(instrument: string, file: FoundFile): Promise<void>;
    /**
     * Held where the run is not shaped as the one before it, and the instrument wants to be asked. Unchanged where it
     * was to be redone, and reads as it was filed.
     */
    add(run: IngestedRun, draft: Draft, shape: Shape): Promise<'queued' | 'held' | 'unchanged'>;
    refuse(run: IngestedRun, problem: FileError): Promise<void>;
  };
  /** Tells the queue that there is something to deliver. */
  enqueue(): void;
}

/** What of an instrument decides about its files here. */
type Ingesting = Pick<Instrument, 'name' | 'changed' | 'duplicates' | 'mapping'>;

/** What became of a file. */
export type Outcome = 'gone' | 'known' | 'skipped' | 'queued' | 'held' | 'unchanged' | 'refused';

/**
 * The way of one file, from the folder to the journal. From there the queue takes it to the notebook
 * (`deliver/deliver.ts`); once it is in the journal, the file itself is not needed any more.
 */
export async function ingest(
  found: FoundFile,
  backlog: boolean,
  instrument: Ingesting,
  stages: Stages,
): Promise<Outcome> {
  const still = await stages.settle(found);
  if (!still) return 'gone';
  return stages.inTurn(() => take(still, backlog, instrument, stages));
}

async function take(
  still: FoundFile,
  backlog: boolean,
  instrument: Ingesting,
  stages: Stages,
): Promise<Outcome> {
  const file = await stages.identify(still);
  const run: IngestedRun = {
    instrument: instrument.name,
    file,
    copy: instrument.duplicates === 'ingest' ? file.path : '',
    backlog,
    mapping: instrument.mapping,
  };
  if (await stages.journal.knows(run)) return 'known';
  if (instrument.changed === 'ignore' && (await stages.journal.wasTaken(instrument.name, file))) {
    await stages.journal.skip(instrument.name, file);
    return 'skipped';
  }

  let draft: Draft;
  let shape: Shape;
  try {
    const record = await stages.parse(file);
    shape = shapeOf(record);
    draft = stages.map(record, file);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    await stages.journal.refuse(run, error);
    return 'refused';
  }
  const outcome = await stages.journal.add(run, draft, shape);
  if (outcome === 'queued') stages.enqueue();
  return outcome;
}

/** Whoever wants to see what the daemon does, while it does it. */
export interface Observer {
  filed(run: OpenRun, experiment: number): void;
  /** A run is quarantined, held or postponed. */
  setBack(run: OpenRun, change: RunChange): void;
  /** A file does not read as its mapping says. */
  refused(instrument: string, path: string, problem: FileError): void;
}

export const nobody: Observer = {
  filed: () => undefined,
  setBack: () => undefined,
  refused: () => undefined,
};
