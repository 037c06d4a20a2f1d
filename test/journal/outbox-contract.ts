import { describe, expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import type { Answer, Source } from '../../src/journal/decisions.js';
import type { JournalReader } from '../../src/journal/reader.js';
import type { Recovery } from '../../src/journal/recovery.js';
import type { RequestStore } from '../../src/journal/requests.js';
import { STAND_IN } from '../../src/model.js';
import type { NewRun, Outbox, RunChange } from '../../src/outbox.js';
import { newRun, someDraft } from '../support/runs.js';

/** An outbox under test, with everything that reads and decides about its runs. */
export interface TestedOutbox {
  readonly outbox: Outbox;
  readonly requests: RequestStore;
  readonly recovery: Recovery;
  readonly reader: JournalReader;
  /** The same outbox as the next process finds it if this one is killed now. */
  afterCrash(): Promise<TestedOutbox>;
}

const SERVER = 'https://eln.example.org';
const ALWAYS = Number.MAX_SAFE_INTEGER;
const intended = (changes: Partial<RunChange> = {}): RunChange =>
  ({ kind: 'intended', server: SERVER, floor: 9, at: 1, ...changes }) as RunChange;
const created = (experiment: number): RunChange => ({ kind: 'created', experiment, found: false });
const done = (experiment: number): RunChange[] => [
  intended(),
  created(experiment),
  { kind: 'described' },
  { kind: 'finished' },
];
const held: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };
const quarantined: RunChange = { kind: 'parked', as: 'quarantined', failure: 'request', reason: '422' };
const postponed = (dueAt: number): RunChange => ({
  kind: 'postponed',
  dueAt,
  failure: 'server',
  reason: 'away',
});

