import { expect, test } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import type { Postgres } from '../../src/fleet/database.js';
import { LEASE_MS, type Lease, MARGIN_MS, takeLease } from '../../src/fleet/lease.js';
import { takeSessionKey } from '../../src/fleet/session-keys.js';
import type { KeyRecord } from '../../src/notebook/responses.js';
import { manualClock } from '../support/manual-clock.js';
import { silentLog } from '../support/silent-log.js';

const URL = 'https://eln.example.org';

function scene(keys: KeyRecord[], predecessor: Lease['predecessor'], mayCreate = true) {
  const did: string[] = [];
  const api = {
    listKeys: async () => [...keys],
    async createKey({ name }: { name?: string } = {}) {
      if (!mayCreate) throw new NotebookError('auth', 'forbidden');
      did.push('create');
      keys.push({ id: 50, name });
      return '50-secret';
    },
    async deleteKey(id: number) {
      did.push(`delete ${id}`);
      keys.splice(0, keys.length, ...keys.filter((key) => key.id !== id));
    },
  };
  const deleted = new Set<number>();
  const take = (isHeld = true, attempt = 1) =>
    takeSessionKey(api as never, 'f1ee7', URL, { isHeld: () => isHeld, predecessor }, silentLog(), {
      deleted,
      attempt,
    });
  return { did, api, take };
}

test('the key of the sender before is deleted first', async () => {
  const { did, take } = scene(
    [
      { id: 1, name: 'ours' },
      { id: 7, name: 'labfeed fleet f1ee7' },
    ],
    {
      ...{ isSelf: false, notebook: URL, sessionKey: 7 },
    },
  );
  expect(await take()).toEqual({ key: '50-secret', isFence: true, id: 50 });
  expect(did).toEqual(['delete 7', 'create']);
});

test('a key that was created just before a crash is deleted, but does not stop who sent before with another', async () => {
  const { did, take } = scene([{ id: 8, name: 'labfeed fleet f1ee7' }], {
    isSelf: false,
    notebook: URL,
    sessionKey: undefined,
  });
  expect(await take()).toMatchObject({ isFence: false });
  expect(did).toEqual(['delete 8', 'create']);
});

test('keys of others stay', async () => {
  const { did, take } = scene(
    [
      { id: 3, name: 'labfeed fleet 0ther' },
      { id: 4, name: 'a person' },
    ],
    undefined,
  );
  expect(await take()).toMatchObject({ isFence: true });
  expect(did).toEqual(['create']);
});

test('a key that is not listed may be that of another account: the grace period has to pass', async () => {
  const { take } = scene([{ id: 1, name: 'ours' }], { isSelf: false, notebook: URL, sessionKey: 7 });
  expect(await take()).toMatchObject({ isFence: false });
});

test('a server that fails is tried again, and what was deleted before counts', async () => {
  const { api, take, did } = scene([{ id: 7, name: 'x' }], { isSelf: false, notebook: URL, sessionKey: 7 });
  const { createKey } = api;
  api.createKey = async () => {
    throw new NotebookError('server', 'bad gateway', { status: 502, outcomeUnknown: true });
  };
  await expect(take()).rejects.toThrow('bad gateway');
  api.createKey = createKey;
  expect(await take()).toEqual({ key: '50-secret', isFence: true, id: 50 });
  expect(did).toEqual(['delete 7', 'create']);
});

test('a leader whose lease may be over deletes no key: it may be that of its successor', async () => {
  const { did, take } = scene([{ id: 9, name: 'labfeed fleet f1ee7' }], undefined);
  await expect(take(false)).rejects.toThrow('the lease may be over');
  expect(did).toEqual([]);
});

test('without a key to delete, nothing stops the leader before: the grace period has to pass', async () => {
  const { take } = scene([], { isSelf: false, notebook: URL, sessionKey: undefined });
  expect(await take()).toMatchObject({ isFence: false });
});

test('a notebook that gives no keys is used with the configured one', async () => {
  const { did, take } = scene([], undefined, false);
  expect(await take()).toEqual({ key: undefined, isFence: true, id: undefined });
  expect(did).toEqual([]);
});

test('a leader that cannot renew its lease stops sending before another one may take it', async () => {
  const { advance, ...time } = manualClock();
  const clock = { ...time, sleep: () => new Promise<void>(() => undefined) };
  const row = async () => ({ epoch: 1, seq: 0, sender: null, notebook: null, session_key: null, now: 0 });
  const postgres = { row, run: () => new Promise(() => undefined) } as unknown as Postgres;
  const lease = await takeLease(postgres, 1, { clock, log: silentLog(), lost: () => undefined });
  advance(LEASE_MS - MARGIN_MS - 1);
  expect(lease?.isHeld()).toBe(true);
  advance(1);
  expect(lease?.isHeld()).toBe(false);
});
