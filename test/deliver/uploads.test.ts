import { expect, onTestFinished, test, vi } from 'vitest';
import { deliver } from '../../src/deliver/deliver.js';
import { attachFiles } from '../../src/deliver/uploads.js';
import { Blame } from '../../src/deliver/writes.js';
import { NotebookError } from '../../src/errors.js';
import { createJournal } from '../../src/journal/journal.js';
import type { Added } from '../../src/outbox.js';
import type { NewAttachment } from '../../src/uploads.js';
import { FAULTS, type Fault, fakeNotebook, intercept } from '../support/fake-notebook.js';
import { contextOf, draftOf, recoverInto, SERVER } from '../support/filing.js';
import { decide, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase } from '../support/memory-journal.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';

const GRACE_MS = 130_000;

const attachment = (content: string, changes: Partial<NewAttachment> = {}): NewAttachment => {
  contentOf.set(sha256(content), content);
  return {
    name: `${content}.csv`,
    path: `/data/${content}.csv`,
    sha256: sha256(content),
    size: content.length,
    ...changes,
  };
};

/** `b.csv:second` is the file b.csv with the content `second`; the others are called run.csv. */
const nameOf = (content: string) => ({ name: content.includes(':') ? content.replace(/:.*$/, '') : 'run.csv' });

const contentOf = new Map<string, string>();

/** What the notebook shows of files: earlier versions are archived. */
const STATES = ['', 'normal', 'archived', 'deleted'] as const;

const shown = (uploads: readonly { real_name: string; hash: string; state: number }[]): string[] =>
  uploads.map(({ real_name, hash, state }) => `${real_name} ${contentOf.get(hash)} ${STATES[state]}`);

async function setUp(dialect: 'v2' | 'elabftw' = 'elabftw', server = fakeNotebook({ dialect })) {
  const clock = manualClock();
  const database = emptyDatabase();
  const journal = createJournal({ database, clock, release: () => undefined });
  onTestFinished(() => journal.close());
  await journal.outbox.server(SERVER).learn({ dialect });
  /** The faults of the next requests to upload. */
  const faults: (Fault | NotebookError)[] = [];
  let late: (() => Promise<unknown>) | undefined;
  const notebook = intercept(server, async ({ operation, args, isWrite, carryOut }) => {
    const isBad = (args[1] as { name?: string } | undefined)?.name === 'bad.csv';
    const fault = operation === 'uploadFile' ? (isBad ? 'badGateway' : faults.shift()) : undefined;
    if (fault === undefined) return carryOut();
    if (fault instanceof NotebookError) throw fault;
    if (FAULTS[fault].carriedOut === 'now') await carryOut();
    if (FAULTS[fault].carriedOut === 'later') late = carryOut;
    throw FAULTS[fault].error(isWrite);
  });
  const context = contextOf(journal, notebook, clock);
  /** What spool and source have, by content. */
  const bytes = new Map<string, string>();
  const uploaded = vi.fn();
  const delivery = {
    context,
    send: notebook.uploadFile,
    prepare: async () => undefined,
    wakeDelivery: () => undefined,
    instruments: { attached: ['balance'], dropped: [] as string[] },
    isPlotted: () => true,
    openSource: async ({ sha256: wanted }: { sha256: string }) => {
      const content = bytes.get(wanted);
      if (content === undefined) return undefined;
      const read = async function* () {
        yield Buffer.from(content);
      };
      return { read, close: async () => undefined };
    },
    uploaded,
    isSecretIn: (text: string) => text.includes('SECRET'),
    random: () => 1,
    log: silentLog(),
    blame: new Blame(clock),
    filedAt: new Map<number, number>(),
  };
  /** One attempt for each run that is due. */
  async function attempt(changes: Partial<typeof delivery> = {}): Promise<number> {
    const now = { ...delivery, ...changes };
    const scope = { server: now.context.server.url, ...now.instruments };
    const due = await journal.outbox.uploads.claim(clock.now(), 10, scope);
    for (const id of due) {
      await attachFiles(id, new AbortController().signal, now);
      await journal.outbox.uploads.release(id);
    }
    return due.length;
  }
  return {
    ...{ clock, journal, context, bytes, faults, uploaded, attempt },
    notebook: server,
    carryOutLate: () => late?.(),
    async file(content: string, attachments = [attachment(content)]): Promise<number> {
      const run = newRun(content, { attachments });
      for (const { sha256: key, name } of attachments) bytes.set(key, name.replace(/( \d+)?\.csv$/, ''));
      const { run: id } = await take(journal, run, draftOf(content, run));
      await deliver(await journal.outbox.load(id), context);
      return id;
    },
    /** The file has other content now, and its experiment is updated. Each file is named by its content. */
    async revise(...contents: string[]): Promise<Added['outcome']> {
      const attachments = contents.map((content) => attachment(content.replace(/^.*:/, ''), nameOf(content)));
      for (const { sha256: key } of attachments) bytes.set(key, contentOf.get(key) ?? '');
      const run = newRun(contents.join(), { path: '/data/a.csv', attachments, revises: { last: undefined } });
      const added = await take(journal, run, draftOf(contents.join(), run));
      await deliver(await journal.outbox.load(added.run), context);
      return added.outcome;
    },
    uploads: () => [...server.experiments.values()].flatMap(({ uploads }) => [...(uploads?.values() ?? [])]),
    files: async (run: number) => (await journal.outbox.uploads.load(run)).files,
    reasonOf: (run: number) => database.prepare('SELECT reason FROM runs WHERE id = ?').get(run)?.reason ?? undefined,
  };
}

