import fs, { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.js';
import type { WatchFolder } from '../../src/watch/events.js';
import { rescanMs } from '../../src/watch/watcher.js';
import { tempFolder } from '../support/temp-folder.js';
import { ERROR, eventually, WARN, watching } from './support.js';

/** Watches without events, as on a share. Keeps the set of open watches. */
const silentWatches =
  (watched = new Set<string>()): WatchFolder =>
  (folder) => {
    watched.add(folder);
    return { ready: Promise.resolve(), close: () => void watched.delete(folder) };
  };

describe('a rescan', () => {
  test('finds files without events', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder, poll: 50 }, {}, { watchFolder: silentWatches() });
    await watcher.start();
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub/a.csv'), '');
    await eventually(() => expect(watcher.paths('scan')).toEqual([join(folder, 'sub/a.csv')]));
  });

  test('ends the watches of folders that disappeared without an event', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'sub'));
    const watched = new Set<string>();
    const watcher = watching({ watch: folder }, {}, { watchFolder: silentWatches(watched) });
    await watcher.start();
    expect(watched).toEqual(new Set([folder, join(folder, 'sub')]));
    rmSync(join(folder, 'sub'), { recursive: true });
    await watcher.rescan();
    expect(watched).toEqual(new Set([folder]));
  });

  test('happens only at the start, after events and on request with poll: never', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder }, {}, { watchFolder: silentWatches() });
    await watcher.start();
    writeFileSync(join(folder, 'a.csv'), '');
    await pause(300);
    expect(watcher.scans).toHaveLength(1);
    await watcher.rescan();
    expect(watcher.paths('scan')).toEqual([join(folder, 'a.csv')]);
    expect(watcher.scans).toHaveLength(2);
  });

  test('does not overlap with another, and one serves all pending requests', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a.csv'), '');
    let under = 0;
    let most = 0;
    const watcher = watching(
      { watch: folder },
      {
        found: async () => {
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

  test('is repeated if the receiver fails', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a.csv'), '');
    const found = vi.fn(async () => undefined).mockRejectedValueOnce(new Error('the journal is busy'));
    const watcher = watching({ watch: folder }, { found });
    await watcher.start();
    expect(watcher.scans).toEqual([]);
    expect(watcher.logged).toMatchObject([{ level: ERROR }]);
    await eventually(() => expect(watcher.scans).toEqual([{ complete: true, files: 1 }]));
  });

  test('hands over nothing after the watcher has stopped', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder, poll: 10 });
    await watcher.start();
    await watcher.stop();
    writeFileSync(join(folder, 'a.csv'), '');
    await watcher.rescan();
    await pause(150);
    expect(watcher.batches).toEqual([]);
  });
});

describe('the interval between rescans', () => {
  const facts = { missing: undefined, scanMs: 10 };

  test('is a minute on a disk and 10 s on a share, and scans take at most a twentieth of the time', () => {
    expect(rescanMs({ ...facts, poll: 'auto' })).toBe(60_000);
    expect(rescanMs({ ...facts, poll: 'auto', missing: { isShare: true } })).toBe(10_000);
    expect(rescanMs({ ...facts, poll: 'auto', missing: { isShare: true }, scanMs: 2000 })).toBe(40_000);
    expect(rescanMs({ ...facts, poll: 'auto', scanMs: 30_000 })).toBe(600_000);
  });

  test('is the configured one otherwise', () => {
    expect(rescanMs({ ...facts, poll: 2000, scanMs: 5000 })).toBe(2000);
    expect(rescanMs({ ...facts, poll: 'never' })).toBe(Number.POSITIVE_INFINITY);
    expect(rescanMs({ ...facts, poll: 300_000, missing: { isShare: true } })).toBe(300_000);
  });

  test('is at most 10 s if events are missing', () => {
    expect(rescanMs({ ...facts, poll: 'never', missing: { isShare: false } })).toBe(10_000);
    expect(rescanMs({ ...facts, poll: 'auto', missing: { isShare: false } })).toBe(10_000);
    expect(rescanMs({ ...facts, poll: 300_000, missing: { isShare: false } })).toBe(10_000);
    expect(rescanMs({ ...facts, poll: 2000, missing: { isShare: false } })).toBe(2000);
    expect(rescanMs({ ...facts, poll: 'never', missing: { isShare: false }, scanMs: 1000 })).toBe(20_000);
  });

  test('does not count the time the receiver takes as cost of the scan', async () => {
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
        found: async () => {
          elapsed += 3_600_000;
        },
      },
      { slowMount: () => ({ id: '9', point: '/mnt/nas', share: 'nfs4', mayHang: true }) },
    );
    await watcher.start();
    await eventually(() => expect(pauses).toContain(10_000));
  });

  test('grows up to 10 s while the folder is missing', async () => {
    const waits: number[] = [];
    let skippedMs = 0;
    const clock: Clock = {
      ...systemClock,
      monotonic: () => systemClock.monotonic() + skippedMs,
      async sleep(ms, signal) {
        if (ms > 75) waits.push(ms);
        const isSkipped = waits.length < 10 && ms > 75 && ms !== Number.POSITIVE_INFINITY;
        if (isSkipped) skippedMs += ms;
        await systemClock.sleep(isSkipped ? 1 : ms, signal);
      },
    };
    const watcher = watching({ watch: join(tempFolder(), 'none') }, { clock });
    await watcher.start();
    await eventually(() => expect(waits.length).toBeGreaterThanOrEqual(10));
    const retries = waits.filter((ms) => ms !== Number.POSITIVE_INFINITY);
    expect(retries[0]).toBeLessThanOrEqual(1000);
    expect(retries[3]).toBeGreaterThanOrEqual(4000);
    expect(Math.max(...retries)).toBeLessThanOrEqual(10_000);
  });
});

/** Makes the system refuse watches, as it does at its limit. */
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
])('at the inotify limit (%s) the watcher says what to do, uses rescans, and recovers', async (code, limit) => {
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
  expect(watcher.logged.at(-1)?.msg).toBe('all folders are watched again');
  writeFileSync(join(folder, 'sub/b.csv'), '');
  await eventually(() => expect(watcher.paths('event')).toEqual([join(folder, 'sub/b.csv')]));
});
