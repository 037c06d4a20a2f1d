import { expect, onTestFinished } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import { createNotebook, type Notebook, type NotebookOptions } from '../../src/notebook/client.js';
import { contractHandlers, type Operation, type Reply } from './contract-handlers.js';
import { type MswServer, serveHandlers } from './msw-server.js';

export const KEY = '3-0123456789abcdef';

/** A client as the daemon makes it, closed when the test is over. */
export function openNotebook(url: string, options: Partial<NotebookOptions> = {}): Notebook {
  const notebook = createNotebook({
    url,
    key: () => KEY,
    timeoutMs: 5000,
    connections: 4,
    commentField: 'comment',
    ...options,
  });
  onTestFinished(() => notebook.close());
  return notebook;
}

/** A client and, over real sockets, a server that keeps the contract except where it is told otherwise. */
export async function openContract(
  replies: Partial<Record<Operation, Reply>> = {},
  options: Partial<NotebookOptions> = {},
): Promise<{ notebook: Notebook; server: MswServer }> {
  const server = await serveHandlers(contractHandlers(replies));
  return { notebook: openNotebook(server.url, options), server };
}

/** What a request failed with, which must be a NotebookError. */
export async function failureOf(request: Promise<unknown>): Promise<NotebookError> {
  const outcome = await request.then(
    () => 'it succeeded',
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(NotebookError);
  return outcome as NotebookError;
}
