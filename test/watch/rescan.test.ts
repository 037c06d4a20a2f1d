import fs, { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.js';
import type { Bells } from '../../src/watch/events.js';
import { pauseMs, retryMs } from '../../src/watch/watcher.js';
import { tempFolder } from '../support/temp-folder.js';
import { ERROR, eventually, WARN, watching } from './watching.js';

/** Bells that never ring, as on a share. */
function silentBells(): Bells {
  const hung = new Map<string, string>();
  return {
    hang: async (folder, id) => void hung.set(folder, id),
    has: (folder, id) => hung.has(folder) && (id === undefined || hung.get(folder) === id),
    drop: (folder) => void hung.delete(folder),
    keep: (folders) => {
      for (const folder of [...hung.keys()]) if (!folders.has(folder)) hung.delete(folder);
    },
    close: () => hung.clear(),
  };
}

describe('the rescan is the truth', () => {
  test('it finds what events missed', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder, poll: 50 }, { createBells: silentBells });
    await watcher.start();
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub/a.csv'), '');
    await eventually(() => expect(watcher.paths('scan')).toEqual([join(folder, 'sub/a.csv')]));
  });

  test('it takes down the bells of folders that went without a sound', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'sub'));
    const bells = silentBells();
    const watcher = watching({ watch: folder }, { createBells: () => bells });
    await watcher.start();
    expect(bells.has(join(folder, 'sub'))).toBe(true);
    rmSync(join(folder, 'sub'), { recursive: true });
    await watcher.rescan();
    expect(bells.has(join(folder, 'sub'))).toBe(false);
    expect(bells.has(folder)).toBe(true);
  });

  test('with poll: never, a scan comes at start, on events, and when asked for', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder }, { createBells: silentBells });
    await watcher.start();
    writeFileSync(join(folder, 'a.csv'), '');
    await pause(300);
    expect(watcher.scans).toHaveLength(1);
    await watcher.rescan();
    expect(watcher.paths('scan')).toEqual([join(folder, 'a.csv')]);
    expect(watcher.scans).toHaveLength(2);
  });

  test('scans do not overlap, and many who ask share one', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a.csv'), '');
    let under = 0;
    let most = 0;
    const watcher = watching(
      { watch: folder },
      {
        offer: async () => {
          under += 1;
          most = Math.max(most, under);
          await pause(30);
          under -= 1;
        },
      },
    );
    await watcher.start();
    const asked = [watcher.rescan(), watcher.rescan()];
    await pause(15);
    await Promise.all([...asked, watcher.rescan(), watcher.rescan(), watcher.rescan()]);
    expect(most).toBe(1);
    expect(watcher.scans).toHaveLength(3);
  });

  test('a scan whose receiver fails is made again', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a.csv'), '');
    const offer = vi.fn(async () => undefined).mockRejectedValueOnce(new Error('the journal is busy'));
    const watcher = watching({ watch: folder }, { offer });
    await watcher.start();
    expect(watcher.scans).toEqual([]);
    expect(watcher.logged).toMatchObject([{ level: ERROR }]);
    await eventually(() => expect(watcher.scans).toEqual([{ complete: true, files: 1 }]));
  });

  test('nothing is offered once it has stopped', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder, poll: 10 });
    await watcher.start();
    await watcher.stop();
    writeFileSync(join(folder, 'a.csv'), '');
    await watcher.rescan();
    await pause(150);
    expect(watcher.offers).toEqual([]);
  });
});

describe('how often', () => {
  const facts = { network: false, deaf: false, scanMs: 10 };

  test('auto: each minute on a disk, every 10 s on a share, and never more than a twentieth of the time', () => {
    expect(pauseMs({ ...facts, poll: 'auto' })).toBe(60_000);
    expect(pauseMs({ ...facts, poll: 'auto', network: true })).toBe(10_000);
    expect(pauseMs({ ...facts, poll: 'auto', network: true, scanMs: 2000 })).toBe(40_000);
    expect(pauseMs({ ...facts, poll: 'auto', scanMs: 30_000 })).toBe(600_000);
  });

  test('as it was asked for otherwise', () => {
    expect(pauseMs({ ...facts, poll: 2000, scanMs: 5000 })).toBe(2000);
    expect(pauseMs({ ...facts, poll: 'never' })).toBe(Number.POSITIVE_INFINITY);
  });

  test('where bells do not ring, every 10 s at the latest', () => {
    expect(pauseMs({ ...facts, poll: 'never', deaf: true })).toBe(10_000);
    expect(pauseMs({ ...facts, poll: 'auto', deaf: true })).toBe(10_000);
    expect(pauseMs({ ...facts, poll: 300_000, deaf: true })).toBe(10_000);
    expect(pauseMs({ ...facts, poll: 2000, deaf: true })).toBe(2000);
    expect(pauseMs({ ...facts, poll: 'never', deaf: true, scanMs: 1000 })).toBe(20_000);
  });

  test('the time for which the receiver held it back is not the cost of the listing', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a.csv'), '');
    let elapsed = 0;
    const pauses: number[] = [];
    const clock: Clock = {
      now: () => elapsed,
      monotonic: () => elapsed,
      sleep(ms, signal) {
        pauses.push(ms);
        return systemClock.sleep(ms, signal);
      },
    };
    const watcher = watching(
      { watch: folder, poll: 'auto' },
      {
        clock,
        isNetwork: async () => true,
        offer: async () => {
          elapsed += 3_600_000;
        },
      },
    );
    await watcher.start();
    await eventually(() => expect(pauses).toContain(10_000));
  });

  test('a folder that is away is looked for with growing waits, up to 10 s', () => {
    expect([1, 2, 3, 4, 5, 60].map(retryMs)).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
  });
});

/** Lets the system refuse watches, as it does at its limit. */
function refuseWatches(code: string): () => void {
  const real = fs.watch;
  const restore = () => {
    fs.watch = real;
    syncBuiltinESMExports();
  };
  const refusing = () => {
    throw Object.assign(new Error(`${code}: limit reached, watch`), { code });
  };
  fs.watch = Object.assign(refusing, real);
  syncBuiltinESMExports();
  onTestFinished(restore);
  return restore;
}

test.each([
  ['ENOSPC', 'fs.inotify.max_user_watches'],
  ['EMFILE', 'fs.inotify.max_user_instances'],
])('at the limit of inotify (%s) it says what to do, lists instead, and recovers', async (code, limit) => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'sub/a.csv'), '');
  const restore = refuseWatches(code);
  const watcher = watching({ watch: folder });
  await watcher.start();
  await watcher.rescan();
  expect(watcher.paths('scan')).toEqual([join(folder, 'sub/a.csv')]);
  expect(watcher.logged).toMatchObject([{ level: WARN, hint: expect.stringContaining(limit) }]);

  restore();
  await watcher.rescan();
  expect(watcher.logged.at(-1)?.msg).toBe('every folder is watched again');
  writeFileSync(join(folder, 'sub/b.csv'), '');
  await eventually(() => expect(watcher.paths('event')).toEqual([join(folder, 'sub/b.csv')]));
});
