import { NotebookError } from '../errors.js';
import type { Notebook } from './deps.js';

/**
 * A notebook whose 403 concerns what was asked for. If the keys cannot be listed either, it is the key that is
 * refused, which is told instead. Only the second 403 counts: the proof may have waited at the gate until a key that
 * was refused was taken again. To ask twice is harmless, since a 403 is surely not done.
 */
export function proven<N extends Notebook>(notebook: N): N {
  const asked =
    <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await ask(...args);
      } catch (error) {
        if (!isForbidden(error)) throw error;
        await notebook.listKeys();
        return ask(...args);
      }
    };
  return {
    ...notebook,
    createExperiment: asked(notebook.createExperiment),
    readExperiment: asked(notebook.readExperiment),
    patchExperiment: asked(notebook.patchExperiment),
    addTag: asked(notebook.addTag),
    listTags: asked(notebook.listTags),
    removeTag: asked(notebook.removeTag),
    listComments: asked(notebook.listComments),
    readComment: asked(notebook.readComment),
    postComment: asked(notebook.postComment),
    patchComment: asked(notebook.patchComment),
    deleteComment: asked(notebook.deleteComment),
  };
}

const isForbidden = (error: unknown): boolean =>
  error instanceof NotebookError && error.failure === 'conflict' && error.status === 403;
