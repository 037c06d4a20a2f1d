import { expect, test, vi } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { showsBody } from '../../src/deliver/revise.js';
import { NotebookError } from '../../src/errors.js';
import type { Journal } from '../../src/journal/journal.js';
import { markComment } from '../../src/markers.js';
import type { Draft } from '../../src/model.js';
import { type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, type ManualClock } from '../support/filing.js';
import { take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { type DoneRun, withDone } from './done-run.js';

const KINDS = [{ dialect: 'v2' }, { dialect: 'elabftw' }] as const;

const draft = (title: string, words: string, comments: readonly string[], tags = ['balance']): Draft => ({
  ...someDraft(title, comments),
  body: `<h1>It's &lt;${words}&gt;</h1><p>labfeed balance a.csv</p>`,
  tags,
});

const BEFORE = draft('before', 'old', ['one', 'two'], ['balance', 'old']);
const AFTER = draft('after', 'new', ['uno', 'two', 'drei'], ['balance', 'new']);

const texts = ({ entry }: DoneRun, ...comments: string[]) =>
  comments.map((text, index) => markComment(text, entry().reference, index + 1));

for (const kind of KINDS) {
  test(`a done run is revised in place: comments are edited and added, tags replaced (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    scene.notebook.writes.length = 0;
    await scene.remap(AFTER);
    expect(scene.entry()).toMatchObject({
      title: 'after',
      body: expect.stringContaining('new'),
      comments: texts(scene, 'uno', 'two', 'drei'),
      tags: ['balance', 'new'],
    });
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
    const tags = kind.dialect === 'elabftw' ? ['addTag', 'removeTag'] : [];
    expect(scene.notebook.writes).toEqual(['patchExperiment', ...tags, 'patchComment', 'postComment']);
  });

  test(`a new draft is on disk before it is written: a power failure must not make it look like an edit (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    const committed = vi.spyOn(scene.journal.outbox, 'record');
    let before: unknown;
    await scene.remap(AFTER, {
      patchExperiment(...given) {
        before ??= [...committed.mock.calls];
        return scene.notebook.patchExperiment(...given);
      },
    });
    expect(before).toEqual([[1, { kind: 'describing' }]]);
  });

  test(`a comment that is no longer needed is deleted (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    await scene.remap({ ...BEFORE, comments: ['one'] });
    expect(scene.entry().comments).toEqual(texts(scene, 'one'));
    await scene.remap({ ...BEFORE, comments: [] });
    expect(scene.entry().comments).toEqual([]);
    await scene.remap(BEFORE);
    expect(scene.entry().comments).toEqual(texts(scene, 'one', 'two'));
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
  });

  test(`if only comments or tags differ, the rest is not sent again (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    scene.notebook.writes.length = 0;
    await scene.remap({ ...BEFORE, comments: ['one', 'zwei'] });
    expect(scene.notebook.writes).toEqual(['patchComment']);
    scene.notebook.writes.length = 0;
    await scene.remap({ ...BEFORE, comments: ['one', 'zwei'], tags: ['balance'] });
    expect(scene.notebook.writes).toEqual([kind.dialect === 'v2' ? 'patchExperiment' : 'removeTag']);
    expect(scene.entry().tags).toEqual(['balance']);
  });

  test(`a change of markup alone is sent (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    await scene.remap({ ...BEFORE, body: BEFORE.body.replace(/h1/g, 'h2') });
    expect(scene.entry().body).toContain('<h2>');
  });

  const edits: readonly [string, (scene: DoneRun) => void, RegExp][] = [
    ['title', (scene) => scene.edit({ title: 'mine' }), /changed the title of experiment 101/],
    ['date', (scene) => scene.edit({ date: '2020-02-02' }), /changed the date of/],
    ['body', (scene) => scene.edit({ body: `${BEFORE.body} and mine` }), /changed the body of/],
    ['body (a picture added)', (scene) => scene.edit({ body: `${BEFORE.body}<img src="gel.png">` }), /the body/],
    [
      'body (a link added)',
      (scene) => scene.edit({ body: BEFORE.body.replace("It's", '<a href="x">It\'s</a>') }),
      /the body/,
    ],
    ['body (emptied)', (scene) => scene.edit({ body: '' }), /changed the body of/],
    ['tags (one removed)', (scene) => scene.edit({ tags: ['old'] }), /changed the tags of/],
    ['comment', (scene) => scene.editComment(1, 'mine'), /changed comment 1001 on experiment 101/],
    ['comment that the remap does not change', (scene) => scene.editComment(2, 'mine'), /changed comment 1002/],
    [
      'comment (with its mark kept)',
      (scene) => scene.editComment(1, texts(scene, 'mine')[0] ?? ''),
      /changed comment 1001/,
    ],
    ['comment (deleted)', (scene) => scene.deleteComment(1), /deleted comment 1001/],
    ['experiment (deleted)', (scene) => void scene.notebook.experiments.clear(), /not found/],
  ];
  for (const [what, edit, reason] of edits) {
    test(`a run is held and nothing is written if a person changed the ${what} (${kind.dialect})`, async () => {
      const scene = await withDone(BEFORE, kind);
      edit(scene);
      const left = structuredClone(scene.notebook.experiments);
      scene.notebook.writes.length = 0;
      await scene.remap(AFTER);
      expect(await scene.held()).toMatch(reason);
      expect(scene.notebook.writes).toEqual([]);
      expect(scene.notebook.experiments).toEqual(left);
    });
  }

  test(`a held run is revised once its edit is undone and it is retried (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    scene.editComment(1, 'mine');
    await scene.remap(AFTER);
    expect(await scene.held()).toContain('comment 1001');
    scene.editComment(1, texts(scene, 'one')[0] ?? '');
    await scene.decide({ kind: 'retry', run: 1 });
    expect(scene.entry()).toMatchObject({ title: 'after', comments: texts(scene, 'uno', 'two', 'drei') });
  });

  test(`an adopted run is filled in whatever it contains, except for a comment that a person edited (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    scene.edit({ title: 'mine' });
    scene.editComment(1, `mine\n${texts(scene, '')[0]}`);
    const mine = scene.entry().comments[0] ?? '';
    await scene.remap(AFTER);
    expect(await scene.held()).toContain('the title');
    await scene.decide({ kind: 'adopt', run: 1, server: scene.server, experiment: 101 });
    expect(scene.entry()).toMatchObject({
      title: 'after',
      comments: [mine, ...texts(scene, '', 'two', 'drei').slice(1)],
    });
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
    scene.edit({ title: 'mine again' });
    await scene.remap(BEFORE);
    expect(await scene.held()).toContain('the title');
    expect(scene.entry().title).toBe('mine again');
  });
}

test('tags that people added in eLabFTW are kept; where a PATCH replaces all tags, the run is held', async () => {
  const elabftw = await withDone(BEFORE, { dialect: 'elabftw' });
  elabftw.edit({ tags: ['Balance', 'old', 'theirs'] });
  await elabftw.remap(AFTER);
  expect(elabftw.entry().tags).toEqual(['Balance', 'theirs', 'new']);
  const v2 = await withDone(BEFORE, { dialect: 'v2' });
  v2.edit({ tags: ['balance', 'old', 'theirs'] });
  await v2.remap(AFTER);
  expect(await v2.held()).toContain('the tags');
  expect(v2.entry().tags).toEqual(['balance', 'old', 'theirs']);
});

for (const [state, shown] of [
  ['locked', { locked: 1 }],
  ['archived', { state: 2 }],
  ['deleted', { state: 3 }],
] as const) {
  test(`an experiment that is ${state} in eLabFTW is held, whatever the permissions of the key`, async () => {
    const scene = await withDone(BEFORE, { dialect: 'elabftw' });
    scene.notebook.writes.length = 0;
    await scene.remap(AFTER, {
      readExperiment: async (id) => ({ ...(await scene.notebook.readExperiment(id)), ...shown }),
    });
    expect(await scene.held()).toContain(`experiment 101 is ${state}`);
    expect(scene.notebook.writes).toEqual([]);
  });
}

test('sanitising by the server is not taken for an edit', async () => {
  const scene = await withDone(BEFORE, { dialect: 'elabftw' });
  scene.edit({
    body: `<div><h1 class="x">\n It&#039;s &lt;old&gt;</h1></div>\n<p>labfeed  balance a.csv</p><br />`,
  });
  scene.editComment(1, (texts(scene, 'one')[0] ?? '').replaceAll('\n', '<br />\r\n'));
  await scene.remap(AFTER);
  expect(scene.entry()).toMatchObject({ title: 'after', comments: texts(scene, 'uno', 'two', 'drei') });
});

