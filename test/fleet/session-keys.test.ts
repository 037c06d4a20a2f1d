import { expect, test } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import type { Lease } from '../../src/fleet/lease.js';
import { takeSessionKey } from '../../src/fleet/session-keys.js';
import type { KeyRecord } from '../../src/notebook/responses.js';
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
  const recordKey = async (_: string, id: number | undefined) => void did.push(`record ${id}`);
  const lease = { recordKey, predecessor } as unknown as Lease;
  return { did, take: () => takeSessionKey(api as never, 'f1ee7', URL, lease, silentLog()) };
}

test('the key of the leader before is deleted first, and the own one is recorded', async () => {
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
  expect(did).toEqual(['delete 7', 'create', 'record 50']);
});

test('a key that was created just before a crash is found by its name', async () => {
  const { did, take } = scene([{ id: 8, name: 'labfeed fleet f1ee7' }], {
    isSelf: false,
    notebook: URL,
    sessionKey: undefined,
  });
  expect(await take()).toMatchObject({ isFence: true });
  expect(did).toEqual(['delete 8', 'create', 'record 50']);
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
  expect(did).toEqual(['create', 'record 50']);
});

test('without a key to delete, nothing stops the leader before: the grace period has to pass', async () => {
  const { take } = scene([], { isSelf: false, notebook: URL, sessionKey: undefined });
  expect(await take()).toMatchObject({ isFence: false });
});

test('a notebook that gives no keys is used with the configured one', async () => {
  const { did, take } = scene([], undefined, false);
  expect(await take()).toEqual({ key: undefined, isFence: true, id: undefined });
  expect(did).toEqual(['record undefined']);
});