test('a run tells whether it has files to attach', async () => {
  const { journal } = await setUp();
  await take(journal, newRun('a', { attachments: [attachment('a')] }), draftOf('a', newRun('a')));
  await take(journal, newRun('b'), draftOf('b', newRun('b')));
  expect((await journal.outbox.load(1)).hasFiles).toBe(true);
  expect((await journal.outbox.load(2)).hasFiles).toBe(false);
});

test('the files of a run are attached once the run is done', async () => {
  const { file, attempt, uploads, uploaded, journal } = await setUp();
  await take(journal, newRun('not sent', { attachments: [attachment('not sent')] }), draftOf('x', newRun('x')));
  await file('a', [attachment('a'), attachment('b')]);
  expect(await attempt()).toBe(1);
  expect(uploads()).toMatchObject([
    { real_name: 'a.csv', hash: sha256('a') },
    { real_name: 'b.csv', hash: sha256('b') },
  ]);
  expect(uploaded).toHaveBeenCalledTimes(2);
  expect(await attempt()).toBe(0);
});

test.each<Fault>(['lost', 'failed'])(
  'an upload whose answer was lost (%s) is found and not sent again',
  async (fault) => {
    const { file, attempt, uploads, faults, clock, files } = await setUp();
    const run = await file('a');
    faults.push(fault);
    await attempt();
    expect(await files(run)).toMatchObject([{ upload: undefined, isOpen: true }]);
    clock.advance(5000);
    await attempt();
    expect(uploads()).toHaveLength(1);
    expect(await files(run)).toMatchObject([{ upload: 1003, isOpen: false }]);
  },
);

test('an upload that takes effect late is not sent twice', async () => {
  const { file, attempt, uploads, faults, clock, carryOutLate } = await setUp();
  await file('a');
  faults.push('late');
  await attempt();
  clock.advance(GRACE_MS - 1000);
  await attempt();
  expect(uploads()).toEqual([]);
  await carryOutLate();
  clock.advance(2000);
  await attempt();
  expect(uploads()).toHaveLength(1);
});

test('an upload that did not take effect is sent again after the grace period, also after a restart', async () => {
  const { file, attempt, uploads, faults, clock, context } = await setUp();
  await file('a');
  faults.push('dropped');
  await attempt();
  clock.advance(GRACE_MS / 2);
  const restarted = {
    ...context,
    unknown: contextOf({ outbox: context.outbox } as never, context.notebook, clock).unknown,
  };
  await attempt({ context: restarted });
  clock.advance(GRACE_MS - 1000);
  await attempt({ context: restarted });
  expect(uploads()).toEqual([]);
  clock.advance(2000);
  await attempt({ context: restarted });
  expect(uploads()).toHaveLength(1);
});

test('an upload that somebody deleted is not sent again', async () => {
  const { file, attempt, uploads, faults, clock } = await setUp();
  await file('a');
  faults.push('lost');
  await attempt();
  for (const upload of uploads()) upload.state = 3;
  clock.advance(5000);
  await attempt();
  expect(uploads()).toHaveLength(1);
});

test('equal files of one run are each attached once', async () => {
  const { file, attempt, uploads, faults, clock } = await setUp();
  await file('a', [attachment('a', { name: 'a 1.csv' }), attachment('a', { name: 'a 2.csv' })]);
  faults.push('lost', 'lost');
  for (let round = 0; round < 4; round++) {
    await attempt();
    clock.advance(10_000);
  }
  expect(uploads().map(({ real_name }) => real_name)).toEqual(['a 1.csv', 'a 2.csv']);
});

test.each([
  [new NotebookError('request', 'Too Large', { status: 413 }), 'it is larger than the notebook accepts'],
  [new NotebookError('request', 'PHP files are forbidden!', { status: 400 }), 'PHP files are forbidden!'],
])('a refusal is final for the file and not for the run: %s', async (error, reason) => {
  const { file, attempt, uploads, faults, files, journal, uploaded, reasonOf, context } = await setUp();
  const run = await file('a', [attachment('a'), attachment('b')]);
  faults.push(error);
  await attempt();
  await deliver(await journal.outbox.load(run), context);
  await attempt();
  expect(uploads()).toMatchObject([{ real_name: 'b.csv' }]);
  expect(await files(run)).toMatchObject([{ upload: undefined, isOpen: false }, { isOpen: false }]);
  expect(await journal.outbox.count()).toEqual({ done: 1 });
  expect(reasonOf(run)).toBe(`the raw file a.csv is not attached: ${reason}`);
  expect(uploaded).toHaveBeenCalledTimes(2);
});

