/**
 * The least that can file runs: undici's pool, four runs side by side, three requests each, nothing written down.
 * What labfeed costs beyond this is its journal, its gate, its checks and its log.
 *
 * node bare-client.mjs URL KEY EXAMPLE.json RUNS WARM_UP
 */
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

const [url, key, example, runs, warmUp] = process.argv.slice(2);
const { created, changes, comment } = JSON.parse(readFileSync(example, 'utf8'));
const CONCURRENCY = 4;
const pool = new Pool(url, { connections: CONCURRENCY, pipelining: 1 });
const headers = { Authorization: key, Accept: 'application/json', 'Content-Type': 'application/json' };

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

let left = Number(runs);
let filed = 0;
async function work() {
  while (left-- > 0) {
    await file();
    filed += 1;
    if (filed === Number(warmUp)) console.log('warm');
    if (filed === Number(runs)) console.log('done');
  }
}
await Promise.all(Array.from({ length: CONCURRENCY }, work));
// Runs until it is stopped: its memory and CPU time are read from outside.
setInterval(() => {}, 60_000);
