import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createCommand, createWebhook } from '../../src/alarms/alarms.js';
import { createLog } from '../../src/log.js';
import type { Notice } from '../../src/model.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { HAS_OPENSSL, makeAuthority, serveProxy, serveTls } from '../support/tls.js';
import { until } from '../support/until.js';

const never = new AbortController().signal;

const NOTICE: Notice = {
  channel: 'webhook',
  state: 'raised',
  kind: 'quarantine',
  instrument: 'nanodrop',
  since: Date.UTC(2026, 0, 5, 12),
  at: Date.UTC(2026, 0, 5, 13),
  text: 'nanodrop: a run is quarantined; $(touch pwned) "quoted"',
  attempts: 0,
  dueAt: 0,
};

describe('the webhook', () => {
  async function receiver(status: number | 'never') {
    const bodies: unknown[] = [];
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
      if (status !== 'never') response.writeHead(status, { location: '/elsewhere' }).end('thanks');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { bodies, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/SECRET?t=TOKEN` };
  }

  test('is reached through a proxy', async () => {
    const { url, bodies } = await receiver(200);
    const proxy = await serveProxy(Number(new URL(url).port));
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('NO_PROXY', '');
    onTestFinished(() => void vi.unstubAllEnvs());
    await createWebhook('http://chat.test/hook')(NOTICE, never);
    expect(bodies).toHaveLength(1);
    expect(proxy.seen).toMatchObject([{ target: 'chat.test:80' }]);
  });

  test.skipIf(!HAS_OPENSSL)(
    'gets nothing if its certificate is not trusted, whatever the environment says',
    async () => {
      const { url, bodies } = await receiver(200);
      const port = await serveTls(url, makeAuthority().sign('IP:127.0.0.1'));
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
      onTestFinished(() => void vi.unstubAllEnvs());
      const sent = createWebhook(`https://127.0.0.1:${port}/hook`)(NOTICE, never);
      await expect(sent).rejects.toThrow('cannot reach the webhook');
      expect(bodies).toEqual([]);
    },
  );

  test('receives one POST with JSON', async () => {
    const { bodies, url } = await receiver(204);
    await createWebhook(url)(NOTICE, never);
    expect(bodies).toEqual([
      {
        state: 'raised',
        kind: 'quarantine',
        instrument: 'nanodrop',
        since: '2026-01-05T12:00:00.000Z',
        at: '2026-01-05T13:00:00.000Z',
        text: `labfeed on ${hostname()}: ${NOTICE.text}`,
        host: hostname(),
      },
    ]);
  });

  test.each([302, 404, 500])('fails if the answer is %d, and the error contains no secret', async (status) => {
    const { bodies, url } = await receiver(status);
    const failure = await createWebhook(url)(NOTICE, never).catch((error: Error) => error.message);
    expect(failure).toMatch(new RegExp(`^the webhook at 127\\.0\\.0\\.1:\\d+ returned status ${status}$`));
    expect(failure).not.toMatch(/SECRET|TOKEN/);
    expect(bodies).toHaveLength(1);
  });

  test('fails if the answer is missing or late, or if labfeed stops', async () => {
    const reason = (sending: Promise<void>) => sending.catch((error: Error) => error.message);
    const nobody = await reason(createWebhook('http://127.0.0.1:9/SECRET')(NOTICE, never));
    expect(nobody).toBe('cannot reach the webhook at 127.0.0.1:9: ECONNREFUSED');
    const { url } = await receiver('never');
    expect(await reason(createWebhook(url, 200)(NOTICE, never))).toMatch(/no response within 0\.2 s$/);
    const stopping = new AbortController();
    const waiting = reason(createWebhook(url)(NOTICE, stopping.signal));
    stopping.abort();
    expect(await waiting).toMatch(/cannot reach/);
  });
});

describe('the command', () => {
  function script(body: string): { path: string; folder: string } {
    const folder = tempFolder();
    const path = join(folder, 'page me.sh');
    writeFileSync(path, `#!/bin/sh\n${body}\n`);
    chmodSync(path, 0o755);
    return { path, folder };
  }

  test('receives its arguments unchanged and the alarm in its environment, without a shell', async () => {
    const { path, folder } = script(
      'cd "$(dirname "$0")"; printf "%s\\n" "$@" > args; env | grep ^LABFEED_ALARM > env',
    );
    await createCommand({
      command: [path, '$(touch pwned)', 'two words'],
      log: silentLog(),
      env: process.env,
    })(NOTICE, never);
    expect(readFileSync(join(folder, 'args'), 'utf8')).toBe('$(touch pwned)\ntwo words\n');
    expect(readFileSync(join(folder, 'env'), 'utf8').trim().split('\n').sort()).toEqual([
      'LABFEED_ALARM_INSTRUMENT=nanodrop',
      'LABFEED_ALARM_KIND=quarantine',
      'LABFEED_ALARM_SINCE=2026-01-05T12:00:00.000Z',
      'LABFEED_ALARM_STATE=raised',
      `LABFEED_ALARM_TEXT=labfeed on ${hostname()}: ${NOTICE.text}`,
    ]);
    expect(existsSync(join(folder, 'pwned'))).toBe(false);
  });

  test('has its output logged up to a limit', async () => {
    const { path } = script('echo to stdout; echo to stderr >&2; head -c 100000 /dev/zero | tr "\\0" x; exit 3');
    const lines: string[] = [];
    const { log } = createLog({
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
    });
    const failure = createCommand({ command: [path], log, env: process.env })(NOTICE, never);
    await expect(failure).rejects.toThrow(/page me\.sh exited with status 3$/);
    expect(lines.join()).toContain('to stdout');
    expect(lines.join().length).toBeLessThan(6000);
  });

  test('fails if it cannot be started or does not exit, and its children are killed with it', async () => {
    const absent = createCommand({ command: ['/nowhere/page-me'], log: silentLog(), env: {} });
    await expect(absent(NOTICE, never)).rejects.toThrow(/ENOENT/);
    const { path, folder } = script('cd "$(dirname "$0")"; sleep 60 & echo $! > pid; wait');
    const slow = createCommand({ command: [path], log: silentLog(), env: process.env, timeoutMs: 1500 });
    await expect(slow(NOTICE, never)).rejects.toThrow(/did not exit within 1\.5 s and was killed$/);
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    await until('its child has ended', () => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
      } catch {
        return true;
      }
    });
  });
});
