import { expect, onTestFinished, test } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { attachFiles } from '../../src/deliver/uploads.js';
import { Blame } from '../../src/deliver/writes.js';
import { NotebookError } from '../../src/errors.js';
import { createJournal } from '../../src/journal/journal.js';
import type { Draft } from '../../src/model.js';
import type { NewPlot } from '../../src/uploads.js';
import { askRemap } from '../support/ask-remap.js';
import { FAULTS, type FakeExperiment, type Fault, fakeNotebook, intercept } from '../support/fake-notebook.js';
import { contextOf, draftOf, recoverInto, SERVER } from '../support/filing.js';
import { decide, due, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase } from '../support/memory-journal.js';
import { newRun, sha256 } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';

const GRACE_MS = 130_000;
const FACTS = '<p>facts</p>\n';

const plotOf = (content: string, changes: Partial<Extract<NewPlot, { name: string }>> = {}): NewPlot => ({
  ...{ name: 'run µ-plot.png', sha256: sha256(content), size: content.length },
  ...{ description: 'line plot of "A" against t', at: FACTS.length, ...changes },
});

const NO_PLOT = { at: 0, reason: 'the table has fewer than two rows', isFailed: false };

/** A run with a raw file and a plot, delivered and attached by one process after the other. */
const SCOPE = { server: SERVER, attached: ['balance'], dropped: [] };

async function setUp() {
  const clock = manualClock();
  const database = emptyDatabase();
  const journal = createJournal({ database, clock, release: () => undefined });
  onTestFinished(() => journal.close());
  const server = fakeNotebook({ dialect: 'elabftw' });
  await journal.outbox.server(SERVER).learn({ dialect: 'elabftw', keepsComments: true });
  const requests: string[] = [];
  const faults = new Map<string, Fault | NotebookError>();
  const notebook = intercept(server, async ({ operation, args, isWrite, carryOut }) => {
    const name = (args[1] as { name?: string } | undefined)?.name ?? '';
    requests.push(operation);
    const key = operation === 'uploadFile' && name.endsWith('.csv') ? 'raw' : operation;
    const fault = faults.get(key);
    faults.delete(key);
    if (fault === undefined) return carryOut();
    if (fault instanceof NotebookError) throw fault;
    if (FAULTS[fault].carriedOut === 'now') await carryOut();
    throw FAULTS[fault].error(isWrite);
  });
  const bytes = new Map<string, string>();
  let context = contextOf(journal, notebook, clock);
  const filedAt = new Map<number, number>();
  const delivery = () => ({
    ...{ context, send: notebook.uploadFile, random: () => 1, log: silentLog(), blame: new Blame(clock), filedAt },
    ...{ prepare: async () => undefined, wakeDelivery: () => undefined, uploaded: async () => undefined },
    ...{ isPlotted: () => true, isSecretIn: () => false },
    instruments: { attached: ['balance'], dropped: [] as string[] },
    async openSource({ sha256: wanted }: { sha256: string }) {
      const content = bytes.get(wanted);
      const read = async function* () {
        yield Buffer.from(content ?? '');
      };
      return content === undefined ? undefined : { read, close: async () => undefined };
    },
  });
  async function attach(changes: Partial<ReturnType<typeof delivery>> = {}): Promise<void> {
    for (const id of await journal.outbox.uploads.claim(clock.now(), 10, SCOPE)) {
      await attachFiles(id, new AbortController().signal, { ...delivery(), ...changes });
      await journal.outbox.uploads.release(id);
    }
  }
  async function deliverDue(): Promise<void> {
    for (const id of await due(journal, Number.MAX_SAFE_INTEGER, 10)) {
      const run = await journal.outbox.load(id);
      await deliver(run, context).then(
        () => filedAt.set(id, clock.monotonic()),
        async (error: unknown) =>
          journal.outbox.record(id, afterFailure(error, { attempts: run.attempts }, clock.now())),
      );
    }
  }
  /** Until nothing is left to do, with time passing. */
  async function settle(changes: Parameters<typeof attach>[0] = {}): Promise<void> {
    for (let round = 0; round < 8; round++) {
      await deliverDue();
      await attach(changes);
      if (
        (await journal.outbox.uploads.nextDueAt(SCOPE)) === undefined &&
        (await due(journal, Number.MAX_SAFE_INTEGER, 1)).length === 0
      )
        return;
      clock.advance(GRACE_MS + 60_000);
    }
  }
  const readingOf = (content: string, plot: NewPlot | undefined, picture: string, draft: Partial<Draft> = {}) => {
    const raw = { name: `${content}.csv`, path: '', sha256: sha256(content), size: content.length };
    bytes.set(raw.sha256, content);
    bytes.set(sha256(picture), picture);
    const run = newRun(content, { attachments: [raw], plot });
    const made = draftOf(content, run, ['one']);
    return { run, draft: { ...made, body: FACTS + made.body, ...draft } };
  };
  const scene = {
    ...{ clock, journal, database, requests, faults, bytes, notebook: server, attach, deliverDue, settle },
    /** A file that is read for the first time. */
    async file(content: string, picture: string, plot: NewPlot | undefined = plotOf(picture)): Promise<number> {
      const { run, draft } = readingOf(content, plot, picture);
      return (await take(journal, run, draft)).run;
    },
    async remap(run: number, content: string, picture: string, plot: NewPlot = plotOf(picture), draft = {}) {
      askRemap(database, run, `/data/${content}.csv`, clock.now());
      const read = readingOf(content, plot, picture, draft);
      return (await journal.outbox.add(read.run, { draft: read.draft })).outcome;
    },
    /** The file has this content now. */
    async revise(content: string, picture: string, plot: NewPlot | undefined = plotOf(picture), draft = {}) {
      const read = readingOf(content, plot, picture, draft);
      const file = { ...read.run.file, path: '/data/a.csv' };
      return (await take(journal, { ...read.run, file, revises: { last: undefined } }, read.draft)).outcome;
    },
    /** The process ends, and another one starts. */
    restart(other: Notebook = notebook): void {
      context = contextOf(journal, other, clock);
      filedAt.clear();
    },
    entries: (): FakeExperiment[] => [...server.experiments.values()],
    body: (): string => [...server.experiments.values()].at(-1)?.body ?? '',
    plots: (state = 1) =>
      scene
        .entries()
        .flatMap(({ uploads }) =>
          [...(uploads ?? [])].filter(([, one]) => one.real_name.endsWith('.png') && one.state === state),
        ),
    states: () => journal.outbox.count(),
    reasonOf: (run: number) => database.prepare('SELECT reason FROM runs WHERE id = ?').get(run)?.reason ?? undefined,
    history: (run: number) =>
      database.prepare('SELECT event, detail FROM history WHERE run = ? ORDER BY id').all(run) as {
        event: string;
        detail: string | null;
      }[],
  };
  return scene;
}

