import { expect, test } from 'vitest';
import { type Elabftw, EXPERIMENTS, elabftw, failed } from './playing.ts';

const titles = async ({ call }: Elabftw, query: Record<string, string>) => {
  const { json } = await call(`${EXPERIMENTS}?${new URLSearchParams(query)}`);
  return (json as { title: string }[]).map(({ title }) => title).sort();
};

test('a title is found as a substring in any case, with _ for any character', async () => {
  const field = await elabftw();
  for (const title of ['labfeed a_1', 'labfeed a-1', 'a copy of LABFEED a_1 I', 'other'])
    await field.make({ title });
  expect(await titles(field, { extended: 'title:"labfeed a_1"' })).toEqual([
    'a copy of LABFEED a_1 I',
    'labfeed a-1',
    'labfeed a_1',
  ]);
  expect(await titles(field, { extended: 'title:"labfeed a\\_1"' })).toHaveLength(2);
  expect(await titles(field, { extended: 'title:other' })).toEqual(['other']);
  expect(await titles(field, { extended: 'title:"(.*)"' })).toEqual([]);
  expect(await titles(field, { extended: 'title:labfeed AND title:copy' })).toHaveLength(1);
});

test('deleted and archived ones are found only where their states are asked for', async () => {
  const field = await elabftw();
  for (const title of ['run one', 'run two', 'run three']) await field.make({ title });
  field.control.as('owner').archive(2);
  field.control.as('owner').delete(3);
  expect(await titles(field, { extended: 'title:run' })).toEqual(['run one']);
  expect(await titles(field, { extended: 'title:run', state: '1,2,3' })).toHaveLength(3);
  expect(await titles(field, { state: '3' })).toEqual(['run three']);
});

test('a list is cut where a limit is given, and in older versions where none is', async () => {
  const field = await elabftw();
  const older = await elabftw({ elabftw: { listLimit: 15 } });
  for (let n = 0; n < 20; n += 1) {
    field.control.as('owner').create({ title: `run ${n}` });
    older.control.as('owner').create({ title: `run ${n}` });
  }
  expect(await titles(field, {})).toHaveLength(20);
  expect(await titles(field, { limit: '3' })).toEqual(['run 17', 'run 18', 'run 19']);
  expect(await titles(field, { limit: '3', offset: '19' })).toEqual(['run 0']);
  expect(await titles(older, {})).toHaveLength(15);
  expect(await titles(older, { limit: '18' })).toHaveLength(18);
});

test('a field of the metadata is found by its key, and a copy loses it where the field says so', async () => {
  const field = await elabftw();
  const extra = (ref: object) => ({ metadata: { extra_fields: { labfeed: { value: 'REF7', ...ref } } } });
  await field.make({ title: 'stays', ...extra({ blank_value_on_duplicate: true }) });
  await field.make({ title: 'copied', ...extra({}) });
  field.control.as('owner').duplicate(1);
  field.control.as('owner').duplicate(2);
  expect(await titles(field, { extended: 'extrafield:labfeed:"REF7"' })).toEqual([
    'copied',
    'copied I',
    'stays',
  ]);
  expect(await titles(field, { extended: 'extrafield:other:"REF7"' })).toEqual([]);
});

test('a search that cannot be read gets 400', async () => {
  const { call } = await elabftw();
  const answer = await call(`${EXPERIMENTS}?extended=${encodeURIComponent('title:"x')}`);
  expect(answer).toMatchObject(failed(400, 400, /syntax error/));
});
