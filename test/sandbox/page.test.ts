import { expect, test } from 'vitest';
import { isLocal } from '../../src/sandbox/page.js';
import { caller, elabftwClient, newExperiment, sandboxClient } from './client.js';

const ATTACK = `</pre></title></td><script>alert(1)</script><img src=x onerror=alert(1)>"'&`;
const ESCAPED =
  '&lt;/pre&gt;&lt;/title&gt;&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;';

const LIST_SCRIPT = '<script src="/list.js" defer></script>';

test('the page of an empty notebook says so', async () => {
  const { url } = await sandboxClient();
  const page = await caller(url)('/');
  expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
  expect(page.text).toContain('No experiments yet');
});

test('the list shows experiments, newest first, 50 per page', async () => {
  const { call } = await sandboxClient();
  for (let n = 1; n <= 51; n += 1) {
    await newExperiment(call, { title: `run number ${n}.`, date: '2026-01-02', tags: ['plate reader'] });
  }
  await call('/api/v2/experiments/51/comments', { method: 'POST', body: { comment: 'x' } });
  const first = (await call('/')).text;
  expect(first.indexOf('run number 51.')).toBeLessThan(first.indexOf('run number 50.'));
  expect(first).toContain('51 experiments');
  expect(first).toContain('<span class="tag">plate reader</span>');
  expect(first).toContain('<td class="count">1</td>');
  expect(first).not.toContain('run number 1.');
  expect(first).toContain('href="/?page=2"');
  expect((await call('/?page=2')).text).toContain('run number 1.');
  for (const odd of ['/?page=99', '/?page=-1', '/?page=x', '/?page=1&page=2', '/?page=1e999']) {
    expect(await call(odd)).toMatchObject({ status: 200 });
  }
});

test("an experiment's page shows title, date, tags, body and comments with their line breaks", async () => {
  const { call } = await sandboxClient();
  const path = await newExperiment(call, {
    title: 'Plate 7',
    date: '2026-01-02',
    tags: ['pH'],
    body: '<table><tr><th>t</th></tr><tr><td>1</td></tr></table>',
  });
  await call(`${path}/comments`, { method: 'POST', body: { comment: '\ntime  pH\n   0  7.1' } });
  const { status, text } = await call('/view/1');
  expect(status).toBe(200);
  for (const part of [
    '<h1>Plate 7</h1>',
    '2026-01-02',
    '<span class="tag">pH</span>',
    '<table><tr><th>t</th></tr><tr><td>1</td></tr></table>',
    '<pre>\n\ntime  pH\n   0  7.1</pre>',
  ]) {
    expect(text).toContain(part);
  }
});

test('the address of an experiment in eLabFTW opens it too', async () => {
  const { call } = await sandboxClient();
  expect(await call('/experiments.php?mode=view&id=7')).toMatchObject({
    status: 303,
    headers: { location: '/view/7' },
  });
});

test('a missing experiment gets 404 as a page', async () => {
  const { call } = await sandboxClient();
  const page = await call('/view/5');
  expect(page.status).toBe(404);
  expect(page.text).toContain('There is no experiment 5');
});

test('markup in title, tags and comments is shown as text', async () => {
  const { call } = await sandboxClient();
  const path = await newExperiment(call, { title: ATTACK, tags: [ATTACK] });
  await call(`${path}/comments`, { method: 'POST', body: { comment: ATTACK } });
  const view = (await call('/view/1')).text;
  expect(view).not.toMatch(/<script|<img/i);
  expect(view.split(ESCAPED)).toHaveLength(5);
  const list = (await call('/')).text;
  expect(list.replace(LIST_SCRIPT, '')).not.toMatch(/<script|<img/i);
  expect(list.split(ESCAPED)).toHaveLength(3);
});

test('a body cannot add scripts, styles or foreign content to the page', async () => {
  const { call } = await sandboxClient();
  const body = `<p onclick="alert(1)" style="position:fixed">kept</p>${ATTACK}<iframe src="//evil.example"></iframe>`;
  await newExperiment(call, { body });
  const { text } = await call('/view/1');
  expect(text).toContain('<p>kept</p>');
  expect(text).not.toMatch(/<script|<img|<iframe|onclick|onerror|style=|alert/i);
});