const IMAGE =
  /<p><img src="app\/download\.php\?name=run%20%C2%B5-plot\.png&amp;f=ab\/file(\d+)\.png&amp;storage=1" alt="line plot of &quot;A&quot; against t" width="800"><\/p>\n/g;

const imagesIn = (body: string): number[] => [...body.matchAll(IMAGE)].map(([, id]) => Number(id));

test('a plot is attached after the raw file and shown between the facts and the rest, with three more requests', async () => {
  const { file, deliverDue, attach, body, plots, states, requests } = await setUp();
  await file('a', 'picture');
  await deliverDue();
  const before = requests.length;
  await attach();
  await deliverDue();
  expect(requests.slice(before)).toEqual(['uploadFile', 'uploadFile', 'readExperiment', 'patchExperiment']);
  expect(plots()).toHaveLength(1);
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
  expect(body()).toMatch(/^<p>facts<\/p>\n<p><img [^>]*><\/p>\n<p>labfeed balance/);
  expect(await states()).toEqual({ done: 1 });
  await attach();
  expect(requests.slice(before)).toHaveLength(4);
});

test.each(['uploadFile', 'readExperiment', 'patchExperiment'] as const)(
  'there is one plot and one image, whatever becomes of %s',
  async (operation) => {
    for (const fault of ['lost', 'failed', 'dropped', 'badGateway', 'unreachable', 'busy'] as const) {
      const { file, deliverDue, settle, faults, body, plots, states } = await setUp();
      await file('a', 'picture');
      await deliverDue();
      faults.set(operation, fault);
      await settle();
      expect(plots()).toHaveLength(1);
      expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
      expect(await states()).toEqual({ done: 1 });
    }
  },
);

