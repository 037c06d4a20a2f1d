import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../src/clock.js';
import { loadConfig } from '../src/config/load.js';
import { sourcesOf } from '../src/daemon/sources.js';
import { deliver } from '../src/deliver/deliver.js';
import { createJournal } from '../src/journal/journal.js';
import { createReader } from '../src/journal/reader.js';
import { createIntake } from '../src/pipeline.js';
import { createActivity } from '../src/watch/intake.js';
import { directReader } from './support/direct-reader.js';
import { fakeNotebook } from './support/fake-notebook.js';
import { contextOf } from './support/filing.js';
import { decide, due } from './support/journal.js';
import { emptyDatabase } from './support/memory-journal.js';
import { silentLog } from './support/silent-log.js';
import { tempFolder } from './support/temp-folder.js';

const eventually = (holds: () => void | Promise<void>) => vi.waitFor(holds, { timeout: 15_000, interval: 10 });

/** The sample is the title of its experiment. */
const MAPPING = 'parse: { format: delimited, table: {} }, experiment: { title: "{{ readings[0].Sample }}" }';
const weighing = (sample: string): string => `Sample,Weight (mg)\n${sample},1.125\n`;
const UNREADABLE = 'Sample,Weight (mg)\na,1,2,3\n';

/** One instrument with a real folder, the real journal in memory and a notebook. Each `configure` is a reload. */
async function setUp(settings = 'changed: revise', files: Readonly<Record<string, string>> = {}) {
  const folder = tempFolder();
  const data = join(folder, 'data');
  mkdirSync(data);
  const database = emptyDatabase();
  const journal = createJournal({ database, clock: systemClock, release: () => undefined });
  const notebook = fakeNotebook();
  const context = contextOf(journal, notebook, systemClock);
  let live: { intake: ReturnType<typeof createIntake>; waiting(): readonly { reason: string }[] } | undefined;
  onTestFinished(async () => {
    await live?.intake.stop();
    await journal.close();
  });

  const scene = {
    journal,
    notebook,
    async configure(changes: string): Promise<void> {
      await live?.intake.stop();
      const config = join(folder, 'labfeed.yaml');
      // Of several files, the first one is read.
      const mapping = changes.includes('run:') ? MAPPING.replace('table', 'main: "*.csv", table') : MAPPING;
      const fixed = `watch: data, poll: never, ready: { quiet: 1ms }, ${changes.includes('parse') ? '' : `${mapping},`}`;
      const existing = changes.includes('existing') ? '' : 'existing: ingest,';
      writeFileSync(config, `instruments:\n  balance: { ${fixed} ${existing} ${changes} }\n`);
      const { instruments, problems } = loadConfig(config);
      const [instrument = expect.fail(JSON.stringify(problems))] = instruments;
      const activity = createActivity(instrument, systemClock);
      const intake = createIntake(instrument, {
        journal,
        reader: directReader(instrument, journal.outbox.id),
        activity,
        sourcesOf: (file) => sourcesOf(instrument, file, 0),
        claims: { isClaimed: () => false, isOthers: () => false },
        observer: {},
        isSecretIn: () => false,
        wakeDelivery: () => undefined,
        clock: systemClock,
        log: silentLog(),
      });
      live = { intake, waiting: () => activity.live().waiting.first };
      await intake.start();
      await scene.settled();
    },
    waiting: () => live?.waiting() ?? [],
    settled: () => eventually(() => expect(scene.waiting()).toEqual([])),
    write(name: string, content: string): void {
      mkdirSync(dirname(join(data, name)), { recursive: true });
      writeFileSync(join(data, name), content);
    },
    rename: (from: string, to: string) => renameSync(join(data, from), join(data, to)),
    remove: (name: string) => rmSync(join(data, name)),
    /** What the daemon does after the run is filed. */
    async deleteSource(run: number, name: string): Promise<void> {
      const path = join(data, name);
      const { files } = await journal.outbox.sources.load(run);
      const { n = 0 } = files.find((file) => file.path === path) ?? {};
      rmSync(path);
      await journal.outbox.sources.record(run, { kind: 'sourceSettled', n, path, outcome: 'deleted', to: undefined });
    },
    rescan: async () => live?.intake.rescan(false),
    /** What the daemon does with the folder as it is now. Twice, because copies are looked at again. */
    async run(): Promise<void> {
      for (let time = 0; time < 2; time++) {
        await scene.rescan();
        await scene.settled();
        for (const id of await due(journal)) await deliver(await journal.outbox.load(id), context);
      }
    },
    titles: () => [...notebook.experiments.values()].map(({ title }) => title),
    states: () =>
      database.prepare('SELECT ifnull(parked, step) AS state, reason FROM runs ORDER BY id').all() as {
        state: string;
        reason: string | null;
      }[],
    /** The states of the runs of this file. */
    statesOf: (name: string) =>
      database
        .prepare('SELECT ifnull(parked, step) AS state FROM runs WHERE path = ? ORDER BY id')
        .all(join(data, name))
        .map(({ state }) => state),
    /** The runs that the journal finds for this path. */
    runsAt: async (name: string) => (await createReader(database).filesAt(join(data, name))).map(({ run }) => run),
    versions: (run: number) => database.prepare('SELECT * FROM versions WHERE run = ?').all(run),
    async decide(request: object) {
      database.prepare('INSERT INTO inbox (at, request) VALUES (0, ?)').run(JSON.stringify(request));
      expect(await decide(journal)).toMatchObject([{ done: true }]);
    },
  };
  for (const [name, content] of Object.entries(files)) scene.write(name, content);
  await scene.configure(settings);
  return scene;
}

