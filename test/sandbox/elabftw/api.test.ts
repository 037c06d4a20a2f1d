import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.js';
import { caller, type ElabftwClient, EXPERIMENTS, elabftwClient, failed, madeIn } from '../client.js';

describe('experiments', () => {
  const noon = new Date(2026, 2, 4, 12, 0, 0);
  const clock = { ...systemClock, now: () => noon.getTime() };

  test('a creation stores title, body, tags and metadata and ignores the date', async () => {
    const { make, read } = await elabftwClient({ clock });
    const metadata = { extra_fields: { pH: { type: 'number', value: '7.1' } } };
    const path = await make({ title: 'T', body: '<p>b</p>', tags: ['x', 'y'], metadata, date: '2020-01-01' });
    expect(await read(path)).toMatchObject({
      title: 'T',
      body: '<p>b</p>',
      tags: 'x|y',
      metadata: '{"extra_fields": {"pH": {"type": "number", "value": "7.1"}}}',
      metadata_decoded: metadata,
      date: '2026-03-04',
    });
  });

  test('a record has owner, state and times', async () => {
    const { make, read } = await elabftwClient({ clock });
    const time = noon.toISOString().slice(0, 19).replace('T', ' ');
    expect(await read(await make())).toMatchObject({
      id: 1,
      elabid: expect.stringMatching(/^2026\d{4}-[0-9a-f]{40}$/),
      title: 'Untitled',
      date: '2026-03-04',
      body: null,
      created_at: time,
      modified_at: time,
      userid: 1,
      fullname: 'Sam Sandbox',
      team: 1,
      state: 1,
      locked: 0,
      sharelink: 'https://eln.invalid/experiments.php?mode=view&id=1',
      metadata: null,
      content_type: 1,
      tags: null,
      tags_id: null,
      comments: [],
    });
  });

  test("two blank experiments of a user differ only in id, elabid, sharelink and times; another user's also in the user", async () => {
    let now = noon.getTime();
    const { make, read, control } = await elabftwClient({ clock: { ...systemClock, now: () => now } });
    const first = await read(await make());
    now += 61_000;
    const second = await read(await make());
    const others = await read(`${EXPERIMENTS}/${control.as('colleague').create()}`);
    const differing = (a: Record<string, unknown>, b: Record<string, unknown>) =>
      Object.keys({ ...a, ...b }).filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
    const own = ['created_at', 'elabid', 'id', 'modified_at', 'sharelink'];
    expect(differing(first, second).sort()).toEqual(own);
    expect(differing(second, others).sort()).toEqual(
      ['elabid', 'firstname', 'fullname', 'id', 'lastname', 'sharelink', 'userid'].sort(),
    );
  });

  test.each([
    ['title', { title: 5 }],
    ['body', { body: ['x'] }],
    ['content_type', { content_type: '1' }],
  ])('a creation with a %s of the wrong type gets 500 with an empty body', async (_field, body) => {
    const { post, control } = await elabftwClient();
    expect(await post(EXPERIMENTS, body)).toMatchObject({ status: 500, text: '' });
    expect(control.experiments()).toEqual([]);
  });
});

describe('permissions and states', () => {
  test.each([
    ['delete', 3, /Restore/],
    ['archive', 2, /Unarchive/],
  ] as const)('after %s a PATCH gets 400 with code 422, and GET still gets 200', async (act, state, message) => {
    const { make, patch, call, post, control } = await elabftwClient();
    const path = await make({ title: 'mine' });
    control.as('owner')[act](1);
    expect(await patch(path, { title: 'x' })).toMatchObject(failed(400, 422, message));
    expect(await call(path)).toMatchObject({ status: 200, json: { title: 'mine', state } });
    expect(await post(`${path}/comments`, { comment: 'still' })).toMatchObject({ status: 201 });
    control.as('owner').restore(1);
    expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
  });

  test('PATCH of a locked experiment gets 403, and its owner can still comment on it', async () => {
    const { make, patch, call, post, control } = await elabftwClient();
    const path = await make();
    control.as('colleague').lock(1);
    expect(await patch(path, { title: 'x' })).toMatchObject(failed(403, 403, /not allowed/));
    expect(await post(`${path}/tags`, { tag: 'x' })).toMatchObject({ status: 403 });
    expect(await call(path)).toMatchObject({ status: 200, json: { locked: 1, lockedby: 2 } });
    expect(await post(`${path}/comments`, { comment: 'still' })).toMatchObject({ status: 201 });
    control.as('colleague').unlock(1);
    expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
  });

  test("another user's experiment can be read but not changed; a private one cannot be read", async () => {
    const { call, patch, post, control } = await elabftwClient();
    const path = `${EXPERIMENTS}/${control.as('colleague').create({ title: 'theirs' })}`;
    expect(await call(path)).toMatchObject({ status: 200, json: { userid: 2, fullname: 'Kim Colleague' } });
    expect(await patch(path, { title: 'x' })).toMatchObject(failed(403, 403, /not allowed/));
    control.as('colleague').hide(1);
    expect(await call(path)).toMatchObject(failed(403, 403, /not allowed/));
    expect(await call(`${path}/comments`)).toMatchObject({ status: 403 });
    expect(await post(`${path}/comments`, { comment: 'x' })).toMatchObject({ status: 403 });
    expect((await call(EXPERIMENTS)).json).toEqual([]);
  });

  test('an experiment that its owner is editing can be changed', async () => {
    const { make, patch, control } = await elabftwClient();
    const path = await make();
    control.as('owner').open(1);
    expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
  });
});