test('server errors of any length are retried, and the reason disappears afterwards', async () => {
  const { file, attempt, uploads, faults, clock, reasonOf } = await setUp();
  const run = await file('a');
  for (let hour = 0; hour < 24; hour++) {
    faults.push('badGateway');
    await attempt();
    clock.advance(3_600_000);
  }
  expect(reasonOf(run)).toMatch(/^the raw file a.csv is not attached yet: bad gateway/);
  await attempt();
  expect(uploads()).toHaveLength(1);
  expect(reasonOf(run)).toBeUndefined();
});

test('a file on which the notebook fails while it takes others is given up', async () => {
  const { file, attempt, uploads, clock, files } = await setUp();
  const bad = await file('bad');
  for (let round = 0; round < 6; round++) {
    await attempt();
    clock.advance(GRACE_MS + 1000);
    await file(`good-${round}`);
  }
  expect(await files(bad)).toMatchObject([{ isOpen: false, upload: undefined }]);
  expect(uploads().length).toBeGreaterThan(3);
});

test('without its bytes, a file is not attached, and the run says so', async () => {
  const { file, attempt, uploads, bytes, reasonOf } = await setUp();
  const run = await file('a');
  bytes.clear();
  await attempt();
  expect(uploads()).toEqual([]);
  expect(reasonOf(run)).toContain('was changed or removed since it was read');
});

test('bytes that changed, or contain a secret, are not attached', async () => {
  const { file, attempt, uploads, bytes, reasonOf } = await setUp();
  const changed = await file('a');
  bytes.set(sha256('a'), 'b');
  const secret = await file('SECRET');
  await attempt();
  expect(uploads()).toEqual([]);
  expect(reasonOf(changed)).toContain('have changed');
  expect(reasonOf(secret)).toContain('contains the API key');
});

test('where the server only keeps the contract, or the instrument says never, nothing is tried', async () => {
  const { file, attempt, notebook, files, uploaded } = await setUp('v2');
  const run = await file('a');
  await attempt();
  expect(notebook.writes).not.toContain('uploadFile');
  expect(await files(run)).toEqual([]);
  expect(uploaded).toHaveBeenCalledOnce();
  const other = await setUp();
  await other.file('a');
  await other.attempt({ instruments: { attached: [], dropped: ['balance'] } });
  expect(other.uploads()).toEqual([]);
  expect(other.uploaded).toHaveBeenCalledOnce();
});

test('nothing is attached to an experiment that somebody rewrote', async () => {
  const { file, attempt, uploads, notebook, reasonOf } = await setUp();
  const run = await file('a');
  for (const experiment of notebook.experiments.values())
    Object.assign(experiment, { title: 'mine', body: 'mine', comments: new Map() });
  await attempt();
  expect(uploads()).toEqual([]);
  expect(reasonOf(run)).toContain('somebody rewrote experiment');
});

test('a run that is filed again gets its files again, and one that is remapped does not', async () => {
  const { file, attempt, uploads, journal, clock, context } = await setUp();
  const run = await file('a');
  await attempt();
  await journal.requests.decide({ kind: 'remap', run }, { path: '/data/a.csv', has: 'itsBytes' });
  const read = newRun('a', { attachments: [attachment('a')] });
  expect(await journal.outbox.add(read, { draft: { ...draftOf('a', read), title: 'new' } })).toMatchObject({
    outcome: 'revised',
  });
  await deliver(await journal.outbox.load(run), context);
  expect(await attempt()).toBe(0);
  await journal.requests.decide({ kind: 'refile', run }, { path: '', has: 'nothing' });
  await decide(journal);
  clock.advance(1000);
  await deliver(await journal.outbox.load(run + 1), context);
  expect(await attempt()).toBe(1);
  expect(uploads()).toHaveLength(2);
});

test('a run that was filed without its file gets it when it is remapped', async () => {
  const { file, attempt, uploads, journal, bytes, clock } = await setUp();
  const run = await file('a', []);
  expect(await attempt()).toBe(0);
  bytes.set(sha256('a'), 'a');
  await journal.requests.decide({ kind: 'remap', run }, { path: '/data/a.csv', has: 'itsBytes' });
  const read = newRun('a', { attachments: [attachment('a')] });
  await journal.outbox.add(read, { draft: draftOf('a', read) });
  clock.advance(GRACE_MS);
  await attempt();
  expect(uploads()).toHaveLength(1);
});

test('after `recover`, an upload that the journal does not know is found', async () => {
  const { file, attempt, uploads, journal, notebook, clock } = await setUp();
  await file('a');
  // An older journal: it has not sent the file yet, but a later one has.
  const [experiment = 0] = notebook.experiments.keys();
  const open = async function* () {
    yield Buffer.from('a');
  };
  await notebook.uploadFile(experiment, { name: 'a.csv', size: 1, open });
  await recoverInto(journal, notebook);
  clock.advance(GRACE_MS);
  await attempt();
  expect(uploads()).toHaveLength(1);
});