test('after a crash between upload and body, the upload is found and shown', async () => {
  const { file, deliverDue, settle, attach, restart, body, plots, database, requests } = await setUp();
  await file('a', 'picture');
  await deliverDue();
  await attach();
  expect(plots()).toHaveLength(1);
  // What the crash lost: that the answer was recorded.
  database.exec(
    "UPDATE attachments SET upload = NULL, image = NULL, due_at = 0 WHERE kind = 'plot'; UPDATE drafts SET body = (SELECT body FROM earlier_drafts); DELETE FROM earlier_drafts; UPDATE runs SET step = 'done'",
  );
  restart();
  await settle();
  expect(plots()).toHaveLength(1);
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
  expect(requests.filter((one) => one === 'uploadFile')).toHaveLength(2);
});

test('after a crash between the intent to change the body and the PATCH, the body gets the plot once', async () => {
  const { file, deliverDue, settle, attach, restart, body, plots } = await setUp();
  await file('a', 'picture');
  await deliverDue();
  await attach();
  restart();
  await settle();
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
});

test('if a person edited the entry, the plot is attached and the body stays', async () => {
  const { file, deliverDue, attach, entries, body, plots, states, reasonOf } = await setUp();
  const run = await file('a', 'picture');
  await deliverDue();
  for (const entry of entries()) entry.body = `<p>mine</p>${entry.body}`;
  await attach();
  await deliverDue();
  expect(plots()).toHaveLength(1);
  expect(body()).toMatch(/^<p>mine<\/p><p>facts<\/p>\n<p>labfeed/);
  expect(await states()).toEqual({ done: 1 });
  expect(reasonOf(run)).toBeUndefined();
});

test('an edit between the decision to show the plot and the PATCH is kept, and the run stays done', async () => {
  const { file, deliverDue, settle, attach, clock, entries, body, states, remap } = await setUp();
  const run = await file('a', 'picture');
  await deliverDue();
  await attach();
  for (const entry of entries()) entry.body = `<p>mine</p>${entry.body}`;
  clock.advance(3000);
  await settle();
  expect(body()).toMatch(/^<p>mine<\/p><p>facts<\/p>\n<p>labfeed/);
  expect(await states()).toEqual({ done: 1 });
  // The journal knows that the body does not show it.
  for (const entry of entries()) entry.body = entry.body.replace('<p>mine</p>', '');
  expect(await remap(run, 'a', 'picture')).toBe('unchanged');
});

test.each([
  ['refused', new NotebookError('request', 'Too Large', { status: 413 })],
  ['not in the spool', undefined],
])('a plot that is %s does not concern the run', async (_, error) => {
  const { file, deliverDue, settle, faults, bytes, body, plots, states, reasonOf, history } = await setUp();
  const run = await file('a', 'picture');
  await deliverDue();
  if (error) faults.set('uploadFile', error);
  else bytes.delete(sha256('picture'));
  await settle();
  expect(plots()).toEqual([]);
  expect(body()).toMatch(/^<p>facts<\/p>\n<p>labfeed balance a.csv sha256:\w+<\/p>$/);
  expect(await states()).toEqual({ done: 1 });
  expect(reasonOf(run)).toBeUndefined();
  expect(history(run).find(({ event }) => event === 'uploadRefused')?.detail).toContain(
    'the plot run µ-plot.png is not',
  );
});

test('a plot that is late raises no alarm', async () => {
  const { file, deliverDue, attach, clock, faults, journal } = await setUp();
  await file('a', 'picture');
  await deliverDue();
  for (let hour = 0; hour < 24; hour++) {
    faults.set('uploadFile', 'badGateway');
    await attach();
    clock.advance(3_600_000);
  }
  expect(await journal.outbox.overdue(clock.now())).toBeUndefined();
});

test('with `plot: never` or `attach: never` since, nothing is sent', async () => {
  const { file, deliverDue, settle, plots, entries, states } = await setUp();
  await file('a', 'picture');
  await deliverDue();
  await settle({ isPlotted: () => false });
  expect(plots()).toEqual([]);
  expect(entries()[0]?.uploads?.size).toBe(1);
  const other = await setUp();
  await other.file('a', 'picture');
  await other.settle({ instruments: { attached: [], dropped: ['balance'] } });
  expect(other.entries()[0]?.uploads).toBeUndefined();
  expect([await states(), await other.states()]).toEqual([{ done: 1 }, { done: 1 }]);
});