describe('search', () => {
  const titles = async ({ call }: ElabftwClient, query: Record<string, string>) => {
    const { json } = await call(`${EXPERIMENTS}?${new URLSearchParams(query)}`);
    return (json as { title: string }[]).map(({ title }) => title).sort();
  };

  test('a title is found by substring, ignoring case, with _ as a wildcard', async () => {
    const client = await elabftwClient();
    for (const title of ['labfeed a_1', 'labfeed a-1', 'a copy of LABFEED a_1 I', 'other'])
      await client.make({ title });
    expect(await titles(client, { extended: 'title:"labfeed a_1"' })).toEqual([
      'a copy of LABFEED a_1 I',
      'labfeed a-1',
      'labfeed a_1',
    ]);
    expect(await titles(client, { extended: 'title:"labfeed a\\_1"' })).toHaveLength(2);
    expect(await titles(client, { extended: 'title:other' })).toEqual(['other']);
    expect(await titles(client, { extended: 'title:"(.*)"' })).toEqual([]);
    expect(await titles(client, { extended: 'title:labfeed AND title:copy' })).toHaveLength(1);
  });

  test('deleted and archived experiments are found only if their states are asked for', async () => {
    const client = await elabftwClient();
    for (const title of ['run one', 'run two', 'run three']) await client.make({ title });
    client.control.as('owner').archive(2);
    client.control.as('owner').delete(3);
    expect(await titles(client, { extended: 'title:run' })).toEqual(['run one']);
    expect(await titles(client, { extended: 'title:run', state: '1,2,3' })).toHaveLength(3);
    expect(await titles(client, { state: '3' })).toEqual(['run three']);
  });

  test('a list is cut at the given limit', async () => {
    const client = await elabftwClient();
    for (let n = 0; n < 20; n += 1) client.control.as('owner').create({ title: `run ${n}` });
    expect(await titles(client, {})).toHaveLength(20);
    expect(await titles(client, { limit: '3' })).toEqual(['run 17', 'run 18', 'run 19']);
    expect(await titles(client, { limit: '3', offset: '19' })).toEqual(['run 0']);
  });

  test('an extra field is found by its key, and a copy loses it if the field says so', async () => {
    const client = await elabftwClient();
    const extra = (ref: object) => ({ metadata: { extra_fields: { labfeed: { value: 'REF7', ...ref } } } });
    await client.make({ title: 'stays', ...extra({ blank_value_on_duplicate: true }) });
    await client.make({ title: 'copied', ...extra({}) });
    client.control.as('owner').duplicate(1);
    client.control.as('owner').duplicate(2);
    expect(await titles(client, { extended: 'extrafield:labfeed:"REF7"' })).toEqual(['copied', 'copied I', 'stays']);
    expect(await titles(client, { extended: 'extrafield:other:"REF7"' })).toEqual([]);
  });
});

