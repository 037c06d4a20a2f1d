import { expect, test } from 'vitest';
import { HaltedError, type Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { Limiter } from '../../src/deliver/limiter.js';
import { checkRestored, createWriteGuard, rememberHalts } from '../../src/deliver/restored.js';
import { prepareServer } from '../../src/deliver/server.js';
import { NotebookError } from '../../src/errors.js';
import { provisionalTitle } from '../../src/markers.js';
import { type FakeNotebook, fakeNotebook, intercept, NOTEBOOK_KINDS } from '../support/fake-notebook.js';
import { contextOf, expectExactly, FIRST_ID, file, SERVER, see } from '../support/filing.js';
import { due } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { recovered, setUp } from '../support/restored-server.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

type Scene = Awaited<ReturnType<typeof setUp>>;

const LABFEED = 1;
const COLLEAGUE = 2;

const check = ({ journal, notebook, clock }: Scene) => checkRestored(contextOf(journal, notebook, clock));

/** Files a run before the backup and seven after it, restores the backup, and lets people create experiments. */
async function restoredWith(entries: number, owner: number, kind = {}): Promise<Scene> {
  const scene = await setUp(kind);
  await scene.file('before');
  const restore = scene.notebook.snapshot();
  await scene.file(...'abcdefg');
  restore();
  for (let n = 0; n < entries; n++) scene.notebook.addExperiment(`theirs ${n}`, owner);
  return scene;
}

for (const kind of NOTEBOOK_KINDS) {
  for (const [entries, owner] of [
    [1, COLLEAGUE],
    [7, COLLEAGUE],
    [20, COLLEAGUE],
    [3, LABFEED],
    [20, LABFEED],
  ] as const) {
    const people = `user ${owner} created ${entries} experiments`;
    test(`a restored server is noticed after ${people}, and recover holds the vanished runs (${JSON.stringify(kind)})`, async () => {
      const scene = await restoredWith(entries, owner, kind);
      const writes = scene.notebook.writes.length;
      await expect(check(scene)).rejects.toThrow(/restored to an older state.*now (has|have) other content.*recover/);
      // Durable, without another request.
      const silent = intercept<Notebook>(scene.notebook, () => Promise.reject(new Error('no request')));
      const again = checkRestored(contextOf(scene.journal, silent, scene.clock));
      await expect(again).rejects.toBeInstanceOf(HaltedError);
      expect(scene.notebook.writes).toHaveLength(writes);
      expect(await recovered(scene)).toMatchObject({ gone: [2, 3, 4, 5, 6, 7, 8], reopened: [] });
      await check(scene);
      expect(await scene.states()).toEqual({ done: 1, held: 7 });
    });
  }
}

test('if our newest experiment is as we left it, one request shows that the server was not restored', async () => {
  const scene = await setUp();
  await scene.file('a', 'b', 'c');
  let requests = 0;
  const counting = intercept<Notebook>(scene.notebook, ({ carryOut }) => {
    requests += 1;
    return carryOut();
  });
  await checkRestored(contextOf(scene.journal, counting, scene.clock));
  expect(requests).toBe(1);
});

test.each([
  ['its title', { title: 'better' }],
  ['its body', { body: 'all new' }],
  ['its title and body', { title: 'better', body: 'all new' }],
])('an experiment whose owner changed %s does not make the server look restored', async (_, edit) => {
  const scene = await setUp();
  await scene.file('a', 'b');
  Object.assign(scene.notebook.experiments.get(FIRST_ID + 1) ?? {}, edit);
  await check(scene);
  // Not even without the comments.
  scene.notebook.experiments.get(FIRST_ID + 1)?.comments.clear();
  await check(scene);
  await scene.file('c');
});

test.each(NOTEBOOK_KINDS)(
  'a server restored to before our newest experiment was filled in is noticed (%o)',
  async (kind) => {
    const scene = await setUp(kind);
    await scene.file('before');
    let restore: (() => void) | undefined;
    const saving = intercept<Notebook>(scene.notebook, ({ operation, carryOut }) => {
      if (operation === 'patchExperiment') restore ??= scene.notebook.snapshot();
      return carryOut();
    });
    await see(scene.journal, 'a');
    const [id = 0] = await due(scene.journal, Number.MAX_SAFE_INTEGER, 1);
    await deliver(await scene.journal.outbox.load(id), contextOf(scene.journal, saving, scene.clock));
    await check(scene);
    restore?.();
    await expect(check(scene)).rejects.toThrow(/experiment 102, which labfeed filled in, is empty again.*recover/);
    // Without its title, the blank experiment cannot be distinguished from one of a person with the same account.
    const result = kind.keepsTitle === false ? { gone: [2], reopened: [] } : { gone: [], reopened: [2] };
    expect(await recovered(scene)).toMatchObject(result);
  },
);

test.each(NOTEBOOK_KINDS)(
  'a server restored to before a spare was filled in is noticed although a higher experiment is still ours (%o)',
  async (kind) => {
    const scene = await setUp(kind);
    await scene.file('before');
    const spare = await scene.notebook.createExperiment({ title: provisionalTitle('0123456789abcdef') });
    await scene.file('higher');
    await scene.journal.outbox.server(SERVER).addSpare(spare);
    const restore = scene.notebook.snapshot();
    await scene.file('a');
    expect(await scene.journal.outbox.server(SERVER).runWith(spare)).toBe(3);
    await check(scene);
    restore();
    await expect(check(scene)).rejects.toThrow(`experiment ${spare}, which labfeed filled in, is empty again`);
    expect(await recovered(scene)).toMatchObject({ gone: [], reopened: [3] });
  },
);

test('a halt that cannot be written to the journal takes effect, and is written later', async () => {
  const scene = await restoredWith(4, COLLEAGUE);
  const context = contextOf(scene.journal, scene.notebook, scene.clock);
  let isFull = true;
  const learn: typeof context.server.learn = (facts) =>
    isFull ? Promise.reject(new Error('disk full')) : context.server.learn(facts);
  const server = rememberHalts({ ...context.server, learn }, context.unknown.window);
  await expect(checkRestored({ ...context, server })).rejects.toThrow('disk full');
  await see(scene.journal, 'new');
  const [id = 0] = await due(scene.journal, Number.MAX_SAFE_INTEGER, 1);
  const writes = scene.notebook.writes.length;
  await expect(deliver(await scene.journal.outbox.load(id), { ...context, server })).rejects.toThrow(HaltedError);
  expect(scene.notebook.writes).toHaveLength(writes);
  expect((await context.server.facts()).halted).toBeUndefined();
  isFull = false;
  await expect(checkRestored({ ...context, server })).rejects.toThrow(HaltedError);
  expect(await context.server.facts()).toMatchObject({ halted: expect.any(String), restoredFrom: expect.any(Number) });
});

test('a restart costs at most 50 requests, even if people deleted or rewrote our newest experiments', async () => {
  const scene = await setUp();
  await scene.file(...'abcdefghij');
  const ids = [...scene.notebook.experiments.keys()].slice(-7);
  for (const id of ids.slice(0, 5)) scene.notebook.experiments.delete(id);
  for (const id of ids.slice(5)) {
    const entry = scene.notebook.experiments.get(id);
    Object.assign(entry ?? {}, { title: 'better', body: 'all new' });
    entry?.comments.clear();
  }
  for (let n = 0; n < 600; n++) {
    const id = scene.notebook.addExperiment(`theirs ${n}`);
    if (n % 2 === 0) scene.notebook.privateIds.add(id);
  }
  let requests = 0;
  const counting = intercept<Notebook>(scene.notebook, ({ carryOut }) => {
    requests += 1;
    return carryOut();
  });
  const context = contextOf(scene.journal, counting, scene.clock);
  await prepareServer({ dialect: 'v2', instruments: ['balance'], isUnknownRun: async () => false }, context);
  await checkRestored(context);
  expect(requests).toBeLessThanOrEqual(50);
});

test('deleted and private experiments prove nothing', async () => {
  const scene = await setUp();
  await scene.file('a', 'b', 'c', 'd');
  scene.notebook.experiments.delete(FIRST_ID + 3);
  scene.notebook.privateIds.add(FIRST_ID + 2);
  await check(scene);
});

test('an experiment of another PC with the same title is not ours', async () => {
  const scene = await setUp();
  await scene.file('before');
  const restore = scene.notebook.snapshot();
  await scene.file('a');
  restore();
  const theirs = scene.notebook.addExperiment('a', LABFEED);
  const body = `<p>labfeed balance a.csv sha256:${'ab'.repeat(32)} journal:00000000</p>`;
  Object.assign(scene.notebook.experiments.get(theirs) ?? {}, { body, userid: COLLEAGUE });
  await expect(check(scene)).rejects.toThrow('restored to an older state');
});

/** A run whose experiment is described, but lacks its comments. */
async function withOpenRun() {
  const scene = await setUp();
  await scene.file('before');
  const restore = scene.notebook.snapshot();
  await see(scene.journal, 'open');
  const [id = 0] = await due(scene.journal, Number.MAX_SAFE_INTEGER, 1);
  const attempt = async (notebook: Notebook = scene.notebook) =>
    deliver(await scene.journal.outbox.load(id), contextOf(scene.journal, notebook, scene.clock));
  const refused = new NotebookError('server', 'away', { outcomeUnknown: false });
  await expect(attempt({ ...scene.notebook, postComment: () => Promise.reject(refused) })).rejects.toThrow('away');
  return { scene, restore, attempt, experiment: FIRST_ID + 1 };
}

test.each([COLLEAGUE, LABFEED])('a reopened run writes nothing on an experiment of user %i', async (owner) => {
  const { scene, restore, attempt, experiment } = await withOpenRun();
  restore();
  expect(scene.notebook.addExperiment('theirs', owner)).toBe(experiment);
  const writes = scene.notebook.writes.length;
  // An experiment of our own account may be ours, rewritten by a person: then only the run is held.
  const reason = owner === COLLEAGUE ? /restored to an older state/ : /somebody rewrote experiment 102/;
  await expect(attempt()).rejects.toThrow(reason);
  expect(scene.notebook.writes).toHaveLength(writes);
  expect(scene.notebook.experiments.get(experiment)).toMatchObject({ title: 'theirs', body: '' });
});

test('a described run whose experiment has its provisional title again shows that the server was restored', async () => {
  const { scene, attempt, experiment } = await withOpenRun();
  const [id = 0] = await due(scene.journal, Number.MAX_SAFE_INTEGER, 1);
  const { reference } = await scene.journal.outbox.load(id);
  Object.assign(scene.notebook.experiments.get(experiment) ?? {}, { title: `labfeed ${reference}`, body: '' });
  const writes = scene.notebook.writes.length;
  await expect(attempt()).rejects.toThrow(/experiment 102, which labfeed filled in, is empty again/);
  expect(scene.notebook.writes).toHaveLength(writes);
});

test('a reopened run of an edited experiment goes on if anything of labfeed is left in it', async () => {
  const { scene, attempt, experiment } = await withOpenRun();
  Object.assign(scene.notebook.experiments.get(experiment) ?? {}, { title: 'better' });
  expect(await attempt()).toBe(experiment);
  Object.assign(scene.notebook.experiments.get(experiment) ?? {}, { title: 'open' });
  expectExactly(scene.notebook, ['before', 'open']);
});

test('404s from a proxy that has lost its backend do not make the notebook look restored', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const journal = await file(notebook, clock, ...'abcdefgh');
  const missing = new NotebookError('conflict', 'not found', { status: 404 });
  const lost: FakeNotebook = {
    ...notebook,
    readExperiment: () => Promise.reject(missing),
    listKeys: () => Promise.reject(new NotebookError('server', 'no notebook there')),
  };
  await expect(checkRestored(contextOf(journal, lost, clock))).rejects.toThrow('no notebook there');
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: undefined });
  // The notebook itself says the same.
  const restored: FakeNotebook = { ...notebook, readExperiment: () => Promise.reject(missing) };
  await expect(checkRestored(contextOf(journal, restored, clock))).rejects.toBeInstanceOf(HaltedError);
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: expect.any(String) });
});

