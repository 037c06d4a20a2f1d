import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createBells, createRings } from '../../src/watch/events.js';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody } from './support.js';
import { eventually, inotifyWatches } from './watching.js';

function someBells() {
  const rung: string[] = [];
  const lost: unknown[] = [];
  const bells = createBells({
    ring: (folder, name) => void rung.push(`${folder}/${name}`),
    lost: (_folder, error) => void lost.push(error),
  });
  onTestFinished(() => bells.close());
  return { ...bells, rung, lost };
}

describe('a bell', () => {
  test('can be hung anew where another folder stands, though a neighbour has still the old one', async () => {
    const folder = join(tempFolder(), 'data');
    mkdirSync(folder);
    const bells = someBells();
    const neighbour = someBells();
    await Promise.all([bells.hang(folder, 'old'), neighbour.hang(folder, 'old')]);
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    await bells.hang(folder, 'new');
    writeFileSync(join(folder, 'a.csv'), '');
    await eventually(() => expect(bells.rung).toContain(join(folder, 'a.csv')));
    expect(bells.has(folder, 'new')).toBe(true);
    expect(bells.has(folder, 'old')).toBe(false);
  });

  test('comes off with all below it', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    mkdirSync(join(folder, 'ab'));
    const before = inotifyWatches();
    const bells = someBells();
    for (const name of ['', '/a', '/a/b', '/ab']) await bells.hang(folder + name, '1');
    expect(inotifyWatches() - before).toBe(4);
    bells.drop(join(folder, 'a'));
    await eventually(() => expect(inotifyWatches() - before).toBe(2));
    bells.keep(new Set([folder]));
    await eventually(() => expect(inotifyWatches() - before).toBe(1));
  });

  test('that the system refuses is lost, and an error that comes after closing harms nobody', async () => {
    const above = tempFolder();
    chmodSync(above, 0o755);
    mkdirSync(join(above, 'closed/data'), { recursive: true });
    chmodSync(join(above, 'closed'), 0);
    const folder = join(above, 'closed/data');
    await asNobody(async () => {
      const bells = someBells();
      await bells.hang(folder, '1');
      expect(bells.lost).toMatchObject([{ code: 'EACCES' }]);
      expect(bells.has(folder)).toBe(false);
      const hanging = bells.hang(folder, '2');
      bells.close();
      await hanging;
      await pause(50);
      expect(bells.lost).toHaveLength(1);
    });
    chmodSync(join(above, 'closed'), 0o700);
  });

  test('in a folder that has gone rings for nothing else', async () => {
    const above = tempFolder();
    const bells = someBells();
    await bells.hang(join(above, 'gone'), '1');
    await pause(50);
    writeFileSync(join(above, 'a.csv'), '');
    await eventually(() => expect(bells.has(join(above, 'gone'))).toBe(false));
    expect(bells.rung).toEqual([]);
  });
});

describe('rings', () => {
  test('are gathered by folder and name', async () => {
    const rings = createRings();
    rings.ring('/a', 'x');
    rings.ring('/a', 'x');
    rings.ring('/b', 'y');
    await rings.heard();
    expect(rings.take()).toEqual(
      new Map([
        ['/a', new Set(['x'])],
        ['/b', new Set(['y'])],
      ]),
    );
    expect(rings.take().size).toBe(0);
  });

  test('too many names, or one that is none, stand for anything', () => {
    const rings = createRings();
    for (let n = 0; n < 200; n += 1) rings.ring('/few', String(n));
    for (let n = 0; n < 201; n += 1) rings.ring('/many', String(n));
    rings.ring('/nameless', undefined);
    rings.ring('/nameless', 'x');
    rings.ring('/bytes', 'M\ufffd.csv');
    const { few, ...rest } = Object.fromEntries(
      [...rings.take()].map(([folder, rung]) => [folder.slice(1), rung]),
    );
    expect(few).toHaveProperty('size', 200);
    expect(rest).toEqual({ many: 'anything', nameless: 'anything', bytes: 'anything' });
  });
});