describe('comments', () => {
  test('a comment is stored verbatim with its author', async () => {
    const { make, post, read, call, patch } = await elabftwClient();
    const path = `${await make()}/comments`;
    const text = 'time\tpH\n<b>&amp;</b>';
    expect(await post(path, { comment: text })).toMatchObject({
      status: 201,
      text: '',
      headers: { location: `https://eln.invalid${path}/1` },
    });
    const record = {
      id: 1,
      created_at: expect.any(String),
      modified_at: expect.any(String),
      item_id: 1,
      comment: text,
      userid: 1,
      immutable: 0,
      fullname: 'Sam Sandbox',
      firstname: 'Sam',
      lastname: 'Sandbox',
      orcid: null,
      email: 'sam@eln.invalid',
    };
    expect(await read(path)).toEqual([record]);
    expect(await read(`${path}/1`)).toEqual(record);
    expect((await patch(`${path}/1`, { comment: 'new' })).json).toEqual({ ...record, comment: 'new' });
    expect(await call(`${path}/1`, { method: 'DELETE' })).toMatchObject({ status: 204 });
    expect(await read(path)).toEqual([]);
  });

  test.each([
    ['missing', {}, failed(400, 400, /Missing comment field/)],
    ['null', { comment: null }, failed(400, 400, /Missing comment field/)],
    ['under another name', { text: 'x' }, failed(400, 400, /Missing comment field/)],
    ['empty', { comment: '' }, failed(400, 400, /Invalid comment/)],
    ['a number', { comment: 7 }, { status: 500 }],
    ['over 65,535 bytes', { comment: 'é'.repeat(32_768) }, failed(500, 1406, /Data too long/)],
  ])('a comment that is %s is refused', async (_what, body, answer) => {
    const { make, post, control } = await elabftwClient();
    expect(await post(`${await make()}/comments`, body)).toMatchObject(answer);
    expect(control.experiments()).toMatchObject([{ comments: [] }]);
  });

  test('a comment of 65,535 bytes is accepted', async () => {
    const { make, post, control } = await elabftwClient();
    const comment = `${'é'.repeat(32_767)}.`;
    await post(`${await make()}/comments`, { comment });
    expect(control.experiments()).toMatchObject([{ comments: [{ comment }] }]);
  });

  test('the same comment sent twice makes two comments', async () => {
    const { make, post, control } = await elabftwClient();
    const path = `${await make()}/comments`;
    for (let times = 0; times < 2; times += 1) await post(path, { comment: 'x' });
    expect(control.experiments()[0]?.comments).toHaveLength(2);
  });

  test("another user's comment can be read but not changed or deleted", async () => {
    const { make, patch, call, control } = await elabftwClient();
    const path = `${await make()}/comments`;
    control.as('colleague').comment(1, 'theirs');
    expect((await patch(`${path}/1`, { comment: 'x' })).json).toMatchObject({ comment: 'theirs', userid: 2 });
    expect(await call(`${path}/1`, { method: 'DELETE' })).toMatchObject({ status: 204 });
    expect((await call(path)).json).toMatchObject([{ comment: 'theirs', fullname: 'Kim Colleague' }]);
  });

  test('a missing comment gets 404, and an id that is not a number gets the list', async () => {
    const { make, call, post } = await elabftwClient();
    const path = `${await make()}/comments`;
    await post(path, { comment: 'x' });
    expect(await call(`${path}/9`)).toMatchObject(failed(404, 404, /Nothing to show/));
    expect(await call(`${path}/9`, { method: 'DELETE' })).toMatchObject({ status: 404 });
    expect(await call('/api/v2/experiments/9/comments')).toMatchObject({ status: 404 });
    expect((await call(`${path}/abc`)).json).toMatchObject([{ comment: 'x' }]);
  });
});

describe('tags', () => {
  test('a tag that is sent twice is added once', async () => {
    const { make, post, read } = await elabftwClient();
    const path = await make();
    for (const tag of ['pH', 'pH', 'buffer']) {
      expect(await post(`${path}/tags`, { tag })).toMatchObject({ status: 201, text: '' });
    }
    expect(await read(path)).toMatchObject({ tags: 'pH|buffer', tags_id: '1,2' });
    expect((await read(`${path}/tags`)) as unknown).toEqual([
      { tag: 'buffer', tag_id: 2, is_favorite: 0 },
      { tag: 'pH', tag_id: 1, is_favorite: 0 },
    ]);
  });

  test('a tag that differs only in case from a team tag is that tag', async () => {
    const { make, post, read } = await elabftwClient();
    const first = await make({ tags: ['NanoDrop'] });
    const second = await make();
    const made = await post(`${second}/tags`, { tag: 'nanodrop' });
    expect(madeIn(made)).toBe('1');
    for (const path of [first, second]) expect(await read(path)).toMatchObject({ tags: 'NanoDrop' });
  });

  test.each([
    ['a|b', 'a b'],
    ['  x ', 'x'],
    ['x'.repeat(255), 'x'.repeat(255)],
  ])('the tag %j is stored as %j', async (sent, kept) => {
    const { make, post, read } = await elabftwClient();
    const path = await make();
    await post(`${path}/tags`, { tag: sent });
    expect(await read(path)).toMatchObject({ tags: kept });
  });

  test("a tag over 255 characters gets 500 with the database's error code", async () => {
    const { make, post } = await elabftwClient();
    const path = await make();
    const answer = await post(`${path}/tags`, { tag: 'x'.repeat(256) });
    expect(answer).toMatchObject(failed(500, 1406, /Data too long/));
    expect(await post(`${path}/tags`, { tag: ' ' })).toMatchObject(failed(400, 400, /too short/));
  });

  test('adding a tag does not change modified_at', async () => {
    let now = Date.UTC(2026, 0, 1);
    const clock = { now: () => now, monotonic: () => 0, sleep: async () => undefined };
    const { make, post, read } = await elabftwClient({ clock });
    const path = await make();
    now += 60_000;
    await post(`${path}/tags`, { tag: 'x' });
    expect(await read(path)).toMatchObject({ modified_at: '2026-01-01 00:00:00' });
  });

  test('a tag can be removed from one experiment, repeatedly, and stays in the team', async () => {
    const { make, patch, read, control } = await elabftwClient();
    const path = await make({ tags: ['pH', 'buffer'] });
    const other = await make({ tags: ['pH'] });
    for (let times = 0; times < 2; times++)
      expect(await patch(`${path}/tags/1`, { action: 'unreference' })).toMatchObject({ status: 200 });
    expect(await read(path)).toMatchObject({ tags: 'buffer' });
    expect(await read(other)).toMatchObject({ tags: 'pH' });
    expect(await patch(`${path}/tags/2`, { action: 'delete' })).toMatchObject(failed(400, 400, /Invalid action/));
    control.as('colleague').lock(Number(path.split('/').at(-1)));
    expect((await patch(`${path}/tags/2`, { action: 'unreference' })).status).toBe(403);
  });
});

