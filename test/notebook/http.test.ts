import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Pool } from 'undici';
import { expect, onTestFinished, test, vi } from 'vitest';
import { exchange, type Method } from '../../src/notebook/http.js';
import { failureOf, openNotebook } from '../support/contract-server.js';
import { serveRaw } from '../support/raw-server.js';

/** A local port on which nothing listens. */
async function closedPort(): Promise<string> {
  const { createServer } = await import('node:net');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

const HEAD = 'HTTP/1.1 201 Created\r\nLocation: /api/v2/experiments/5\r\nContent-Length: 100\r\n\r\n';

test('a creation whose connection was refused is certainly not done', async () => {
  const url = await closedPort();
  const error = await failureOf(openNotebook(url).createExperiment());
  expect(error).toMatchObject({ failure: 'server', scope: 'server', outcomeUnknown: false });
  expect(error.message).toMatch(/^cannot connect to http.*: connection refused \(ECONNREFUSED\)$/);
  expect(error.hint).toContain('notebook.url');
});

test('a creation on an unknown host is certainly not done', async () => {
  const error = await failureOf(openNotebook('http://notebook.invalid').createExperiment());
  expect(error).toMatchObject({ failure: 'server', outcomeUnknown: false });
});

test('the reason is shown if all addresses of a host refuse the connection', async () => {
  const url = (await closedPort()).replace('127.0.0.1', 'localhost');
  const error = await failureOf(openNotebook(url).createExperiment());
  expect(error).toMatchObject({ failure: 'server', outcomeUnknown: false });
  expect(error.message).toContain('ECONNREFUSED');
});

test('a creation whose TLS handshake failed is certainly not done', async () => {
  const server = createTlsServer({}).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  server.on('tlsClientError', () => {});
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const error = await failureOf(openNotebook(`https://127.0.0.1:${port}`).createExperiment());
  expect(error).toMatchObject({ failure: 'server', outcomeUnknown: false });
  expect(error.hint).toContain('certificate');
});

test('a creation that got no connection in time is certainly not done, and is never sent', async () => {
  const answers: (() => void)[] = [];
  const server = await serveRaw((socket) => {
    answers.push(() => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  });
  const pool = new Pool(server.url, { connections: 1 });
  onTestFinished(() => pool.destroy());
  const send = (method: Method, timeoutMs: number) =>
    exchange(pool, { method, path: '/', headers: {}, body: null }, { timeoutMs, maxBytes: 1000 });
  const first = send('GET', 15_000);
  expect(await send('POST', 100)).toMatchObject({ response: undefined, isSent: false });
  // When the only connection is free again, a later request is sent, and this one is not.
  const third = send('GET', 15_000);
  for (const exchanged of [first, third]) {
    await vi.waitFor(() => expect(answers).not.toHaveLength(0), 10_000);
    answers.shift()?.();
    expect(await exchanged).toMatchObject({ response: { status: 200 } });
  }
  expect(server.requests.map((request) => request.slice(0, 5))).toEqual(['GET /', 'GET /']);
});

test('the outcome of a creation whose connection was closed is unknown', async () => {
  const server = await serveRaw((socket) => socket.destroy());
  const error = await failureOf(openNotebook(server.url).createExperiment());
  expect(error).toMatchObject({ failure: 'server', scope: 'server', outcomeUnknown: true });
  expect(error.status).toBeUndefined();
  expect(server.requests).toHaveLength(1);
});

test('the outcome of a creation whose connection was reset is unknown', async () => {
  const server = await serveRaw((socket) => socket.resetAndDestroy());
  expect(await failureOf(openNotebook(server.url).createExperiment())).toMatchObject({
    outcomeUnknown: true,
  });
  expect(server.requests).toHaveLength(1);
});

test('the outcome of a creation without a response in time is unknown', async () => {
  const server = await serveRaw(() => {});
  const started = performance.now();
  const error = await failureOf(openNotebook(server.url, { timeoutMs: 300 }).createExperiment());
  expect(error).toMatchObject({ failure: 'server', outcomeUnknown: true });
  expect(error.message).toMatch(/^no response from http:\S+ to POST \/api\/v2\/experiments: timed out after 0\.3 s$/);
  expect(performance.now() - started).toBeLessThan(1500);
});

test.each([
  ['is not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['ends in its headers', 'HTTP/1.1 201 Crea'],
  ['ends after an informational response', 'HTTP/1.1 103 Early Hints\r\nLocation: /api/v2/experiments/99\r\n\r\n'],
])('the outcome of a creation whose response %s is unknown', async (_what, bytes) => {
  const server = await serveRaw((socket) => socket.end(bytes));
  const error = await failureOf(openNotebook(server.url).createExperiment());
  expect(error.outcomeUnknown).toBe(true);
  expect(error.status).toBeUndefined();
});

test('a read whose connection was closed changed nothing', async () => {
  const server = await serveRaw((socket) => socket.destroy());
  const error = await failureOf(openNotebook(server.url).readExperiment(1));
  expect(error).toMatchObject({ failure: 'server', outcomeUnknown: false });
});

test('a creation is done when its status and id have arrived, even if the body has not', async () => {
  const cut = await serveRaw((socket) => socket.end(HEAD));
  expect(await openNotebook(cut.url).createExperiment()).toBe(5);
  const hanging = await serveRaw((socket) => socket.write(HEAD));
  expect(await openNotebook(hanging.url, { timeoutMs: 1000 }).createExperiment()).toBe(5);
});

test('a rejection counts when its status has arrived, even if the body is incomplete', async () => {
  const server = await serveRaw((socket) => socket.end('HTTP/1.1 422 No\r\nContent-Length: 99\r\n\r\n{"mess'));
  const error = await failureOf(openNotebook(server.url).createExperiment());
  expect(error).toMatchObject({ failure: 'request', status: 422, outcomeUnknown: false });
});

test('a body that trickles in is subject to the time-out', async () => {
  const server = await serveRaw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"id":1');
    const drip = setInterval(() => socket.write(' '), 20);
    socket.on('close', () => clearInterval(drip));
  });
  const notebook = openNotebook(server.url, { timeoutMs: 300 });
  const started = performance.now();
  expect(await failureOf(notebook.readExperiment(1))).toMatchObject({
    failure: 'server',
    outcomeUnknown: false,
  });
  expect(await failureOf(notebook.patchComment(1, 1, 'x'))).toMatchObject({
    failure: 'server',
    outcomeUnknown: true,
  });
  expect(performance.now() - started).toBeLessThan(2000);
});

test('a response that is too long is cut off, and does not stop other runs', async () => {
  const server = await serveRaw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
    const megabyte = `100000\r\n${' '.repeat(0x100000)}\r\n`;
    const pour = () => {
      while (!socket.destroyed && socket.write(megabyte));
    };
    socket.on('drain', pour);
    pour();
  });
  const error = await failureOf(openNotebook(server.url).readExperiment(1));
  expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: false });
  expect(error.message).toContain('longer than');
});

test('an informational response is not taken for the response', async () => {
  const hints = 'HTTP/1.1 103 Early Hints\r\nLocation: /api/v2/experiments/99\r\n\r\n';
  const server = await serveRaw((socket) => socket.end(hints + HEAD + 'x'.repeat(100)));
  expect(await openNotebook(server.url).createExperiment()).toBe(5);
});

test('a request whose check fails when it is its turn is not sent', async () => {
  const server = await serveRaw(() => {});
  const tooLate = () => {
    throw new Error('too late');
  };
  await expect(openNotebook(server.url).patchExperiment(1, {}, tooLate)).rejects.toThrow('too late');
  expect(server.requests).toHaveLength(0);
});

test('the client works again after an outage', async () => {
  let broken = true;
  const server = await serveRaw((socket) => (broken ? socket.destroy() : socket.write(HEAD + 'x'.repeat(100))));
  const notebook = openNotebook(server.url, { connections: 1 });
  for (let attempt = 0; attempt < 3; attempt += 1) await failureOf(notebook.createExperiment());
  broken = false;
  expect(await notebook.createExperiment()).toBe(5);
});
