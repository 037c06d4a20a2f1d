import { describe, expect, test } from 'vitest';
import { caller, EXPERIMENTS, elabftwClient, failed, madeIn } from '../client.js';

describe('requests', () => {
  test("a creation answers with an address under the server's own name and an empty body", async () => {
    const { post } = await elabftwClient();
    expect(await post(EXPERIMENTS)).toMatchObject({
      status: 201,
      text: '',
      headers: {
        location: 'https://eln.invalid/api/v2/experiments/1',
        'content-type': expect.stringMatching(/^text\/html/),
      },
    });
  });

  test.each(['POST', 'PATCH'])('%s requires exactly application/json, even without a body', async (method) => {
    const { call, make } = await elabftwClient();
    const one = await make();
    const path = method === 'POST' ? EXPERIMENTS : one;
    for (const type of [undefined, 'application/json; charset=utf-8', 'APPLICATION/JSON', 'text/plain', '?']) {
      for (const raw of ['{}', undefined]) {
        const answer = await call(path, {
          method,
          ...(raw ? { raw } : {}),
          headers: { 'content-type': type },
        });
        expect(answer, `${type} ${raw}`).toMatchObject(failed(400, 400, /content-type/));
      }
    }
    const bare = await call(path, { method, headers: { 'content-type': 'application/json' } });
    expect(bare.status).toBe(method === 'POST' ? 201 : 200);
  });

  test.each([undefined, 'nonsense', 'Bearer'])('the key %s gets 401', async (prefix) => {
    const { url, key } = await elabftwClient();
    const authorization = prefix === 'Bearer' ? `Bearer ${key}` : prefix;
    const answer = await caller(url)('/api/v2/apikeys', { headers: { authorization } });
    expect(answer).toMatchObject(failed(401, 401, /Authentication required/));
  });

  test('every answer sets a new session cookie', async () => {
    const { call, post } = await elabftwClient();
    const cookies = [await call('/api/v2/apikeys'), await post(EXPERIMENTS), await call('/api/v2/nothing')].map(
      ({ headers }) => String(headers['set-cookie']),
    );
    for (const cookie of cookies) expect(cookie).toMatch(/^PHPSESSID=[0-9a-f]+; path=\//);
    expect(new Set(cookies).size).toBe(3);
  });

  test('writing with a read-only key gets 400, not 403', async () => {
    const { url, post, make } = await elabftwClient();
    const one = await make();
    const reader = caller(url, madeIn(await post('/api/v2/apikeys', { name: 'reader' })));
    expect(await reader(one)).toMatchObject({ status: 200 });
    for (const [method, path] of [
      ['POST', EXPERIMENTS],
      ['PATCH', one],
      ['POST', `${one}/comments`],
      ['DELETE', '/api/v2/apikeys/1'],
    ] as const) {
      const body = method === 'DELETE' ? undefined : {};
      const answer = await reader(path, { method, body });
      expect(answer).toMatchObject(failed(400, 400, /^You are using a read-only key/));
    }
  });

  test.each(['{', '[1,', 'x', '{"a":1,}'])('the body %s is not JSON and gets 400', async (raw) => {
    const { call } = await elabftwClient();
    const answer = await call(EXPERIMENTS, { method: 'POST', raw });
    expect(answer).toMatchObject(failed(400, 400, /Error decoding json payload/));
  });

  test('a body that is too large gets 413 as HTML', async () => {
    const { call } = await elabftwClient();
    const raw = JSON.stringify({ title: 'x'.repeat(9_000_000) });
    const answer = await call(EXPERIMENTS, { method: 'POST', raw });
    expect(answer).toMatchObject({ status: 413, headers: { 'content-type': expect.stringMatching(/html/) } });
  });

  test('an unknown endpoint gets 400 in the usual form', async () => {
    const { call } = await elabftwClient();
    expect(await call('/api/v2/nothing')).toMatchObject(failed(400, 400, /^Invalid endpoint/));
  });

  test('the account and the version can be read', async () => {
    const { call } = await elabftwClient();
    expect((await call('/api/v2/users/me')).json).toMatchObject({
      userid: 1,
      fullname: 'Sam Sandbox',
      team: 1,
    });
    expect((await call('/api/v2/info')).json).toMatchObject({ elabftw_version: '5.6.12' });
  });
});

describe('changes of an experiment', () => {
  test('a PATCH answers with the record', async () => {
    const { make, patch, read } = await elabftwClient();
    const path = await make({ title: 'before' });
    const answer = await patch(path, { title: 'after', date: '2024-02-29', body: '<p>b</p>' });
    expect(answer).toMatchObject({
      status: 200,
      json: { title: 'after', date: '2024-02-29', lastchangeby: 1 },
    });
    expect(await read(path)).toEqual(answer.json);
  });

  test.each(['tags', 'nonsense'])('the field %s gets 400 after the fields before it were saved', async (unknown) => {
    const { make, patch, read } = await elabftwClient();
    const path = await make({ title: 'before', body: 'before', tags: ['kept'] });
    const answer = await patch(path, {
      title: 'saved',
      date: '2024-05-06',
      [unknown]: ['a'],
      body: 'never',
    });
    expect(answer).toMatchObject(failed(400, 400, /^Invalid update target\.$/));
    expect(await read(path)).toMatchObject({
      title: 'saved',
      date: '2024-05-06',
      body: 'before',
      tags: 'kept',
    });
  });

  test.each(['2024-05-06T07:08:09Z', '2024-02-30', '', null, '06.05.2024'])(
    "the date %s gets 500 with the database's error code after the fields before it were saved",
    async (date) => {
      const { make, patch, read } = await elabftwClient();
      const path = await make();
      const answer = await patch(path, { title: 'saved', date });
      expect(answer).toMatchObject(failed(500, 1292, /Incorrect date value/));
      expect(await read(path)).toMatchObject({ title: 'saved' });
    },
  );

  test('PATCH requires metadata as a JSON string, unlike a creation', async () => {
    const { make, patch } = await elabftwClient();
    const path = await make();
    expect(await patch(path, { metadata: { a: 1 } })).toMatchObject(failed(500, 3140, /Invalid JSON/));
    expect(await patch(path, { metadata: 'x' })).toMatchObject(failed(500, 3140, /Invalid JSON/));
    expect((await patch(path, { metadata: '{"a":1}' })).json).toMatchObject({ metadata: '{"a": 1}' });
  });

  test.each([
    ['a\nb\r\nc', 'a b c'],
    ['  <b>x</b> ', '<b>x</b>'],
    ['', 'Untitled'],
    ['é'.repeat(300), 'é'.repeat(255)],
    ['👩‍🔬'.repeat(300), '👩‍🔬'.repeat(255)],
  ])('the title %j is stored as %j', async (sent, kept) => {
    const { make, patch, read } = await elabftwClient();
    const path = await make({ title: sent });
    expect(await read(path)).toMatchObject({ title: kept });
    await patch(path, { title: 'other' });
    expect((await patch(path, { title: sent })).json).toMatchObject({ title: kept });
  });

  test.each([
    [
      '<table><thead><tr><th>t</th></tr></thead><tbody><tr><td colspan="2">1</td></tr></tbody></table>',
      '<table><tr><th>t</th></tr><tr><td colspan="2">1</td></tr></table>',
    ],
    ['a<!-- marker -->b', 'ab'],
    ['<script>alert(1)</script><svg><path/></svg>x', 'x'],
    ['<svg><text>label</text></svg><iframe>x</iframe>', 'labelx'],
    ['<p>x<img src="data:image/png;base64,AAAA"></p>', '<p>x</p>'],
    ['<pre class="mine">1 &lt; 2 &quot;q&quot;</pre>', '<pre>1 &lt; 2 "q"</pre>'],
    ['<pre class="mine language-r">x</pre>', '<pre class="language-r">x</pre>'],
    ['H<sub>2</sub>O <i>in</i> m<sup>2</sup>', 'H<sub>2</sub>O in m<sup>2</sup>'],
    // Entities are decoded; only &, < and > are written as such.
    ['&micro;&eacute;&#181;&#xb5;&apos;', "µéµµ'"],
    ['a & b &amp; c &unknown; &amp;lt;', 'a &amp; b &amp; c &amp;unknown; &amp;lt;'],
    ['5&nbsp;µl', '5\u00a0µl'],
    ['<td title="&lt;b&gt;">x', 'x'],
    // A bracket is text unless a letter, ! or / follows.
    ['a < b', 'a &lt; b'],
    ['5 < 6 > 4 <= 7 <3', '5 &lt; 6 &gt; 4 &lt;= 7 &lt;3'],
    ['x<y and z>w', 'xw'],
    ['a\r\nb\rc\u0000\u0007d', 'a\nb\ncd'],
    ['<?php echo 1 ?>x', 'x'],
    ['<br/><hr />', '<br><hr>'],
    // Elements that belong to others, and end tags that were left out.
    ['<table><tr><td>1<td>2<tr><td>3</table>', '<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>'],
    ['<table>\n<tr><td>1</td></tr>stray<p>lost</p>\n</table>', '<table>\n<tr><td>1</td></tr>\n</table>'],
    ['<table><tr></tr></table>', '<table></table>'],
    ['<tr><td>1</td></tr>', '1'],
    ['<li>x</li>', 'x'],
    ['<p>a<p>b<div>c', '<p>a</p><p>b</p><div>c</div>'],
    ['<strike>a</strike><tt>b</tt>', '<s>a</s><code>b</code>'],
    // Attributes.
    [
      '<a href="https://example.org/?a=1&b=2" onclick="x" title="t">x</a>',
      '<a href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noreferrer noopener">x</a>',
    ],
    [
      '<a href="/experiments/1">x</a><a href="mailto:a@b.c">y</a>',
      '<a href="/experiments/1">x</a><a href="mailto:a@b.c">y</a>',
    ],
    ['<a href="javascript:alert(1)">x</a>', '<a>x</a>'],
    ['<p style="position: fixed">x</p>', '<p>x</p>'],
    [
      '<p style="color: #ff0000; position: fixed; text-align:center" id="a">x</p>',
      '<p style="color:#ff0000;text-align:center;">x</p>',
    ],
    [
      '<img src="app/download.php?name=a.png&f=ab/cd.png&storage=1" alt="mine" onerror="x">',
      '<img src="app/download.php?name=a.png&amp;f=ab/cd.png&amp;storage=1" alt="cd.png&amp;storage=1">',
    ],
    ['<details><summary>s</summary><p>x</p></details>', '<details><summary>s</summary><p>x</p></details>'],
  ])('the body %s is sanitised', async (sent, kept) => {
    const { make, patch, read } = await elabftwClient();
    const path = await make();
    expect((await patch(path, { body: sent })).json).toMatchObject({ body: kept });
    expect(await read(await make({ body: sent }))).toMatchObject({ body: kept });
  });

  test('a body over 4,120,000 bytes gets 400', async () => {
    const { make, patch } = await elabftwClient();
    const path = await make();
    expect(await patch(path, { body: 'é'.repeat(2_060_001) })).toMatchObject(failed(400, 400, /too big/));
    expect(await patch(path, { body: 'é'.repeat(2_060_000) })).toMatchObject({ status: 200 });
  });
});