describe('uploads', () => {
  function form(file?: { name: string; content: string }): {
    raw: Buffer;
    headers: { 'content-type': string };
  } {
    const lines = [
      '--edge',
      'Content-Disposition: form-data; name="comment"',
      '',
      'raw data',
      ...(file
        ? [
            '--edge',
            `Content-Disposition: form-data; name="file"; filename="${file.name}"`,
            'Content-Type: text/csv',
            '',
            file.content,
          ]
        : []),
      '--edge--',
      '',
    ];
    return {
      raw: Buffer.from(lines.join('\r\n')),
      headers: { 'content-type': 'multipart/form-data; boundary=edge' },
    };
  }

  const csv = { name: 'run 1.csv', content: 'a,b\n1,2\n' };

  test('an upload stores the file, and the same file twice makes two', async () => {
    const { make, call, control } = await elabftwClient();
    const path = `${await make()}/uploads`;
    for (let times = 1; times <= 2; times += 1) {
      expect(await call(path, { method: 'POST', ...form(csv) })).toMatchObject({
        status: 201,
        headers: { location: `https://eln.invalid${path}/${times}` },
      });
    }
    const hash = createHash('sha256').update(csv.content).digest('hex');
    const record = { real_name: csv.name, filesize: 8, hash, comment: 'raw data', state: 1 };
    expect((await call(path)).json).toMatchObject([
      { ...record, id: 1 },
      { ...record, id: 2 },
    ]);
    expect(await call(`${path}/1?format=binary`)).toMatchObject({ status: 200, text: csv.content });
    expect(control.experiments()[0]?.uploads).toMatchObject([record, record]);
  });

  test('a new version gets a new id and the comment; the old one is archived', async () => {
    const { make, call } = await elabftwClient();
    const path = `${await make()}/uploads`;
    await call(path, { method: 'POST', ...form(csv) });
    expect(await call(`${path}/1`, { method: 'POST', ...form({ ...csv, content: 'new' }) })).toMatchObject({
      status: 201,
      headers: { location: `https://eln.invalid${path}/2` },
    });
    expect((await call(path)).json).toMatchObject([{ id: 2, filesize: 3, comment: 'raw data' }]);
    expect((await call(`${path}?state=2`)).json).toMatchObject([{ id: 1, state: 2 }]);
  });

  test('an upload can be renamed and deleted', async () => {
    const { make, call, patch, read } = await elabftwClient();
    const path = `${await make()}/uploads`;
    await call(path, { method: 'POST', ...form(csv) });
    const changed = await patch(`${path}/1`, { action: 'update', real_name: 'b.csv', comment: 'c' });
    expect(changed).toMatchObject({ status: 200, json: { id: 1, real_name: 'b.csv', comment: 'c' } });
    expect(await call(`${path}/1`, { method: 'DELETE' })).toMatchObject({ status: 204 });
    expect(await read(path)).toEqual([]);
    expect(await read(`${path}/1`)).toMatchObject({ state: 3 });
  });

  test('a form without a file, or on another path, gets 400', async () => {
    const { make, call } = await elabftwClient();
    const path = await make();
    const withoutFile = await call(`${path}/uploads`, { method: 'POST', ...form() });
    expect(withoutFile).toMatchObject(failed(400, 400, /reading file/));
    const elsewhere = await call(`${path}/comments`, { method: 'POST', ...form() });
    expect(elsewhere).toMatchObject(failed(400, 400, /content-type/));
  });
});