test('a file that changes updates its experiment, and one that changes back ends where it began', async () => {
  const { write, run, titles } = await setUp();
  for (const sample of ['s1', 's2', 's1', 's3', 's2']) {
    write('a.csv', weighing(sample));
    await run();
    expect(titles()).toEqual([sample]);
  }
});

test.each([
  ['a file of a folder', 'run: folder, files: ["**/*.csv", "**/*.txt"]', 'r1/a.csv'],
  ['one of several joined files', 'run: { join: ["{stem}.csv", "{stem}.txt"] }, files: ["*.csv", "*.txt"]', 'a.csv'],
])('%s that changes updates the experiment of the run', async (_, settings, name) => {
  const { write, run, titles, states } = await setUp(`changed: revise, ${settings}`);
  const other = name.replace('.csv', '.txt');
  write(name, weighing('s1'));
  write(other, weighing('x'));
  await run();
  write(name, weighing('s2'));
  await run();
  expect(titles()).toEqual(['s2']);
  write(other, weighing('y'));
  await run();
  expect([titles(), states()]).toEqual([['s2'], [{ state: 'done', reason: null }]]);
});

test.each([
  ['a folder', 'run: folder, files: ["**/*.csv", "**/*.txt"]', 'r1/a.csv', 'r1/late.csv'],
  ['joined files', 'run: { join: ["{stem}.csv", "{stem}.txt"] }, files: ["*.csv", "*.txt"]', 'a.csv', 'a.csv'],
])(
  'of %s, one file was deleted after it was filed: what comes there later is another run',
  async (_, settings, name, late) => {
    const { write, run, titles, deleteSource } = await setUp(`changed: revise, source: delete, ${settings}`);
    const other = name.replace('.csv', '.txt');
    write(name, weighing('s1'));
    write(other, weighing('x'));
    await run();
    expect(titles()).toEqual(['s1']);
    await deleteSource(1, name);
    await run();
    expect(titles()).toEqual(['s1']);
    write(late, weighing('s2'));
    if (late === name) write(other, weighing('y'));
    await run();
    expect(titles()).toEqual(['s1', 's2']);
  },
);

