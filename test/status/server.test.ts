import { createServer as createTcpServer } from 'node:net';
import { Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import type { StatusAddress } from '../../src/status/api.js';
import { createStatusServer, type StatusServer } from '../../src/status/server.js';
import { call, someDeps } from '../support/status-server.js';
import { until } from '../support/until.js';

interface Started {
  readonly server: StatusServer;
  readonly lines: { level: number; msg: string; url?: string }[];
  /** The last address in the log. */
  url(): string;
}

function start(): Started {
  const lines: Started['lines'] = [];
  const destination = new Writable({
    write(line, _encoding, done) {
      lines.push(JSON.parse(String(line)));
      done();
    },
  });
  // Retries quickly.
  const clock = {
    ...systemClock,
    sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(20, signal),
  };
  const { log } = createLog({ level: 'info', destination });
  const server = createStatusServer(someDeps({ clock, log }));
  onTestFinished(() => server.stop());
  return { server, lines, url: () => lines.findLast(({ url }) => url !== undefined)?.url ?? '' };
}

const address = (changes: Partial<StatusAddress> = {}): StatusAddress => ({
  host: '127.0.0.1',
  port: 0,
  names: [],
  ...changes,
});

const tokenIn = async (url: string): Promise<string | undefined> =>
  /name="labfeed-token" content="(.+?)"/.exec((await call(url, '/')).text)?.[1];

test('the server logs its address; after a move it listens only there, and open pages keep their token', async () => {
  const { server, url } = start();
  await server.moveTo(address());
  const first = url();
  const token = await tokenIn(first);
  expect(token).toMatch(/^[\w-]{32}$/);
  await server.moveTo(address({ names: ['lab-pc'] }));
  const second = url();
  expect(second).not.toBe(first);
  expect(await tokenIn(second)).toBe(token);
  await expect(call(first, '/')).rejects.toThrow();
  await server.moveTo(undefined);
  await expect(call(second, '/')).rejects.toThrow();
});

test('moving to the same address changes nothing', async () => {
  const { server, lines } = start();
  await server.moveTo(address());
  await server.moveTo(address());
  expect(lines).toHaveLength(1);
});

test('a port in use is logged once as an error, and used as soon as it is free', async () => {
  const other = createTcpServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  const { server, lines, url } = start();
  await server.moveTo(address({ port }));
  expect(server.problem()).toContain('the port is in use');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(lines.map(({ level, msg }) => ({ level, msg }))).toEqual([
    { level: 50, msg: expect.stringContaining(`cannot serve the status page at 127.0.0.1:${port}`) },
  ]);
  await new Promise((resolve) => other.close(resolve));
  await until('it listens', () => server.problem() === undefined);
  expect((await call(url(), '/healthz')).status).toBe(200);
});

test('stop ends the retries for a port in use', async () => {
  const other = createTcpServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { server, lines } = start();
  await server.moveTo(address({ port: (other.address() as { port: number }).port }));
  await server.stop();
  await new Promise((resolve) => other.close(resolve));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(lines).toHaveLength(1);
});