test('a run that is remapped keeps its plot if that is the same', async () => {
  const { file, settle, remap, body, plots, requests } = await setUp();
  const run = await file('a', 'picture');
  await settle();
  const before = requests.length;
  expect(await remap(run, 'a', 'picture')).toBe('unchanged');
  await settle();
  expect(requests).toHaveLength(before);
  expect(await remap(run, 'a', 'picture', plotOf('picture', { at: 0 }), { title: 'new' })).toBe('revised');
  await settle();
  expect(plots()).toHaveLength(1);
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
  expect(body()).toMatch(/^<p><img [^>]*><\/p>\n<p>facts/);
});

test('another plot replaces the first one, in files and body', async () => {
  const { file, settle, remap, body, plots, states } = await setUp();
  const run = await file('a', 'picture');
  await settle();
  expect(await remap(run, 'a', 'other')).toBe('revised');
  await settle();
  expect(plots().map(([, { hash }]) => hash)).toEqual([sha256('other')]);
  expect(plots(3).map(([, { hash }]) => hash)).toEqual([sha256('picture')]);
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
  expect(await states()).toEqual({ done: 1 });
});

test.each(['lost', 'failed', 'dropped', 'badGateway'] as const)(
  'another plot replaces one whose upload had an unknown outcome (%s)',
  async (fault) => {
    const { file, deliverDue, attach, settle, faults, remap, plots, body } = await setUp();
    const run = await file('a', 'picture');
    await deliverDue();
    faults.set('uploadFile', fault);
    await attach();
    await remap(run, 'a', 'other');
    faults.set('deleteUpload', fault);
    await settle();
    expect(plots().map(([, { hash }]) => hash)).toEqual([sha256('other')]);
    expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
  },
);

test.each(['before it is sent', 'while it is sent'])(
  'a plot that is replaced %s leaves no second one',
  async (when) => {
    const { file, deliverDue, attach, settle, remap, plots, body, states } = await setUp();
    const run = await file('a', 'picture');
    await deliverDue();
    await attach({
      async openSource(planned) {
        const source = await openAny(planned);
        const isPlot = planned.sha256 === sha256('picture');
        if (isPlot && when === 'before it is sent') await remap(run, 'a', 'other');
        return {
          ...source,
          async *read() {
            if (isPlot && when === 'while it is sent') await remap(run, 'a', 'other');
            yield* source.read();
          },
        };
      },
    });
    await settle();
    expect(plots().map(([, { hash }]) => hash)).toEqual([sha256('other')]);
    expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
    expect(await states()).toEqual({ done: 1 });
  },
);

test.each(['raw file', 'plot'])('a body that is remapped while the %s is sent stays, and is not cut', async (sent) => {
  const { file, deliverDue, attach, settle, remap, plots, body, states } = await setUp();
  const run = await file('a', 'picture');
  await deliverDue();
  const content = sent === 'plot' ? 'picture' : 'a';
  const other = { body: `<h2>Other</h2>\n${draftOf('a', newRun('a')).body}` };
  await attach({
    async openSource(planned) {
      const source = await openAny(planned);
      if (planned.sha256 !== sha256(content)) return source;
      return {
        ...source,
        async *read() {
          await remap(run, 'a', 'picture', plotOf('picture', { at: 0 }), other);
          await deliverDue();
          yield* source.read();
        },
      };
    },
  });
  await settle();
  expect(plots()).toHaveLength(1);
  expect(body().replace(IMAGE, '')).toBe(other.body);
  if (sent === 'raw file') expect(body()).toMatch(/^<p><img /);
  expect(await states()).toEqual({ done: 1 });
});

test('a run that is erased while its plot is sent stays erased', async () => {
  const { file, deliverDue, attach, settle, journal, database, states } = await setUp();
  const run = await file('a', 'picture');
  await deliverDue();
  await attach({
    async openSource(planned) {
      const source = await openAny(planned);
      return {
        ...source,
        async *read() {
          database.prepare('INSERT INTO inbox (at, request) VALUES (0, ?)').run(JSON.stringify({ kind: 'erase', run }));
          if (planned.sha256 === sha256('picture')) await decide(journal);
          yield* source.read();
        },
      };
    },
  });
  await settle();
  expect(await states()).toEqual({ done: 1 });
  expect(await due(journal, Number.MAX_SAFE_INTEGER, 1)).toEqual([]);
});