test('a file that is added to a folder while its other files are being moved waits for them', async () => {
  const { write, run, rename, rescan, waiting, titles, states, journal } = await setUp(
    'source: delete, run: folder, files: ["**/*.csv", "**/*.txt"]',
  );
  write('r1/a.csv', weighing('s1'));
  await run();
  const { sources } = journal.outbox;
  const filed = await sources.load(1);
  const planned = filed.files.map(({ n }) => ({ n, target: undefined }));
  expect(await sources.begin('hide', filed, planned)).toBe(true);
  rename('r1/a.csv', 'r1/.labfeed-0-a.csv');
  write('r1/b.txt', weighing('x'));
  await rescan();
  await eventually(() => expect(waiting()).toMatchObject([{ reason: expect.stringContaining('being moved') }]));
  expect(states()).toHaveLength(1);
  rename('r1/.labfeed-0-a.csv', 'r1/a.csv');
  await sources.record(1, { kind: 'sourceRestored', n: planned[0]?.n ?? 0 });
  await run();
  expect(titles()).toEqual(['s1', 's1']);
});

test('a file that is added to a folder updates its experiment, and one that is removed changes nothing', async () => {
  const { write, remove, run, titles, journal } = await setUp(
    'changed: revise, run: folder, files: ["**/*.csv", "**/*.txt"]',
  );
  write('r1/a.csv', weighing('s1'));
  await run();
  const { sha256: before } = await journal.outbox.load(1);
  write('r1/b.txt', weighing('x'));
  await run();
  const { sha256 } = await journal.outbox.load(1);
  expect(sha256).not.toBe(before);
  remove('r1/b.txt');
  await run();
  expect(titles()).toEqual(['s1']);
  expect((await journal.outbox.load(1)).sha256).toBe(sha256);
});

test('a file that is renamed keeps its experiment, and a new file of the old name gets its own', async () => {
  const { write, rename, run, titles } = await setUp();
  write('result.csv', weighing('s1'));
  await run();
  rename('result.csv', 'sample-1.csv');
  await run();
  expect(titles()).toEqual(['s1']);
  write('result.csv', weighing('s2'));
  await run();
  expect(titles()).toEqual(['s1', 's2']);
  write('sample-1.csv', weighing('s1 corrected'));
  write('result.csv', weighing('s2 corrected'));
  await run();
  expect(titles()).toEqual(['s1 corrected', 's2 corrected']);
});

test('the old path of a file that was renamed and has changed since still leads to its run', async () => {
  const { write, rename, run, runsAt, titles } = await setUp();
  write('result.csv', weighing('s1'));
  await run();
  rename('result.csv', 'sample-1.csv');
  await run();
  write('sample-1.csv', weighing('s1 corrected'));
  await run();
  expect(titles()).toEqual(['s1 corrected']);
  expect(await runsAt('sample-1.csv')).toEqual([1]);
  expect(await runsAt('result.csv')).toEqual([1]);
});

test('equal files share an experiment until one of them changes', async () => {
  const { write, run, titles } = await setUp();
  write('a.csv', weighing('s1'));
  await run();
  write('b.csv', weighing('s1'));
  await run();
  expect(titles()).toEqual(['s1']);
  write('a.csv', weighing('s2'));
  await run();
  expect(titles()).toEqual(['s2', 's1']);
  write('b.csv', weighing('s3'));
  await run();
  expect(titles()).toEqual(['s2', 's3']);
});

test('a copy that changes gets its own experiment, and the other file keeps its own', async () => {
  const { write, run, titles } = await setUp();
  write('a.csv', weighing('s1'));
  await run();
  write('b.csv', weighing('s1'));
  await run();
  write('b.csv', weighing('s2'));
  await run();
  expect(titles()).toEqual(['s1', 's2']);
});