/** A server that stores something else than it was sent, and returns it. */
const cleansUp =
  ({ notebook }: DoneRun) =>
  async (id: number, { title, body = '', ...rest }: Parameters<Notebook['patchExperiment']>[1]) =>
    notebook.patchExperiment(id, { ...rest, title: title.slice(0, 8), body: body.replace(/<svg>.*<\/svg>/, '<img>') });

test('what the server itself changed in our PATCH is not taken for an edit, and an edit of it is', async () => {
  const before = { ...BEFORE, title: 'before, at length', body: `<svg>axis</svg>${BEFORE.body}` };
  const revised = async (edit: Parameters<DoneRun['edit']>[0]): Promise<DoneRun> => {
    const scene = await withDone(BEFORE, { dialect: 'elabftw' });
    await scene.remap(before, { patchExperiment: cleansUp(scene) });
    expect(scene.entry()).toMatchObject({ title: 'before, ', body: expect.stringContaining('<img>') });
    scene.edit(edit);
    await scene.remap(AFTER, { patchExperiment: cleansUp(scene) });
    return scene;
  };
  expect((await revised({})).entry().title).toBe('after');
  const mine = await revised({ title: 'before!' });
  expect(await mine.held()).toMatch(/changed the title of experiment/);
  expect(mine.entry().title).toBe('before!');
  expect(await (await revised({ body: BEFORE.body })).held()).toMatch(/changed the body of experiment/);
});