test('a plot that comes back after another one is attached again, not taken for the deleted one', async () => {
  const { file, settle, remap, plots, body } = await setUp();
  const run = await file('a', 'picture');
  await settle();
  for (const picture of ['other', 'picture']) {
    await remap(run, 'a', picture);
    await settle();
  }
  expect(plots().map(([, { hash }]) => hash)).toEqual([sha256('picture')]);
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
});

/** The bytes that have this hash. */
async function openAny({ sha256: wanted }: { sha256: string }) {
  const content = ['a', 'picture', 'other'].find((one) => sha256(one) === wanted) ?? '';
  return {
    async *read() {
      yield Buffer.from(content);
    },
    close: async () => undefined,
  };
}

test('a plot that the mapping no longer has when it was sent is deleted', async () => {
  const { file, deliverDue, attach, settle, remap, plots, body } = await setUp();
  const run = await file('a', 'picture');
  await deliverDue();
  await attach({
    async openSource(planned) {
      const source = await openAny(planned);
      if (planned.sha256 !== sha256('picture')) return source;
      return {
        ...source,
        async *read() {
          await remap(run, 'a', 'picture', NO_PLOT);
          yield* source.read();
        },
      };
    },
  });
  await settle();
  expect(plots()).toEqual([]);
  expect(body()).not.toContain('<img');
});

test('a mapping that gives no plot any more removes it; one that could not be drawn leaves it', async () => {
  const { file, settle, remap, body, plots } = await setUp();
  const run = await file('a', 'picture');
  await settle();
  expect(await remap(run, 'a', 'picture', { at: FACTS.length, reason: 'not installed', isFailed: true })).toBe(
    'unchanged',
  );
  await settle();
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
  expect(await remap(run, 'a', 'picture', NO_PLOT)).toBe('revised');
  await settle();
  expect(plots()).toEqual([]);
  expect(body()).not.toContain('<img');
});

test('an upload that has the id of a surplus plot, but other bytes, is not deleted', async () => {
  const { file, settle, remap, plots, entries } = await setUp();
  const run = await file('a', 'picture');
  await settle();
  const [id = 0] = plots()[0] ?? [];
  const uploads = entries()[0]?.uploads;
  const found = uploads?.get(id);
  // As after a restored notebook.
  if (found) uploads?.set(id, { ...found, real_name: 'mine.png', hash: 'other' });
  await remap(run, 'a', 'other');
  await settle();
  expect(uploads?.get(id)?.state).toBe(1);
});

test('why there is no plot is in the history', async () => {
  const { file, settle, history, remap } = await setUp();
  const run = await file('a', 'picture', NO_PLOT);
  await settle();
  expect(history(run)[0]?.detail).toContain(NO_PLOT.reason);
  await remap(run, 'a', 'picture', { at: 0, reason: 'not installed', isFailed: true });
  expect(history(run).find(({ detail }) => detail?.includes('not installed'))).toMatchObject({ event: 'read' });
});

test('a refiled run has no image of the other experiment', async () => {
  const { file, settle, journal, entries, plots } = await setUp();
  const run = await file('a', 'picture');
  await settle();
  await journal.requests.decide({ kind: 'refile', run }, { path: '', has: 'nothing' });
  await decide(journal);
  await settle();
  expect(entries()).toHaveLength(2);
  expect(plots()).toHaveLength(2);
  const [first, second] = entries().map(({ body, uploads }) => ({
    images: imagesIn(body),
    ids: [...(uploads?.keys() ?? [])],
  }));
  expect(first?.images).toEqual([first?.ids[1]]);
  expect(second?.images).toEqual([second?.ids[1]]);
});

test.each(['picture', 'drawn differently'])(
  'after `recover`, a plot that a later journal attached is found (%s)',
  async (later) => {
    const { file, deliverDue, settle, journal, notebook, clock, entries, body, plots, requests } = await setUp();
    await file('a', 'picture');
    await deliverDue();
    const [experiment = 0] = notebook.experiments.keys();
    const open = async function* () {
      yield Buffer.from(later);
    };
    const upload = await notebook.uploadFile(experiment, { name: 'run µ-plot.png', size: later.length, open });
    // The later journal has shown it, too.
    const image = `<p><img src="app/download.php?name=run%20%C2%B5-plot.png&amp;f=ab/file${upload}.png&amp;storage=1" alt="line plot of &quot;A&quot; against t" width="800"></p>\n`;
    for (const entry of entries()) entry.body = entry.body.replace(FACTS, FACTS + image);
    await recoverInto(journal, notebook);
    clock.advance(GRACE_MS);
    await settle();
    expect(plots()).toHaveLength(1);
    expect(imagesIn(body())).toEqual([upload]);
    expect(requests.filter((one) => one === 'uploadFile')).toHaveLength(1);
  },
);