test.each(['skip', 'ingest'])(
  'a file takes bytes that another path has: its own experiment shows them (%s)',
  async (duplicates) => {
    const { write, run, titles, states } = await setUp(`changed: revise, duplicates: ${duplicates}`);
    write('a.csv', weighing('s1'));
    write('b.csv', weighing('s2'));
    await run();
    const order = titles();
    write('a.csv', weighing('s2'));
    await run();
    expect(titles()).toEqual(['s2', 's2']);
    write('a.csv', weighing('s1'));
    await run();
    expect(titles()).toEqual(order);
    write('c.csv', weighing('s1'));
    await run();
    expect(states()).toHaveLength(duplicates === 'skip' ? 2 : 3);
  },
);

test('a version that cannot be read leaves the experiment as it is, and is quarantined until it is replaced', async () => {
  const { write, run, titles, states } = await setUp();
  write('a.csv', weighing('s1'));
  await run();
  write('a.csv', UNREADABLE);
  await run();
  expect(titles()).toEqual(['s1']);
  expect(states()).toMatchObject([{ state: 'done' }, { state: 'quarantined' }]);
  expect(states()[1]?.reason).toContain('experiment 101 (run 1) stays as it is, with the version before');
  write('a.csv', weighing('s2'));
  await run();
  expect(titles()).toEqual(['s2']);
  expect(states()).toMatchObject([
    { state: 'done' },
    { state: 'ignored', reason: 'its path now holds the file of run 1' },
  ]);
  write('a.csv', `${UNREADABLE}\n`);
  await run();
  write('a.csv', weighing('s2'));
  await run();
  expect(titles()).toEqual(['s2']);
  expect(states().map(({ state }) => state)).toEqual(['done', 'ignored', 'ignored']);
});

test.each([
  ['s1', 's3'],
  ['s4', 's5'],
] as const)('files with the same unreadable content are each quarantined, until they hold %s and %s', async (a, b) => {
  const { write, run, titles, statesOf: of } = await setUp();
  write('a.csv', weighing('s1'));
  write('b.csv', weighing('s2'));
  await run();
  write('a.csv', '');
  write('b.csv', '');
  await run();
  expect([of('a.csv'), of('b.csv')]).toEqual([
    ['done', 'quarantined'],
    ['done', 'quarantined'],
  ]);
  write('b.csv', weighing('s3'));
  await run();
  expect([of('a.csv'), of('b.csv')]).toEqual([
    ['done', 'quarantined'],
    ['done', 'ignored'],
  ]);
  write('b.csv', '');
  await run();
  expect(of('b.csv')).toEqual(['done', 'quarantined']);
  // A third one is known by the content, until nobody else has it.
  write('c.csv', '');
  await run();
  write('a.csv', weighing(a));
  write('b.csv', weighing(b));
  await run();
  expect(titles().toSorted()).toEqual([a, b]);
  expect(of('c.csv')).toEqual(['quarantined']);
});

test('a version that cannot be read is listed once, however often it is looked at', async () => {
  const { write, run, decide: ask, versions } = await setUp();
  write('a.csv', weighing('s1'));
  await run();
  write('a.csv', UNREADABLE);
  await run();
  await ask({ kind: 'retry', run: 2 });
  await run();
  expect(versions(1)).toHaveLength(2);
});

test('a file that could never be read is filed once, with its first readable version', async () => {
  const { write, run, titles, states } = await setUp();
  for (const content of [UNREADABLE, `${UNREADABLE}x,1,2,3\n`]) {
    write('a.csv', content);
    await run();
    expect(states()).toMatchObject([{ state: 'quarantined' }]);
  }
  write('a.csv', weighing('s1'));
  await run();
  expect([titles(), states()]).toEqual([['s1'], [{ state: 'done', reason: null }]]);
});

test('a version that a changed mapping can read updates the experiment', async () => {
  const withDelimiter = (one: string) => `changed: revise, ${MAPPING.replace('table', `delimiter: "${one}", table`)}`;
  const { write, run, titles, states, configure } = await setUp(withDelimiter(','));
  write('a.csv', weighing('s1'));
  await run();
  write('a.csv', 'Sample;Weight (mg)\ns2;1.5\n');
  await run();
  expect([titles(), states()]).toMatchObject([['s1'], [{ state: 'done' }, { state: 'quarantined' }]]);
  await configure(withDelimiter(';'));
  await run();
  expect(titles()).toEqual(['s2']);
  expect(states().map(({ state }) => state)).toEqual(['done', 'ignored']);
});