test('a run of which only some files were attached when attaching was switched off does not look complete', async () => {
  const { file, attempt, files, clock } = await setUp();
  const run = await file('a', [attachment('a'), attachment('bad')]);
  await attempt();
  clock.advance(3_600_000);
  await attempt({ instruments: { attached: [], dropped: ['balance'] } });
  expect(await files(run)).toMatchObject([{ upload: expect.any(Number) }, { upload: undefined, isOpen: false }]);
});

test('repair looks for a file that was given up after an unknown outcome, before it attaches it again', async () => {
  const { file, attempt, faults, clock, uploads, carryOutLate, journal, files } = await setUp();
  const run = await file('a');
  faults.push('late');
  await attempt();
  await journal.outbox.uploads.record(run, { kind: 'uploadRefused', n: 1, failure: 'server', reason: 'given up' });
  await carryOutLate();
  clock.advance(3_600_000);
  const repair = { kind: 'repair', run, comments: [], uploads: [{ n: 1, upload: null }] } as const;
  await journal.requests.decide(repair, { path: '', has: 'nothing' });
  await attempt();
  expect(uploads()).toHaveLength(1);
  expect(await files(run)).toMatchObject([{ upload: expect.any(Number) }]);
});

test('repair attaches a file again that somebody deleted, and one that was refused', async () => {
  const { file, attempt, uploads, faults, journal, files, context, notebook, reasonOf } = await setUp();
  const run = await file('a', [attachment('a'), attachment('b')]);
  faults.push(new NotebookError('request', 'Too Large', { status: 413 }));
  await attempt();
  await deliver(await journal.outbox.load(run), context);
  await attempt();
  const [, second] = await files(run);
  expect([...notebook.experiments.values()][0]?.body).toContain('The raw file a.csv is not attached');
  for (const upload of uploads()) upload.state = 3;
  const missing = [
    { n: 1, upload: null },
    { n: 2, upload: second?.upload ?? 0 },
  ];
  const decided = await journal.requests.decide(
    { kind: 'repair', run, comments: [], uploads: missing },
    { path: '', has: 'nothing' },
  );
  expect(decided.answer.text).toBe('run 1 (a.csv): 2 raw files will be attached to experiment 101 again');
  await attempt();
  const again = await journal.requests.decide(
    { kind: 'repair', run, comments: [], uploads: missing },
    { path: '', has: 'nothing' },
  );
  expect(again.answer.text).toBe('run 1 (a.csv) is already being delivered');
  await deliver(await journal.outbox.load(run), context);
  await attempt();
  expect(uploads().map(({ real_name, state }) => `${real_name} ${state}`)).toEqual(['b.csv 3', 'a.csv 1', 'b.csv 1']);
  expect([...notebook.experiments.values()][0]?.body).toBe(`<p>labfeed balance a.csv sha256:${sha256('a')}</p>`);
  expect(reasonOf(run)).toBeUndefined();
});

test('a file that is not attached for long raises an alarm, whatever the reason, and a clock that was ahead postpones nothing', async () => {
  const { file, attempt, faults, clock, journal } = await setUp();
  const run = await file('a');
  const upload = { file: 'a.csv', server: SERVER };
  expect(await journal.outbox.overdue(clock.now())).toBeUndefined();
  clock.advance(1000);
  expect(await journal.outbox.overdue(clock.now())).toMatchObject({ run, reason: undefined, upload });
  faults.push(new NotebookError('server', 'bad gateway', { retryAfterMs: 3_600_000 }));
  await attempt();
  expect(await journal.outbox.overdue(clock.now())).toMatchObject({
    run,
    reason: expect.stringMatching(/^the raw file a.csv is not attached yet/),
  });
  expect(await attempt()).toBe(0);
  expect(await journal.outbox.pullForward(clock.now())).toBe(1);
  expect(await attempt()).toBe(1);
  expect(await journal.outbox.overdue(clock.now())).toBeUndefined();
});

test('the body says that a file is not attached, before its origin line, unless somebody changed it', async () => {
  const { file, attempt, faults, notebook, journal, context, reasonOf } = await setUp();
  const tooLarge = () => new NotebookError('request', 'Too Large', { status: 413 });
  const run = await file('a', [attachment('a'), attachment('b')]);
  for (const _ of ['a', 'b']) {
    faults.push(tooLarge());
    await attempt();
    await deliver(await journal.outbox.load(run), context);
  }
  const notes = ['a', 'b'].map(
    (name) => `<p>The raw file ${name}.csv is not attached: it is larger than the notebook accepts.</p>`,
  );
  const [entry] = notebook.experiments.values();
  expect(entry?.body).toBe(`${notes.join('\n')}\n<p>labfeed balance a.csv sha256:${sha256('a')}</p>`);
  expect(reasonOf(run)).toContain('the raw file a.csv is not attached');
  expect(entry?.comments.size).toBe(2);
  const other = await file('c');
  const edited = [...notebook.experiments.values()].at(-1);
  Object.assign(edited ?? {}, { body: `<p>mine</p>${edited?.body}` });
  faults.push(tooLarge());
  await attempt();
  expect(await journal.outbox.count()).toEqual({ done: 2 });
  expect(edited?.body).toMatch(/^<p>mine<\/p><p>labfeed/);
  expect(reasonOf(other)).toContain('the raw file c.csv is not attached');
});