describe('API keys', () => {
  const KEYS = '/api/v2/apikeys';

  test('key records have the team and a hash, and never the key', async () => {
    const { call, key } = await elabftwClient();
    const answer = await call(KEYS);
    expect(answer).toMatchObject({
      status: 200,
      json: [
        {
          id: 1,
          name: 'labfeed sandbox',
          can_write: 1,
          created_at: expect.any(String),
          last_used_at: expect.any(String),
          hash: expect.stringMatching(/^\$2y\$10\$.{53}$/),
          team: 1,
          team_name: 'Sandbox team',
        },
      ],
    });
    expect(answer.text).not.toContain(key);
  });

  test('the last segment of Location is the key, between its id twice, and what follows is ignored', async () => {
    const { post, url } = await elabftwClient();
    const made = await post(KEYS, { name: 'writer', canwrite: 1 });
    expect(made.headers).toMatchObject({
      location: expect.stringMatching(/^https:\/\/eln\.invalid\/2-[0-9a-f]{84}2$/),
    });
    for (const key of [madeIn(made), madeIn(made).slice(0, 74), `${madeIn(made)}more`]) {
      expect(await caller(url, key)(EXPERIMENTS, { method: 'POST', body: {} })).toMatchObject({ status: 201 });
    }
    expect(await caller(url, madeIn(made).slice(0, 73))(KEYS)).toMatchObject({ status: 401 });
  });

  test.each([
    ['absent', { name: 'x' }, 201],
    ['0', { name: 'x', canwrite: 0 }, 201],
    ['a string', { name: 'x', canwrite: '1' }, 500],
    ['a boolean', { name: 'x', canwrite: true }, 500],
  ])('an access level that is %s never makes a key that can write', async (_what, body, status) => {
    const { post, call } = await elabftwClient();
    expect(await post(KEYS, body)).toMatchObject({ status });
    const keys = (await call(KEYS)).json as { can_write: number }[];
    expect(keys.filter(({ can_write }) => can_write === 1)).toHaveLength(1);
  });
});

describe('names', () => {
  test('a team has categories, statuses, templates and resources', async () => {
    const { read } = await elabftwClient();
    const titles = async (path: string) =>
      ((await read(path)) as unknown as { title: string }[]).map(({ title }) => title);
    expect(await titles('/api/v2/teams/current/experiments_categories')).toContain('Raw data');
    expect(await titles('/api/v2/teams/current/experiments_status')).toContain('Success');
    expect(await titles('/api/v2/experiments_templates')).toEqual(['Measurement']);
    expect(await titles('/api/v2/items?q=reader&limit=5')).toEqual(['Plate reader']);
  });

  test('a link to a resource is made once, and one to an unknown resource gets 404', async () => {
    const { make, post, read } = await elabftwClient();
    const path = await make();
    for (const _ of [1, 2]) expect((await post(`${path}/items_links/3`, {})).status).toBe(201);
    expect((await post(`${path}/items_links/99`, {})).status).toBe(404);
    expect((await read(path))['items_links']).toEqual([{ entityid: 3 }]);
  });

  test('a template replaces body, tags and metadata of a creation, and keeps the title', async () => {
    const { make, read, post } = await elabftwClient();
    const path = await make({ template: 1, title: 'T', body: '<p>mine</p>', tags: ['x'] });
    expect(await read(path)).toMatchObject({ title: 'T', body: '<p>Purpose:</p>', tags: null });
    expect((await read(path))['metadata_decoded']).toMatchObject({ extra_fields: { Operator: { type: 'text' } } });
    expect((await post(EXPERIMENTS, { template: 9 })).status).toBe(404);
  });

  test('a team that requires templates refuses a creation without one, and says so', async () => {
    const { make, post, read } = await elabftwClient({ forcesTemplate: true });
    expect(await post(EXPERIMENTS, { title: 'T' })).toMatchObject({
      status: 400,
      json: { message: 'Your team administrator has disabled creating Experiments without using a template.' },
    });
    expect(await read(await make({ template: 1, title: 'T' }))).toMatchObject({ title: 'T' });
    expect((await read('/api/v2/teams/current'))['force_exp_tpl']).toBe(1);
  });
});