test('a response to the PATCH that does not show its result proves nothing', async () => {
  const scene = await withDone(reading('before', 'old'), { dialect: 'elabftw' });
  await scene.remap(reading('between', 'new'), {
    async patchExperiment(id, changes) {
      await scene.notebook.patchExperiment(id, changes);
      return { id, title: '', date: '', body: '' };
    },
  });
  scene.edit({ body: '' });
  await scene.remap(reading('after', 'newer'));
  expect(await scene.held()).toMatch(/changed the body of experiment/);
});

test('a change that the notebook confirms but does not apply holds the run', async () => {
  const scene = await withDone(BEFORE, { dialect: 'elabftw' });
  await scene.remap(AFTER, {
    patchComment: (experiment, comment) => scene.notebook.readComment(experiment, comment),
  });
  expect(await scene.held()).toMatch(/change to comment 1001 on experiment 101 but did not apply it/);
  const other = await withDone(BEFORE, { dialect: 'elabftw' });
  await other.remap({ ...BEFORE, comments: ['one'] }, { deleteComment: async () => undefined });
  expect(await other.held()).toMatch(/change to comment 1002 on experiment 101 but did not apply it/);
});

test('a change of unknown outcome is waited for, so that it cannot undo a later one', async () => {
  const scene = await withDone(BEFORE, { dialect: 'v2' });
  let isLost = false;
  await scene.remap(AFTER, {
    async patchExperiment(...args) {
      if (isLost) return scene.notebook.patchExperiment(...args);
      isLost = true;
      throw new NotebookError('server', 'no answer', { outcomeUnknown: true });
    },
  });
  expect(scene.waits).toEqual(['a change with an unknown outcome may still take effect']);
  expect(scene.entry().title).toBe('after');
  await scene.remap(BEFORE);
  expect(scene.waits).toHaveLength(1);
});

const TWO_COMMENTS = someDraft('before', ['one', 'two']);

for (const [what, comments] of [
  ['to be revised', ['uno', 'zwei']],
  ['no longer wanted', ['uno']],
] as const) {
  test(`a comment that is ${what} and that somebody edits during the remap is not changed`, async () => {
    const scene = await withDone(TWO_COMMENTS, { dialect: 'v2' });
    await scene.remap(someDraft('after', comments), {
      async patchExperiment(id, changes) {
        const shown = await scene.notebook.patchExperiment(id, changes);
        scene.editComment(2, 'mine');
        return shown;
      },
    });
    expect(await scene.held()).toMatch(/changed comment 1002/);
    expect(scene.entry().comments[1]).toBe('mine');
  });
}

const origin = `<p>labfeed balance a.csv sha256:${sha256('a')}</p>`;
const reading = (title: string, words: string, comments = ['one', 'two']): Draft => ({
  ...someDraft(title, comments),
  body: `<h1>It's &lt;${words}&gt;</h1>${origin}`,
});

interface Quarantined {
  readonly clock: ManualClock;
  readonly journal: Journal;
  readonly notebook: FakeNotebook;
}

const rejection = (): Promise<never> => Promise.reject(new NotebookError('request', 'refused', { status: 422 }));

