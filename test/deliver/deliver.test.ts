import { describe, expect, test } from 'vitest';
import { type DeliveryContext, type Notebook, StoppedError } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { NotebookError } from '../../src/errors.js';
import { provisionalTitle } from '../../src/markers.js';
import { NOTEBOOK_KINDS, type NotebookKind, withFaults } from '../support/fake-notebook.js';
import { contextOf, SERVER } from '../support/filing.js';
import { newRun, someDraft } from '../support/runs.js';
import { setUp } from './scene.js';

test('a run becomes one experiment with its title, date and comments, and each request is sent once', async () => {
  const { add, deliverAll, notebook, expectExactly } = await setUp();
  await add('A');
  await deliverAll();
  expectExactly(['A']);
  expect([...notebook.experiments.values()][0]?.date).toBe('2026-01-02');
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'postComment', 'postComment']);
});

test('on eLabFTW, tags are sent to their own endpoint', async () => {
  const { add, deliverAll, notebook } = await setUp({ dialect: 'elabftw' });
  await add('A', ['only']);
  await deliverAll();
  expect([...notebook.experiments.values()][0]?.tags).toEqual(['balance']);
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'addTag', 'postComment']);
});

class Crash extends Error {}

/** Crashes at the n-th call of notebook, server or outbox, before or after it takes effect. */
function crashing(context: DeliveryContext, at: number, when: 'before' | 'after') {
  let calls = 0;
  const wrap = <T extends object>(parts: T): T =>
    Object.fromEntries(
      Object.entries(parts).map(([name, part]) => {
        if (typeof part !== 'function') return [name, part];
        const call = async (...args: unknown[]) => {
          calls += 1;
          const isCrash = calls === at;
          if (isCrash && when === 'before') throw new Crash();
          const result = await part(...args);
          if (isCrash) throw new Crash();
          return result;
        };
        return [name, call];
      }),
    ) as T;
  const mortal: DeliveryContext = {
    ...context,
    outbox: {
      ...context.outbox,
      ...wrap({ record: context.outbox.record, apply: context.outbox.apply }),
    },
    server: wrap(context.server),
    notebook: wrap(context.notebook),
  };
  return { mortal, calls: () => calls };
}

for (const when of ['before', 'after'] as const) {
  for (const kind of NOTEBOOK_KINDS) {
    for (const isFirst of [false, true]) {
      const which = isFirst ? 'the very first run' : 'a run';
      test(`a crash ${when} any step of ${which} leaves each run with one experiment and its comments (${JSON.stringify(kind)})`, () =>
        crashEverywhere(when, kind, isFirst));
    }
  }
}

async function crashEverywhere(when: 'before' | 'after', kind: NotebookKind, isFirst: boolean): Promise<void> {
  for (let at = 1; ; at++) {
    const { add, deliverAll, journal, context, notebook, expectExactly } = await setUp(kind);
    if (!isFirst) {
      await add('known');
      await deliverAll();
    }
    const id = await add('A');
    const { mortal, calls } = crashing(context, at, when);
    await deliver(await journal.outbox.load(id), mortal).catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error;
    });
    if (calls() < at) {
      expect(at).toBeGreaterThan(8);
      return;
    }
    const theirs = notebook.addExperiment('Untitled');
    await add('B');
    await add('C');
    await deliverAll();
    expect(notebook.experiments.get(theirs)).toMatchObject({ title: 'Untitled', comments: new Map() });
    notebook.experiments.delete(theirs);
    expectExactly([...(isFirst ? [] : ['known']), 'A', 'B', 'C']);
  }
}

test('a PATCH of unknown outcome that took effect is not repeated', async () => {
  const { add, fail, deliverAll, notebook, expectExactly } = await setUp();
  await fail(await add('A'), { patchExperiment: 'lost' });
  await deliverAll();
  expectExactly(['A']);
  expect(notebook.writes.filter((write) => write === 'patchExperiment')).toHaveLength(1);
});