test('a run that was recovered without its journal gets nothing more', async () => {
  const first = await setUp();
  await first.file('a', 'picture');
  await first.settle();
  const { file, settle, journal, notebook, clock, body, plots, requests } = await setUp();
  for (const [id, entry] of first.notebook.experiments) notebook.experiments.set(id, entry);
  await recoverInto(journal, notebook);
  clock.advance(GRACE_MS);
  await file('a', 'picture');
  await settle();
  expect(requests).toEqual([]);
  expect(imagesIn(body())).toEqual([plots()[0]?.[0]]);
});

test('each version shows its own plot, and the one before is deleted', async () => {
  const { revise, settle, body, plots, entries } = await setUp();
  for (const [content, picture] of [
    ['a', 'first'],
    ['b', 'second'],
    ['c', 'second'],
    ['a', 'first'],
  ] as const) {
    await revise(content, picture);
    await settle();
    expect(entries().map(({ title }) => title)).toEqual([content]);
    expect(plots().map(([, { hash }]) => hash)).toEqual([sha256(picture)]);
    expect(imagesIn(body())).toEqual(plots().map(([id]) => id));
    expect(body().endsWith(`sha256:${sha256(content)}</p>`)).toBe(true);
  }
});

test.each<[string, NewPlot | undefined]>([
  ['has none', NO_PLOT],
  ['could not be drawn', { at: FACTS.length, reason: 'there is no room for it', isFailed: true }],
])('a version whose plot %s does not show the plot of the one before', async (_, plot) => {
  const { revise, settle, body, plots, states } = await setUp();
  await revise('a', 'first');
  await settle();
  expect(plots()).toHaveLength(1);
  await revise('b', 'first', plot);
  await settle();
  expect(body()).not.toContain('<img');
  expect(plots()).toEqual([]);
  expect(await states()).toEqual({ done: 1 });
});

test('a version without files does not keep the plot of the one before', async () => {
  const { journal, revise, settle, body, plots } = await setUp();
  await revise('a', 'first');
  await settle();
  const run = newRun('b', { path: '/data/a.csv', revises: { last: undefined } });
  await take(journal, run, draftOf('b', run, ['one']));
  await settle();
  expect(body()).not.toContain('<img');
  expect(plots()).toEqual([]);
});

test.each(['before it is sent', 'while it is sent', 'before it is shown'])(
  'a version that arrives %s leaves only its own plot',
  async (moment) => {
    const { revise, settle, attach, deliverDue, body, plots, entries } = await setUp();
    await revise('a', 'first');
    await deliverDue();
    if (moment === 'while it is sent') {
      const send: Notebook['uploadFile'] = async () => {
        await revise('b', 'second');
        throw FAULTS.dropped.error(true);
      };
      await attach({ send });
    }
    if (moment === 'before it is shown') await attach();
    if (moment !== 'while it is sent') await revise('b', 'second');
    await settle();
    expect(entries().map(({ title }) => title)).toEqual(['b']);
    expect(plots().map(([, { hash }]) => hash)).toEqual([sha256('second')]);
    expect(imagesIn(body())).toEqual(plots().map(([id]) => id));
  },
);

test.each<Fault>(['lost', 'badGateway'])(
  'while a raw file waits for its next attempt (%s), its plot causes no others',
  async (fault) => {
    const { file, deliverDue, attach, settle, faults, requests, journal, clock, plots } = await setUp();
    await file('a', 'picture');
    await deliverDue();
    faults.set('raw', fault);
    await attach();
    const before = requests.length;
    expect(await journal.outbox.uploads.nextDueAt(SCOPE)).toBeGreaterThan(clock.now());
    await attach();
    expect(requests).toHaveLength(before);
    await settle();
    expect(plots()).toHaveLength(1);
  },
);
