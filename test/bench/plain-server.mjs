/**
 * A notebook that costs next to nothing: it answers each request after a fixed time, from a few strings. It counts
 * filed runs by their comments, so that every client is measured by the same clock.
 *
 * node plain-server.mjs DELAY_MS [HIGHEST_ID]
 */
import { createServer } from 'node:http';

const delayMs = Number(process.argv[2] ?? 0);
const titles = new Map();
const comments = new Map();
let lastExperiment = Number(process.argv[3] ?? 100);
let lastComment = 500;
let filed = 0;

function answer(method, path, body) {
  const [, , , type, id, , comment] = path.split('/');
  if (type === 'apikeys') return [200, '[]'];
  if (method === 'POST' && id === undefined) {
    titles.set(++lastExperiment, JSON.parse(body).title);
    return [201, '', `/api/v2/experiments/${lastExperiment}`];
  }
  if (method === 'POST') {
    comments.set(++lastComment, body);
    filed += 1;
    if (filed % 50 === 0) console.log(`filed ${filed}.`);
    return [201, '', `${path}/${lastComment}`];
  }
  if (method === 'PATCH') {
    titles.set(Number(id), JSON.parse(body).title);
    return [200, '{}'];
  }
  if (comment !== undefined) return [200, comments.get(Number(comment))];
  const title = titles.get(Number(id));
  return title === undefined ? [404, '{}'] : [200, JSON.stringify({ id: Number(id), title })];
}

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const [status, text, location] = answer(request.method, request.url, Buffer.concat(chunks).toString());
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    const send = () => response.writeHead(status, location ? { ...headers, Location: location } : headers).end(text);
    if (delayMs > 0) setTimeout(send, delayMs);
    else send();
  });
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })));
