import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { proxyFor } from '../../src/system/process.js';
import { failureOf, openNotebook } from '../support/contract-server.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { HAS_OPENSSL, makeAuthority, serveProxy, serveTls } from '../support/tls.js';

const withTls = test.skipIf(!HAS_OPENSSL);

/** The built-in notebook over TLS, with a certificate for this host. */
async function serve(host: string, authority = makeAuthority()) {
  const sandbox = await runSandbox(join(tempFolder(), 'notebook.db'));
  return { ...sandbox, authority, port: await serveTls(sandbox.url, authority.sign(host)) };
}

function setEnv(variables: Readonly<Record<string, string>>): void {
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'])
    vi.stubEnv(name, '');
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

withTls(
  'a server of a private authority is trusted only with its certificate in `ca`, and only under its own name',
  async () => {
    const { authority, port, key } = await serve('IP:127.0.0.1');
    const open = (ca?: string, host = '127.0.0.1') => openNotebook(`https://${host}:${port}`, { key: () => key, ca });
    expect(await open(authority.pem).listKeys()).toHaveLength(1);
    const untrusted = await failureOf(open().createExperiment());
    expect(untrusted).toMatchObject({ failure: 'server', outcomeUnknown: false });
    expect(untrusted.hint).toContain('`notebook.ca`');
    expect(await failureOf(open(makeAuthority().pem).createExperiment())).toMatchObject({ outcomeUnknown: false });
    const misnamed = await failureOf(open(authority.pem, 'localhost').createExperiment());
    expect(misnamed.message).toMatch(/does not match certificate/);
  },
);

withTls('NODE_TLS_REJECT_UNAUTHORIZED=0 does not make the notebook insecure', async () => {
  setEnv({ NODE_TLS_REJECT_UNAUTHORIZED: '0' });
  const { port, control } = await serve('IP:127.0.0.1');
  expect(await failureOf(openNotebook(`https://127.0.0.1:${port}`).listKeys())).toMatchObject({ failure: 'server' });
  expect(control.requests()).toEqual([]);
});

withTls('requests go through a proxy, which sees neither the key nor the content', async () => {
  const { authority, port, key, control } = await serve('DNS:notebook.test');
  const proxy = await serveProxy(port);
  setEnv({ HTTPS_PROXY: proxy.url.replace('//', '//user:pass%20word@') });
  const open = (host: string) => openNotebook(`https://${host}`, { key: () => key, ca: authority.pem, connections: 2 });
  const notebook = open('notebook.test');
  const ids = await Promise.all(Array.from({ length: 8 }, () => notebook.createExperiment({ title: 'secret' })));
  expect(ids.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(control.writes()).toHaveLength(8);
  // The limit of connections applies, and tunnels are used again.
  expect(proxy.seen.map(({ target }) => target)).toEqual(['notebook.test:443', 'notebook.test:443']);
  const [first] = proxy.seen;
  expect(first?.headers['proxy-authorization']).toBe(`Basic ${Buffer.from('user:pass word').toString('base64')}`);
  expect(JSON.stringify(proxy.seen)).not.toContain(key);
  // The certificate is verified through the proxy, too.
  const misnamed = await failureOf(open('other.test').createExperiment());
  expect(misnamed).toMatchObject({ failure: 'server', outcomeUnknown: false });
  expect(misnamed.message).toMatch(
    /^cannot connect to https:\/\/other\.test through the proxy http:\/\/127\.0\.0\.1:\d+: /,
  );
});

withTls('a notebook without TLS is reached through HTTP_PROXY', async () => {
  const { url, key } = await runSandbox(join(tempFolder(), 'notebook.db'));
  const proxy = await serveProxy(Number(new URL(url).port));
  setEnv({ http_proxy: proxy.url });
  expect(await openNotebook('http://notebook.test', { key: () => key }).createExperiment()).toBe(1);
  expect(proxy.seen).toMatchObject([{ target: 'notebook.test:80' }]);
});

withTls(
  'with a proxy that refuses or does not answer, nothing was sent, and the message names the proxy without its password',
  async () => {
    const refusing = await serveProxy(1, 407);
    for (const [url, reason] of [
      [refusing.url, /the proxy returned status 407$/],
      ['http://127.0.0.1:1', /connection refused \(ECONNREFUSED\)$/],
    ] as const) {
      setEnv({ HTTPS_PROXY: url.replace('//', '//user:password@') });
      const error = await failureOf(openNotebook('https://notebook.test').createExperiment());
      expect(error).toMatchObject({ failure: 'server', outcomeUnknown: false });
      expect(error.message).toMatch(reason);
      expect(error.message).toContain(`through the proxy ${url}`);
      expect(`${error.message} ${error.hint} ${error.stack}`).not.toContain('password');
    }
    // 100: the proxy says nothing more.
    const silent = await serveProxy(1, 100);
    setEnv({ HTTPS_PROXY: silent.url });
    const late = await failureOf(openNotebook('https://notebook.test', { timeoutMs: 300 }).createExperiment());
    expect(late).toMatchObject({ failure: 'server', outcomeUnknown: false });
  },
);

test.each<readonly [url: string, env: NodeJS.ProcessEnv, proxy: string | undefined]>([
  ['https://eln.example.org', {}, undefined],
  ['https://eln.example.org', { HTTPS_PROXY: 'http://proxy:3128' }, 'http://proxy:3128'],
  ['https://eln.example.org', { https_proxy: 'http://lower:1', HTTPS_PROXY: 'http://proxy:3128' }, 'http://lower:1'],
  ['https://eln.example.org', { HTTP_PROXY: 'http://proxy:3128' }, undefined],
  ['http://eln.example.org', { HTTP_PROXY: 'http://proxy:3128' }, 'http://proxy:3128'],
  ['http://localhost:7781', { HTTP_PROXY: 'http://proxy:3128' }, undefined],
  ['http://127.0.0.1:7781', { HTTP_PROXY: 'http://proxy:3128' }, undefined],
  ['http://[::1]:7781', { HTTP_PROXY: 'http://proxy:3128' }, undefined],
  ...['*', 'example.org', '.example.org', '*.example.org', 'a, ELN.example.org', 'eln.example.org:443'].map(
    (none) => ['https://eln.example.org', { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: none }, undefined] as const,
  ),
  ...['ample.org', 'example.org.evil', 'eln.example.org:8443', 'n.example.org', ','].map(
    (none) => ['https://eln.example.org', { HTTPS_PROXY: 'http://p:1', NO_PROXY: none }, 'http://p:1'] as const,
  ),
])('the proxy of %s with %j is %s', (url, env, proxy) => {
  expect(proxyFor(new URL(url), env)?.origin).toBe(proxy);
});

test('a proxy that is not a URL is reported without its value', () => {
  const find = () => proxyFor(new URL('https://eln.example.org'), { HTTPS_PROXY: 'user:password@proxy:3128' });
  expect(find).toThrow(/^the environment variable HTTPS_PROXY is not the URL of a proxy$/);
});
