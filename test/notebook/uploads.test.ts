import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { uploadName } from '../../src/notebook/http.js';
import { elabftwClient } from '../sandbox/client.js';
import { failureOf, openNotebook } from '../support/contract-server.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const fileOf = (name: string, ...chunks: string[]) => ({
  name,
  size: Buffer.byteLength(chunks.join('')),
  async *open() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  },
});

async function openSandbox(maxUploadBytes?: number) {
  const { url, key, make, call } = await elabftwClient(maxUploadBytes === undefined ? {} : { maxUploadBytes });
  await make();
  return { notebook: openNotebook(url, { key: () => key }), call };
}

test('a file is attached under its name, with the bytes that were sent', async () => {
  const { notebook, call } = await openSandbox();
  for (const [index, name] of ['µM "dye"\n1.csv', 'empty.csv'].entries()) {
    const chunks = index === 0 ? ['a,b\r\n--', 'x\n'] : [];
    expect(await notebook.uploadFile(1, fileOf(name, ...chunks))).toBe(index + 1);
  }
  // Their order depends on whether a second has begun in between.
  const uploads = [...(await notebook.listUploads(1))].sort((a, b) => a.id - b.id);
  expect(uploads).toMatchObject([
    { id: 1, real_name: "µM 'dye' 1.csv", hash: sha256('a,b\r\n--x\n'), state: 1 },
    { id: 2, real_name: 'empty.csv', hash: sha256('') },
  ]);
  const page = (await call('/view/1')).text;
  expect(page).toContain('<a href="/view/1/uploads/1">µM &#39;dye&#39; 1.csv</a>');
  expect((await call('/view/1/uploads/1')).text).toBe('a,b\r\n--x\n');
  expect(await call('/view/1/uploads/9')).toMatchObject({ status: 404 });
});

test('a forbidden type and a file above the limit are refused for good', async () => {
  const { notebook } = await openSandbox(1000);
  const php = await failureOf(notebook.uploadFile(1, fileOf('a.php', 'x')));
  expect(php).toMatchObject({ failure: 'request', status: 400, outcomeUnknown: false });
  const large = await failureOf(notebook.uploadFile(1, fileOf('a.csv', 'x'.repeat(2000))));
  expect(large).toMatchObject({ failure: 'request', status: 413, outcomeUnknown: false });
});

test('a source that fails cuts the request off, and the server stores nothing', async () => {
  const { notebook } = await openSandbox();
  const file = {
    ...fileOf('a.csv', 'x'.repeat(100)),
    async *open() {
      yield Buffer.from('x');
      throw new Error('the file has changed');
    },
  };
  expect(await failureOf(notebook.uploadFile(1, file))).toMatchObject({ failure: 'server', outcomeUnknown: true });
  expect(await notebook.listUploads(1)).toEqual([]);
});

test('a name keeps its letters and its extension, and loses what a header cannot carry', () => {
  expect(uploadName('Prüfung µ 日本.csv')).toBe('Prüfung µ 日本.csv');
  expect(uploadName('sub/a\\b"c\r\n\u202e.csv')).toBe("sub_a_b'c .csv");
  expect(uploadName(`${'x'.repeat(300)}.csv`)).toMatch(/^x{196}\.csv$/);
  expect(uploadName('\n')).toBe('file');
});

test('a quarter of a gigabyte is sent without being in memory', async () => {
  const size = 2 ** 28 + 1;
  let received = 0;
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    request.on('end', () => response.writeHead(201, { location: '/api/v2/experiments/1/uploads/7' }).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const notebook = openNotebook(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { timeoutMs: 20_000 });
  const chunk = Buffer.alloc(1 << 20);
  let most = 0;
  async function* open() {
    for (let left = size; left > 0; left -= chunk.length) {
      most = Math.max(most, process.memoryUsage().rss);
      yield chunk.subarray(0, Math.min(left, chunk.length));
    }
  }
  const before = process.memoryUsage().rss;
  expect(await notebook.uploadFile(1, { name: 'large.bin', size, open })).toBe(7);
  expect(received).toBeGreaterThan(size);
  expect(most - before).toBeLessThan(120 * 2 ** 20);
}, 60_000);