/** A run that was quarantined at this request; the requests before it succeeded. */
async function quarantinedAt(
  refused: keyof Pick<Notebook, 'patchExperiment' | 'postComment'>,
  before = reading('before', 'old'),
): Promise<Quarantined> {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook();
  await take(journal, newRun('a'), before);
  const context = contextOf(journal, { ...notebook, [refused]: rejection }, clock);
  await deliverAll(journal, context, clock);
  expect(await journal.outbox.count()).toEqual({ quarantined: 1 });
  return { clock, journal, notebook };
}

async function readAgain({ journal, notebook, clock }: Quarantined, now: Draft): Promise<void> {
  await take(journal, newRun('a', { mapping: 'm2' }), now);
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
}

const only = ({ notebook }: Quarantined) => {
  expect(notebook.experiments.size).toBe(1);
  return [...notebook.experiments.values()][0];
};

for (const refused of ['patchExperiment', 'postComment'] as const) {
  test(`a run that is read again after a rejected ${refused} fills in the experiment that it has`, async () => {
    const scene = await quarantinedAt(refused);
    await readAgain(scene, reading('after', 'new', ['only']));
    expect(only(scene)).toMatchObject({ title: 'after', body: expect.stringContaining('new') });
    expect(only(scene)?.comments.size).toBe(1);
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
  });
}

test('a changed body is written even if title and date are unchanged', async () => {
  const scene = await quarantinedAt('postComment', reading('same', 'old'));
  const shown = only(scene);
  // As sanitised by a server.
  if (shown) shown.body = `<h1 class="x">\n It&#039;s &lt;old&gt;</h1>\n${origin}`;
  await readAgain(scene, reading('same', 'new'));
  expect(only(scene)?.body).toContain('new');
});

test('an unchanged draft is not written again', async () => {
  const scene = await quarantinedAt('postComment');
  const writes = scene.notebook.writes.length;
  await readAgain(scene, reading('before', 'old'));
  expect(scene.notebook.writes.slice(writes)).toEqual(['postComment', 'postComment']);
});

test('a run that a person edited is held, not overwritten', async () => {
  for (const edit of [{ title: 'mine' }, { body: `<h1>It is <b>mine</b></h1>${origin}` }]) {
    const scene = await quarantinedAt('postComment');
    const shown = only(scene);
    Object.assign(shown ?? {}, edit);
    await readAgain(scene, reading('after', 'new'));
    expect(only(scene)).toMatchObject(edit);
    expect(await scene.journal.outbox.count()).toEqual({ held: 1 });
  }
});

test('a partial PATCH of an earlier draft is completed with the new one', async () => {
  const scene = await quarantinedAt('patchExperiment');
  Object.assign(only(scene) ?? {}, { title: 'before', date: reading('', '').date });
  await readAgain(scene, reading('after', 'new'));
  expect(only(scene)).toMatchObject({ title: 'after', body: expect.stringContaining('new') });
});

test('a creation of unknown outcome is reconciled for a run that was read again', async () => {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook();
  await take(journal, newRun('known'), someDraft('known'));
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  await take(journal, newRun('a'), reading('before', 'old'));
  const broken: FakeNotebook = {
    ...notebook,
    async createExperiment(fields) {
      await notebook.createExperiment(fields);
      throw new NotebookError('server', 'broken', { status: 500, outcomeUnknown: true, scope: 'run' });
    },
  };
  const context = contextOf(journal, broken, clock);
  await expect(deliver(await journal.outbox.load(2), context)).rejects.toThrow('broken');
  await journal.outbox.record(2, { kind: 'parked', as: 'quarantined', failure: 'server', reason: 'broken' });
  await take(journal, newRun('a', { mapping: 'm2' }), reading('after', 'new'));
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  expect([...notebook.experiments.values()].map(({ title }) => title)).toEqual(['known', 'after']);
});

const row = (...cells: string[]): string =>
  `<table><tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr></table>`;

test('a number that was moved to the next cell, or split differently, is a change', () => {
  expect(showsBody(row('A', '5', ''), row('A', '5', ''))).toBe(true);
  expect(showsBody(row('A', '5', ''), row('A', '', '5'))).toBe(false);
  expect(showsBody(row('12', '3'), row('1', '23'))).toBe(false);
});

test('spaces that a server adds between elements are not a change', () => {
  expect(showsBody('<table>\n<tr><td>A</td>\n<td>5</td></tr></table>', row('A', '5'))).toBe(true);
});
