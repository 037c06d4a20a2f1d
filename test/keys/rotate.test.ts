import { expect, test } from 'vitest';
import { LabfeedError } from '../../src/errors.js';
import { type KeyRecord, NOTHING, printOf, type Remembered, recordOf } from '../../src/keys/key-file.js';
import { type RotateDeps, rotate } from '../../src/keys/rotate.js';

const NAME = 'labfeed@lab';

/** A notebook that tells no more of a key than its number and its name, as the contract may be read. */
function sparse(keys: Record<string, KeyRecord>, file = 'old') {
  const held = new Map(Object.entries(keys));
  const scene = {
    held,
    file,
    remembered: NOTHING as Remembered,
    refuse: (_: string): void => undefined,
    deps: (): RotateDeps => ({
      name: NAME,
      current: scene.file,
      memory: {
        read: () => scene.remembered,
        write(remembered) {
          scene.remembered = remembered;
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
          async createKey({ name }) {
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

test('the old key is deleted only if it bore the name', async () => {
  const scene = sparse({ old: { id: 1, name: 'by hand' } });
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

test('where it cannot be told which key is in use, none is deleted, and the others of the name are told', async () => {
  const scene = sparse({ old: { id: 1, name: NAME }, other: { id: 2, name: NAME } });
  expect(await rotate(scene.deps())).toEqual({
    key: 3,
    deleted: [],
    failed: [],
    kept: 'unknown',
    others: [1, 2],
  });
  expect(scene.held.size).toBe(3);
});

test('a key that came while a rotation was broken off, and may be used, is left alone', async () => {
  const scene = sparse({ old: { id: 1, name: NAME } });
  scene.remembered = { ...NOTHING, rotating: { before: [1] } };
  scene.held.set('theirs', { id: 5, name: NAME, last_used_at: '2026-10-01 12:00:00' });
  scene.held.set('unknown', { id: 6, name: NAME });
  scene.held.set('lost', { id: 7, name: NAME, last_used_at: null });
  const { deleted, others } = await rotate(scene.deps());
  expect(deleted).toEqual([7]);
  expect(others).toEqual([1, 5, 6]);
});

test('a key that somebody put there by hand is never deleted, whatever was rotated before', async () => {
  const scene = sparse({ old: { id: 1, name: NAME }, mine: { id: 9, name: 'by hand' } });
  scene.remembered = { ...NOTHING, key: { id: 1, print: printOf('old') } };
  scene.file = 'mine';
  const { deleted, kept, others } = await rotate(scene.deps());
  expect({ deleted, kept, others }).toEqual({ deleted: [], kept: 'unknown', others: [1] });
});

test('a new key that the notebook does not take changes nothing, and the next rotation removes it', async () => {
  const scene = sparse({ old: { id: 1, name: NAME } });
  scene.refuse = (key) => {
    if (key !== 'old') throw new LabfeedError('the new key is refused');
  };
  await expect(rotate(scene.deps())).rejects.toThrow('the new key is refused');
  expect(scene.file).toBe('old');
  scene.refuse = () => undefined;
  expect(await rotate(scene.deps())).toMatchObject({ deleted: [1, 2], kept: undefined });
  expect([...scene.held.keys()]).toEqual([scene.file]);
});

test('as long as the new key is not written, the old one is not deleted', async () => {
  const scene = sparse({ old: { id: 1, name: NAME } });
  const unwritable = (): never => {
    throw new LabfeedError('the key file cannot be written');
  };
  await expect(rotate({ ...scene.deps(), write: unwritable })).rejects.toThrow('cannot be written');
  expect([...scene.held.keys()]).toEqual(['old', 'key-2']);
  expect(await rotate(scene.deps())).toMatchObject({ deleted: [1, 2], kept: undefined });
  expect([...scene.held.keys()]).toEqual([scene.file]);
});

test('a key that was made although its answer was lost, and never used, is removed by the next rotation', async () => {
  const scene = sparse({ old: { id: 1, name: NAME } });
  const deps = scene.deps();
  const createKey = async (): Promise<string> => {
    scene.held.set('lost', { id: 2, name: NAME, last_used_at: null });
    throw new LabfeedError('no answer');
  };
  await expect(rotate({ ...deps, as: (key) => ({ ...deps.as(key), createKey }) })).rejects.toThrow();
  expect((await rotate(scene.deps())).deleted).toEqual([1, 2]);
  expect([...scene.held.keys()]).toEqual([scene.file]);
});

test('a key that was to be removed, and that somebody gave another name since, is theirs', async () => {
  const scene = sparse({ old: { id: 1, name: 'renamed' }, now: { id: 2, name: NAME } }, 'now');
  scene.remembered = { ...NOTHING, key: { id: 2, print: printOf('now') }, remove: [1] };
  expect((await rotate(scene.deps())).deleted).toEqual([2]);
  expect([...scene.held.keys()]).toEqual(['old', scene.file]);
});

test('a new key that may only read does not take the place of one that works', async () => {
  const scene = sparse({ old: { id: 1, name: NAME } });
  const deps = scene.deps();
  const createKey = async (): Promise<string> => {
    scene.held.set('weak', { id: 2, name: NAME, can_write: 0 });
    return 'weak';
  };
  const rotating = rotate({ ...deps, as: (key) => ({ ...deps.as(key), createKey }) });
  await expect(rotating).rejects.toThrow('the new key may only read');
  expect(scene.file).toBe('old');
  expect(scene.held.has('old')).toBe(true);
});

test('a key that cannot be deleted now is told, and deleted by the next rotation', async () => {
  const scene = sparse({ old: { id: 1, name: NAME } });
  const deps = scene.deps();
  const result = await rotate({
    ...deps,
    as: (key) => ({
      ...deps.as(key),
      deleteKey: () => Promise.reject(new LabfeedError('the server is away')),
    }),
  });
  expect(result).toMatchObject({ key: 2, deleted: [], failed: [{ id: 1, reason: 'the server is away' }] });
  expect(scene.file).toBe('key-2');
  expect((await rotate(scene.deps())).deleted).toEqual([1, 2]);
});

test("eLabFTW's keys begin with their number; other servers' need not, and are not taken at their word", () => {
  const elabftw = [
    { id: 12, name: 'a', can_write: 1, team: 1 },
    { id: 13, name: 'b', can_write: 1, team: 1 },
  ];
  expect(recordOf('13-abc', elabftw)).toBe(elabftw[1]);
  expect(recordOf('14-abc', elabftw)).toBeUndefined();
  expect(recordOf('13-abc', [{ id: 12 }, { id: 13 }])).toBeUndefined();
  expect(recordOf('anything', [{ id: 12 }])).toEqual({ id: 12 });
});
