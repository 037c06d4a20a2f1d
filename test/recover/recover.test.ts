import { expect, test } from 'vitest';
import { deliver } from '../../src/deliver/deliver.js';
import { NotebookError } from '../../src/errors.js';
import { markComment, type Origin, provisionalTitle, referenceOf } from '../../src/markers.js';
import { type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import {
  contextOf,
  deliverAll,
  draftOf,
  emptyJournal,
  expectExactly,
  FIRST_ID,
  file,
  instrument,
  recoverInto,
  SERVER,
  see,
} from '../support/filing.js';
import { knows } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, sha256 } from '../support/runs.js';

test('an empty journal is filled with every run, its experiment and its comments, and nothing is sent', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b', 'c');
  const writes = notebook.writes.length;
  const journal = await emptyJournal(clock);
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 3, known: 0, withoutComments: [] });
  for (const content of ['a', 'b', 'c']) await see(journal, content);
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  expect(notebook.writes).toHaveLength(writes);
  expect(await journal.outbox.count()).toEqual({ done: 3 });
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({
    highest: FIRST_ID + 2,
    halted: undefined,
  });
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 0, known: 3 });
});

test('a refiled run is recovered as two runs, and a copy made by a person is not', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a');
  const identity = { instrument: 'balance', sha256: sha256('a'), copy: '' };
  const third = notebook.addExperiment('a');
  const { body } = draftOf('a', newRun('a'));
  await notebook.patchExperiment(third, { title: 'a', date: '2026-01-02', body });
  await notebook.postComment(third, markComment('x', referenceOf({ ...identity, refiling: 2 }), 1));
  const copy = notebook.addExperiment('a, copied by somebody');
  await notebook.patchExperiment(copy, { title: 'a', date: '2026-01-02', body });
  const journal = await emptyJournal(clock);
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 2, known: 1 });
  expect(await journal.recovery.owns(SERVER, third)).toBe(true);
  expect(await journal.recovery.owns(SERVER, copy)).toBe(false);
  expect(await knows(journal, newRun('a'))).toBe(true);
});

test('a refiled run whose file a new journal has taken while it was halted is not filed again', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const { body } = draftOf('a', newRun('a'));
  const again = notebook.addExperiment('a');
  await notebook.patchExperiment(again, { title: 'a', date: '2026-01-02', body });
  const reference = referenceOf({ instrument: 'balance', sha256: sha256('a'), copy: '', refiling: 1 });
  for (const [index, text] of ['one', 'two'].entries())
    await notebook.postComment(again, markComment(text, reference, index + 1));
  const writes = notebook.writes.length;
  const journal = await emptyJournal(clock);
  await see(journal, 'a');
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 0, completed: 1 });
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  expect(notebook.writes).toHaveLength(writes);
  expect(await journal.outbox.count()).toEqual({ done: 1 });
});

test('a marker line that somebody copied from another run does not hide a run', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b');
  const [a, b] = [...notebook.experiments.values()];
  const copied = [...(a?.comments.values() ?? [])][0] ?? '';
  b?.comments.clear();
  b?.comments.set(5, copied);
  const journal = await emptyJournal(clock);
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 2 });
});

test('an experiment that was created but not filled in is used by its own run', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a');
  const reference = referenceOf({ instrument: 'balance', sha256: sha256('b'), copy: '', refiling: 0 });
  const blank = await notebook.createExperiment({ title: provisionalTitle(reference) });
  const journal = await emptyJournal(clock);
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 1, spares: 1 });
  for (const content of ['a', 'b']) await see(journal, content);
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  expectExactly(notebook, ['a', 'b']);
  expect(notebook.experiments.get(blank)?.title).toBe('b');
});

test('without a range, ids are read from the first unknown one until 200 in a row are missing', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b');
  const asked: number[] = [];
  const read = notebook.readExperiment;
  const counting = {
    ...notebook,
    async readExperiment(id: number) {
      asked.push(id);
      // Somebody's private entry, not a gap.
      if (id === FIRST_ID + 6) throw new NotebookError('conflict', 'no', { status: 403 });
      return read(id);
    },
  };
  const journal = await emptyJournal(clock);
  await journal.recovery.begin(SERVER);
  await journal.recovery.saw(SERVER, FIRST_ID - 1);
  expect(await recoverInto(journal, counting, { range: undefined })).toMatchObject({
    from: FIRST_ID,
    to: FIRST_ID + 6,
    recovered: 2,
    others: 1,
  });
  expect(asked).toEqual(Array.from({ length: 207 }, (_, n) => FIRST_ID + n));
});