test('every page forbids scripts and content from other hosts; the list has a script of its own', async () => {
  const { call } = await sandboxClient();
  await newExperiment(call);
  for (const path of ['/', '/view/1', '/view/2', '/view/x', '/style.css']) {
    const { headers, text } = await call(path);
    expect(headers['content-security-policy'], path).toMatch(/^default-src 'none'; style-src 'self';/);
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
    const isList = path === '/';
    expect(headers['content-security-policy']?.includes("script-src 'self'"), path).toBe(isList);
    expect(text.replace(isList ? LIST_SCRIPT : '', '')).not.toMatch(/<script|style=|<style/i);
  }
});

test('the style sheet is served as CSS', async () => {
  const { call } = await sandboxClient();
  expect((await call('/style.css')).headers).toMatchObject({ 'content-type': 'text/css; charset=utf-8' });
});

test('a page requested under a name that another site could own is refused', async () => {
  const { call, url } = await sandboxClient();
  await newExperiment(call, { title: 'private' });
  for (const host of ['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1.evil.example', '']) {
    for (const path of ['/', '/view/1']) {
      const answer = await call(path, { headers: { host } });
      expect(answer, host).toMatchObject({ status: 403, json: { code: 403 } });
      expect(answer.text).not.toContain('private');
    }
  }
  for (const host of ['localhost', 'localhost:1234', '127.0.0.1', '[::1]:80', new URL(url).host]) {
    expect(await call('/', { headers: { host } }), host).toMatchObject({ status: 200 });
  }
});

test('pages are served to this machine only', () => {
  expect(isLocal({ hostname: '192.0.2.1', ip: '192.0.2.7' })).toBe(false);
  expect(isLocal({ hostname: '192.0.2.1', ip: '::ffff:192.0.2.7' })).toBe(false);
  expect(isLocal({ hostname: 'localhost', ip: '::ffff:127.0.0.1' })).toBe(true);
  expect(isLocal({ hostname: '[::1]', ip: '::1' })).toBe(true);
});

test("a body's image of an attached file is shown and served; other images are not", async () => {
  const { call, make, patch, read } = await elabftwClient();
  const path = await make({ title: 'Plot' });
  const send = (name: string, content: string) =>
    call(`${path}/uploads`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=edge' },
      raw: `--edge\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n${content}\r\n--edge--\r\n`,
    });
  await send('µ-plot.png', 'picture');
  await send('page.html', '<script>alert(1)</script>');
  const [picture, markup] = await Promise.all([1, 2].map((id) => read(`${path}/uploads/${id}`)));
  const source = (long: unknown) => `app/download.php?name=x&f=${long}&storage=1`;
  const image = `<img src="${source(picture?.['long_name'])}" alt="mine" width="800">`;
  const others = '<img src="data:image/png;base64,AAAA"><img src="https://e.org/a.png"><svg><path/></svg>';
  await patch(path, { body: `<p>${image}${others}</p>` });
  const page = (await call('/view/1')).text;
  expect([...page.matchAll(/<img[^>]*>/g)].map(([tag]) => tag)).toEqual([
    expect.stringMatching(
      /^<img src="\/app\/download\.php\?name=x&amp;f=[^"]+&amp;storage=1" width="800" alt="[^"]*">$/,
    ),
  ]);
  const served = await call(`/${source(picture?.['long_name'])}`);
  expect(served).toMatchObject({ status: 200, text: 'picture', headers: { 'content-type': 'image/png' } });
  // Markup from a file must not run in the page.
  const download = await call(`/${source(markup?.['long_name'])}`);
  expect(download.headers).toMatchObject({ 'content-type': 'application/octet-stream' });
  expect(download.headers['content-disposition']).toMatch(/^attachment/);
  expect((await call('/app/download.php?f=nothing')).status).toBe(404);
});
