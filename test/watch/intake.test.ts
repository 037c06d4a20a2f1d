import { describe, expect, test } from 'vitest';
import { createActivity, createRechecks, createUnmatchedArrivals, createWaitingFiles } from '../../src/watch/intake.js';
import { manualClock } from '../support/manual-clock.js';

const START = Date.UTC(2026, 0, 1);

describe('waiting files', () => {
  test('each says what it waits for, according to the clock', () => {
    const clock = manualClock(START);
    const waiting = createWaitingFiles(clock);
    waiting.begin('/data/a.csv');
    const settling = { for: 'quiet period', unchangedSinceMs: 0, quietMs: 5000, missing: undefined } as const;
    waiting.update('/data/a.csv', settling);
    const reason = () => waiting.list().first[0]?.reason;
    expect(reason()).toBe('unchanged for 0 s of 5 s');
    clock.advance(2900);
    expect(reason()).toBe('unchanged for 2 s of 5 s');
    clock.advance(60_000);
    expect(reason()).toBe('unchanged for 5 s of 5 s');
    const missing = { kind: 'done-file', name: 'a.csv.done', waitedMs: 0 } as const;
    waiting.update('/data/a.csv', { ...settling, quietMs: 0, missing });
    expect(reason()).toBe('waiting for done-file a.csv.done');
    waiting.update('/data/a.csv', { for: 'reader' });
    expect(reason()).toBe('waiting to be read');
    waiting.update('/data/a.csv', { for: 'retry', reason: 'permission denied' });
    expect(reason()).toBe('cannot be read yet: permission denied');
    expect(waiting.list()).toMatchObject({ files: 1, first: [{ path: '/data/a.csv', since: START }] });
    waiting.end('/data/a.csv');
    waiting.update('/data/a.csv', { for: 'reader' });
    expect(waiting.list()).toEqual({ files: 0, first: [], unreadable: 0 });
  });

  test('one that cannot be read says so, also while it settles again, until it is read or has changed', () => {
    const clock = manualClock(START);
    const waiting = createWaitingFiles(clock);
    waiting.begin('/data/a.csv');
    waiting.setUnreadable('/data/a.csv', 'permission denied');
    clock.advance(5000);
    waiting.setUnreadable('/data/a.csv', 'permission denied');
    waiting.update('/data/a.csv', { for: 'quiet period', unchangedSinceMs: 0, quietMs: 5000, missing: undefined });
    expect(waiting.list()).toMatchObject({ unreadable: 1, first: [{ reason: 'permission denied' }] });
    const first = [{ path: '/data/a.csv', since: START, reason: 'permission denied' }];
    expect(waiting.unreadable()).toEqual({ files: 1, first });
    waiting.setUnreadable('/data/a.csv', undefined);
    expect(waiting.list().first).toMatchObject([{ reason: 'unchanged for 5 s of 5 s' }]);
    expect(waiting.unreadable()).toEqual({ files: 0, first: [] });
    waiting.setUnreadable('/data/a.csv', 'locked');
    waiting.end('/data/a.csv');
    expect(waiting.unreadable()).toEqual({ files: 0, first: [] });
  });

  test('one that keeps changing for a day, or lacks its done-file, is stuck until it is taken', () => {
    const clock = manualClock(START);
    const waiting = createWaitingFiles(clock);
    const settling = { for: 'quiet period', unchangedSinceMs: 0, quietMs: 5000, missing: undefined } as const;
    for (const path of ['/data/a.log', '/data/b.csv', '/data/growing.log', '/data/read.csv', '/data/slow.csv'])
      waiting.begin(path);
    waiting.update('/data/a.log', settling);
    const missing = { kind: 'done-file', name: 'b.csv.done', waitedMs: 0 } as const;
    waiting.update('/data/b.csv', { ...settling, missing });
    waiting.update('/data/growing.log', { for: 'next update', untilMs: 0 });
    waiting.update('/data/slow.csv', { ...settling, quietMs: 86_400_000 });
    clock.advance(86_400_000);
    expect(waiting.stuck()).toEqual({ files: 0, first: [] });
    clock.advance(5000);
    const { files, first } = waiting.stuck();
    expect(files).toBe(2);
    expect(first[0]).toMatchObject({ path: '/data/a.log', since: START });
    expect(first[0]?.reason).toMatch(/kept changing for more than a day\n {2}→ .*`run: growing`/);
    expect(first[1]?.reason).toMatch(/waiting for done-file b\.csv\.done for more than a day\n {2}→ .*`ignore`/);
    expect(waiting.list().first[0]).toEqual(first[0]);
    waiting.end('/data/a.log');
    waiting.setUnreadable('/data/b.csv', 'permission denied');
    expect(waiting.stuck()).toEqual({ files: 0, first: [] });
  });

  test('subfolders that a scan cannot read are among what cannot be read, but not those of the file system', () => {
    const clock = manualClock(START);
    const activity = createActivity({ name: 'balance', watch: '/data' }, clock);
    const scanned = (...paths: string[]) => {
      const unread = paths.map((path) => ({
        path,
        reason: 'the disk or share does not respond (EIO)',
        forbidden: false,
      }));
      activity.scanned({ complete: true, files: 0, unmatched: new Map(), unread });
      return activity.live().unreadable;
    };
    scanned('/data/locked', '/data/lost+found');
    clock.advance(1000);
    const reason = 'the disk or share does not respond (EIO)';
    expect(scanned('/data/locked')).toEqual({ files: 1, first: [{ path: '/data/locked', since: START, reason }] });
    expect(scanned()).toEqual({ files: 0, first: [] });
  });

  test('the first twenty by name are listed, and all are counted', () => {
    const waiting = createWaitingFiles(manualClock());
    const paths = Array.from({ length: 5000 }, (_, n) => `/data/${(n * 7919) % 5000}.csv`);
    for (const path of paths) waiting.begin(path);
    const { files, first } = waiting.list();
    expect(files).toBe(5000);
    expect(first.map(({ path }) => path)).toEqual(paths.toSorted().slice(0, 20));
  });
});

