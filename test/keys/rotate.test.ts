import { expect, test } from 'vitest';
import { LabfeedError } from '../../src/errors.js';
import { findRecord, NO_ROTATION, printOf, type RotateDeps, type Rotation, rotate } from '../../src/keys/rotate.js';
import type { KeyRecord } from '../../src/notebook/responses.js';

const NAME = 'labfeed@lab';

/** A notebook that returns only the number and the name of a key, as the API allows. */
function sparseNotebook(keys: Record<string, KeyRecord>, file = 'old') {
  const held = new Map(Object.entries(keys));
  const scene = {
    held,
    file,
    rotation: NO_ROTATION as Rotation,
    refuse: (_: string): void => undefined,
    deps: (): RotateDeps => ({
      name: NAME,
      current: scene.file,
      rotation: {
        read: () => scene.rotation,
        write(rotation) {
          scene.rotation = rotation;
        },
      },
      write(key) {
        scene.file = key;
      },
      as(key) {
        const use = (): void => {
          scene.refuse(key);
          if (!held.has(key)) throw new LabfeedError('401');
        };
        return {
          async listKeys() {
            use();
            return [...held.values()];
          },
          async createKey({ name } = {}) {
            use();
            const id = 1 + Math.max(...[...held.values()].map((record) => record.id ?? 0));
            held.set(`key-${id}`, { id, name });
            return `key-${id}`;
          },
          async deleteKey(id) {
            use();
            for (const [text, record] of held) if (record.id === id) held.delete(text);
          },
        };
      },
    }),
  };
  return scene;
}

test('the old key is deleted only if it has the name that labfeed uses', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: 'by hand' } });
  expect(await rotate(scene.deps())).toEqual({
    key: 2,
    deleted: [],
    failed: [],
    kept: { id: 1, name: 'by hand' },
    others: [],
  });
  expect(await rotate(scene.deps())).toMatchObject({ key: 3, deleted: [2], kept: undefined });
  expect([...scene.held.keys()]).toEqual(['old', 'key-3']);
  expect(scene.file).toBe('key-3');
});

test('no key is deleted if the one in use cannot be identified, and others with the name are reported', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME }, other: { id: 2, name: NAME } });
  expect(await rotate(scene.deps())).toEqual({
    key: 3,
    deleted: [],
    failed: [],
    kept: 'unknown',
    others: [1, 2],
  });
  expect(scene.held.size).toBe(3);
});

test('a key that appeared during an interrupted rotation is kept if it may be in use', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME } });
  scene.rotation = { ...NO_ROTATION, rotating: { before: [1] } };
  scene.held.set('theirs', { id: 5, name: NAME, last_used_at: '2026-10-01 12:00:00' });
  scene.held.set('unknown', { id: 6, name: NAME });
  scene.held.set('lost', { id: 7, name: NAME, last_used_at: null });
  const { deleted, others } = await rotate(scene.deps());
  expect(deleted).toEqual([7]);
  expect(others).toEqual([1, 5, 6]);
});

test('a key that a person set by hand is never deleted', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME }, mine: { id: 9, name: 'by hand' } });
  scene.rotation = { ...NO_ROTATION, key: { id: 1, print: printOf('old') } };
  scene.file = 'mine';
  const { deleted, kept, others } = await rotate(scene.deps());
  expect({ deleted, kept, others }).toEqual({ deleted: [], kept: 'unknown', others: [1] });
});

test('a new key that the notebook rejects changes nothing, and the next rotation deletes it', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME } });
  scene.refuse = (key) => {
    if (key !== 'old') throw new LabfeedError('the new key is refused');
  };
  await expect(rotate(scene.deps())).rejects.toThrow('the new key is refused');
  expect(scene.file).toBe('old');
  scene.refuse = () => undefined;
  expect(await rotate(scene.deps())).toMatchObject({ deleted: [1, 2], kept: undefined });
  expect([...scene.held.keys()]).toEqual([scene.file]);
});

test('the old key is not deleted before the new one is written', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME } });
  const unwritable = (): never => {
    throw new LabfeedError('the key file cannot be written');
  };
  await expect(rotate({ ...scene.deps(), write: unwritable })).rejects.toThrow('cannot be written');
  expect([...scene.held.keys()]).toEqual(['old', 'key-2']);
  expect(await rotate(scene.deps())).toMatchObject({ deleted: [1, 2], kept: undefined });
  expect([...scene.held.keys()]).toEqual([scene.file]);
});

test('an unused key from a request with unknown outcome is deleted by the next rotation', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME } });
  const deps = scene.deps();
  const createKey = async (): Promise<string> => {
    scene.held.set('lost', { id: 2, name: NAME, last_used_at: null });
    throw new LabfeedError('no answer');
  };
  await expect(rotate({ ...deps, as: (key) => ({ ...deps.as(key), createKey }) })).rejects.toThrow();
  expect((await rotate(scene.deps())).deleted).toEqual([1, 2]);
  expect([...scene.held.keys()]).toEqual([scene.file]);
});

test('a key that somebody renamed is not deleted', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: 'renamed' }, now: { id: 2, name: NAME } }, 'now');
  scene.rotation = { ...NO_ROTATION, key: { id: 2, print: printOf('now') }, remove: [1] };
  expect((await rotate(scene.deps())).deleted).toEqual([2]);
  expect([...scene.held.keys()]).toEqual(['old', scene.file]);
});

test('a read-only key does not replace a working one', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME } });
  const deps = scene.deps();
  const createKey = async (): Promise<string> => {
    scene.held.set('weak', { id: 2, name: NAME, can_write: 0 });
    return 'weak';
  };
  const rotating = rotate({ ...deps, as: (key) => ({ ...deps.as(key), createKey }) });
  await expect(rotating).rejects.toThrow('the new key is read-only');
  expect(scene.file).toBe('old');
  expect(scene.held.has('old')).toBe(true);
});

test('a key that cannot be deleted is reported, and deleted by the next rotation', async () => {
  const scene = sparseNotebook({ old: { id: 1, name: NAME } });
  const deps = scene.deps();
  const result = await rotate({
    ...deps,
    as: (key) => ({
      ...deps.as(key),
      deleteKey: () => Promise.reject(new LabfeedError('the server is down')),
    }),
  });
  expect(result).toMatchObject({ key: 2, deleted: [], failed: [{ id: 1, reason: 'the server is down' }] });
  expect(scene.file).toBe('key-2');
  expect((await rotate(scene.deps())).deleted).toEqual([1, 2]);
});

test('a key is identified by its number only on eLabFTW', () => {
  const elabftw = [
    { id: 12, name: 'a', can_write: 1, team: 1 },
    { id: 13, name: 'b', can_write: 1, team: 1 },
  ];
  expect(findRecord('13-abc', elabftw)).toBe(elabftw[1]);
  expect(findRecord('14-abc', elabftw)).toBeUndefined();
  expect(findRecord('13-abc', [{ id: 12 }, { id: 13 }])).toBeUndefined();
  expect(findRecord('anything', [{ id: 12 }])).toEqual({ id: 12 });
});
