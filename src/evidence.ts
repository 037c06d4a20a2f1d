import { backoffMs, type Clock, systemClock } from './clock.js';
import type { CommentRecord, ExperimentRecord, Notebook } from './deliver/context.js';
import { answers, isEntryStatus } from './deliver/failures.js';
import { tryRead } from './deliver/window.js';
import { NotebookError } from './errors.js';
import type { JournalReader, KnownRun } from './journal/reader.js';
import { originIn, readLabel } from './markers.js';
import { type Dialect, dialectOf } from './model.js';

export type NotebookReader = ReturnType<typeof createNotebookReader>;

interface ReaderOptions {
  readonly clock?: Clock;
  readonly signal: AbortSignal;
  /** Called with a message before each repeated request. */
  onRetry(message: string): void;
}

/** Including the waits, the attempts span a few minutes. */
const MAX_ATTEMPTS = 8;
/** An entry that fails this often, although the server answers another request each time, cannot be read. */
const MAX_ENTRY_FAILURES = 3;

/** Reads the notebook for `audit` and `recover`, and waits while it is unavailable. */
export function createNotebookReader(
  notebook: Pick<Notebook, 'listKeys' | 'readExperiment' | 'listComments' | 'readComment' | 'listUploads'> & {
    newestExperiments(): Promise<readonly { readonly id: number }[]>;
  },
  { clock = systemClock, signal, onRetry }: ReaderOptions,
) {
  async function retry<T>(request: () => Promise<T>, subject: 'entry' | 'server' = 'entry'): Promise<T> {
    for (let attempt = 1, failures = 0; ; attempt++) {
      signal.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        if (!isTemporary(error) || attempt === MAX_ATTEMPTS) throw error;
        if (subject === 'entry' && (await answers(notebook))) failures += 1;
        if (failures === MAX_ENTRY_FAILURES) throw unreadable(error);
        onRetry(`the notebook is unavailable, retrying: ${error.message}`);
        await clock.sleep(backoffMs(attempt), signal);
      }
    }
  }

  return {
    readExperiment: (id: number) => retry(() => tryRead(id, notebook)),
    listComments: (experiment: number) => retry(() => notebook.listComments(experiment)),
    /** eLabFTW only: the attached files, archived and deleted ones included. */
    listUploads: (experiment: number) => retry(() => notebook.listUploads(experiment)),
    /** Undefined if the comment does not exist. */
    readComment: (experiment: number, comment: number): Promise<CommentRecord | undefined> =>
      retry(() => notebook.readComment(experiment, comment)).catch((error: unknown) => {
        if (!isEntryStatus(error, 404)) throw error;
        return undefined;
      }),
    /** eLabFTW only: the highest id of the experiments that the key may read. Undefined if it cannot list them so. */
    async newestId(): Promise<number | undefined> {
      const [newest] = await retry(() => notebook.newestExperiments(), 'server').catch((error: unknown) => {
        if (isTemporary(error)) throw error;
        return [];
      });
      return newest?.id;
    },
    /**
     * Rejects unless the notebook itself answers: a proxy that has lost its backend answers 404 to everything. Resolves
     * with its dialect.
     */
    checkPresence: async (): Promise<Dialect> => dialectOf(await retry(() => notebook.listKeys(), 'server')),
  };
}

/** The notebook answers, but not about this entry. */
const unreadable = (cause: NotebookError): NotebookError =>
  new NotebookError('server', cause.message, { scope: 'run', cause });

export const isUnreadable = (error: unknown): error is NotebookError =>
  error instanceof NotebookError && error.failure === 'server' && error.scope === 'run';

/** Whether the request may succeed later without intervention. A rejected key needs intervention. */
export const isTemporary = (error: unknown): error is NotebookError =>
  error instanceof NotebookError && error.retryable && error.failure !== 'auth';

/** A run, with the experiment that the journal has for it. */
type PlacedRun = Readonly<Record<'instrument' | 'sha256', string> & { experiment: number }>;

/** What the notebook has as the experiment of a run. `hasOrigin`: whether the body has the origin line of the run. */
export async function readBack(run: PlacedRun, notebook: NotebookReader) {
  const record = await notebook.readExperiment(run.experiment);
  if (record === 'missing') await notebook.checkPresence();
  return typeof record === 'string' ? record : { record, hasOrigin: hasOrigin(record, run) };
}

function hasOrigin({ body }: ExperimentRecord, { instrument, sha256 }: PlacedRun): boolean {
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  return origin?.sha256 === sha256 && readLabel(origin.label, [instrument]) !== undefined;
}

/**
 * The run as which the daemon would recognise this content; undefined if the content is new. `copies`: whether equal
 * bytes at other paths are runs of their own.
 */
export const runWithContent = (
  { instrument, sha256, path, copies }: { instrument: string; sha256: string; path: string; copies: boolean },
  journal: Pick<JournalReader, 'ofContent'>,
): Promise<KnownRun | undefined> => journal.ofContent({ instrument, sha256, copy: copies ? path : '' });