const atOnce = <T>(send: () => Promise<T>): Promise<T> => send();

test('a check that waits for its turn does not wait for the write that waits for the check', async () => {
  const clock = simulatedClock();
  const probe = { send: async () => undefined };
  const limiter = new Limiter({ perSecond: 10, clock, log: silentLog(), probe });
  const guard = createWriteGuard(() => limiter.schedule(async () => undefined), clock);
  await clock.run(guard.ensure());
  const busy = () => Promise.reject(new NotebookError('rate', 'slow down', { status: 429 }));
  // After a 429, only one request is let through. The server is distrusted while the write waits to be that one.
  await expect(clock.run(limiter.schedule(busy))).rejects.toThrow('slow down');
  const write = guard.write(
    async () => 'written',
    (send) => limiter.schedule(send),
  );
  await Promise.resolve();
  guard.distrust();
  expect(await clock.run(write)).toBe('written');
});

test('writes wait for a check at the start, after an outage, after a pause and after a refused connection', async () => {
  const clock = manualClock();
  const events: string[] = [];
  const guard = createWriteGuard(async () => void events.push('check'), clock);
  const write = () => guard.write(async () => events.push('write'), atOnce);
  await Promise.all([write(), write()]);
  await write();
  expect(events.splice(0)).toEqual(['check', 'write', 'write', 'write']);
  guard.distrust();
  await write();
  clock.advance(20_000);
  await write();
  expect(events.splice(0)).toEqual(['check', 'write', 'write']);
  clock.advance(31_000);
  await write();
  expect(events.splice(0)).toEqual(['check', 'write']);
  const refused = () => Promise.reject(new NotebookError('server', 'connection refused'));
  await expect(guard.write(refused, atOnce)).rejects.toThrow('connection refused');
  await write();
  expect(events).toEqual(['check', 'write']);
});

test('a write is not sent if its check fails, or if another outage begins during the check', async () => {
  const outcomes = [Promise.reject(new Error('away')), Promise.resolve(), Promise.reject(new HaltedError('restored'))];
  for (const outcome of outcomes) outcome.catch(() => undefined);
  let checks = 0;
  const guard = createWriteGuard(async () => {
    const outcome = outcomes[checks++];
    await Promise.resolve();
    if (checks === 2) guard.distrust();
    await outcome;
  }, manualClock());
  const send = async () => expect.fail('sent');
  await expect(guard.write(send, atOnce)).rejects.toThrow('away');
  await expect(guard.write(send, atOnce)).rejects.toThrow('restored');
  expect(checks).toBe(3);
});