test('a refusal does not change the body of a run that is being remapped', async () => {
  const { file, journal } = await setUp();
  const run = await file('a');
  await journal.requests.decide({ kind: 'remap', run }, { path: newRun('a').file.path, has: 'itsBytes' });
  await journal.outbox.add(newRun('a'), { draft: { ...someDraft('a'), title: 'remapped' } });
  const { body } = (await journal.outbox.load(run)).draft;
  const refused = { kind: 'uploadRefused', n: 1, failure: 'server', reason: 'too large' } as const;
  await journal.outbox.uploads.record(run, { ...refused, body: '<p>too large</p>' });
  expect((await journal.outbox.load(run)).draft.body).toBe(body);
});

test('files that cannot be attached at all are named on their run', async () => {
  const { file, attempt, reasonOf } = await setUp();
  const run = await file('a', [attachment('a', { sha256: '', problem: 'the 30 raw files are not attached: no room' })]);
  expect(await attempt()).toBe(0);
  expect(reasonOf(run)).toBe('the 30 raw files are not attached: no room');
});

test('files wait while their notebook or their instrument is not configured, and nothing is lost', async () => {
  const { file, attempt, uploads, uploaded, journal, notebook, clock, files } = await setUp();
  const run = await file('a');
  const elsewhere = contextOf(journal, notebook, clock, { url: 'https://other.example.org' });
  await journal.outbox.server('https://other.example.org').learn({ dialect: 'elabftw' });
  expect(await attempt({ context: elsewhere })).toBe(0);
  expect(await attempt({ instruments: { attached: ['scale'], dropped: [] } })).toBe(0);
  const scope = { server: SERVER, attached: ['scale'], dropped: [] };
  expect(await journal.outbox.uploads.nextDueAt(scope)).toBeUndefined();
  expect(await journal.outbox.uploads.nextDueAt({ ...scope, attached: ['balance'] })).toBe(0);
  expect(uploaded).not.toHaveBeenCalled();
  expect(await attempt()).toBe(1);
  expect(uploads()).toHaveLength(1);
  expect(await files(run)).toMatchObject([{ isOpen: false, upload: expect.any(Number) }]);
});

test('files of a run at another notebook are given up if the instrument says never', async () => {
  const { file, attempt, uploaded, journal, notebook, clock, files } = await setUp();
  const run = await file('a');
  const context = contextOf(journal, notebook, clock, { url: 'https://other.example.org' });
  await journal.outbox.server('https://other.example.org').learn({ dialect: 'elabftw' });
  await attempt({ context, instruments: { attached: [], dropped: ['balance'] } });
  expect(await files(run)).toEqual([]);
  expect(uploaded).toHaveBeenCalledOnce();
});

test('the note about a refused file goes when the file is attached, also after a postponement', async () => {
  const { file, attempt, faults, journal, context, notebook, clock, reasonOf } = await setUp();
  const run = await file('a');
  faults.push(new NotebookError('request', 'Too Large', { status: 413 }));
  await attempt();
  await deliver(await journal.outbox.load(run), context);
  const [entry] = notebook.experiments.values();
  expect(entry?.body).toContain('The raw file a.csv is not attached');
  const repair = { kind: 'repair', run, comments: [], uploads: [{ n: 1, upload: null }] } as const;
  await journal.requests.decide(repair, { path: '', has: 'nothing' });
  faults.push('unreachable');
  await attempt();
  expect(reasonOf(run)).toContain('connection refused');
  clock.advance(GRACE_MS);
  await attempt();
  await deliver(await journal.outbox.load(run), context);
  expect(entry?.body).toBe(`<p>labfeed balance a.csv sha256:${sha256('a')}</p>`);
  expect(reasonOf(run)).toBeUndefined();
});

test('the body gets its note although the notebook fails when it is read for that', async () => {
  const { file, attempt, faults, journal, context, notebook, clock } = await setUp();
  const run = await file('a');
  for (let round = 0; round < 2; round++) faults.push(new NotebookError('request', 'Too Large', { status: 413 }));
  let failures = 1;
  const readExperiment: typeof notebook.readExperiment = async (id) => {
    if (faults.length === 1 && failures-- > 0) throw FAULTS.badGateway.error(false);
    return notebook.readExperiment(id);
  };
  const failing = { ...context, notebook: { ...context.notebook, readExperiment } };
  await attempt({ context: failing });
  clock.advance(GRACE_MS);
  await attempt({ context: failing });
  await deliver(await journal.outbox.load(run), context);
  expect([...notebook.experiments.values()][0]?.body).toContain('The raw file a.csv is not attached');
});

