import { expect, test } from 'vitest';
import { EXPERIMENTS, elabftw, failed } from './playing.ts';

test.each([
  ['delete', 3, /Restore/],
  ['archive', 2, /Unarchive/],
] as const)(
  'after %s a change gets 400 with code 422, and GET still gives it',
  async (act, state, message) => {
    const { make, patch, call, post, control } = await elabftw();
    const path = await make({ title: 'mine' });
    control.as('owner')[act](1);
    expect(await patch(path, { title: 'x' })).toMatchObject(failed(400, 422, message));
    expect(await call(path)).toMatchObject({ status: 200, json: { title: 'mine', state } });
    expect(await post(`${path}/comments`, { comment: 'still' })).toMatchObject({ status: 201 });
    control.as('owner').restore(1);
    expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
  },
);

test('a locked one gets 403 for its owner, who may still comment on it', async () => {
  const { make, patch, call, post, control } = await elabftw();
  const path = await make();
  control.as('colleague').lock(1);
  expect(await patch(path, { title: 'x' })).toMatchObject(failed(403, 403, /not allowed/));
  expect(await post(`${path}/tags`, { tag: 'x' })).toMatchObject({ status: 403 });
  expect(await call(path)).toMatchObject({ status: 200, json: { locked: 1, lockedby: 2 } });
  expect(await post(`${path}/comments`, { comment: 'still' })).toMatchObject({ status: 201 });
  control.as('colleague').unlock(1);
  expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
});

test('an administrator’s key writes to locked, private and others’ experiments', async () => {
  const { patch, control } = await elabftw({ elabftw: { administrator: true } });
  const id = control.as('colleague').create({ title: 'theirs', private: 1 });
  control.as('colleague').lock(id);
  expect(await patch(`${EXPERIMENTS}/${id}`, { title: 'overwritten' })).toMatchObject({ status: 200 });
});

test('another’s experiment can be read and not changed; a private one not even read', async () => {
  const { call, patch, post, control } = await elabftw();
  const path = `${EXPERIMENTS}/${control.as('colleague').create({ title: 'theirs' })}`;
  expect(await call(path)).toMatchObject({ status: 200, json: { userid: 2, fullname: 'Kim Colleague' } });
  expect(await patch(path, { title: 'x' })).toMatchObject(failed(403, 403, /not allowed/));
  control.as('colleague').hide(1);
  expect(await call(path)).toMatchObject(failed(403, 403, /not allowed/));
  expect(await call(`${path}/comments`)).toMatchObject({ status: 403 });
  expect(await post(`${path}/comments`, { comment: 'x' })).toMatchObject({ status: 403 });
  expect((await call(EXPERIMENTS)).json).toEqual([]);
});

test('one that somebody has open gets 400 until it is closed', async () => {
  const { make, patch, post, control } = await elabftw();
  const path = await make();
  control.as('colleague').open(1);
  expect(await patch(path, { title: 'x' })).toMatchObject(
    failed(400, 400, /^This entry is being edited by Kim Colleague\.$/),
  );
  expect(await post(`${path}/comments`, { comment: 'x' })).toMatchObject({ status: 201 });
  control.as('colleague').close(1);
  expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
});

test('one that its own user has open can be changed', async () => {
  const { make, patch, control } = await elabftw();
  const path = await make();
  control.as('owner').open(1);
  expect(await patch(path, { title: 'x' })).toMatchObject({ status: 200 });
});
