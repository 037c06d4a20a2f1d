import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly authorization: string | undefined;
}

/** What becomes of one request: passed on, or lost before or after the notebook has carried it out. */
export type Fate =
  | 'pass'
  | 'cutBefore'
  | 'cutAfter'
  | { readonly answer: number; readonly headers?: Record<string, string>; readonly body?: string };

export interface RecordingProxy {
  readonly url: string;
  readonly requests: Recorded[];
  /** The requests that change something. */
  writes(): Recorded[];
  /** Decides on every request from now on. It may take its time, or kill somebody meanwhile. */
  decide: (request: Recorded) => Fate | Promise<Fate>;
  close(): Promise<void>;
}

/** Stands between the daemon and the notebook, sees every request on the wire, and can lose it on the way. */
export async function recordingProxy(target: string): Promise<RecordingProxy> {
  const requests: Recorded[] = [];
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = '', url: path = '', headers } = incoming;
    const recorded = { method, path, body: body.toString(), authorization: headers.authorization };
    requests.push(recorded);
    const fate = await proxy.decide(recorded);
    if (fate === 'cutBefore') return void outgoing.destroy();
    if (typeof fate === 'object') return void outgoing.writeHead(fate.answer, fate.headers).end(fate.body);
    const passed = request(new URL(path, target), { method, headers }, (answer) => {
      if (fate === 'cutAfter') {
        answer.resume().on('end', () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    passed.end(body);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: RecordingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    writes: () => requests.filter(({ method }) => method !== 'GET'),
    decide: () => 'pass',
    close: () => closed(server),
  };
  onTestFinished(proxy.close);
  return proxy;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => void server.close(() => resolve()));
}