/** The contract that every outbox must fulfil. */
export function testOutbox(name: string, open: () => Promise<TestedOutbox>): void {
  async function setUp() {
    const tested = await open();
    const { outbox, requests } = tested;
    const add = async (content: string, changes: Partial<NewRun> = {}, comments = ['one', 'two']) =>
      (await outbox.add(newRun(content, changes), { draft: someDraft(content, comments) })).run;
    return {
      ...tested,
      add,
      async addWith(content: string, ...changes: readonly RunChange[]): Promise<number> {
        const run = await add(content);
        if (changes.length > 0) await outbox.record(run, ...changes);
        return run;
      },
      refuse: (content: string, changes: Partial<NewRun> = {}) =>
        outbox.add(newRun(content, changes), { problem: new FileError('no table') }),
      async decide(request: Parameters<RequestStore['decide']>[0], has: Source['has'] = 'itsBytes'): Promise<Answer> {
        return (await requests.decide(request, { path: '/data/a.csv', has })).answer;
      },
    };
  }

  describe(`${name}: hand-over`, () => {
    test('a run comes back as it was added, after a crash too', async () => {
      const { add, afterCrash } = await setUp();
      const run = await add('a');
      const { outbox } = await afterCrash();
      expect(await outbox.claim(ALWAYS, 9)).toEqual([run]);
      expect(await outbox.load(run)).toMatchObject({
        id: run,
        instrument: 'balance',
        step: 'pending',
        experiment: undefined,
        attempts: 0,
        draft: { title: 'a', date: '2026-01-02', body: expect.stringContaining('<p>a</p>'), tags: ['balance'] },
        comments: [
          { n: 1, text: 'one', comment: undefined },
          { n: 2, text: 'two', comment: undefined },
        ],
      });
    });

    test('a hand-over that is repeated after a crash changes nothing', async () => {
      const first = await setUp();
      const run = await first.addWith('a', ...done(12));
      const { outbox } = await first.afterCrash();
      expect(await outbox.match(newRun('a'))).toMatchObject({ kind: 'known', run, isErased: false });
      const again = { draft: someDraft('read by another version') };
      expect(await outbox.add(newRun('a'), again)).toMatchObject({ run, outcome: 'known' });
      expect(await outbox.add(newRun('a'), { problem: new FileError('no table') })).toMatchObject({
        run,
        outcome: 'known',
      });
      expect((await outbox.load(run)).draft.title).toBe('a');
      expect(await outbox.count()).toEqual({ done: 1 });
    });

    test('equal runs that are handed over at the same time become one', async () => {
      const { outbox } = await setUp();
      const draft = someDraft('a');
      const both = await Promise.all([
        outbox.add(newRun('a'), { draft }),
        outbox.add(newRun('a', { path: '/data/copy.csv' }), { draft }),
      ]);
      expect(both.map(({ outcome }) => outcome).sort()).toEqual(['known', 'queued']);
      expect(await outbox.count()).toEqual({ queued: 1 });
    });

    test('a run is identified by instrument and content, and by its path if copies count', async () => {
      const { outbox, add } = await setUp();
      await add('a');
      const kind = async (changes: Parameters<typeof newRun>[1]) => (await outbox.match(newRun('a', changes))).kind;
      expect(await kind({ path: '/data/copy.csv' })).toBe('known');
      expect(await kind({ copy: '/data/copy.csv' })).toBe('new');
      expect(await kind({ instrument: 'other' })).toBe('new');
      expect((await outbox.match(newRun('b'))).kind).toBe('new');
    });

    test('a quarantined run is read again under another mapping, and takes that reading', async () => {
      const { outbox, refuse } = await setUp();
      const { run, outcome } = await refuse('a');
      expect(outcome).toBe('quarantined');
      expect((await outbox.match(newRun('a'))).kind).toBe('known');
      expect(await outbox.unread('balance', 'm1')).toEqual([]);
      expect(await outbox.unread('balance', 'm2')).toMatchObject([{ path: undefined, copy: '' }]);
      expect((await outbox.match(newRun('a', { mapping: 'm2' }))).kind).toBe('unread');
      const draft = someDraft('readable');
      expect(await outbox.add(newRun('a', { mapping: 'm2' }), { draft })).toMatchObject({
        run,
        outcome: 'queued',
      });
      expect((await outbox.load(run)).draft.title).toBe('readable');
    });

    test('the rest of a filed run is not a run of its own; the rest of an unfiled one is', async () => {
      const { outbox, addWith } = await setUp();
      const rest = (content: string): NewRun => ({
        ...newRun('rest'),
        partOf: { sha256: newRun(content).file.sha256, copy: '' },
      });
      const filed = await addWith('filed', ...done(12));
      await addWith('open');
      expect(await outbox.match(rest('filed'))).toMatchObject({ kind: 'known', run: filed });
      expect(await outbox.match(rest('open'))).toEqual({ kind: 'new' });
    });
  });

  describe(`${name}: claims`, () => {
    test('live runs come before backlog, instruments take turns, and the oldest run comes first', async () => {
      const { outbox, add } = await setUp();
      for (const content of ['1', '2', '3']) await add(content, { instrument: 'many', backlog: true });
      for (const content of ['4', '5']) await add(content, { instrument: 'few', backlog: true });
      await add('6', { instrument: 'many' });
      const titles: string[] = [];
      for (const run of await outbox.claim(ALWAYS, 100)) titles.push((await outbox.load(run)).draft.title);
      expect(titles).toEqual(['6', '4', '1', '5', '2', '3']);
    });

    test('claimed one at a time, instruments take turns, however many runs one of them has', async () => {
      const { outbox, add } = await setUp();
      for (const content of ['a', 'b', 'c', 'd']) await add(content);
      const other = await add('e', { instrument: 'scale' });
      await outbox.claim(ALWAYS, 1);
      expect(await outbox.claim(ALWAYS, 1)).toEqual([other]);
    });

    test('a claimed run goes to nobody else until it is released', async () => {
      const { outbox, add } = await setUp();
      for (const content of ['a', 'b', 'c', 'd', 'e']) await add(content);
      // Two users of the same outbox.
      const [mine, yours] = await Promise.all([outbox.claim(ALWAYS, 2), outbox.claim(ALWAYS, 2)]);
      expect(new Set([...mine, ...yours]).size).toBe(4);
      expect(await outbox.claim(ALWAYS, 9)).toHaveLength(1);
      expect(await outbox.claim(ALWAYS, 9)).toEqual([]);
      expect(await outbox.nextDueAt()).toBeUndefined();
      const [first = 0] = mine;
      await outbox.release(first);
      expect(await outbox.nextDueAt()).toBe(0);
      expect(await outbox.claim(ALWAYS, 9)).toEqual([first]);
    });

    test('a crash releases all claims', async () => {
      const first = await setUp();
      const run = await first.add('a');
      await first.outbox.claim(ALWAYS, 9);
      expect(await (await first.afterCrash()).outbox.claim(ALWAYS, 9)).toEqual([run]);
    });

    test('a postponed run is claimed when it is due, and that time is known', async () => {
      const { outbox, addWith } = await setUp();
      const run = await addWith('a', postponed(5000));
      expect(await outbox.claim(4999, 9)).toEqual([]);
      expect(await outbox.nextDueAt()).toBe(5000);
      expect(await outbox.claim(5000, 9)).toEqual([run]);
      expect((await outbox.load(run)).attempts).toBe(1);
    });

    test('parked and done runs are not claimed', async () => {
      const { outbox, addWith } = await setUp();
      await addWith('a', held);
      await addWith('b', quarantined);
      await addWith('c', ...done(12));
      expect(await outbox.claim(ALWAYS, 9)).toEqual([]);
      expect(await outbox.nextDueAt()).toBeUndefined();
      expect(await outbox.count()).toEqual({ held: 1, quarantined: 1, done: 1 });
    });
  });

  describe(`${name}: records`, () => {
    test('every step of a delivery is durable when its record resolves', async () => {
      const first = await setUp();
      const run = await first.add('a');
      await first.outbox.record(run, intended());
      expect(await (await first.afterCrash()).outbox.load(run)).toMatchObject({ step: 'creating', floor: 9 });
      await first.outbox.record(run, created(12));
      await first.outbox.record(run, { kind: 'described' });
      await first.outbox.record(run, { kind: 'commentIntended', n: 1, at: 5 });
      await first.outbox.record(run, { kind: 'commented', n: 1, comment: 71, found: false });
      expect(await (await first.afterCrash()).outbox.load(run)).toMatchObject({
        step: 'described',
        server: SERVER,
        experiment: 12,
        comments: [
          { n: 1, intentAt: 5, comment: 71 },
          { n: 2, comment: undefined },
        ],
      });
      await first.outbox.record(run, { kind: 'finished' });
      expect((await (await first.afterCrash()).outbox.load(run)).step).toBe('done');
    });

    test('a bad record fails as a whole, and does not take its neighbours down', async () => {
      const { outbox, add } = await setUp();
      const [a, b] = [await add('a'), await add('b')];
      const results = await Promise.allSettled([
        outbox.record(a, intended(), created(7)),
        outbox.record(b, intended(), created(7)),
        outbox.record(a, { kind: 'described' }),
      ]);
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect((await outbox.load(a)).step).toBe('described');
      expect(await outbox.load(b)).toMatchObject({ step: 'pending', server: undefined });
    });

    test('an experiment belongs to one run of its server', async () => {
      const { outbox, addWith } = await setUp();
      await addWith('a', intended(), created(41));
      await expect(addWith('b', intended(), created(41))).rejects.toThrow();
      await addWith('c', intended({ server: 'https://other.example.org' }), created(41));
      expect(await outbox.count()).toEqual({ sending: 2, queued: 1 });
    });

    test('a creation that did not happen starts again; an unseen earlier one stays an unknown outcome', async () => {
      const { outbox, addWith } = await setUp();
      const run = await addWith('a', intended(), { kind: 'notCreated' });
      expect(await outbox.load(run)).toMatchObject({ step: 'pending', floor: undefined });
      await outbox.record(run, intended({ unseen: 1 }), { kind: 'notCreated' });
      expect(await outbox.load(run)).toMatchObject({ step: 'creating', unseen: 0 });
    });

    test('the history has every record, in order and with its details', async () => {
      const { reader, addWith } = await setUp();
      const run = await addWith('a', intended(), created(12), held);
      const { history } = (await reader.job(run)) ?? expect.fail('no run');
      expect(history.map(({ event }) => event)).toEqual(['read', 'intended', 'created', 'rested']);
      expect(history.at(-1)?.detail).toMatchObject({ as: 'held', reason: 'somebody changed it' });
    });
  });

  describe(`${name}: server facts`, () => {
    test('nothing is known about a new server', async () => {
      const facts = await (await setUp()).outbox.server(SERVER).facts();
      expect(Object.values(facts).every((fact) => fact === undefined)).toBe(true);
    });

    test('what was learnt is kept per server, after a crash too, until it is forgotten', async () => {
      const first = await setUp();
      const learnt = { dialect: 'v2', keepsTitle: false, blank: '{}', sweep: 7, halted: 'recover' } as const;
      await first.outbox.server(SERVER).learn(learnt);
      const { outbox } = await first.afterCrash();
      const server = outbox.server(SERVER);
      expect(await server.facts()).toMatchObject(learnt);
      const reason = (await server.facts()).halted;
      await server.learn({ halted: 'another sign of it' });
      expect((await server.facts()).halted).toBe(reason);
      await server.learn({ halted: null, sweep: null });
      expect(await server.facts()).toMatchObject({ dialect: 'v2', halted: undefined, sweep: undefined });
      expect((await outbox.server('https://other.example.org').facts()).dialect).toBeUndefined();
    });

    test('the highest id rises with every creation and never falls; the lowest restored id counts', async () => {
      const { outbox, addWith } = await setUp();
      await addWith('a', intended(), created(41));
      await addWith('b', intended(), created(40));
      const server = outbox.server(SERVER);
      expect((await server.facts()).highest).toBe(41);
      await Promise.all([server.learn({ restoredFrom: 50 }), server.learn({ restoredFrom: 45 })]);
      expect((await server.facts()).restoredFrom).toBe(45);
      // An id that was only read counts too.
      for (const seen of [60, 55]) await server.learn({ seen });
      expect((await server.facts()).highest).toBe(60);
    });

    test('the next creation ends the ids in which unseen creations are looked for', async () => {
      const { outbox, addWith } = await setUp();
      const server = outbox.server(SERVER);
      const run = await addWith('a', intended({ unseen: 1, sweepFrom: 20 }));
      expect(await server.facts()).toMatchObject({ sweepFrom: 20, sweep: undefined });
      expect(await server.unknownCreations()).toMatchObject([{ run, floor: 9, unseen: 1, isParked: false }]);
      await outbox.record(run, created(30));
      expect(await server.facts()).toMatchObject({ sweepFrom: 20, sweep: 30, sweepCount: 1 });
      expect([await server.runWith(30), await server.runWith(31)]).toEqual([run, undefined]);
      await server.learn({ sweepFrom: null, sweep: null, sweepCount: null });
      // Nothing lies between the end of the last pass and this creation.
      await addWith('b', intended({ unseen: 1, sweepFrom: 40 }), created(31));
      expect(await server.facts()).toMatchObject({ sweepFrom: undefined, sweep: undefined });
    });

    test('our experiments, references and unknown outcomes are known', async () => {
      const { outbox, add, addWith } = await setUp();
      await addWith('a', intended(), created(41), { kind: 'described' });
      await addWith('b', intended(), created(43), { kind: 'described' }, { kind: 'finished' });
      await addWith('blank', intended(), created(44));
      await addWith('held', intended(), created(45), { kind: 'described' }, held);
      const creating = await addWith('c', intended({ unseen: 2 }));
      const { reference } = await outbox.load(creating);
      const pending = await outbox.load(await add('d'));
      const server = outbox.server(SERVER);
      const { sha256 } = newRun('b').file;
      expect((await server.lastFiled(5)).map(({ experiment }) => experiment)).toEqual([43, 41]);
      expect((await server.lastFiled(1))[0]).toMatchObject({ experiment: 43, sha256, title: 'b' });
      await addWith('spare', intended(), created(40), { kind: 'described' });
      expect((await server.lastDescribed(2)).map(({ experiment }) => experiment)).toEqual([40, 43]);
      expect([await server.hasExperiment(41), await server.hasExperiment(42)]).toEqual([true, false]);
      expect([await server.isCreating(reference), await server.isCreating(pending.reference)]).toEqual([true, false]);
      expect(await server.countUnknown()).toBe(3);
      expect(await outbox.hasContent('balance', newRun('a').file.sha256)).toBe(true);
      expect(await outbox.hasContent('balance', newRun('d').file.sha256)).toBe(false);
    });
  });

  describe(`${name}: spares`, () => {
    test('a run gets its own spare first, and none that belongs to a run still to be created', async () => {
      const { outbox, add } = await setUp();
      const [a, b] = [await outbox.load(await add('a')), await outbox.load(await add('b'))];
      const server = outbox.server(SERVER);
      await server.addSpare(30);
      await server.addSpare(31, a.reference);
      await server.addSpare(31, a.reference);
      expect(await server.hasExperiment(31)).toBe(true);
      expect(await server.claimSpare(b)).toBe(30);
      expect(await server.claimSpare(b)).toBeUndefined();
      expect(await server.claimSpare(a)).toBe(31);
      expect(await outbox.load(a.id)).toMatchObject({ step: 'created', experiment: 31, server: SERVER });
    });

    test('the experiment of a run is no spare, even if it was found before the run was known to have it', async () => {
      const { outbox, add, addWith } = await setUp();
      const filed = await outbox.load(await addWith('a', intended(), created(30)));
      await outbox.server(SERVER).addSpare(30, filed.reference);
      expect(await outbox.server(SERVER).claimSpare(await outbox.load(await add('b')))).toBeUndefined();
    });

    test('two runs never get the same spare', async () => {
      const { outbox, add } = await setUp();
      const runs = [await outbox.load(await add('a')), await outbox.load(await add('b'))];
      await outbox.server(SERVER).addSpare(30);
      const claimed = await Promise.all(runs.map((run) => outbox.server(SERVER).claimSpare(run)));
      expect(claimed.filter((experiment) => experiment !== undefined)).toEqual([30]);
    });
  });

  describe(`${name}: files to move or delete`, () => {
    const sources = ['a', 'b'].map((one) => ({
      ...{ path: `/data/${one}.csv`, location: `/data/${one}.csv`, sha256: one, identity: '1:2:3', readyAt: 0 },
    }));
    const planned = [
      { n: 1, target: '/filed/a.csv' },
      { n: 2, target: undefined },
    ];
    const settled = (n: number, path: string) =>
      ({ kind: 'sourceSettled', outcome: 'moved', n, path, to: `/filed/${n}` }) as const;
    const versionOf = (content: string) => ({ ...newRun(content).file, path: newRun('a').file.path });
    const hide = async ({ sources: own }: Outbox, run: number, plan = planned, loaded = own.load(run)) => {
      const steps = ['bring', 'hide'] as const;
      for (const step of steps) if (!(await own.begin(step, await loaded, plan))) return false;
      return true;
    };
    const dueOf = async ({ sources }: Outbox, at = 0): Promise<number[]> => {
      const runs = await sources.claim(at, 9, ['balance']);
      for (const run of runs) await sources.release(run);
      return runs;
    };

    test('are due once their run is done, until each is settled, also after a crash and a reopening', async () => {
      const { outbox, add, afterCrash } = await setUp();
      const run = await add('a', { sources });
      expect(await dueOf(outbox)).toEqual([]);
      await outbox.record(run, ...done(12));
      expect(await outbox.sources.claim(0, 9, ['other'])).toEqual([]);
      expect(await dueOf(outbox)).toEqual([run]);
      expect(await outbox.sources.load(run)).toMatchObject({
        run: { id: run, experiment: 12 },
        files: sources.map(({ readyAt, ...source }, index) => ({ ...source, n: index + 1 + readyAt, isHidden: false })),
      });
      await outbox.sources.record(run, settled(1, '/data/a.csv'));
      const later = (await afterCrash()).outbox;
      expect((await later.sources.load(run)).files).toMatchObject([{ n: 2 }]);
      await later.sources.record(run, settled(2, '/data/b.csv'));
      expect(await dueOf(later)).toEqual([]);
      // Done once more, for example after a remap.
      await later.record(run, created(12), ...done(12));
      expect(await dueOf(later)).toEqual([]);
    });

    test('are due only after nothing was written to them for a while, from when they were read', async () => {
      const { outbox, add } = await setUp();
      const run = await add('a', { sources: sources.map((source) => ({ ...source, readyAt: 600_000 })) });
      await outbox.record(run, ...done(12));
      expect(await dueOf(outbox, 599_999)).toEqual([]);
      expect(await dueOf(outbox, 600_000)).toEqual([run]);
      await outbox.sources.record(run, { kind: 'sourceRenewed', n: 1, identity: '1:2:4', readyAt: 900_000 });
      await outbox.sources.record(run, { kind: 'sourceRenewed', n: 2, identity: '1:2:4', readyAt: 900_000 });
      expect(await dueOf(outbox, 899_999)).toEqual([]);
      expect(await dueOf(outbox, 900_000)).toEqual([run]);
    });

    test('are claimed by one at a time', async () => {
      const { outbox, add } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      expect(await outbox.sources.claim(0, 9, ['balance'])).toEqual([run]);
      expect(await outbox.sources.claim(0, 9, ['balance'])).toEqual([]);
    });

    test('wait while raw files are still to be attached', async () => {
      const { outbox, add } = await setUp();
      const attachments = [{ name: 'a.csv', path: '/data/a.csv', sha256: 'aa', size: 1 }];
      const run = await add('a', { sources, attachments });
      await outbox.record(run, ...done(12));
      expect(await dueOf(outbox)).toEqual([]);
      expect(await hide(outbox, run)).toBe(false);
      await outbox.uploads.record(run, { kind: 'uploaded', n: 1, upload: 7, found: false });
      expect(await dueOf(outbox)).toEqual([run]);
    });

    test('that cannot be moved are tried again later, after the others, and the reason is known meanwhile', async () => {
      const { outbox, add } = await setUp();
      const [run, other] = [await add('a', { sources }), await add('b', { sources })];
      for (const id of [run, other]) await outbox.record(id, ...done(id));
      const trouble = () => outbox.sources.trouble(['balance']);
      expect(await trouble()).toBeUndefined();
      await outbox.sources.record(run, { kind: 'sourcePostponed', reason: 'no space', dueAt: 5000 });
      expect(await dueOf(outbox, 4999)).toEqual([other]);
      expect(await dueOf(outbox, 5000)).toEqual([other, run]);
      // The clock was ahead.
      expect(await dueOf(outbox, -(10 ** 9))).toEqual([other, run]);
      // With those that wait behind it.
      expect(await trouble()).toEqual({ files: 4, path: '/data/a.csv', reason: 'no space' });
      expect((await outbox.sources.load(run)).attempts).toBe(1);
      // Something that people need not know does not take the reason away.
      await outbox.sources.record(run, { kind: 'sourcePostponed', reason: 'busy', isQuiet: true, dueAt: 5000 });
      expect(await trouble()).toMatchObject({ reason: 'no space' });
    });

    test('of an instrument that was removed are no trouble, unless one may be hidden', async () => {
      const { outbox, add } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      await outbox.sources.record(run, { kind: 'sourcePostponed', reason: 'no space', dueAt: 5000 });
      expect(await outbox.sources.trouble([])).toBeUndefined();
      await hide(outbox, run);
      expect(await outbox.sources.trouble([])).toMatchObject({ files: 2 });
    });

    test('that may have private names are known after a crash, with what was to become of them', async () => {
      const { outbox, add, afterCrash } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      expect(await hide(outbox, run)).toBe(true);
      // Nothing is decided before they are hidden and compared.
      expect((await outbox.sources.load(run)).files).toMatchObject([
        { isHidden: true, decided: undefined, target: '/filed/a.csv' },
        { isHidden: true, decided: undefined },
      ]);
      expect(await outbox.sources.begin('remove', await outbox.sources.load(run), planned)).toBe(true);
      const second = await afterCrash();
      expect(await second.outbox.sources.claimHidden(ALWAYS)).toEqual([run]);
      expect((await second.outbox.sources.load(run)).files).toMatchObject([
        { isHidden: true, decided: 'move', target: '/filed/a.csv' },
        { isHidden: true, decided: 'delete' },
      ]);
      const renamed = { path: '/data/a (2).csv', location: '/data/a (2).csv' };
      await second.outbox.sources.record(
        run,
        { kind: 'sourceRestored', n: 1, renamed },
        { kind: 'sourceRestored', n: 2 },
      );
      expect(await second.outbox.sources.claimHidden(ALWAYS)).toEqual([]);
      expect((await second.outbox.sources.load(run)).files).toMatchObject([
        { ...renamed, isHidden: false, decided: undefined },
        { path: '/data/b.csv', isHidden: false, decided: undefined },
      ]);
    });

    test('whose private names a scan finds are put back, even if they were taken for deleted', async () => {
      const { outbox, add } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      const gone = { kind: 'sourceSettled', outcome: 'gone', n: 1, path: '/data/a.csv', to: undefined } as const;
      await outbox.sources.record(run, gone, { ...gone, n: 2, path: '/data/b.csv', outcome: 'moved' });
      expect(await outbox.sources.claimHidden(0)).toEqual([]);
      expect(await outbox.sources.found('/data/b.csv')).toBe('unknown');
      expect(await outbox.sources.found('/data/c.csv')).toBe('unknown');
      expect(await outbox.sources.found('/data/a.csv')).toBe('hidden');
      expect(await outbox.sources.claimHidden(ALWAYS)).toEqual([run]);
      expect(await outbox.sources.found('/data/a.csv')).toBe('claimed');
    });

    test('keep the next version of a file waiting while they are hidden, and belong to the version that was loaded', async () => {
      const { outbox, add } = await setUp();
      const revises = { last: undefined };
      const run = await add('a', { sources: sources.slice(0, 1), revises });
      await outbox.record(run, ...done(12));
      const version = { ...newRun('next', { revises, sources: sources.slice(0, 1) }), file: versionOf('next') };
      const loaded = await outbox.sources.load(run);
      const plan = planned.slice(0, 1);
      expect(await hide(outbox, run, plan)).toBe(true);
      expect(await outbox.match(version)).toMatchObject({ kind: 'version', isBusy: true });
      await outbox.sources.record(run, { kind: 'sourceRestored', n: 1 });
      expect(await outbox.match(version)).toMatchObject({ kind: 'version', isBusy: false });
      expect((await outbox.add(version, { draft: someDraft('next') })).run).toBe(run);
      const [claimed] = await outbox.claim(ALWAYS, 9);
      await outbox.record(claimed ?? 0, { kind: 'described' }, { kind: 'finished' });
      await outbox.release(run);
      expect(await hide(outbox, run, plan, Promise.resolve(loaded))).toBe(false);
      expect(await hide(outbox, run, plan)).toBe(true);
    });

    test('are not touched once the run is reopened, to be remapped, or erased', async () => {
      const { outbox, add, decide } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      await hide(outbox, run);
      expect(await decide({ kind: 'remap', run })).toMatchObject({ done: true });
      expect(await hide(outbox, run)).toBe(false);
      expect(await dueOf(outbox)).toEqual([]);
    });

    test('of an erased run are forgotten, but not before they have their own names again', async () => {
      const { outbox, add, decide, reader } = await setUp();
      const [run, hidden] = [await add('a', { sources }), await add('b', { sources })];
      for (const id of [run, hidden]) await outbox.record(id, ...done(id));
      await hide(outbox, hidden);
      for (const id of [run, hidden])
        expect(await decide({ kind: 'erase', run: id }, 'nothing')).toMatchObject({ done: true });
      expect((await outbox.sources.load(run)).files).toEqual([]);
      expect(await hide(outbox, hidden)).toBe(false);
      expect(await reader.sourcesOf(hidden)).toEqual([]);
      expect(await outbox.sources.claimHidden(ALWAYS)).toEqual([hidden]);
      const renamed = { path: '/data/a (2).csv', location: '/data/a (2).csv' };
      await outbox.sources.record(hidden, { kind: 'sourceRestored', n: 1, renamed }, { kind: 'sourceRestored', n: 2 });
      expect((await outbox.sources.load(hidden)).files).toEqual([]);
      const { history = [] } = (await reader.job(hidden)) ?? {};
      expect(JSON.stringify(history)).not.toContain('/data/');
    });

    test('of an erased run that were moved leave their path to the next file', async () => {
      const { outbox, add, decide } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      await outbox.sources.record(run, settled(1, '/data/a.csv'));
      expect(await decide({ kind: 'erase', run }, 'nothing')).toMatchObject({ done: true });
      expect(await outbox.sources.hasLeft('balance', '/data/a.csv')).toBe(true);
      expect(await outbox.sources.hasLeft('balance', '/data/b.csv')).toBe(false);
    });

    test('go with a run that is filed again', async () => {
      const { outbox, add, decide } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      expect(await decide({ kind: 'refile', run })).toMatchObject({ done: true });
      expect((await outbox.sources.load(run)).files).toEqual([]);
      expect(await dueOf(outbox)).toEqual([]);
      const [again] = await outbox.claim(ALWAYS, 9);
      await outbox.record(again ?? 0, ...done(13));
      expect(await dueOf(outbox)).toEqual([again]);
    });

    test('that were moved are named if the run is to be remapped', async () => {
      const { outbox, add, decide } = await setUp();
      const run = await add('a', { sources });
      await outbox.record(run, ...done(12));
      await outbox.sources.record(run, settled(1, '/data/a.csv'));
      const answer = await decide({ kind: 'remap', run }, 'nothing');
      expect(answer).toMatchObject({
        done: false,
        text: expect.stringContaining('its file was moved to /filed/1; copy it'),
      });
    });

    test('are replaced if the run takes the next version of its file', async () => {
      const { outbox, add } = await setUp();
      const run = await add('a', { sources: sources.slice(0, 1), revises: { last: undefined } });
      await outbox.record(run, ...done(12));
      const [next] = sources.map((source) => ({ ...source, sha256: 'next', identity: '4:5:6', readyAt: 0 }));
      const version = {
        ...newRun('next', { revises: { last: undefined }, sources: next ? [next] : [] }),
        file: versionOf('next'),
      };
      expect((await outbox.add(version, { draft: someDraft('next') })).run).toBe(run);
      expect(await dueOf(outbox)).toEqual([]);
      expect((await outbox.sources.load(run)).files).toMatchObject([{ sha256: 'next', identity: '4:5:6' }]);
    });

    test('of which one was moved keep what the notebook has of it: what comes to the path is another run', async () => {
      const { outbox, add, reader } = await setUp();
      const attachments = ['a', 'b'].map((one) => ({
        ...{ name: `${one}.csv`, path: `/data/${one}.csv`, sha256: one, size: 1 },
      }));
      const revises = { last: undefined };
      const run = await add('a', { sources, revises, attachments });
      await outbox.record(run, ...done(12));
      for (const n of [1, 2]) await outbox.uploads.record(run, { kind: 'uploaded', n, upload: n, found: false });
      // Another file, or a later one for the same run of several files.
      const late = { ...newRun('late', { revises, attachments: [] }), file: versionOf('late') };
      expect(await outbox.match(late)).toMatchObject({ kind: 'version' });
      await outbox.sources.record(run, settled(2, '/data/b.csv'));
      expect(await outbox.match(late)).toEqual({ kind: 'new' });
      const added = await outbox.add(late, { draft: someDraft('late') });
      expect(added).toMatchObject({ outcome: 'queued' });
      expect(added.run).not.toBe(run);
      expect((await reader.filingOf(run)).attachments).toMatchObject([{ name: 'a.csv' }, { name: 'b.csv' }]);
      expect(await reader.sourcesOf(run)).toMatchObject([{ outcome: undefined }, { outcome: 'moved' }]);
      // From now on, the path is that of the other run.
      const later = { ...newRun('later', { revises, attachments: [] }), file: versionOf('later') };
      expect((await outbox.add(later, { draft: someDraft('later') })).run).toBe(added.run);
    });

    test('leave a path to the next file once they are moved', async () => {
      const { outbox, add } = await setUp();
      const run = await add('a', { sources });
      expect(await outbox.sources.hasLeft('balance', '/data/a.csv')).toBe(false);
      await outbox.sources.record(run, settled(1, '/data/a.csv'));
      expect(await outbox.sources.hasLeft('balance', '/data/a.csv')).toBe(true);
      expect(await outbox.sources.hasLeft('other', '/data/a.csv')).toBe(false);
      // The run is no longer complete, so the other path is free, too.
      expect(await outbox.sources.hasLeft('balance', '/data/b.csv')).toBe(true);
      expect(await outbox.sources.hasLeft('balance', '/data/c.csv')).toBe(false);
      expect([await outbox.sources.hasMovedTo('/filed'), await outbox.sources.hasMovedTo('/file')]).toEqual([
        true,
        false,
      ]);
    });
  });

  describe(`${name}: decisions`, () => {
    test('retry lets a held run continue where it stopped', async () => {
      const { outbox, addWith, decide } = await setUp();
      const run = await addWith('a', intended(), created(12), postponed(10 ** 14), held);
      expect(await decide({ kind: 'retry', run })).toMatchObject({ done: true });
      expect(await outbox.claim(0, 9)).toEqual([run]);
      expect(await outbox.load(run)).toMatchObject({ step: 'created', experiment: 12, attempts: 0 });
    });

    test('retry has the file of a quarantined run read again, under the same mapping too', async () => {
      const { outbox, refuse, decide } = await setUp();
      const { run } = await refuse('a');
      expect(await decide({ kind: 'retry', run })).toMatchObject({ done: true, rescan: 'balance' });
      expect(await outbox.unread('balance', 'm1')).toHaveLength(1);
      expect((await outbox.match(newRun('a'))).kind).toBe('unread');
    });

    test('adopt gives a held run an experiment, whose comments are looked for; not one of another run', async () => {
      const { outbox, addWith, decide } = await setUp();
      await addWith('a', intended(), created(12));
      const run = await addWith('b', intended(), held);
      const adopt = { kind: 'adopt', run, server: SERVER } as const;
      expect(await decide({ ...adopt, experiment: 12 })).toMatchObject({ done: false });
      expect(await decide({ ...adopt, experiment: 44 })).toMatchObject({ done: true });
      expect(await outbox.load(run)).toMatchObject({
        step: 'created',
        experiment: 44,
        adopted: true,
        comments: [{ intentAt: 0 }, { intentAt: 0 }],
      });
      expect((await outbox.server(SERVER).facts()).highest).toBe(12);
    });

    test('refile adds another run with the same draft and another reference', async () => {
      const { outbox, decide } = await setUp();
      const draft = { ...someDraft('a'), extras: { category: 'Raw data' } };
      const { run } = await outbox.add(newRun('a'), { draft });
      await outbox.record(run, ...done(12));
      expect(await decide({ kind: 'refile', run })).toMatchObject({ done: true });
      const [again = 0] = await outbox.claim(ALWAYS, 9);
      const [before, after] = [await outbox.load(run), await outbox.load(again)];
      expect(after).toMatchObject({ step: 'pending', experiment: undefined, draft: before.draft });
      expect(after.draft.extras).toEqual({ category: 'Raw data' });
      expect(after.reference).not.toBe(before.reference);
      expect(await outbox.match(newRun('a'))).toMatchObject({ kind: 'known', run: again });
    });

    test('a run whose bytes could not be read is ignored once its path holds a file that is filed', async () => {
      const { outbox, reader, addWith, refuse } = await setUp();
      const filed = await addWith('a', ...done(12));
      const { file } = newRun('a');
      const { run } = await refuse('b', { file: { ...file, sha256: STAND_IN + file.sha256.slice(STAND_IN.length) } });
      expect(await outbox.match(newRun('a'))).toMatchObject({ kind: 'known', run: filed });
      expect(await outbox.count()).toEqual({ done: 1, ignored: 1 });
      expect((await reader.job(run))?.reason).toBe(`its path now holds the file of run ${filed}`);
    });

    test('ignore parks a run for good, until it is retried', async () => {
      const { outbox, addWith, decide } = await setUp();
      const run = await addWith('a', held);
      expect(await decide({ kind: 'ignore', run })).toMatchObject({ done: true });
      expect(await outbox.count()).toEqual({ ignored: 1 });
      await decide({ kind: 'retry', run });
      expect(await outbox.claim(ALWAYS, 9)).toEqual([run]);
    });

    test('remap has the file of a done run read again, and keeps the earlier reading until it is delivered', async () => {
      const { outbox, addWith, decide } = await setUp();
      const run = await addWith('a', ...done(12));
      const file = newRun('a');
      expect(await decide({ kind: 'remap', run })).toMatchObject({ done: true, rescan: 'balance' });
      expect(await outbox.unread('balance', 'm1')).toMatchObject([{ path: file.file.path }]);
      expect((await outbox.match(file)).kind).toBe('unread');
      expect((await outbox.match(newRun('a', { path: '/data/copy.csv' }))).kind).toBe('known');
      const reading = { draft: someDraft('after', ['one']) };
      expect(await outbox.add(file, reading)).toMatchObject({ run, outcome: 'revised' });
      expect(await outbox.unread('balance', 'm1')).toEqual([]);
      expect(await outbox.load(run)).toMatchObject({
        step: 'created',
        experiment: 12,
        draft: { title: 'after' },
        earlier: [{ title: 'a', written: true }],
      });
    });

    test('repair posts a comment again that is gone, and only under the id that it had', async () => {
      const { outbox, addWith, decide } = await setUp();
      const posted: RunChange = { kind: 'commented', n: 1, comment: 71, found: false };
      const run = await addWith('a', ...done(12), posted);
      const repair = { kind: 'repair', run, comments: [{ n: 1, comment: 70 }] } as const;
      await decide(repair);
      expect((await outbox.load(run)).step).toBe('done');
      await decide({ ...repair, comments: [{ n: 1, comment: 71 }] });
      expect(await outbox.load(run)).toMatchObject({
        step: 'described',
        comments: [{ n: 1, comment: undefined, gone: 71 }, { n: 2 }],
      });
    });

    test('erase removes the name, the draft and the history; the content stays known', async () => {
      const { outbox, reader, addWith, decide } = await setUp();
      const run = await addWith('a', ...done(12));
      expect(await decide({ kind: 'erase', run })).toMatchObject({ done: true });
      expect(await reader.job(run)).toMatchObject({
        path: '',
        title: undefined,
        draft: undefined,
        experiment: 12,
        history: [{ event: 'erased' }],
      });
      expect(await outbox.match(newRun('a'))).toMatchObject({ kind: 'known', isErased: true });
    });

    test('a refused request changes nothing', async () => {
      const { outbox, addWith, decide, reader } = await setUp();
      const run = await addWith('a');
      const before = await reader.job(run);
      for (const kind of ['retry', 'refile', 'ignore', 'erase', 'remap'] as const)
        expect(await decide({ kind, run })).toMatchObject({ done: false });
      expect(await decide({ kind: 'retry', run: 77 })).toMatchObject({ done: false });
      expect(await reader.job(run)).toEqual(before);
      expect(await outbox.count()).toEqual({ queued: 1 });
    });
  });

  describe(`${name}: lists`, () => {
    test('runs are listed by state and instrument, newest first, and page by page', async () => {
      const { reader, addWith, refuse } = await setUp();
      await addWith('queued');
      await addWith('sending', intended());
      await addWith('done', ...done(12));
      await addWith('held', held);
      await refuse('refused', { instrument: 'other' });
      const list = async (filter: Partial<Parameters<JournalReader['jobs']>[0]>) =>
        (await reader.jobs({ limit: 10, ...filter })).map(({ id }) => id);
      expect(await list({})).toEqual([5, 4, 3, 2, 1]);
      expect(await list({ limit: 2, before: 4 })).toEqual([3, 2]);
      expect(await list({ instrument: 'other' })).toEqual([5]);
      expect(await list({ state: 'sending' })).toEqual([2]);
      expect(await list({ state: 'held', instrument: 'other' })).toEqual([]);
    });

    test('what waits for people is counted by instrument, with the newest reason', async () => {
      const { outbox, addWith, refuse } = await setUp();
      await addWith('a', held);
      await refuse('b');
      await refuse('c');
      expect(await outbox.waitingForPeople()).toEqual(
        new Map([
          [
            'balance',
            {
              held: { runs: 1, path: '/data/a.csv', reason: 'somebody changed it' },
              quarantined: { runs: 2, path: '/data/c.csv', reason: expect.stringContaining('no table') },
            },
          ],
        ]),
      );
      expect(await outbox.lastAddedAt('balance')).toBeDefined();
      expect(await outbox.lastAddedAt('other')).toBeUndefined();
    });

    test('a run that is neither filed nor parked is overdue after its time, counted from its last reopening', async () => {
      const { outbox, addWith, decide } = await setUp();
      await addWith('done', ...done(12));
      const run = await addWith('held', held);
      expect(await outbox.overdue(ALWAYS)).toBeUndefined();
      await decide({ kind: 'retry', run });
      await outbox.record(run, postponed(5));
      expect(await outbox.overdue(0)).toBeUndefined();
      const found = await outbox.overdue(ALWAYS);
      expect(found).toEqual({
        run,
        instrument: 'balance',
        path: '/data/held.csv',
        state: 'queued',
        since: expect.any(Number),
        reason: 'away',
      });
      expect(await outbox.overdue(found?.since ?? 0)).toBeUndefined();
      await outbox.record(run, ...done(13));
      expect(await outbox.overdue(ALWAYS)).toBeUndefined();
    });

    test('a run that was postponed for longer than any wait is due', async () => {
      const { outbox, addWith } = await setUp();
      await addWith('soon', postponed(5000));
      const run = await addWith('in a month', postponed(30 * 86_400_000));
      expect(await outbox.claim(1000, 10)).toEqual([]);
      expect(await outbox.pullForward(5000)).toBe(1);
      expect(await outbox.pullForward(5000)).toBe(0);
      expect(await outbox.claim(1000, 10)).toEqual([run]);
    });

    test('pruning removes drafts and history of finished runs, never what identifies them', async () => {
      const { outbox, reader, addWith } = await setUp();
      const run = await addWith('a', ...done(12));
      await addWith('b', held);
      expect(await outbox.prune(ALWAYS, 0)).toEqual({ runs: 1, next: undefined });
      expect(await reader.job(run)).toMatchObject({ draft: undefined, history: [], experiment: 12 });
      expect(await outbox.match(newRun('a'))).toMatchObject({ kind: 'known', run });
    });

    test('a recovered run is taken in once, and its content is known', async () => {
      const { outbox, recovery } = await setUp();
      const filed = {
        server: SERVER,
        experiment: 12,
        instrument: 'balance',
        sha256: newRun('a').file.sha256,
        file: 'a.csv',
        copies: false,
        comments: [],
      };
      await recovery.begin(SERVER);
      expect(await recovery.take(filed)).toBe('recovered');
      expect(await recovery.take(filed)).toBe('known');
      expect((await outbox.match(newRun('a'))).kind).toBe('known');
      expect((await outbox.server(SERVER).facts()).halted).toBeDefined();
    });
  });
}
