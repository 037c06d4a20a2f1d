import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface RawServer {
  readonly url: string;
  /** Complete requests that arrived, as text. */
  readonly requests: readonly string[];
}

/** Uses its sockets as no HTTP server would: `act` is called when a complete request has arrived. */
export async function serveRaw(act: (socket: Socket, request: string) => void): Promise<RawServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let received = '';
    sockets.add(socket);
    // The client may reset a connection that a test cuts.
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      if (!isWhole(received)) return;
      requests.push(received);
      act(socket, received);
      received = '';
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests };
}

function isWhole(received: string): boolean {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return rest.length > 0 && rest.join('\r\n\r\n').length >= length;
}
