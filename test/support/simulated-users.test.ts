import { expect, test } from 'vitest';
import { caller, newExperiment, sandboxClient } from '../sandbox/client.js';

const DIALECTS = ['v2', 'elabftw'] as const;

test.each(DIALECTS)('%s: the API returns what simulated users create, edit and comment', async (dialect) => {
  const { call, control } = await sandboxClient({ dialect });
  const colleague = control.as('colleague');
  const id = colleague.create({ title: 'theirs', body: '<p>x</p>', tags: ['a'] });
  const comment = colleague.comment(id, 'hm');
  control.as('owner').edit(id, { title: 'edited by hand', date: '2020-02-02', tags: ['a', 'b'] });
  colleague.editComment(id, comment, 'changed');
  colleague.deleteComment(id, colleague.comment(id, 'gone'));
  const record = { title: 'edited by hand', date: '2020-02-02', userid: 2 };
  expect((await call(`/api/v2/experiments/${id}`)).json).toMatchObject(record);
  expect(control.experiments()).toMatchObject([
    {
      ...record,
      tags: ['a', 'b'],
      lastchangeby: 1,
      state: 'normal',
      comments: [{ comment: 'changed', userid: 2 }],
    },
  ]);
});

test('a deleted experiment is removed in dialect v2 and marked deleted in eLabFTW', async () => {
  const v2 = await sandboxClient();
  await newExperiment(v2.call);
  v2.control.as('colleague').delete(1);
  expect(await v2.call('/api/v2/experiments/1')).toMatchObject({ status: 404 });
  expect(v2.control.experiments()).toEqual([]);

  const elabftw = await sandboxClient({ dialect: 'elabftw' });
  await newExperiment(elabftw.call, {});
  elabftw.control.as('colleague').delete(1);
  expect(elabftw.control.experiments()).toMatchObject([{ id: 1, state: 'deleted' }]);
  expect((await elabftw.call('/')).text).toContain('No experiments yet');
});

test('actions of eLabFTW are refused in dialect v2', async () => {
  const { call, control } = await sandboxClient();
  await newExperiment(call);
  const owner = control.as('owner');
  for (const act of [owner.lock, owner.unlock, owner.archive, owner.restore, owner.hide, owner.open, owner.close]) {
    expect(() => act(1)).toThrow(/only a notebook of dialect elabftw/);
  }
});

test('acting on a missing experiment or comment throws', async () => {
  const { control } = await sandboxClient({ dialect: 'elabftw' });
  const { edit, lock, open, comment, deleteComment, duplicate } = control.as('owner');
  for (const act of [() => edit(9, {}), () => lock(9), () => open(9), () => comment(9, 'x'), () => duplicate(9)]) {
    expect(act).toThrow(/no experiment 9/);
  }
  expect(() => deleteComment(9, 1)).toThrow(/no comment 1 of experiment 9/);
});

test.each(DIALECTS)('%s: every request is recorded', async (dialect) => {
  const { call, control, url } = await sandboxClient({ dialect });
  await newExperiment(call, { title: 'é' });
  await call('/api/v2/experiments/1?x=%20y', { headers: { 'x-extra': '1' } });
  await caller(url, 'wrong')('/api/v2/apikeys');
  await call('/');
  expect(control.requests()).toMatchObject([
    { number: 1, method: 'POST', path: '/api/v2/experiments', body: '{"title":"é"}', status: 201, keyId: 1 },
    { number: 2, method: 'GET', path: '/api/v2/experiments/1?x=%20y', body: '', status: 200 },
    { number: 3, method: 'GET', path: '/api/v2/apikeys', status: 401, keyId: undefined },
  ]);
  expect(control.requests()[1]?.headers).toMatchObject({ accept: 'application/json', 'x-extra': '1' });
  control.forgetRequests();
  expect(control.requests()).toEqual([]);
});
