import { expect, test } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import { markComment } from '../../src/markers.js';
import type { Draft } from '../../src/model.js';
import { someDraft } from '../support/runs.js';
import { type Redone, withDone } from './redone.js';

const KINDS = [{ dialect: 'v2' }, { dialect: 'elabftw' }] as const;

const draft = (title: string, words: string, comments: readonly string[], tags = ['balance']): Draft => ({
  ...someDraft(title, comments),
  body: `<h1>It's &lt;${words}&gt;</h1><p>labfeed balance a.csv</p>`,
  tags,
});

const BEFORE = draft('before', 'old', ['one', 'two'], ['balance', 'old']);
const AFTER = draft('after', 'new', ['uno', 'two', 'drei'], ['balance', 'new']);

const texts = ({ entry }: Redone, ...comments: string[]) =>
  comments.map((text, index) => markComment(text, entry().reference, index + 1));

for (const kind of KINDS) {
  test(`a done run is revised in place: one experiment, its comments edited, added, its tags exchanged (${kind.dialect})`, async () => {
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

  test(`a comment for which there is no use any more is deleted (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    await scene.remap({ ...BEFORE, comments: ['one'] });
    expect(scene.entry().comments).toEqual(texts(scene, 'one'));
    await scene.remap({ ...BEFORE, comments: [] });
    expect(scene.entry().comments).toEqual([]);
    await scene.remap(BEFORE);
    expect(scene.entry().comments).toEqual(texts(scene, 'one', 'two'));
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
  });

  test(`where nothing but comments or tags differ, the rest is not sent again (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    scene.notebook.writes.length = 0;
    await scene.remap({ ...BEFORE, comments: ['one', 'zwei'] });
    expect(scene.notebook.writes).toEqual(['patchComment']);
    scene.notebook.writes.length = 0;
    await scene.remap({ ...BEFORE, comments: ['one', 'zwei'], tags: ['balance'] });
    expect(scene.notebook.writes).toEqual([kind.dialect === 'v2' ? 'patchExperiment' : 'removeTag']);
    expect(scene.entry().tags).toEqual(['balance']);
  });

  test(`a change of nothing but markup is sent (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    await scene.remap({ ...BEFORE, body: BEFORE.body.replace(/h1/g, 'h2') });
    expect(scene.entry().body).toContain('<h2>');
  });

  const edits: readonly [string, (scene: Redone) => void, RegExp][] = [
    ['title', (scene) => scene.edit({ title: 'mine' }), /changed the title of experiment 101/],
    ['date', (scene) => scene.edit({ date: '2020-02-02' }), /changed the date of/],
    ['body', (scene) => scene.edit({ body: `${BEFORE.body} and mine` }), /changed the body of/],
    [
      'body, by a picture alone,',
      (scene) => scene.edit({ body: `${BEFORE.body}<img src="gel.png">` }),
      /the body/,
    ],
    [
      'body, by a link alone,',
      (scene) => scene.edit({ body: BEFORE.body.replace("It's", '<a href="x">It\'s</a>') }),
      /the body/,
    ],
    ['body, which they emptied,', (scene) => scene.edit({ body: '' }), /changed the body of/],
    ['tags, of which they took one off,', (scene) => scene.edit({ tags: ['old'] }), /changed the tags of/],
    ['comment', (scene) => scene.editComment(1, 'mine'), /changed comment 1001 of experiment 101/],
    ['comment that was not to be changed', (scene) => scene.editComment(2, 'mine'), /changed comment 1002/],
    [
      'comment, of which they left the mark,',
      (scene) => scene.editComment(1, texts(scene, 'mine')[0] ?? ''),
      /changed comment 1001/,
    ],
    ['comment, which they deleted,', (scene) => scene.deleteComment(1), /deleted comment 1001/],
    ['experiment, which they deleted,', (scene) => void scene.notebook.experiments.clear(), /not found/],
  ];
  for (const [what, touch, says] of edits) {
    test(`what a person did to the ${what} is held, and nothing at all is written (${kind.dialect})`, async () => {
      const scene = await withDone(BEFORE, kind);
      touch(scene);
      const left = structuredClone(scene.notebook.experiments);
      scene.notebook.writes.length = 0;
      await scene.remap(AFTER);
      expect(await scene.held()).toMatch(says);
      expect(scene.notebook.writes).toEqual([]);
      expect(scene.notebook.experiments).toEqual(left);
    });
  }

  test(`put back as it was and retried, a held run is revised after all (${kind.dialect})`, async () => {
    const scene = await withDone(BEFORE, kind);
    scene.editComment(1, 'mine');
    await scene.remap(AFTER);
    expect(await scene.held()).toContain('comment 1001');
    scene.editComment(1, texts(scene, 'one')[0] ?? '');
    await scene.decide({ kind: 'retry', run: 1 });
    expect(scene.entry()).toMatchObject({ title: 'after', comments: texts(scene, 'uno', 'two', 'drei') });
  });

  test(`adopted, a held run is filled in whatever it holds, but for a comment that a person wrote in (${kind.dialect})`, async () => {
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

test('tags that people put on in eLabFTW stay; on a server where a PATCH replaces all tags, the run is held', async () => {
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
  test(`what somebody has ${state} in eLabFTW is held, whatever the key may do`, async () => {
    const scene = await withDone(BEFORE, { dialect: 'elabftw' });
    scene.notebook.writes.length = 0;
    await scene.remap(AFTER, {
      readExperiment: async (id) => ({ ...(await scene.notebook.readExperiment(id)), ...shown }),
    });
    expect(await scene.held()).toContain(`experiment 101 is ${state}`);
    expect(scene.notebook.writes).toEqual([]);
  });
}

test('a server that cleans what it stores is understood: nobody has touched that', async () => {
  const scene = await withDone(BEFORE, { dialect: 'elabftw' });
  scene.edit({
    body: `<div><h1 class="x">\n It&#039;s &lt;old&gt;</h1></div>\n<p>labfeed  balance a.csv</p><br />`,
  });
  scene.editComment(1, (texts(scene, 'one')[0] ?? '').replaceAll('\n', '<br />\r\n'));
  await scene.remap(AFTER);
  expect(scene.entry()).toMatchObject({ title: 'after', comments: texts(scene, 'uno', 'two', 'drei') });
});

test('a comment that the notebook does not change, whatever it says, is told', async () => {
  const scene = await withDone(BEFORE, { dialect: 'elabftw' });
  await scene.remap(AFTER, {
    patchComment: (experiment, comment) => scene.notebook.readComment(experiment, comment),
  });
  expect(await scene.held()).toMatch(/change to comment 1001 of experiment 101 but did not apply it/);
  const other = await withDone(BEFORE, { dialect: 'elabftw' });
  await other.remap({ ...BEFORE, comments: ['one'] }, { deleteComment: async () => undefined });
  expect(await other.held()).toMatch(/change to comment 1002 of experiment 101 but did not apply it/);
});

test('a change whose answer was lost is waited for, lest it come late and undo a later one', async () => {
  const scene = await withDone(BEFORE, { dialect: 'v2' });
  let isLost = false;
  await scene.remap(AFTER, {
    async patchExperiment(...args) {
      if (isLost) return scene.notebook.patchExperiment(...args);
      isLost = true;
      throw new NotebookError('server', 'no answer', { outcomeUnknown: true });
    },
  });
  expect(scene.waits).toEqual(['a change of unknown outcome may still take effect']);
  expect(scene.entry().title).toBe('after');
  await scene.remap(BEFORE);
  expect(scene.waits).toHaveLength(1);
});
