import { createServer } from 'node:net';
import fc from 'fast-check';
import { NotebookError } from '../../dist/errors.js';
import { createNotebook } from '../../dist/notebook/client.js';

/*
 * Whatever a server, a proxy or a broken connection sends instead of a notebook's response.
 */

const OPERATIONS = {
  createExperiment: (notebook) => notebook.createExperiment({ title: 'labfeed 0123456789abcdef' }),
  readExperiment: (notebook) => notebook.readExperiment(7),
  patchExperiment: (notebook) =>
    notebook.patchExperiment(7, { title: 'a', date: '2026-01-01', body: 'b', tags: ['c'] }),
  listComments: (notebook) => notebook.listComments(7),
  readComment: (notebook) => notebook.readComment(7, 3),
  postComment: (notebook) => notebook.postComment(7, 'text'),
  listKeys: (notebook) => notebook.listKeys(),
  createKey: (notebook) => notebook.createKey({ name: 'a' }),
  deleteKey: (notebook) => notebook.deleteKey(3),
  searchBodies: (notebook) => notebook.searchBodies(['a']),
  newestExperiments: (notebook) => notebook.newestExperiments(),
};

const json = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.constantFrom(
    '',
    '{}',
    '[]',
    'null',
    '{"id":7,"title":"a"}',
    '[{"id":3,"comment":"x"}]',
    '{"id":"7"}',
    '{"id":1e400}',
    '{"__proto__":{"id":7}}',
    '<html>502 Bad Gateway</html>',
  ),
  fc.integer({ min: 1, max: 500_000 }).map((count) => `[${Array.from({ length: count }, () => '0').join(',')}]`),
  fc.integer({ min: 1, max: 200_000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
  fc.integer({ min: 1, max: 200_000 }).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
  fc
    .integer({ min: 1, max: 20_000 })
    .map((count) => `{${Array.from({ length: count }, (_, n) => `"k${n}":${n}`).join(',')},"id":7}`),
);
const arbitrary = fc.record({
  operation: fc.constantFrom(...Object.keys(OPERATIONS)),
  status: fc.oneof(
    fc.constantFrom(200, 201, 204, 301, 400, 401, 403, 404, 429, 500, 502, 503),
    fc.integer({ min: 100, max: 999 }),
  ),
  headers: fc.array(
    fc.constantFrom(
      'Location: /api/v2/experiments/7',
      'Location: 7',
      'Location: //x/y/-1',
      'Location: /api/v2/experiments/99999999999999999999',
      'Retry-After: 1e9',
      'Retry-After: Wed, 21 Oct 2015 07:28:00 GMT',
      'Content-Type: text/html',
      'Content-Type: application/json; charset=latin1',
      'Content-Encoding: gzip',
      'Set-Cookie: a=b',
      `X-Long: ${'x'.repeat(3000)}`,
    ),
    { maxLength: 4 },
  ),
  body: json,
  frame: fc.constantFrom('length', 'length', 'chunked', 'close', 'short', 'long', 'raw', 'nothing'),
});

/** @returns The bytes of the response, as no HTTP server would write them. */
function compose({ status, headers, body, frame }) {
  const bytes = Buffer.from(body);
  const head = (...more) =>
    `HTTP/1.1 ${status} Any\r\n${[...headers, ...more].map((line) => `${line}\r\n`).join('')}\r\n`;
  if (frame === 'raw') return Buffer.from(body);
  if (frame === 'nothing') return Buffer.alloc(0);
  if (frame === 'close') return Buffer.concat([Buffer.from(head('Connection: close')), bytes]);
  if (frame === 'chunked')
    return Buffer.concat([
      Buffer.from(`${head('Transfer-Encoding: chunked')}${bytes.length.toString(16)}\r\n`),
      bytes,
      Buffer.from('\r\n0\r\n\r\n'),
    ]);
  const stated = { length: 0, short: -3, long: 5 }[frame] + bytes.length;
  return Buffer.concat([Buffer.from(head(`Content-Length: ${Math.max(0, stated)}`)), bytes]);
}

const KEY = '3-0123456789abcdef0123456789abcdef';

export function createCase(seed) {
  const [given] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  return {
    what: `${given.operation}, answered with ${JSON.stringify({ ...given, body: given.body.slice(0, 100) })} (${given.body.length} characters),`,
    async perform() {
      const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => socket.end(compose(given)));
      });
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${server.address().port}`;
      const notebook = createNotebook({
        url,
        key: () => KEY,
        timeoutMs: 2000,
        connections: 1,
        commentField: 'comment',
      });
      try {
        await OPERATIONS[given.operation](notebook);
        return undefined;
      } catch (error) {
        if (!(error instanceof NotebookError)) throw error;
        if (error.message.length > 2000) return `has a message of ${error.message.length} characters`;
        return JSON.stringify([error.message, error.hint]).includes(KEY) ? 'shows the key' : undefined;
      } finally {
        await notebook.close();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}
