import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { getResponse, type HttpHandler, HttpResponse, http } from 'msw';
import { expect, onTestFinished } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import { createNotebook, type Notebook, type NotebookOptions } from '../../src/notebook/client.js';

/*
 * The contract as msw handlers, for tests of the HTTP client. Stateless: each operation succeeds with a fixed response
 * unless a test gives another one.
 */

export const KEY = '3-0123456789abcdef';

/** Closed when the test is over. */
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

/** A client and a server over a real socket. `replies` replaces the response of single operations. */
export async function openContract(
  replies: Partial<Record<Operation, Reply>> = {},
  options: Partial<NotebookOptions> = {},
): Promise<{ notebook: Notebook; server: ContractServer }> {
  const server = await serveHandlers(contractHandlers(replies));
  return { notebook: openNotebook(server.url, options), server };
}

/** The NotebookError that a request fails with. */
export async function failureOf(request: Promise<unknown>): Promise<NotebookError> {
  const outcome = await request.then(
    () => 'the request succeeded',
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(NotebookError);
  return outcome as NotebookError;
}

/** The contract's names; it has none for operations on experiments. */
export type Operation =
  | 'postExperiments'
  | 'readExperiment'
  | 'patchExperiment'
  | 'readEntityComments'
  | 'readEntityComment'
  | 'postEntityComments'
  | 'patchEntityComment'
  | 'deleteEntityComment'
  | 'getApikeys'
  | 'postApikeys'
  | 'deleteApikey';

interface Asked {
  readonly request: Request;
  readonly params: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export type Reply = (asked: Asked) => Response | Promise<Response>;

const API = '*/api/v2';
const ENTITY = `${API}/:entity_type/:id`;

/** An error in eLabFTW's format. */
export const refusal =
  (status: number, message = `error ${status}`, description = '', code = status): Reply =>
  () =>
    HttpResponse.json({ code, message, description }, { status });

/** 201 with this Location, or without one. Like eLabFTW's, the body is empty and of type HTML. */
export const created =
  (location?: string): Reply =>
  () =>
    new HttpResponse('', {
      status: 201,
      headers: { 'Content-Type': 'text/html', ...(location === undefined ? {} : { Location: location }) },
    });

export const page =
  (status: number, title: string, headers: Record<string, string> = {}): Reply =>
  () =>
    HttpResponse.html(`<!doctype html><html><head><title>${title}</title></head></html>`, {
      status,
      headers,
    });

const json =
  (record: (params: Asked['params']) => object): Reply =>
  ({ params }) =>
    HttpResponse.json(record(params));

const done: Reply = () => new HttpResponse(null, { status: 204 });

const SUCCESS: Readonly<Record<Operation, Reply>> = {
  postExperiments: created('https://eln.example.org/api/v2/experiments/42'),
  readExperiment: json(({ id }) => ({
    id: Number(id),
    title: 'A run',
    date: '2026-01-31',
    body: '',
    tags: null,
  })),
  patchExperiment: json(({ id }) => ({ id: Number(id), title: 'A run' })),
  readEntityComments: json(({ id }) => [
    { id: 5, item_id: Number(id), comment: 'five' },
    { id: 6, item_id: Number(id), comment: 'six' },
  ]),
  readEntityComment: json(({ subid }) => ({ id: Number(subid), comment: 'five' })),
  postEntityComments: created('https://eln.example.org/api/v2/experiments/7/comments/12'),
  patchEntityComment: json(({ subid }) => ({ id: Number(subid), comment: 'changed' })),
  deleteEntityComment: done,
  getApikeys: json(() => [{ id: 3, name: 'labfeed', can_write: 1, hash: '$2y$10$a-hash' }]),
  postApikeys: created('https://eln.example.org/api/v2/apikeys/9-cleartext'),
  deleteApikey: done,
};

export function contractHandlers(replies: Partial<Record<Operation, Reply>> = {}): HttpHandler[] {
  const on =
    (operation: Operation) =>
    (asked: Asked): Response | Promise<Response> =>
      violation(asked.request) ?? (replies[operation] ?? SUCCESS[operation])(asked);
  return [
    http.get(`${API}/apikeys`, on('getApikeys')),
    http.post(`${API}/apikeys`, on('postApikeys')),
    http.delete(`${API}/apikeys/:id`, on('deleteApikey')),
    http.post(`${API}/experiments`, on('postExperiments')),
    http.get(`${API}/experiments/:id`, on('readExperiment')),
    http.patch(`${API}/experiments/:id`, on('patchExperiment')),
    http.get(`${ENTITY}/comments`, on('readEntityComments')),
    http.post(`${ENTITY}/comments`, on('postEntityComments')),
    http.get(`${ENTITY}/comments/:subid`, on('readEntityComment')),
    http.patch(`${ENTITY}/comments/:subid`, on('patchEntityComment')),
    http.delete(`${ENTITY}/comments/:subid`, on('deleteEntityComment')),
  ];
}

/** The general conventions of the contract. No test expects 418. */
function violation({ method, headers }: Request): Response | undefined {
  const writes = method === 'POST' || method === 'PATCH';
  const isValid =
    headers.has('authorization') &&
    headers.get('accept') === 'application/json' &&
    headers.get('content-type') === (writes ? 'application/json' : null);
  return isValid ? undefined : HttpResponse.text('violates the conventions', { status: 418 });
}

/** A request as it was received. */
interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface ContractServer {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** How many connections were opened. */
  readonly connections: () => number;
}

/**
 * Serves msw handlers over a loopback socket, because msw does not intercept undici's pool. A request without a handler
 * makes the test fail.
 */
export async function serveHandlers(handlers: readonly HttpHandler[]): Promise<ContractServer> {
  const seen: SeenRequest[] = [];
  const unknown: string[] = [];
  let connections = 0;

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = incoming;
    const body = await text(incoming);
    seen.push({ method, path, headers, body });
    const response = await getResponse([...handlers], asRequest(`http://${headers.host}${path}`, incoming, body));
    if (!response) unknown.push(`${method} ${path}`);
    await send(response ?? new Response('no handler', { status: 599 }), outgoing);
  }

  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch((error: unknown) => {
      unknown.push(`${incoming.method} ${incoming.url}: ${error}`);
      outgoing.destroy();
    });
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    if (unknown.length > 0) throw new Error(`requests outside the contract: ${unknown.join(', ')}`);
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, seen, connections: () => connections };
}

function asRequest(url: string, { method = 'GET', headers }: IncomingMessage, body: string): Request {
  const pairs = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Request(url, { method, headers: pairs, ...(body === '' ? {} : { body }) });
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(body);
}
