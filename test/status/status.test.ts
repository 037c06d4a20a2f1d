import { createServer as createTcpServer } from 'node:net';
import { Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import type { Place } from '../../src/status/deps.js';
import { createStatus, type Status } from '../../src/status/status.js';
import { until } from '../support/until.js';
import { call, someDeps } from './serving.js';

interface Started {
  readonly status: Status;
  readonly lines: { level: number; msg: string; url?: string }[];
  /** Where it said to be last. */
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
  // Waits as long as it must, so that a test does not.
  const clock = {
    ...systemClock,
    sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(20, signal),
  };
  const { log } = createLog({ level: 'info', pretty: false, destination });
  const status = createStatus(someDeps({ clock, log }));
  onTestFinished(() => status.stop());
  return { status, lines, url: () => lines.findLast(({ url }) => url !== undefined)?.url ?? '' };
}

const place = (changes: Partial<Place> = {}): Place => ({
  host: '127.0.0.1',
  port: 0,
  names: [],
  ...changes,
});

const tokenIn = async (url: string): Promise<string | undefined> =>
  /name="labfeed-token" content="(.+?)"/.exec((await call(url, '/')).text)?.[1];

test('it says where it is; moved, it is there and nowhere else, and an open page can go on writing', async () => {
  const { status, url } = start();
  await status.moveTo(place());
  const first = url();
  const token = await tokenIn(first);
  expect(token).toMatch(/^[\w-]{32}$/);
  await status.moveTo(place({ names: ['lab-pc'] }));
  const second = url();
  expect(second).not.toBe(first);
  expect(await tokenIn(second)).toBe(token);
  await expect(call(first, '/')).rejects.toThrow();
  await status.moveTo(undefined);
  await expect(call(second, '/')).rejects.toThrow();
});

test('asked to be where it is, it stays as it is', async () => {
  const { status, lines } = start();
  await status.moveTo(place());
  await status.moveTo(place());
  expect(lines).toHaveLength(1);
});

test('a port that another program uses is told once as an error, and taken as soon as it is free', async () => {
  const other = createTcpServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  const { status, lines, url } = start();
  await status.moveTo(place({ port }));
  expect(status.trouble()).toMatchObject({ text: expect.stringContaining('another program uses that port') });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(lines.map(({ level, msg }) => ({ level, msg }))).toEqual([
    { level: 50, msg: expect.stringContaining(`cannot be shown at 127.0.0.1, port ${port}`) },
  ]);
  await new Promise((resolve) => other.close(resolve));
  await until('it listens', () => status.trouble() === undefined);
  expect((await call(url(), '/healthz')).status).toBe(200);
});

test('stopped while it waits for a port, it waits no more', async () => {
  const other = createTcpServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { status, lines } = start();
  await status.moveTo(place({ port: (other.address() as { port: number }).port }));
  await status.stop();
  await new Promise((resolve) => other.close(resolve));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(lines).toHaveLength(1);
});