test.each([
  ['failed reads of the experiment', new NotebookError('server', 'bad gateway', { status: 502 }), 'readExperiment'],
  [
    'refusals while somebody edits the experiment',
    new NotebookError('server', 'edited', { status: 400, scope: 'run' }),
    'uploadFile',
  ],
] as const)('%s are not held against the file', async (_, error, what) => {
  const { file, attempt, clock, files, context, uploads } = await setUp();
  const run = await file('a');
  const { experiment } = await context.outbox.load(run);
  const notebook = intercept(context.notebook, async ({ operation, args, carryOut }) => {
    if (operation === what && args[0] === experiment) throw error;
    return carryOut();
  });
  for (let round = 0; round < 8; round++) {
    await attempt({ context: { ...context, notebook }, send: notebook.uploadFile });
    clock.advance(GRACE_MS + 1000);
    await file(`good-${round}`);
  }
  expect(await files(run)).toMatchObject([{ isOpen: true }]);
  await attempt();
  expect(uploads()).toHaveLength(9);
});

test.each([
  ['locked', { locked: 1 }],
  ['archived', { state: 2 }],
  ['deleted', { state: 3 }],
])('nothing is attached to an experiment that somebody %s', async (state, changes) => {
  const { file, attempt, uploads, notebook, reasonOf } = await setUp();
  const run = await file('a');
  for (const experiment of notebook.experiments.values()) Object.assign(experiment, changes);
  await attempt();
  expect(uploads()).toEqual([]);
  expect(reasonOf(run)).toMatch(new RegExp(`not attached: experiment \\d+ is ${state}`));
});

/** A run whose readings are only summarised if its raw file is attached. */
async function fileBriefly(scene: Awaited<ReturnType<typeof setUp>>, attachments = [attachment('a')]): Promise<number> {
  const { journal, context, bytes } = scene;
  const run = newRun('a', { attachments });
  for (const { sha256: key, name } of attachments) bytes.set(key, name.replace('.csv', ''));
  const draft = draftOf('a', run, ['rows 1 to 3', 'rows 4 to 6', 'rows 7 to 9']);
  const attached = { body: draft.body, plotAt: 0, comments: ['summary'], omits: ['9 rows'] };
  const { run: id } = await take(journal, run, { ...draft, attached });
  await deliver(await journal.outbox.load(id), context);
  return id;
}

const commentsIn = ({ notebook }: Awaited<ReturnType<typeof setUp>>): string[] =>
  [...notebook.experiments.values()].flatMap(({ comments }) =>
    [...comments.values()].map((text) => text.split('\n')[0] ?? ''),
  );

const ALL_ROWS = ['rows 1 to 3', 'rows 4 to 6', 'rows 7 to 9'];

test('many readings are only summarised if the raw file is attached', async () => {
  const scene = await setUp();
  await fileBriefly(scene);
  await scene.attempt();
  expect(scene.uploads()).toHaveLength(1);
  expect(commentsIn(scene)).toEqual(['summary']);
  expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
});

test.each<[string, Partial<NewAttachment>[]]>([
  ['has none', []],
  ['cannot be kept', [{ sha256: '', problem: 'no room' }]],
])('all readings are filed at once if the raw file %s', async (_, changes) => {
  const scene = await setUp();
  await fileBriefly(
    scene,
    changes.map((change) => attachment('a', change)),
  );
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
});

test('all readings are filed if the raw file is refused, and a remap does not summarise them again', async () => {
  const scene = await setUp();
  const { faults, attempt, journal, context, notebook } = scene;
  const run = await fileBriefly(scene);
  faults.push(new NotebookError('request', 'Too Large', { status: 413 }));
  await attempt();
  expect(await journal.outbox.count()).toEqual({ sending: 1 });
  await deliver(await journal.outbox.load(run), context);
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
  expect([...notebook.experiments.values()][0]?.body).toContain('The raw file a.csv is not attached');
  expect(await journal.outbox.count()).toEqual({ done: 1 });
  await journal.requests.decide({ kind: 'remap', run }, { path: '/data/a.csv', has: 'itsBytes' });
  const read = newRun('a', { attachments: [attachment('a')] });
  const draft = { ...draftOf('a', read, ALL_ROWS), title: 'new' };
  await journal.outbox.add(read, {
    draft: { ...draft, attached: { body: draft.body, plotAt: 0, comments: ['summary'], omits: [] } },
  });
  await deliver(await journal.outbox.load(run), context);
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
});

test('all readings are filed if somebody changed the body before the raw file was refused, and the body stays', async () => {
  const scene = await setUp();
  const { faults, attempt, journal, context, notebook } = scene;
  const run = await fileBriefly(scene);
  const [entry] = notebook.experiments.values();
  Object.assign(entry ?? {}, { body: `<p>mine</p>${entry?.body}` });
  faults.push(new NotebookError('request', 'Too Large', { status: 413 }));
  await attempt();
  await deliver(await journal.outbox.load(run), context);
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
  expect(entry?.body).toMatch(/^<p>mine<\/p><p>labfeed/);
  expect(await journal.outbox.count()).toEqual({ done: 1 });
});