test('an experiment that somebody changed before it was filled in is held, not overwritten', async () => {
  const { add, fail, deliverAll, notebook, journal } = await setUp();
  await fail(await add('A'), { patchExperiment: 'dropped' });
  const [experiment] = notebook.experiments.values();
  Object.assign(experiment ?? {}, { title: 'my own title' });
  await deliverAll();
  expect(experiment?.title).toBe('my own title');
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('an experiment that somebody deleted is held, not created again', async () => {
  const { add, fail, deliverAll, notebook, journal } = await setUp();
  await fail(await add('A'), { patchExperiment: 'dropped' });
  notebook.experiments.clear();
  await deliverAll();
  expect(notebook.experiments.size).toBe(0);
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('an edit of a new experiment is not overwritten if the rate limiter delayed the PATCH', async () => {
  const { add, attempt, deliverAll, notebook, journal, context } = await setUp();
  const run = await add('A');
  const held: Notebook = {
    ...notebook,
    async patchExperiment(id, changes, check) {
      Object.assign(notebook.experiments.get(id) ?? {}, { title: 'mine' });
      await context.clock.sleep(context.server.timeoutMs + 1);
      check?.();
      return notebook.patchExperiment(id, changes);
    },
  };
  await expect(attempt(run, held)).rejects.toThrow('somebody changed experiment');
  await deliverAll();
  expect([...notebook.experiments.values()].map(({ title }) => title)).toEqual(['mine']);
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('a run that was started on another notebook is held, not continued under the same id', async () => {
  const { add, fail, deliverAll, notebook, journal, clock } = await setUp();
  await fail(await add('A'), { postComment: 'dropped' });
  await deliverAll(contextOf(journal, notebook, clock, { url: 'https://other.example.org' }));
  expect(await journal.outbox.count()).toEqual({ held: 1 });
  expect([...notebook.experiments.values()][0]?.comments.size).toBe(0);
});

test('a run that is stopped between two steps continues there', async () => {
  const { add, deliverAll, notebook, journal, context, expectExactly } = await setUp();
  const id = await add('A');
  const stopping = new AbortController();
  const stopped: Notebook = {
    ...notebook,
    async patchExperiment(experiment, changes) {
      await notebook.patchExperiment(experiment, changes);
      stopping.abort(new StoppedError('stopping'));
    },
  };
  const stoppedContext = { ...context, notebook: stopped, stopping: stopping.signal };
  const run = await journal.outbox.load(id);
  await expect(deliver(run, stoppedContext)).rejects.toBeInstanceOf(StoppedError);
  await expect.poll(async () => (await journal.outbox.load(id)).step).toBe('described');
  await deliverAll();
  expectExactly(['A']);
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'postComment', 'postComment']);
});

describe('on eLabFTW, a creation carries the body and the tags that the server is known to accept', () => {
  const ELABFTW = { dialect: 'elabftw' } as const;
  /** With a first run, so that the server is known to keep titles and to accept the tag. */
  async function setUpKnown(kind: NotebookKind = {}) {
    const scene = await setUp({ ...ELABFTW, ...kind });
    await scene.add('first', ['only']);
    await scene.deliverAll();
    scene.notebook.writes.length = 0;
    return scene;
  }
  const entryOf = ({ notebook }: Awaited<ReturnType<typeof setUpKnown>>, title: string) =>
    [...notebook.experiments.values()].find((experiment) => experiment.title === title);

  test('so that a run takes three requests', async () => {
    const scene = await setUpKnown();
    await scene.add('A', ['only']);
    await scene.deliverAll();
    expect(scene.notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'postComment']);
    expect(entryOf(scene, 'A')).toMatchObject({ body: expect.stringContaining('<p>A</p>'), tags: ['balance'] });
  });

  test('and what a person changed in the body before the title was set stays', async () => {
    const scene = await setUpKnown();
    const { attempt, add, notebook, deliverAll } = scene;
    const run = await add('A', ['only']);
    await expect(attempt(run, withFaults(notebook, { patchExperiment: 'unreachable' }))).rejects.toThrow('refused');
    const created = [...notebook.experiments.values()].at(-1);
    const edited = created?.body.replace('<p>A</p>', '<p>A, by hand</p>') ?? '';
    Object.assign(created ?? {}, { body: edited });
    await deliverAll();
    expect(entryOf(scene, 'A')).toMatchObject({ body: edited, tags: ['balance'] });
    const { journal } = scene;
    const file = newRun('A');
    await journal.requests.decide({ kind: 'remap', run }, { path: file.file.path, has: 'itsBytes' });
    await journal.outbox.add(file, { draft: { ...someDraft('A', ['only']), title: 'A, remapped' } });
    await expect(attempt(run)).rejects.toThrow('somebody changed the body');
  });

  test('unless an older version drops them: then they are sent again, and later creations carry nothing', async () => {
    const scene = await setUpKnown({ keepsBody: false });
    for (const title of ['A', 'B']) await scene.add(title, ['only']);
    await scene.deliverAll();
    const full = ['patchExperiment', 'addTag', 'postComment'];
    expect(scene.notebook.writes).toEqual([
      'createExperiment',
      'patchExperiment',
      ...full,
      'createExperiment',
      ...full,
    ]);
    for (const title of ['A', 'B'])
      expect(entryOf(scene, title)).toMatchObject({ body: expect.stringContaining(title), tags: ['balance'] });
  });

  test('and content that is refused is sent once more, in the PATCH', async () => {
    const scene = await setUpKnown();
    const refused = new NotebookError('conflict', 'blocked', { status: 403 });
    await scene.attempt(await scene.add('A', ['only']), {
      ...scene.notebook,
      createFilledExperiment: () => Promise.reject(refused),
    });
    expect(scene.notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'addTag', 'postComment']);
    scene.expectExactly(['first', 'A'], 1);
  });

  test('and one that fails because of a tag, although it took effect, is found', async () => {
    const scene = await setUpKnown();
    const { notebook, attempt, add, deliverAll, expectExactly } = scene;
    const refused = new NotebookError('request', 'tags are forbidden', { status: 400 });
    const failing = attempt(await add('A', ['only']), {
      ...notebook,
      async createFilledExperiment(content) {
        await notebook.createFilledExperiment({ ...content, tags: [] });
        throw refused;
      },
    });
    await expect(failing).rejects.toMatchObject({ outcomeUnknown: true });
    await deliverAll();
    expectExactly(['first', 'A'], 1);
    expect(entryOf(scene, 'A')?.tags).toEqual(['balance']);
  });

  test('and a spare of the run that an earlier journal left behind gets the body of the new draft', async () => {
    const scene = await setUpKnown();
    const { notebook, journal, add, deliverAll } = scene;
    const run = await add('A', ['only']);
    const { reference, draft } = await journal.outbox.load(run);
    const body = draft.body.replace('<p>A</p>', '<p>old</p>').replace(/<\/p>$/, ' journal:12345678</p>');
    const content = { title: provisionalTitle(reference), body, content_type: 1 };
    await journal.outbox.server(SERVER).addSpare(await notebook.createFilledExperiment(content), reference);
    await deliverAll();
    expect(entryOf(scene, 'A')?.body).toBe(draft.body);
  });

  test('and tags that a person added to a late creation stay', async () => {
    const scene = await setUp(ELABFTW);
    const { notebook, add, attempt, deliverAll } = scene;
    await expect(
      attempt(await add('A', ['only']), withFaults(notebook, { patchExperiment: 'unreachable' })),
    ).rejects.toThrow('refused');
    for (const { tags } of notebook.experiments.values()) tags.push('urgent');
    await deliverAll();
    expect(entryOf(scene, 'A')?.tags).toEqual(['urgent', 'balance']);
  });

  test('and not a tag that is new to labfeed, which the server may refuse', async () => {
    const { notebook, journal, attempt } = await setUpKnown();
    const sent: unknown[] = [];
    const createFilledExperiment: Notebook['createFilledExperiment'] = (content) => {
      sent.push(content.tags);
      return notebook.createFilledExperiment(content);
    };
    for (const title of ['A', 'B']) {
      const draft = { ...someDraft(title, ['only']), tags: ['balance', 'new'] };
      const { run } = await journal.outbox.add(newRun(title), { draft });
      await attempt(run, { ...notebook, createFilledExperiment });
    }
    expect(sent).toEqual([undefined, ['balance', 'new']]);
  });

  test('and a spare that another run created gets the content and the tags of its new run', async () => {
    const scene = await setUpKnown();
    const { notebook, journal, add, deliverAll } = scene;
    const { reference } = await journal.outbox.load(1);
    const content = { title: provisionalTitle(reference), body: '<p>other</p>', content_type: 1 };
    const spare = await notebook.createFilledExperiment({ ...content, tags: ['other'] });
    await journal.outbox.server(SERVER).addSpare(spare, reference);
    await add('A', ['only']);
    await deliverAll();
    expect(notebook.experiments.get(spare)).toMatchObject({ title: 'A', tags: ['balance'] });
    expect(notebook.experiments.get(spare)?.body).toContain('<p>A</p>');
  });
});
