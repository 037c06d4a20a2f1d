import { NotebookError } from '../errors.js';
import type { Notebook } from './deps.js';

/**
 * What a failure is really about. A 404 concerns the run, but for one case: if the keys cannot be listed either, a
 * proxy has lost the notebook behind it; then nobody's run is to blame. (What a 403 is about, `proven` finds out.)
 */
export async function blame(error: unknown, { listKeys }: Pick<Notebook, 'listKeys'>): Promise<unknown> {
  const isOfRun = error instanceof NotebookError && error.failure === 'conflict';
  if (!isOfRun || error.status !== 404) return error;
  return listKeys().then(
    () => error,
    (refusal: unknown) => refusal,
  );
}
