import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import {
  type CommandRequest,
  createCommandServer,
  MAX_REQUEST_BYTES,
  type Permission,
  relay,
  socketOf,
} from '../../src/daemon/command-server.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function startServer() {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  const server = createCommandServer(config, silentLog(), { RUNTIME_DIRECTORY: folder });
  onTestFinished(() => server.stop());
  server.start();
  const open = (permission: Permission): Socket =>
    connect({ path: socketOf(config, permission, folder), allowHalfOpen: true });
  const ask = async (permission: Permission, line: string): Promise<string> => {
    const socket = open(permission);
    socket.end(`${line}\n`);
    return text(socket);
  };
  await until('the server listens', () =>
    ask('read', '{}').then(
      () => true,
      () => false,
    ),
  );
  return { ask, open };
}

const request = (...args: string[]): string => JSON.stringify({ args, debug: false } satisfies CommandRequest);

test.each([['--config', '/etc/shadow'], ['--config=/etc/shadow']])(
  'nobody chooses the configuration that the service reads (%s)',
  async (...option) => {
    const { ask } = await startServer();
    for (const permission of ['read', 'decide'] as const)
      expect(await ask(permission, request('status', ...option))).toContain('does not work through the service');
  },
);

test('what changes something is refused on the socket for reading, and other commands on both', async () => {
  const { ask } = await startServer();
  expect(await ask('read', request('retry', '1'))).toContain("only root and the service's user may do this");
  expect(await ask('read', request('audit', '--repair'))).toContain("only root and the service's user may do this");
  expect(await ask('decide', request('run'))).toContain('does not work through the service');
  expect(await ask('read', 'hello')).toContain('the request cannot be read');
});

test('a request without an end is refused once it is too long', async () => {
  const { open } = await startServer();
  const socket = open('read');
  socket.write('x'.repeat(MAX_REQUEST_BYTES + 1));
  expect(await text(socket)).toContain('the request cannot be read');
});

test('the number of connected clients is limited', async () => {
  const { open } = await startServer();
  const sockets = Array.from({ length: 40 }, () => open('read').on('error', () => undefined));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  let closed = 0;
  for (const socket of sockets) {
    socket.resume();
    socket.once('close', () => (closed += 1));
    socket.once('end', () => socket.destroy());
  }
  await until('the others are closed', () => closed === 8);
});

/** A command that prints without end, and a client that reads nothing unless it is asked to. */
async function relayEndless(maxUnreadMs: number) {
  const path = join(tempFolder(), 'socket');
  const server = createServer();
  server.listen(path);
  await once(server, 'listening');
  const client = connect(path);
  const [socket] = (await once(server, 'connection')) as [Socket];
  const command = `const more = () => process.stdout.write('x'.repeat(65536), more); more();`;
  const child = spawn(process.execPath, ['-e', command], { stdio: 'pipe' });
  onTestFinished(() => {
    child.kill();
    client.destroy();
    server.close();
  });
  relay(child, socket, maxUnreadMs);
  return { client, socket, child };
}

test('while a client does not read, its command waits, and what waits in memory is bounded', async () => {
  const { client, socket } = await relayEndless(60_000);
  await until('the socket is full', () => socket.writableNeedDrain);
  const before = socket.bytesWritten;
  // Reading a little shows that the command goes on afterwards.
  let read = 0;
  client.on('data', (part) => {
    read += part.length;
    if (read > 2_000_000) client.pause();
  });
  await until('the socket is full again', () => client.isPaused() && socket.writableNeedDrain);
  expect(socket.bytesWritten).toBeGreaterThan(before);
  expect(socket.writableLength).toBeLessThan(1_000_000);
});

test('the command of a client that no longer reads is ended', async () => {
  const { child } = await relayEndless(50);
  await once(child, 'exit');
  expect(child.killed).toBe(true);
});
