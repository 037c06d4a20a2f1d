import {
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../src/clock.js';
import { loadConfig } from '../src/config/load.js';
import { Writes } from '../src/deliver/writes.js';
import { FileError, NotebookError } from '../src/errors.js';
import type { Journal } from '../src/journal/journal.js';
import { createLog } from '../src/log.js';
import type { NewRun, RunChange } from '../src/outbox.js';
import { createDelivery, createIntake, type Intake } from '../src/pipeline.js';
import { Spool } from '../src/spool.js';
import { standInFor } from '../src/watch/identify.js';
import { createActivity } from '../src/watch/intake.js';
import { createRawFiles, type RawFiles } from '../src/watch/raw-files.js';
import { directReader } from './support/direct-reader.js';
import { type FakeNotebook, fakeNotebook } from './support/fake-notebook.js';
import { contextOf, see } from './support/filing.js';
import { manualClock } from './support/manual-clock.js';
import { memoryJournal } from './support/memory-journal.js';
import { newRun, someDraft } from './support/runs.js';
import { silentLog } from './support/silent-log.js';
import { tempFolder } from './support/temp-folder.js';

const eventually = (holds: () => void | Promise<void>) => vi.waitFor(holds, { timeout: 45_000, interval: 10 });

describe('intake', () => {
  const weighing = (sample: string, column = 'Weight (mg)'): string =>
    `Sample,${column}\n${sample},1.125\n${sample}b,1.5\n`;

  interface Scene {
    readonly folder: string;
    readonly journal: Journal;
    readonly intake: Intake;
    /** Every run that was handed over, in order. */
    readonly added: NewRun[];
    /** The files whose plots were drawn. */
    readonly drawn: string[];
    readonly logged: { readonly msg: string; readonly files?: number }[];
    wakeUps(): number;
    waiting(): number;
    /** How many of them only wait to be read. */
    reading(): number;
    write(...files: (string | [name: string, content: string])[]): void;
    /** Scans the folder and waits until all runs found are in the journal. */
    scan(asBacklog?: boolean): Promise<void>;
  }

  /** One instrument with a real folder and the real journal in memory. */
  function setUp(
    settings = 'existing: ingest',
    changes: (journal: Journal) => Partial<Journal> = () => ({}),
    rawFiles?: (journal: Journal) => RawFiles,
  ) {
    const folder = tempFolder();
    const config = join(folder, 'labfeed.yaml');
    const quiet = settings.includes('quiet') ? '' : 'ready: { quiet: 1ms },';
    writeFileSync(config, `instruments:\n  balance: { watch: data, poll: never, ${quiet} ${settings} }\n`);
    mkdirSync(join(folder, 'data'));
    const [instrument = expect.fail('no instrument')] = loadConfig(config).instruments;
    const journal = memoryJournal(systemClock);
    const added: NewRun[] = [];
    const add: Journal['outbox']['add'] = (run, reading) => {
      if (reading.draft) added.push(run);
      return journal.outbox.add(run, reading);
    };
    const activity = createActivity(instrument, systemClock);
    const logged: Scene['logged'] = [];
    const drawn: string[] = [];
    const reader = directReader(instrument, journal.outbox.id);
    let wakeUps = 0;
    const intake = createIntake(instrument, {
      journal: { ...journal, outbox: { ...journal.outbox, add }, ...changes(journal) },
      reader: {
        ...reader,
        read(file, nowMs, options) {
          if (options?.isPlotted) drawn.push(file.path);
          return reader.read(file, nowMs, options);
        },
      },
      rawFiles: rawFiles?.(journal),
      activity,
      claims: { isClaimed: () => false, isOthers: () => false },
      observer: {},
      isSecretIn: (text) => text.includes('K3Y-0123456789'),
      wakeDelivery: () => {
        wakeUps += 1;
      },
      clock: systemClock,
      log: createLog({
        level: 'info',
        destination: { write: (line) => void logged.push(JSON.parse(line)) },
      }).log,
    });
    onTestFinished(() => intake.stop());
    const scene: Scene = {
      folder: join(folder, 'data'),
      journal,
      intake,
      added,
      drawn,
      logged,
      wakeUps: () => wakeUps,
      waiting: () => activity.live().waiting.files,
      reading: () => activity.live().waiting.first.filter(({ reason }) => reason === 'waiting to be read').length,
      write(...files) {
        for (const file of files) {
          const [name, content] = typeof file === 'string' ? [file, weighing(file)] : file;
          mkdirSync(dirname(join(scene.folder, name)), { recursive: true });
          writeFileSync(join(scene.folder, name), content);
        }
      },
      async scan(asBacklog = false) {
        await intake.rescan(asBacklog);
        await eventually(() => expect(scene.waiting()).toBe(0));
      },
    };
    return scene;
  }

  const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `f${n}.csv`);
  const start = async (scene: Scene): Promise<void> => {
    await scene.intake.start();
    await eventually(() => expect(scene.waiting()).toBe(0));
  };

  const spooling =
    (isPlotted: boolean, isWanted = true) =>
    (journal: Journal) =>
      createRawFiles({
        spool: new Spool(join(tempFolder(), 'spool')),
        maxBytes: 10_000_000,
        isPlotted,
        isWanted: async () => isWanted,
        isNeeded: journal.outbox.uploads.needs,
      });

  test('the plot of each file of a backlog is drawn once', async () => {
    const scene = setUp('existing: ingest', undefined, spooling(true));
    scene.write(...names(5));
    await start(scene);
    await scene.scan();
    await scene.scan(true);
    expect(scene.drawn).toHaveLength(5);
    expect(scene.added.map(({ plot }) => plot?.name).sort()).toEqual(
      names(5).map((name) => name.replace('.csv', '-plot.png')),
    );
  });

  test('a large file is drawn once, too', async () => {
    const scene = setUp('existing: ingest', undefined, spooling(true));
    const rows = Array.from({ length: 20_000 }, (_, n) => `${n},${n % 7}.25`);
    scene.write(['large.csv', `Time (s),Weight (mg)\n${rows.join('\n')}\n`]);
    await start(scene);
    expect(scene.drawn).toHaveLength(1);
    expect(scene.added[0]?.plot).toMatchObject({ name: 'large-plot.png', sha256: expect.stringMatching(/^\w{64}$/) });
  });

  test.each([
    ['nothing is attached', undefined],
    ['the notebook takes no files', spooling(true, false)],
    ['the mapping has `plot: never`', spooling(false)],
  ])('where %s, no plot is drawn', async (_, rawFiles) => {
    const scene = setUp('existing: ingest', undefined, rawFiles);
    scene.write(...names(2));
    await start(scene);
    expect(scene.added).toHaveLength(2);
    expect(scene.drawn).toEqual([]);
    expect(scene.added.map(({ plot }) => plot)).toEqual([undefined, undefined]);
  });

  test('a secret that only the plot shows reaches neither the journal nor the notebook', async () => {
    const settings = 'existing: ingest, comments: { readings: none }, experiment: { body: "<p>x</p>" }';
    const scene = setUp(settings, undefined, spooling(true));
    scene.write(['secret.csv', 'Sample,Weight (mg)\nK3Y-0123456789,1.5\nB,2.5\n']);
    await start(scene);
    expect(await scene.journal.outbox.count()).toEqual({ quarantined: 1 });
  });

  test.each([
    ['skip', 1],
    ['ingest', 2],
  ])('with duplicates: %s, the same bytes at two paths become %i run(s)', async (duplicates, runs) => {
    const scene = setUp(`existing: ingest, duplicates: ${duplicates}`);
    scene.write(['a.csv', weighing('x')]);
    await start(scene);
    scene.write(['b.csv', weighing('x')]);
    await scene.scan();
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: runs });
    expect(scene.wakeUps()).toBe(runs);
  });

  test.each([
    ['new', 3],
    ['ignore', 2],
  ])('with changed: %s, a changed file and another one make %i runs', async (changed, runs) => {
    const scene = setUp(`existing: ingest, changed: ${changed}`);
    scene.write('a.csv');
    await start(scene);
    scene.write(['a.csv', weighing('other')], 'b.csv');
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: runs });
  });

  test('a file that does not fit its mapping is quarantined, and delivery is not woken', async () => {
    const scene = setUp('existing: ingest, experiment: { title: "{{ meta.Operator }}" }');
    scene.write('a.csv');
    await start(scene);
    expect(await scene.journal.outbox.count()).toEqual({ quarantined: 1 });
    expect(scene.logged.map(({ msg }) => msg)).toContain('run quarantined');
    expect(scene.wakeUps()).toBe(0);
  });

  test('a file that is too large is quarantined without being hashed, and read once the limit allows it', async () => {
    const scene = setUp('existing: ingest, parse: { table: {}, limits: { bytes: 1MB } }');
    const reads = vi.spyOn(scene.journal.intake, 'partOf');
    scene.write('a.csv');
    for (const n of [1, 2, 3, 4]) {
      scene.write(`sparse${n}.csv`);
      truncateSync(join(scene.folder, `sparse${n}.csv`), 8 * 2 ** 40);
    }
    await start(scene);
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1, quarantined: 4 });
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1, quarantined: 4 });
    expect(reads).toHaveBeenCalledTimes(5);
  });

  test.each([
    ['run: folder', 'a/sparse.raw', 'a/data.csv'],
    ['run: { join: ["{stem}.csv", "{stem}.raw"] }', 'a.raw', 'a.csv'],
  ])('with %s, a file that is too large keeps the others of its run from being hashed', async (kind, large, small) => {
    const scene = setUp(`existing: ingest, ${kind}, parse: { main: "*.csv", table: {} }`);
    scene.write(small, large);
    truncateSync(join(scene.folder, large), 8 * 2 ** 40);
    await start(scene);
    expect(await scene.journal.outbox.count()).toEqual({ quarantined: 1 });
    expect(JSON.stringify(scene.logged)).toContain(`${large}: the file is too large: 8388608.0 MB`);
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ quarantined: 1 });
    scene.write(large);
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ ignored: 1, queued: 1 });
  });

  test('a run that was too large is replaced when its file can be read', async () => {
    const { outbox } = memoryJournal(systemClock);
    const run = newRun('large');
    const problem = new FileError('the file is too large');
    await outbox.add({ ...run, file: { ...run.file, sha256: standInFor(run.file) } }, { problem });
    await outbox.add(newRun('other'), { problem });
    await outbox.add(run, { draft: someDraft('large') });
    expect(await outbox.count()).toEqual({ ignored: 1, quarantined: 1, queued: 1 });
  });

  test('a file that is rewritten with its size and time restored becomes a run; changed permissions file nothing', async () => {
    const scene = setUp('existing: ingest');
    scene.write('a.csv');
    await start(scene);
    const path = join(scene.folder, 'a.csv');
    const { atime, mtime } = statSync(path);
    const hashed = vi.spyOn(scene.journal.intake, 'partOf');
    chmodSync(path, 0o600);
    await scene.scan();
    await scene.scan();
    expect(hashed).toHaveBeenCalledTimes(1);
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1 });
    const text = readFileSync(path, 'utf8');
    const changed = text.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10));
    expect([changed.length, changed === text]).toEqual([text.length, false]);
    writeFileSync(path, changed);
    utimesSync(path, atime, mtime);
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: 2 });
  });

  test('a link out of the folder is quarantined once, and read as soon as a file takes its place', async () => {
    const scene = setUp('existing: ingest');
    const secret = join(scene.folder, '..', 'secret.csv');
    writeFileSync(secret, weighing('secret'));
    scene.write('a.csv');
    symlinkSync(secret, join(scene.folder, 'link.csv'));
    await start(scene);
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1, quarantined: 1 });
    const reasons = scene.logged.filter(({ msg }) => msg === 'run quarantined').map((line) => JSON.stringify(line));
    expect(reasons).toEqual([expect.stringContaining(`a link out of the watched folder, to ${secret}`)]);
    expect(scene.logged.map(({ msg }) => msg)).not.toContain('cannot take the file yet, retrying');
    rmSync(join(scene.folder, 'link.csv'));
    scene.write('link.csv');
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: 2, ignored: 1 });
  });

  test('a refused link is settled when a copy of a file that was filed before takes its place', async () => {
    const scene = setUp('existing: ingest');
    scene.write('a.csv');
    symlinkSync('/etc/passwd', join(scene.folder, 'link.csv'));
    await start(scene);
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1, quarantined: 1 });
    rmSync(join(scene.folder, 'link.csv'));
    scene.write(['link.csv', weighing('a.csv')]);
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1, ignored: 1 });
  });

  test('a file that contains a secret of labfeed is quarantined without its content', async () => {
    const scene = setUp('existing: ingest');
    scene.write(['a.csv', weighing('K3Y-0123456789')]);
    await start(scene);
    expect(await scene.journal.outbox.count()).toEqual({ quarantined: 1 });
    expect(JSON.stringify([scene.logged, scene.added])).not.toContain('K3Y-0123456789');
  });

  test('with drift: hold, a run with a different column is held, and delivery is not woken', async () => {
    const scene = setUp('existing: ingest, drift: hold');
    scene.write('a.csv');
    await start(scene);
    scene.write(['b.csv', weighing('x', 'Mass (mg)')]);
    await scene.scan();
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1, held: 1 });
    expect(scene.wakeUps()).toBe(1);
  });

  test('a run that cannot be recorded is retried, and is not recorded as refused', async () => {
    let failures = 1;
    const scene = setUp('existing: ingest', ({ outbox }) => ({
      outbox: {
        ...outbox,
        async add(...run) {
          failures -= 1;
          if (failures >= 0) throw new Error('disk full');
          return outbox.add(...run);
        },
      },
    }));
    scene.write('a.csv');
    await start(scene);
    expect(scene.logged).toMatchObject([
      { msg: 'cannot take the file yet, retrying', reason: 'disk full' },
      { msg: 'run queued' },
    ]);
    expect(await scene.journal.outbox.count()).toEqual({ queued: 1 });
  });

  test('a file that changes while it is being recorded is read again, without a scan', async () => {
    const scene: Scene = setUp('existing: ingest', ({ outbox }) => ({
      outbox: {
        ...outbox,
        async add(...run) {
          if (Object.keys(await outbox.count()).length === 0) {
            scene.write(['a.csv', weighing('changed')]);
            await systemClock.sleep(1000);
          }
          return outbox.add(...run);
        },
      },
    }));
    await start(scene);
    scene.write('a.csv');
    await eventually(async () => expect(await scene.journal.outbox.count()).toEqual({ queued: 2 }));
  });

  test('a file that disappears before it has settled is forgotten', async () => {
    const scene = setUp('existing: ingest, ready: { quiet: 300ms }');
    scene.write('a.csv');
    await scene.intake.start();
    expect(scene.waiting()).toBe(1);
    rmSync(join(scene.folder, 'a.csv'));
    await eventually(() => expect(scene.waiting()).toBe(0));
    expect(await scene.journal.outbox.count()).toEqual({});
  });

  describe('of a backlog', () => {
    test('takes up to 50 files as backlog without a decision', async () => {
      const scene = setUp('duplicates: ingest');
      scene.write(...names(50));
      await start(scene);
      expect(scene.added).toHaveLength(50);
      expect(scene.added.every(({ backlog }) => backlog)).toBe(true);
      scene.write('live.csv');
      await scene.scan();
      expect(scene.added.at(-1)).toMatchObject({ backlog: false });
    });

    test('holds more than 50 files for a decision, and takes later files', async () => {
      const scene = setUp('changed: new');
      scene.write(...names(51));
      await start(scene);
      expect(scene.added).toEqual([]);
      expect(scene.logged).toMatchObject([{ msg: expect.stringContaining('labfeed backfill'), files: 51 }]);
      scene.write(...Array.from({ length: 100 }, (_, n) => `later${n}.csv`));
      await scene.scan();
      expect(scene.added).toHaveLength(100);
    });

    test('takes a held backlog once it is decided, after live runs', async () => {
      const scene = setUp('changed: new');
      scene.write(...names(51));
      await start(scene);
      await scene.journal.intake.decideBacklog('balance', 'ingest');
      await scene.scan(true);
      expect(scene.added).toHaveLength(51);
      expect(scene.added.every(({ backlog }) => backlog)).toBe(true);
      scene.write('live.csv');
      await scene.scan();
      expect(scene.added.at(-1)).toMatchObject({ backlog: false });
    });

    test('reads a live file before the rest of a backlog', async () => {
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const scene = setUp('changed: new', ({ intake }) => ({
        intake: { ...intake, partOf: (...file) => released.then(() => intake.partOf(...file)) },
      }));
      scene.write(...names(15));
      await scene.intake.start();
      await scene.intake.rescan(true);
      await eventually(() => expect(scene.reading()).toBe(15));
      scene.write('live.csv');
      await scene.intake.rescan(false);
      await eventually(() => expect(scene.reading()).toBe(16));
      release();
      await eventually(() => expect(scene.added).toHaveLength(16));
      // Four were being read already.
      expect(scene.added.findIndex(({ backlog }) => !backlog)).toBeLessThan(5);
    });

    test('counts runs of several files as runs, and holds all their files', async () => {
      // More than 500 files, so that the scan hands them over in several batches.
      const folders = (count: number) => names(count).flatMap((name) => names(12).map((part) => `${name}/${part}`));
      const few = setUp('run: folder');
      few.write(...folders(50));
      await start(few);
      expect(Object.values(await few.journal.outbox.count())).toEqual([50]);
      const many = setUp('run: folder');
      many.write(...folders(51));
      await start(many);
      expect(many.logged).toMatchObject([{ files: 51 * 12 }]);
    });

    test('skips it with existing: skip, but not files that arrive during the first scan', async () => {
      let release: () => void = () => undefined;
      const blocked = new Promise<void>((resolve) => {
        release = resolve;
      });
      let batches = 0;
      const scene = setUp('existing: skip', ({ intake }) => ({
        intake: {
          ...intake,
          async unknown(...batch) {
            batches += 1;
            if (batches === 1) await blocked;
            return intake.unknown(...batch);
          },
        },
      }));
      scene.write('old.csv');
      const started = scene.intake.start();
      await eventually(() => expect(batches).toBe(1));
      scene.write('live.csv');
      await eventually(() => expect(scene.added).toHaveLength(1));
      release();
      await started;
      await eventually(() => expect(scene.waiting()).toBe(0));
      expect(scene.added.map(({ file }) => file.path)).toEqual([join(scene.folder, 'live.csv')]);
    });

    test('records the end of the first scan later if the journal cannot be written', async () => {
      let failures = 1;
      const scene = setUp('changed: new', ({ intake }) => ({
        intake: {
          ...intake,
          async endFirstScan(name) {
            failures -= 1;
            if (failures >= 0) throw new Error('disk full');
            return intake.endFirstScan(name);
          },
        },
      }));
      scene.write('a.csv');
      await start(scene);
      expect(await scene.journal.intake.firstScanAt('balance')).toBeUndefined();
      await scene.scan();
      expect(await scene.journal.intake.firstScanAt('balance')).toBeDefined();
      expect(scene.added).toHaveLength(1);
    });

    test('with existing: { since }, takes files from that day on', async () => {
      const scene = setUp('existing: { since: 2026-01-01 }');
      scene.write('old.csv', 'new.csv');
      const day = (iso: string): Date => new Date(`${iso}T12:00:00`);
      utimesSync(join(scene.folder, 'old.csv'), day('2025-12-31'), day('2025-12-31'));
      utimesSync(join(scene.folder, 'new.csv'), day('2026-01-01'), day('2026-01-01'));
      await start(scene);
      expect(scene.added.map(({ file }) => file.path)).toEqual([join(scene.folder, 'new.csv')]);
    });
  });

  test('the scan pauses while 10,000 files are being processed', async () => {
    const scene = setUp('existing: ingest, ready: { quiet: 1h }');
    for (const name of names(10_300)) writeFileSync(join(scene.folder, name), '');
    let isScanned = false;
    void scene.intake.start().then(() => {
      isScanned = true;
    });
    await vi.waitFor(() => expect(scene.waiting()).toBe(10_000), { timeout: 30_000, interval: 200 });
    await systemClock.sleep(200);
    expect(scene.waiting()).toBe(10_000);
    expect(isScanned).toBe(false);
  });
});

