import { expect, test } from 'vitest';
import { elabftw, failed } from './playing.ts';

test('a change answers with the record', async () => {
  const { make, patch, read } = await elabftw();
  const path = await make({ title: 'before' });
  const answer = await patch(path, { title: 'after', date: '2024-02-29', body: '<p>b</p>' });
  expect(answer).toMatchObject({
    status: 200,
    json: { title: 'after', date: '2024-02-29', lastchangeby: 1 },
  });
  expect(await read(path)).toEqual(answer.json);
});

test.each(['tags', 'nonsense'])(
  'the key %s gets 400, after the keys before it were saved',
  async (unknown) => {
    const { make, patch, read } = await elabftw();
    const path = await make({ title: 'before', body: 'before', tags: ['kept'] });
    const answer = await patch(path, { title: 'saved', date: '2024-05-06', [unknown]: ['a'], body: 'never' });
    expect(answer).toMatchObject(failed(400, 400, /^Invalid update target\.$/));
    expect(await read(path)).toMatchObject({
      title: 'saved',
      date: '2024-05-06',
      body: 'before',
      tags: 'kept',
    });
  },
);

test.each(['2024-05-06T07:08:09Z', '2024-02-30', '', null, '06.05.2024'])(
  'the date %s gets 500 with the database’s own code, after the keys before it were saved',
  async (date) => {
    const { make, patch, read } = await elabftw();
    const path = await make();
    const answer = await patch(path, { title: 'saved', date });
    expect(answer).toMatchObject(failed(500, 1292, /Incorrect date value/));
    expect(await read(path)).toMatchObject({ title: 'saved' });
  },
);

test('metadata must be text here, and JSON: the opposite of a creation', async () => {
  const { make, patch } = await elabftw();
  const path = await make();
  expect(await patch(path, { metadata: { a: 1 } })).toMatchObject(failed(500, 3140, /Invalid JSON/));
  expect(await patch(path, { metadata: 'x' })).toMatchObject(failed(500, 3140, /Invalid JSON/));
  expect((await patch(path, { metadata: '{"a":1}' })).json).toMatchObject({ metadata: '{"a":1}' });
});

test.each([
  ['a\nb\r\nc', 'a b c'],
  ['  <b>x</b> ', '<b>x</b>'],
  ['', 'Untitled'],
  ['é'.repeat(300), 'é'.repeat(255)],
  ['👩‍🔬'.repeat(300), '👩‍🔬'.repeat(255)],
])('the title %j is kept as %j', async (sent, kept) => {
  const { make, patch, read } = await elabftw();
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
  ['<p>x<img src="data:image/png;base64,AAAA"></p>', '<p>x</p>'],
  ['<pre class="mine">1 &lt; 2 &quot;q&quot;</pre>', '<pre>1 &lt; 2 "q"</pre>'],
  ['H<sub>2</sub>O <i>in</i> m<sup>2</sup>', 'H<sub>2</sub>O in m<sup>2</sup>'],
])('the body %s is cleaned', async (sent, kept) => {
  const { make, patch, read } = await elabftw();
  const path = await make();
  expect((await patch(path, { body: sent })).json).toMatchObject({ body: kept });
  expect(await read(await make({ body: sent }))).toMatchObject({ body: kept });
});

test('a body over 4,120,000 bytes gets 400', async () => {
  const { make, patch } = await elabftw();
  const path = await make();
  expect(await patch(path, { body: 'é'.repeat(2_060_001) })).toMatchObject(failed(400, 400, /too big/));
  expect(await patch(path, { body: 'é'.repeat(2_060_000) })).toMatchObject({ status: 200 });
});