test('all readings are filed if the raw file is not wanted any more, or the server turns out not to take files', async () => {
  for (const dialect of ['elabftw', 'v2'] as const) {
    const scene = await setUp(dialect);
    const run = await fileBriefly(scene);
    expect(commentsIn(scene)).toEqual(['summary']);
    await scene.attempt({ instruments: { attached: [], dropped: ['balance'] } });
    await deliver(await scene.journal.outbox.load(run), scene.context);
    expect(commentsIn(scene)).toEqual(ALL_ROWS);
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
  }
});

test('comments with all readings are not replaced by a summary before the raw file is attached', async () => {
  const scene = await setUp();
  const { journal, context, bytes } = scene;
  const run = await fileBriefly(scene, []);
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
  const remap = async (title: string) => {
    await journal.requests.decide({ kind: 'remap', run }, { path: '/data/a.csv', has: 'itsBytes' });
    const read = newRun('a', { attachments: [attachment('a')] });
    const draft = { ...draftOf('a', read, ALL_ROWS), title };
    const attached = { body: draft.body, plotAt: 0, comments: ['summary'], omits: [] };
    await journal.outbox.add(read, { draft: { ...draft, attached } });
    await deliver(await journal.outbox.load(run), context);
  };
  await remap('once');
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
  bytes.set(attachment('a').sha256, 'a');
  for (let round = 0; round < 3; round++) {
    await scene.attempt();
    scene.clock.advance(GRACE_MS);
  }
  expect(scene.uploads()).toHaveLength(1);
  await remap('twice');
  expect(commentsIn(scene)).toEqual(['summary']);
});

test('a refusal while the run is delivered again still leads to all readings', async () => {
  const scene = await setUp();
  const { journal, context } = scene;
  const run = await fileBriefly(scene);
  await journal.requests.decide({ kind: 'remap', run }, { path: '/data/a.csv', has: 'itsBytes' });
  const read = newRun('a', { attachments: [attachment('a')] });
  const draft = { ...draftOf('a', read, ALL_ROWS), title: 'new' };
  const attached = { body: draft.body, plotAt: 0, comments: ['summary'], omits: [] };
  await journal.outbox.add(read, { draft: { ...draft, attached } });
  await journal.outbox.uploads.record(run, { kind: 'uploadRefused', n: 1, failure: 'request', reason: 'too large' });
  for (let round = 0; round < 2; round++) await deliver(await journal.outbox.load(run), context);
  expect(commentsIn(scene)).toEqual(ALL_ROWS);
  expect(await journal.outbox.count()).toEqual({ done: 1 });
});

test('nobody who locked the experiment gets more comments', async () => {
  const scene = await setUp();
  await fileBriefly(scene);
  for (const experiment of scene.notebook.experiments.values()) Object.assign(experiment, { locked: 1 });
  await scene.attempt();
  expect(commentsIn(scene)).toEqual(['summary']);
  expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
});

test('the next version of a file replaces the one before, which is archived', async () => {
  const { revise, attempt, uploads, notebook } = await setUp();
  for (const content of ['first', 'second', 'first']) {
    await revise(content);
    await attempt();
    expect(await attempt()).toBe(0);
  }
  expect(shown(uploads())).toEqual(['run.csv first archived', 'run.csv second archived', 'run.csv first normal']);
  expect(notebook.experiments.size).toBe(1);
});

test('the next version of a file that was renamed replaces the one before, which is archived', async () => {
  const { revise, attempt, uploads } = await setUp();
  await revise('Q.csv:one');
  await attempt();
  await revise('Q-new.csv:two');
  await attempt();
  expect(await attempt()).toBe(0);
  expect(shown(uploads())).toEqual(['Q.csv one archived', 'Q-new.csv two normal']);
});

test.each<Fault>(['lost', 'failed', 'dropped', 'late'])(
  'a version whose upload has an unknown outcome (%s) is attached once, before and after the next one',
  async (fault) => {
    for (const isReplaced of [false, true]) {
      const { revise, attempt, uploads, faults, clock, carryOutLate } = await setUp();
      await revise('first');
      await attempt();
      await revise('second');
      faults.push(fault);
      await attempt();
      const last = isReplaced ? 'first' : 'second';
      if (isReplaced) await revise(last);
      clock.advance(5000);
      await carryOutLate();
      for (let time = 0; time < 3; time++) {
        await attempt();
        clock.advance(GRACE_MS);
      }
      expect(shown(uploads()).filter((one) => one.endsWith('normal'))).toEqual([`run.csv ${last} normal`]);
      const wasSent = fault !== 'dropped';
      expect(uploads()).toHaveLength(isReplaced ? (wasSent ? 3 : 1) : 2);
    }
  },
);

test('an unknown outcome of the first upload is found out before the next version is attached', async () => {
  const { revise, attempt, uploads, faults, clock } = await setUp();
  await revise('first');
  faults.push('lost');
  await attempt();
  await revise('second');
  clock.advance(GRACE_MS);
  await attempt();
  expect(shown(uploads())).toEqual(['run.csv first archived', 'run.csv second normal']);
});

test('a version that was never attached is not attached any more, and the next one replaces what is there', async () => {
  const { revise, attempt, uploads } = await setUp();
  await revise('first');
  await attempt();
  await revise('second');
  await revise('third');
  await attempt();
  expect(shown(uploads())).toEqual(['run.csv first archived', 'run.csv third normal']);
});

