import { NotebookError } from '../errors.js';
import type { Notebook } from './deps.js';

/**
 * What a failure is really about. A 403 or 404 concerns the run, but for one case: if the keys cannot be listed
 * either, it is the key that is refused, or a proxy that has lost the notebook; then nobody's run is to blame.
 */
export async function blame(error: unknown, { listKeys }: Pick<Notebook, 'listKeys'>): Promise<unknown> {
  const isOfRun = error instanceof NotebookError && error.failure === 'conflict';
  if (!isOfRun || (error.status !== 403 && error.status !== 404)) return error;
  return listKeys().then(
    () => error,
    (refusal: unknown) => refusal,
  );
}
