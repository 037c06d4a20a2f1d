/**
 * The least that can file runs: undici's pool, four runs side by side, three requests each, nothing written down.
 * What labfeed costs beyond this is its watching, parsing, journal, limiter, checks and log.
 *
 * node bare-client.mjs URL EXAMPLE
 */
import { createInterface } from 'node:readline';
import { Pool } from 'undici';

const [url, example] = process.argv.slice(2);
const { created, changes, comment } = JSON.parse(example);
const CONCURRENCY = 4;
const pool = new Pool(url, { connections: CONCURRENCY, pipelining: 1 });
const headers = { Authorization: 'key', Accept: 'application/json', 'Content-Type': 'application/json' };

async function send(method, path, expected, content) {
  const answer = await pool.request({
    method,
    path: `/api/v2${path}`,
    headers,
    body: JSON.stringify(content),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== expected) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`);
  return Number(String(answer.headers['location']).split('/').at(-1));
}

async function file() {
  const id = await send('POST', '/experiments', 201, created);
  await send('PATCH', `/experiments/${id}`, 200, changes);
  await send('POST', `/experiments/${id}/comments`, 201, comment);
}

/** Each line of the input is a number of runs to file. */
for await (const line of createInterface({ input: process.stdin })) {
  let left = Number(line);
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (left-- > 0) await file();
    }),
  );
}