test('of a run with several files, only what changed is replaced, and what it no longer has is deleted', async () => {
  const { revise, attempt, uploads } = await setUp();
  await revise('a.csv:one', 'b.csv:two', 'c.csv:three');
  await attempt();
  await revise('a.csv:one', 'b.csv:other', 'd.csv:four');
  await attempt();
  expect(shown(uploads())).toEqual([
    'a.csv one normal',
    'b.csv two archived',
    'c.csv three deleted',
    'b.csv other normal',
    'd.csv four normal',
  ]);
});

test('a raw file that a person deleted or archived is left so, and the next version is attached beside it', async () => {
  for (const [state, word] of [
    [3, 'deleted'],
    [2, 'archived'],
  ] as const) {
    const { revise, attempt, uploads } = await setUp();
    await revise('first');
    await attempt();
    for (const upload of uploads()) upload.state = state;
    await revise('second');
    await attempt();
    expect(shown(uploads())).toEqual([`run.csv first ${word}`, 'run.csv second normal']);
  }
});

test('a version that arrives while the one before is uploaded is attached afterwards', async () => {
  const { revise, attempt, uploads, notebook, clock } = await setUp();
  await revise('first');
  let next: Promise<unknown> | undefined;
  await attempt({
    async send(experiment, file) {
      const upload = await notebook.uploadFile(experiment, file);
      next ??= revise('second');
      await next;
      return upload;
    },
  });
  clock.advance(GRACE_MS);
  await attempt();
  expect(shown(uploads())).toEqual(['run.csv first archived', 'run.csv second normal']);
});

test('a version whose file is refused says that the attached one is of an earlier version, until it is replaced', async () => {
  const { revise, attempt, uploads, faults, notebook, context, journal, reasonOf } = await setUp();
  const body = () => [...notebook.experiments.values()][0]?.body;
  const deliverBody = async () => deliver(await journal.outbox.load(1), context);
  await revise('first');
  await attempt();
  await revise('second');
  faults.push(new NotebookError('request', 'too large', { status: 413 }));
  await attempt();
  await deliverBody();
  const note = 'a file of this name in the notebook is from an earlier version';
  expect(body()).toContain(note);
  expect(reasonOf(1)).toContain(note);
  expect(shown(uploads())).toEqual(['run.csv first normal']);
  await revise('third');
  await attempt();
  expect(body()).not.toContain('not attached');
  expect(reasonOf(1)).toBeUndefined();
  expect(shown(uploads())).toEqual(['run.csv first archived', 'run.csv third normal']);
});

test('if the files of a version cannot be attached at all, those of the one before stay', async () => {
  const { journal, revise, attempt, uploads, context, reasonOf } = await setUp();
  await revise('a.csv:one', 'b.csv:two');
  await attempt();
  const archive = { name: 'a.zip', path: '', sha256: '', size: 9, problem: 'there is no room for the archive' };
  const run = newRun('next', { path: '/data/a.csv', attachments: [archive], revises: { last: undefined } });
  await take(journal, run, draftOf('next', run));
  await deliver(await journal.outbox.load(1), context);
  await attempt();
  expect(shown(uploads())).toEqual(['a.csv one normal', 'b.csv two normal']);
  expect(reasonOf(1)).toContain('no room');
  await revise('a.csv:three');
  await attempt();
  expect(shown(uploads())).toEqual(['a.csv one archived', 'b.csv two deleted', 'a.csv three normal']);
});

test('after the journal was lost, the next version replaces the attached file, too', async () => {
  const { notebook, ...first } = await setUp();
  await first.revise('first');
  await first.attempt();
  const { journal, attempt, ...next } = await setUp('elabftw', notebook);
  await recoverInto(journal, notebook);
  const file = attachment('second', { name: 'run.csv' });
  next.bytes.set(file.sha256, 'second');
  const last = { sha256: sha256('first'), copy: '' };
  const run = newRun('second', { path: '/data/first.csv', attachments: [file], revises: { last } });
  expect(await take(journal, run, draftOf('second', run))).toMatchObject({ run: 1, outcome: 'parked' });
  await journal.requests.decide({ kind: 'adopt', run: 1, server: SERVER, experiment: 101 }, NO_SOURCE);
  await deliver(await journal.outbox.load(1), next.context);
  next.clock.advance(GRACE_MS);
  await attempt();
  expect(shown(next.uploads())).toEqual(['run.csv first archived', 'run.csv second normal']);
});

const NO_SOURCE = { path: '', has: 'nothing' } as const;

test('a version is not attached while the upload of the one before may still take effect', async () => {
  const { revise, attempt, uploads, faults, clock, carryOutLate } = await setUp();
  await revise('first');
  faults.push('late');
  await attempt();
  await revise('second');
  await attempt();
  expect(uploads()).toEqual([]);
  await carryOutLate();
  clock.advance(GRACE_MS);
  await attempt();
  expect(shown(uploads())).toEqual(['run.csv first archived', 'run.csv second normal']);
});