/** One folder that is scanned repeatedly. */
function folder() {
  const arrivals = createUnmatchedArrivals();
  const unmatched = new Map<string, { files: number; example: string }>();
  let runs = 0;
  let found = 0;
  return {
    addRun() {
      runs += 1;
      found += 1;
    },
    addUnmatched(extension: string, count = 1) {
      const files = (unmatched.get(extension)?.files ?? 0) + count;
      unmatched.set(extension, { files, example: `/data/${files}${extension}` });
    },
    scan() {
      arrivals.scanned(new Map(unmatched), runs, found);
      return arrivals.seen();
    },
  };
}

describe('unmatched arrivals', () => {
  test('each scan that finds more unmatched files counts once; files from before the start do not count', () => {
    const { addUnmatched, scan } = folder();
    addUnmatched('.txt', 5);
    expect(scan()).toEqual({ occasions: 0, example: undefined });
    addUnmatched('.txt');
    expect(scan().occasions).toBe(1);
    expect(scan().occasions).toBe(1);
    addUnmatched('.txt', 100);
    expect(scan()).toEqual({ occasions: 2, example: '/data/106.txt' });
  });

  test('extensions that the instrument writes next to its runs do not count, however many files come', () => {
    const { addUnmatched, addRun, scan } = folder();
    scan();
    addRun();
    addUnmatched('.log');
    addUnmatched('.png', 3);
    expect(scan().occasions).toBe(0);
    for (let n = 0; n < 10; n += 1) {
      addUnmatched('.log');
      expect(scan().occasions).toBe(0);
    }
    addUnmatched('.csv');
    expect(scan()).toEqual({ occasions: 1, example: '/data/1.csv' });
  });

  test('a new run resets the count', () => {
    const { addUnmatched, addRun, scan } = folder();
    scan();
    for (const _ of [1, 2, 3]) {
      addUnmatched('.csv');
      scan();
    }
    expect(scan().occasions).toBe(3);
    addRun();
    expect(scan().occasions).toBe(0);
    addUnmatched('.csv');
    expect(scan().occasions).toBe(0);
  });

  test('at the start, extensions of files next to existing runs do not count', () => {
    const { addUnmatched, addRun, scan } = folder();
    addRun();
    addUnmatched('.log', 3);
    scan();
    addUnmatched('.log');
    expect(scan().occasions).toBe(0);
    addUnmatched('.tsv');
    expect(scan().occasions).toBe(1);
  });
});

describe('hashing old files again', () => {
  const DAY = 86_400_000;

  test('is limited to a hundred files a minute', () => {
    let now = DAY;
    const { wants } = createRechecks(() => now);
    const touched = () => Array.from({ length: 1000 }, () => wants(true)).filter(Boolean).length;
    expect([touched(), touched()]).toEqual([100, 0]);
    now += 60_000;
    expect(touched()).toBe(100);
  });

  test('takes a share of the files in each scan, by the time since the scan before', () => {
    let now = DAY;
    let n = 0;
    const { wants, endScan } = createRechecks(
      () => now,
      () => (n++ % 1000) / 1000,
    );
    const scan = () => Array.from({ length: 1000 }, () => wants(false)).filter(Boolean).length;
    expect(scan()).toBe(0);
    now += 60_000;
    endScan();
    expect(scan()).toBe(1);
    now += 1.5 * DAY;
    endScan();
    expect(scan()).toBe(50);
    now -= 100 * DAY;
    endScan();
    expect(scan()).toBe(0);
  });
});