/** Ids that were skipped, or whose experiments were deleted. */
function skipIds({ addExperiment, experiments }: FakeNotebook, count: number): void {
  for (let n = 0; n < count; n++) experiments.delete(addExperiment('gone'));
}

test('on eLabFTW, ids are read to the newest one that the notebook lists, which confirms the end', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  await file(notebook, clock, 'a');
  skipIds(notebook, 300);
  await file(notebook, clock, 'b');
  const journal = await emptyJournal(clock);
  await journal.recovery.begin(SERVER);
  await journal.recovery.saw(SERVER, FIRST_ID - 1);
  expect(await recoverInto(journal, notebook, { range: undefined })).toMatchObject({
    recovered: 2,
    endConfirmed: true,
  });
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: undefined, unconfirmed: undefined });
  // Not every version can list them in this order.
  const older = {
    ...notebook,
    newestExperiments: () => Promise.reject(new NotebookError('request', 'no', { status: 400 })),
  };
  expect(await recoverInto(journal, older, { range: undefined })).toMatchObject({ endConfirmed: false });
});

test('if no experiment is found from id 1 on, the halt stays and --ids is suggested', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  skipIds(notebook, 200);
  await file(notebook, clock, 'a');
  const journal = await emptyJournal(clock);
  await journal.outbox.server(SERVER).learn({ halted: 'the journal was restored' });
  await expect(recoverInto(journal, notebook, { range: undefined })).rejects.toMatchObject({
    hint: expect.stringContaining('--ids A-B'),
  });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBe('the journal was restored');
});

test('experiments of other instruments are left alone, and the longest matching instrument name counts', async () => {
  const notebook = fakeNotebook();
  const write = (body: string) =>
    notebook.patchExperiment(notebook.addExperiment('x'), { title: 'x', date: '2026-01-02', body });
  await write('<p>my notes</p>');
  await write(`<p>labfeed plate reader 2 run &amp; more.csv sha256:${sha256('a')}</p><p>seen, fine</p>`);
  await write(`<p>labfeed elsewhere b.csv sha256:${sha256('b')}</p>`);
  const journal = await emptyJournal(manualClock());
  const instruments = ['plate reader', 'plate', 'plate reader 2'].map((name) => instrument(name));
  expect(await recoverInto(journal, notebook, { instruments })).toMatchObject({
    recovered: 1,
    others: 1,
    unknownInstruments: [FIRST_ID + 2],
    withoutComments: [FIRST_ID + 1],
  });
  const path = '/data/run & more.csv';
  expect(await knows(journal, newRun('a', { instrument: 'plate reader 2', path }))).toBe(true);
});

test('copies that are separate runs are recovered as one run each', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const paths = ['/data/1/a.csv', '/data/2/a.csv'];
  const first = await emptyJournal(clock);
  for (const path of paths) await see(first, 'a', { path, copy: path });
  await deliverAll(first, contextOf(first, notebook, clock), clock);
  const instruments = [instrument('balance', 'ingest')];
  for (const bare of [false, true]) {
    // Without comments, only the file name identifies them.
    if (bare) for (const { comments } of notebook.experiments.values()) comments.clear();
    const journal = await emptyJournal(clock);
    expect(await recoverInto(journal, notebook, { instruments })).toMatchObject({ recovered: 2 });
    const isKnown = (path: string) => knows(journal, newRun('a', { path, copy: path }));
    for (const path of [...paths, ...paths].reverse()) expect(await isKnown(path)).toBe(true);
    expect(await isKnown('/data/3/a.csv')).toBe(false);
  }
});

test('after an interruption nothing is sent until recover has run again, and it continues where it stopped', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b', 'c');
  const journal = await emptyJournal(clock);
  const stop = new AbortController();
  const stopping = {
    signal: stop.signal,
    onProgress: (id: number) => void (id === FIRST_ID + 1 && stop.abort()),
  };
  await expect(
    recoverInto(journal, { ...notebook, readExperiment: stopOn(notebook, stop.signal) }, stopping),
  ).rejects.toThrow();
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({
    highest: FIRST_ID,
    halted: expect.stringContaining('labfeed recover'),
  });
  const rest = await recoverInto(journal, notebook, { range: undefined });
  expect(rest).toMatchObject({ from: FIRST_ID + 1, recovered: 2 });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

/** Rejects requests once the command is interrupted. */
const stopOn =
  ({ readExperiment }: FakeNotebook, signal: AbortSignal) =>
  async (id: number) => {
    signal.throwIfAborted();
    return readExperiment(id);
  };

test('requests are retried while the notebook is unavailable, but not if the key is rejected', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a');
  const failing = (failure: 'server' | 'auth', times: number): FakeNotebook => {
    let left = times;
    const notNow = (): NotebookError => new NotebookError(failure, 'not now', { status: 500 });
    return {
      ...notebook,
      async readExperiment(id) {
        if (left-- > 0) throw notNow();
        return notebook.readExperiment(id);
      },
      async listKeys() {
        if (left > 0 && left < times) throw notNow();
        return notebook.listKeys();
      },
    };
  };
  const retries: string[] = [];
  const onRetry = (reason: string): void => void retries.push(reason);
  expect(await recoverInto(await emptyJournal(clock), failing('server', 3), { onRetry })).toMatchObject({
    recovered: 1,
  });
  expect(retries).toHaveLength(3);
  await expect(recoverInto(await emptyJournal(clock), failing('server', 99))).rejects.toThrow(/stopped early/);
  await expect(recoverInto(await emptyJournal(clock), failing('auth', 1))).rejects.toThrow('not now');
});