test('with drift: hold, a version with other columns waits for a decision, and the experiment stays as it is', async () => {
  const { write, run, titles, states, decide: ask } = await setUp('changed: revise, drift: hold');
  write('a.csv', 'Sample,Weight (mg),Temp\ns1,1.125,20\n');
  await run();
  write('a.csv', weighing('s2'));
  await run();
  expect([titles(), states()]).toMatchObject([['s1'], [{ state: 'held' }]]);
  expect(states()[0]?.reason).toMatch(/compared with the version before.*Temp/);
  await ask({ kind: 'retry', run: 1 });
  await run();
  expect([titles(), states()]).toEqual([['s2'], [{ state: 'done', reason: null }]]);
});

test('files that `existing: skip` left out are filed once they change, and then updated', async () => {
  const { write, run, titles } = await setUp('changed: revise, existing: skip', { 'a.csv': weighing('old') });
  await run();
  expect(titles()).toEqual([]);
  for (const sample of ['s1', 's2']) {
    write('a.csv', weighing(sample));
    await run();
    expect(titles()).toEqual([sample]);
  }
});

test('a reload from new to revise and back changes nothing that is filed, and then counts', async () => {
  const { write, run, titles, configure } = await setUp('changed: new');
  for (const sample of ['s1', 's2', 's1']) {
    write('a.csv', weighing(sample));
    await run();
  }
  expect(titles()).toEqual(['s1', 's2']);
  await configure('changed: revise');
  await run();
  expect(titles()).toEqual(['s1', 's2']);
  // The file had s1 last.
  write('a.csv', weighing('s3'));
  await run();
  expect(titles()).toEqual(['s3', 's2']);
  await configure('changed: new');
  await run();
  write('a.csv', weighing('s4'));
  await run();
  expect(titles()).toEqual(['s3', 's2', 's4']);
  await configure('changed: revise');
  write('a.csv', weighing('s5'));
  await run();
  expect(titles()).toEqual(['s3', 's2', 's5']);
});

test('the content of a version is known under any other setting, too', async () => {
  const { write, run, titles, configure } = await setUp();
  for (const sample of ['s1', 's2']) {
    write('a.csv', weighing(sample));
    await run();
  }
  await configure('changed: new');
  write('copy.csv', weighing('s2'));
  write('a.csv', weighing('s2'));
  await run();
  expect(titles()).toEqual(['s2']);
});

test('a file whose run was erased becomes a run of its own when it changes', async () => {
  const { write, run, titles, decide: ask } = await setUp();
  write('a.csv', weighing('s1'));
  await run();
  write('a.csv', weighing('s2'));
  await run();
  await ask({ kind: 'erase', run: 1 });
  await run();
  expect(titles()).toEqual(['s2']);
  for (const sample of ['s1', 's3']) {
    write('a.csv', weighing(sample));
    await run();
  }
  expect(titles()).toEqual(['s2', 's3']);
});

test('a version that arrives while the one before is being sent waits visibly, and is taken afterwards', async () => {
  const { write, run, titles, journal, rescan, waiting } = await setUp();
  write('a.csv', weighing('s1'));
  await run();
  write('a.csv', weighing('s2'));
  await rescan();
  await eventually(async () => expect(await due(journal)).toEqual([1]));
  await journal.outbox.claim(Number.MAX_SAFE_INTEGER, 1);
  write('a.csv', weighing('s3'));
  await rescan();
  await eventually(() =>
    expect(waiting()).toMatchObject([{ reason: expect.stringContaining('the version before is being sent') }]),
  );
  write('a.csv', weighing('s4'));
  await journal.outbox.release(1);
  await run();
  expect(titles()).toEqual(['s4']);
});
