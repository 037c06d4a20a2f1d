import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { getResponse, type HttpHandler } from 'msw';
import { onTestFinished } from 'vitest';

/** A request as it came over the wire, before anything could tidy it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface MswServer {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** How many connections were ever made. */
  readonly connections: () => number;
}

/**
 * Serves msw handlers over a real loopback socket, since msw itself does not see what undici's pool sends.
 * A request that no handler takes makes the test fail.
 */
export async function serveHandlers(handlers: readonly HttpHandler[]): Promise<MswServer> {
  const seen: SeenRequest[] = [];
  const strays: string[] = [];
  let connections = 0;

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = incoming;
    const body = await text(incoming);
    seen.push({ method, path, headers, body });
    const response = await getResponse(
      [...handlers],
      asRequest(`http://${headers.host}${path}`, incoming, body),
    );
    if (!response) strays.push(`${method} ${path}`);
    await send(response ?? new Response('no handler takes this', { status: 599 }), outgoing);
  }

  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch((error: unknown) => {
      strays.push(`${incoming.method} ${incoming.url}: ${error}`);
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
    if (strays.length > 0) throw new Error(`requests that the contract does not know: ${strays.join(', ')}`);
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