test('if the notebook cannot be reached at all, the journal is not halted', async () => {
  const clock = manualClock();
  const away: FakeNotebook = {
    ...fakeNotebook(),
    listKeys: () => Promise.reject(new NotebookError('server', 'away', { status: 502, scope: 'run' })),
  };
  const journal = await emptyJournal(clock);
  await expect(recoverInto(journal, away)).rejects.toThrow('the notebook cannot be reached: away');
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

test('404s from a proxy that has lost its backend do not end the recovery as if all ids were read', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b');
  let answers = 0;
  const lost: FakeNotebook = {
    ...notebook,
    readExperiment: (id) =>
      id > FIRST_ID
        ? Promise.reject(new NotebookError('conflict', 'not found', { status: 404 }))
        : notebook.readExperiment(id),
    listKeys: async () => {
      answers += 1;
      if (answers > 1) throw new NotebookError('server', 'no notebook there');
      return notebook.listKeys();
    },
  };
  const journal = await emptyJournal(clock);
  await expect(recoverInto(journal, lost)).rejects.toThrow(/stopped early: no notebook there/);
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: expect.any(String) });
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 1, known: 1 });
});

test('comments that the notebook has, but an older journal does not, are not posted again', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a');
  const older = await emptyJournal(clock);
  await see(older, 'a');
  await older.outbox.record(
    1,
    { kind: 'intended', server: SERVER, floor: FIRST_ID - 1, at: 1 },
    { kind: 'created', experiment: FIRST_ID, found: false },
    { kind: 'described' },
  );
  await recoverInto(older, notebook);
  const writes = notebook.writes.length;
  await deliverAll(older, contextOf(older, notebook, clock), clock);
  expect(await older.outbox.count()).toEqual({ done: 1 });
  expect(notebook.writes).toHaveLength(writes);
  expectExactly(notebook, ['a']);
});

test('a run that a later journal has filed in a spare of this one is not filed again', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  for (const content of ['a', 'b']) await file(notebook, clock, content);
  const older = await emptyJournal(clock);
  await see(older, 'b');
  await older.outbox.record(
    1,
    { kind: 'intended', server: SERVER, floor: FIRST_ID - 1, at: 1 },
    { kind: 'created', experiment: FIRST_ID + 1, found: false },
    { kind: 'described' },
    { kind: 'finished' },
  );
  await older.outbox
    .server(SERVER)
    .addSpare(FIRST_ID, referenceOf({ instrument: 'balance', sha256: sha256('b'), copy: '', refiling: 0 }));
  expect(await recoverInto(older, notebook, { range: undefined })).toMatchObject({ recovered: 1, known: 1 });
  await see(older, 'a');
  await deliverAll(older, contextOf(older, notebook, clock), clock);
  expectExactly(notebook, ['a', 'b']);
});

