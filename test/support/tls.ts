import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import { tempFolder } from './temp-folder.js';

/** For tests that need certificates; skipped without it. */
export const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0;
if (!HAS_OPENSSL) console.warn('skipping the tests of TLS: there is no openssl');

/** A certificate authority, made by openssl. */
export function makeAuthority(name = 'Lab authority', folder = tempFolder()) {
  const path = (file: string): string => join(folder, file);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', `/CN=${name}`, '-days', '2');
  return {
    /** The file with its certificate. */
    file: path('ca.pem'),
    pem: readFileSync(path('ca.pem'), 'utf8'),
    /** A certificate for a server, such as `DNS:notebook.test` or `IP:127.0.0.1`. */
    sign(host: string) {
      openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=server');
      writeFileSync(path('server.ext'), `subjectAltName=${host}\n`);
      const by = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'server.ext', '-days', '1'];
      openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.pem', ...by);
      return { key: readFileSync(path('server.key')), cert: readFileSync(path('server.pem')) };
    },
  };
}

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => undefined)));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function relay(one: Socket, other: Socket): void {
  one.on('error', () => other.destroy()).pipe(other);
  other.on('error', () => one.destroy()).pipe(one);
}

/** Serves a server without TLS over TLS. Returns the port. */
export function serveTls(url: string, certificate: { readonly key: Buffer; readonly cert: Buffer }): Promise<number> {
  const { port } = new URL(url);
  const server = createTlsServer(certificate, (socket) => relay(socket, connect(Number(port), '127.0.0.1')));
  return listen(server.on('tlsClientError', () => undefined));
}

/** A proxy that connects every host to this port, or answers with this status. */
export async function serveProxy(port: number, status = 200) {
  const seen: { target: string; headers: IncomingHttpHeaders }[] = [];
  const server = createHttpServer().on('connect', ({ url = '', headers }, socket: Socket) => {
    seen.push({ target: url, headers });
    socket.write(`HTTP/1.1 ${status} Answer\r\n\r\n`);
    if (status === 200) relay(socket, connect(port, '127.0.0.1'));
    else socket.end();
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, seen };
}