describe('delivery', () => {
  /** The real journal and delivery, a notebook in memory, and a clock that skips all waits. */
  async function setUp(contents: readonly string[], notebook: Partial<FakeNotebook> = {}) {
    const clock = manualClock();
    const journal = memoryJournal(clock);
    for (const content of contents) await see(journal, content);
    const changes: (RunChange & { readonly run: number })[] = [];
    const filed: number[] = [];
    const context = contextOf(journal, { ...fakeNotebook(), ...notebook }, clock);
    const delivery = createDelivery({
      outbox: journal.outbox,
      context,
      writes: new Writes({ clock, log: silentLog(), random: Math.random }),
      prepare: async () => undefined,
      concurrency: 3,
      observer: {
        filed: ({ id }) => void filed.push(id),
        failed: ({ id }, change) => void changes.push({ ...change, run: id }),
      },
      log: silentLog(),
      random: Math.random,
    });
    onTestFinished(() => delivery.stop());
    delivery.start();
    return { journal, delivery, changes, filed };
  }

  test('postpones a run that can succeed later, parks one that cannot, and files the others', async () => {
    const errors = [
      new NotebookError('server', 'away', { scope: 'run' }),
      new NotebookError('request', 'bad date'),
      new NotebookError('conflict', 'deleted', { status: 409 }),
    ];
    const real = fakeNotebook();
    const { changes, filed, journal } = await setUp(['a', 'b', 'c', 'd'], {
      ...real,
      async createExperiment(fields) {
        const error = errors.shift();
        if (error) throw error;
        return real.createExperiment(fields);
      },
    });
    await eventually(() => expect(filed).toHaveLength(2));
    expect(filed.toSorted()).toEqual([1, 4]);
    expect(changes).toMatchObject([
      { run: 1, kind: 'postponed', failure: 'server', reason: 'away' },
      { run: 2, kind: 'parked', as: 'quarantined', reason: 'bad date' },
      { run: 3, kind: 'parked', as: 'held', reason: 'deleted' },
    ]);
    expect(await journal.outbox.count()).toEqual({ done: 2, quarantined: 1, held: 1 });
  });

  test('files a run that is added later as soon as it is woken', async () => {
    const { journal, delivery, filed } = await setUp([]);
    await see(journal, 'a');
    delivery.wake();
    await eventually(() => expect(filed).toEqual([1]));
  });
});