test('if none of the first ids exists, nothing is sent until a range is given', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const journal = await emptyJournal(clock);
  await expect(recoverInto(journal, notebook, { range: undefined })).rejects.toThrow(/none of the first 200 ids/);
  const { halted } = await journal.outbox.server(SERVER).facts();
  expect(halted).toMatch(/none of the first 200 ids is an experiment on .*\n.*if it has no experiments: --ids 1-200/);
  await recoverInto(journal, notebook, { range: { from: 1, to: 8 } });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

/** Files runs before and after a gap in the ids, and recovers into a new journal. */
async function recoverAcross(gap: number) {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b', 'c', 'd', 'e');
  skipIds(notebook, gap);
  const other = await emptyJournal(clock);
  for (const content of ['f', 'g', 'h']) await see(other, content);
  await deliverAll(other, contextOf(other, notebook, clock), clock);
  const journal = await emptyJournal(clock);
  await journal.recovery.begin(SERVER);
  await journal.recovery.saw(SERVER, FIRST_ID - 1);
  const recovered = await recoverInto(journal, notebook, { range: undefined });
  const context = {
    ...contextOf(journal, notebook, clock),
    isUnknownRun: async ({ sha256: content }: Origin) => !(await journal.outbox.hasContent('balance', content)),
  };
  return { clock, notebook, journal, context, recovered };
}

const ALL = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

test('recover reads on after a block of deleted experiments, so that nothing is filed twice', async () => {
  const { clock, notebook, journal, context, recovered } = await recoverAcross(20);
  expect(recovered).toMatchObject({ recovered: 8 });
  for (const content of [...ALL, 'new']) await see(journal, content);
  await deliverAll(journal, context, clock);
  expectExactly(notebook, [...ALL, 'new']);
  // The creation has shown that ids end there.
  expect((await journal.outbox.server(SERVER).facts()).unconfirmed).toBeUndefined();
});

test('if recover stopped before the end, the first creation shows it, and recover continues', async () => {
  const { clock, notebook, journal, context, recovered } = await recoverAcross(250);
  expect(recovered).toMatchObject({ recovered: 5, readThrough: FIRST_ID + 204 });
  for (const content of ALL) await see(journal, content);
  await deliverAll(journal, context, clock);
  expect((await journal.outbox.server(SERVER).facts()).halted).toMatch(/older than the notebook.*labfeed recover/);
  expect([...notebook.experiments.values()].filter(({ title }) => title === 'f')).toHaveLength(1);
  expect(await recoverInto(journal, notebook, { range: undefined })).toMatchObject({ completed: 3 });
  await see(journal, 'new');
  await deliverAll(journal, context, clock);
  for (const content of ['i', 'j', 'k']) await see(journal, content);
  await deliverAll(journal, context, clock);
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: undefined, unconfirmed: undefined });
  const titles = [...notebook.experiments.values()].map(({ title }) => title);
  expect(titles.sort()).toEqual([...ALL, 'new', 'i', 'j', 'k'].sort());
});

test('an experiment that the notebook fails to show stops nothing else, and nothing is sent until a person decides', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b', 'c');
  const broken = FIRST_ID + 1;
  const failing: FakeNotebook = {
    ...notebook,
    async readExperiment(id) {
      if (id === broken) throw new NotebookError('server', 'status 500');
      return notebook.readExperiment(id);
    },
  };
  const journal = await emptyJournal(clock);
  const outbox = journal.outbox.server(SERVER);
  expect(await recoverInto(journal, failing)).toMatchObject({ recovered: 2, unreadable: [broken] });
  expect((await outbox.facts()).halted).toContain(`could not read experiment ${broken}`);
  expect(await recoverInto(journal, failing, { skipUnreadable: true })).toMatchObject({
    known: 2,
    unreadable: [broken],
  });
  expect((await outbox.facts()).halted).toBeUndefined();
});

test('once the experiment can be read again, its run is recovered', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  await file(notebook, clock, 'a', 'b', 'c');
  const journal = await emptyJournal(clock);
  const failing: FakeNotebook = {
    ...notebook,
    listComments: () => Promise.reject(new NotebookError('server', 'status 500')),
  };
  expect(await recoverInto(journal, failing)).toMatchObject({
    recovered: 0,
    unreadable: [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2],
  });
  expect(await recoverInto(journal, notebook)).toMatchObject({ recovered: 3, unreadable: [] });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

test('on eLabFTW, tags that were not added yet are added after the recovery', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const stopped: FakeNotebook = { ...notebook, addTag: () => Promise.reject(new NotebookError('server', 'no answer')) };
  const lost = await emptyJournal(clock);
  await see(lost, 'a');
  await lost.outbox.server(SERVER).learn({ dialect: 'elabftw' });
  await deliver(await lost.outbox.load(1), contextOf(lost, stopped, clock)).catch(() => undefined);
  expect(notebook.experiments.get(FIRST_ID)).toMatchObject({ title: 'a', tags: [] });
  const journal = await emptyJournal(clock);
  await see(journal, 'a');
  await recoverInto(journal, notebook);
  await journal.outbox.server(SERVER).learn({ dialect: 'elabftw' });
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  expect(notebook.experiments.get(FIRST_ID)).toMatchObject({ tags: ['balance'] });
  expect(await journal.outbox.count()).toEqual({ done: 1 });
});
