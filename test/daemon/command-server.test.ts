import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { createCommandServer } from '../../src/daemon/command-server.js';
import { type CommandRequest, type Permission, socketOf } from '../../src/socket.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function startServer() {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  const server = createCommandServer(config, silentLog(), { RUNTIME_DIRECTORY: folder });
  onTestFinished(() => server.stop());
  server.start();
  return async (permission: Permission, line: string): Promise<string> => {
    const socket = connect({ path: socketOf(config, permission, folder), allowHalfOpen: true });
    socket.end(`${line}\n`);
    return text(socket);
  };
}

const request = (...args: string[]): string => JSON.stringify({ args, debug: false } satisfies CommandRequest);

test.each([['--config', '/etc/shadow'], ['--config=/etc/shadow']])(
  'nobody chooses the configuration that the service reads (%s)',
  async (...option) => {
    const ask = await startServer();
    await until('the server listens', () =>
      ask('read', '{}').then(
        () => true,
        () => false,
      ),
    );
    for (const permission of ['read', 'decide'] as const)
      expect(await ask(permission, request('status', ...option))).toContain('does not work through the service');
  },
);

test('what changes something is refused on the socket for reading, and other commands on both', async () => {
  const ask = await startServer();
  await until('the server listens', () =>
    ask('read', '{}').then(
      () => true,
      () => false,
    ),
  );
  expect(await ask('read', request('retry', '1'))).toContain("only root and the service's user may do this");
  expect(await ask('read', request('audit', '--repair'))).toContain("only root and the service's user may do this");
  expect(await ask('decide', request('run'))).toContain('does not work through the service');
  expect(await ask('read', 'hello')).toContain('the request cannot be read');
});
