import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import type { Draft } from '../../src/model.js';
import type { Added, NewRun, RunChange } from '../../src/outbox.js';
import { SERVER } from '../support/filing.js';
import { due, knows, refuse, take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';
import { openTestJournal, type TestJournal } from '../support/test-journal.js';

const DONE: readonly RunChange[] = [
  { kind: 'intended', server: SERVER, floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
  { kind: 'described' },
  { kind: 'commented', n: 1, comment: 41, found: false },
  { kind: 'commented', n: 2, comment: 42, found: false },
  { kind: 'finished' },
];

const BEFORE = someDraft('before', ['one', 'two']);

interface Scene extends TestJournal {
  readonly run: NewRun;
  remap(id?: number): Promise<{ done: boolean; text: string; rescan?: string | undefined }>;
  /** Reads the file under another mapping. */
  read(draft: Draft): Promise<Added>;
  state(): unknown;
}

/** A done run of an existing file. */
async function withDoneRun(changes: Parameters<typeof newRun>[1] = {}): Promise<Scene> {
  const opened = await openTestJournal();
  const path = join(tempFolder(), 'a.csv');
  writeFileSync(path, 'a');
  const run = newRun('a', { path, ...changes });
  await take(opened.journal, run, BEFORE, { shape: { tables: [] }, drift: 'hold', kinds: 1 });
  await opened.journal.outbox.record(1, ...DONE);
  return {
    ...opened,
    run,
    remap: (id = 1) => opened.ask({ kind: 'remap', run: id }),
    read: (draft) => take(opened.journal, { ...run, mapping: 'm2' }, draft),
    state: () => opened.rows('SELECT step, parked, reason FROM runs WHERE id = 1')[0],
  };
}

const events = ({ rows }: Scene) =>
  (rows('SELECT event FROM history WHERE run = 1 ORDER BY id') as { event: string }[]).map(({ event }) => event);

test('a done run stays done until its file is read again, and then has the new draft and the earlier one', async () => {
  const scene = await withDoneRun();
  const { journal, run } = scene;
  expect(await scene.remap()).toMatchObject({
    done: true,
    rescan: 'balance',
    text: expect.stringMatching(
      /^run 1 \(a\.csv\) will be re-read as soon as .*a\.csv is seen; .*experiment 12 are kept$/,
    ),
  });
  expect(await due(scene.journal, 0, 10)).toEqual([]);
  expect(scene.state()).toMatchObject({ step: 'done', parked: null });
  expect(await journal.intake.unknown('balance', [run.file])).toHaveLength(1);
  expect(await knows(journal, { ...run, mapping: 'm2' })).toBe(false);
  expect(await scene.read(someDraft('after', ['one', 'zwei', 'drei']))).toMatchObject({
    outcome: 'revised',
  });
  expect(await due(scene.journal, 0, 10)).toEqual([1]);
  expect(await journal.outbox.load(1)).toMatchObject({
    step: 'created',
    experiment: 12,
    draft: { title: 'after' },
    earlier: [{ title: 'before', tags: ['balance'], written: true }],
    comments: [
      { n: 1, text: 'one', comment: 41, earlier: [] },
      { n: 2, text: 'zwei', comment: 42, earlier: ['two'] },
      { n: 3, text: 'drei', comment: undefined, earlier: [] },
    ],
    surplus: [],
  });
  expect(await knows(journal, { ...run, mapping: 'm2' })).toBe(true);
  expect(await journal.intake.unknown('balance', [run.file])).toEqual([]);
  expect(events(scene).slice(-2)).toEqual(['remapAsked', 'remapped']);
});

test('a surplus comment is kept until it is deleted, and reused if a later reading needs it', async () => {
  const scene = await withDoneRun();
  await scene.remap();
  await scene.read(someDraft('after', ['uno']));
  expect(await scene.journal.outbox.load(1)).toMatchObject({
    comments: [{ n: 1, text: 'uno', comment: 41, earlier: ['one'] }],
    surplus: [{ n: 2, comment: 42, texts: ['two'] }],
  });
  const refused: RunChange = { kind: 'parked', as: 'quarantined', failure: 'request', reason: '422' };
  await scene.journal.outbox.record(1, { kind: 'describing' }, refused);
  await take(scene.journal, { ...scene.run, mapping: 'm3' }, someDraft('third', ['1', '2']));
  expect(await scene.journal.outbox.load(1)).toMatchObject({
    earlier: [
      { title: 'before', written: true },
      { title: 'after', written: false },
    ],
    comments: [
      { n: 1, text: '1', comment: 41, earlier: ['one', 'uno'] },
      { n: 2, text: '2', comment: 42, earlier: ['two'] },
    ],
    surplus: [],
  });
  await scene.journal.outbox.record(1, { kind: 'commentRevised', n: 1 }, { kind: 'commentRevised', n: 2 });
  await scene.journal.outbox.record(1, { kind: 'finished' });
  expect(scene.rows('SELECT * FROM earlier_comments')).toEqual([]);
  expect(scene.rows('SELECT * FROM earlier_drafts')).toEqual([]);
});

test('an unchanged reading changes nothing, and is reported as unchanged', async () => {
  const scene = await withDoneRun();
  await scene.remap();
  expect(await scene.read(BEFORE)).toMatchObject({ run: 1, outcome: 'unchanged' });
  expect(scene.state()).toEqual({ step: 'done', parked: null, reason: null });
  expect(await due(scene.journal, 0, 10)).toEqual([]);
  expect(events(scene).at(-1)).toBe('remapUnchanged');
  expect(await knows(scene.journal, { ...scene.run, mapping: 'm2' })).toBe(true);
});

test('what a draft omits is stored with it, and known after an unchanged reading', async () => {
  const scene = await withDoneRun();
  const omits = () => scene.rows('SELECT omits FROM drafts');
  expect(omits()).toEqual([{ omits: null }]);
  await scene.remap();
  await scene.journal.outbox.add({ ...scene.run, mapping: 'm2' }, { draft: BEFORE, omits: [] });
  expect(omits()).toEqual([{ omits: '[]' }]);
  await scene.remap();
  await scene.journal.outbox.add(
    { ...scene.run, mapping: 'm2' },
    { draft: someDraft('after', []), omits: ['not read: line 4'] },
  );
  expect(omits()).toEqual([{ omits: '["not read: line 4"]' }]);
});

test('a file that the current mapping cannot read leaves its run done as filed, with the reason', async () => {
  const scene = await withDoneRun();
  await scene.remap();
  const refused = await refuse(scene.journal, { ...scene.run, mapping: 'm2' }, new FileError('no table any more'));
  expect(refused).toMatchObject({ run: 1, outcome: 'refused' });
  expect(scene.state()).toEqual({
    step: 'done',
    parked: null,
    reason: 'it was not remapped and stays as it was filed: no table any more',
  });
  expect(await scene.journal.outbox.load(1)).toMatchObject({ draft: { title: 'before' }, earlier: [] });
  expect(await knows(scene.journal, { ...scene.run, mapping: 'm2' })).toBe(true);
  await scene.remap();
  expect(scene.state()).toMatchObject({ reason: null });
});

test('later runs are not compared with a remapped run', async () => {
  const scene = await withDoneRun();
  const shapes = 'SELECT * FROM shapes';
  const before = scene.rows(shapes);
  await scene.remap();
  const shape = { tables: [{ name: 'readings', columns: [{ name: 'Weight' }] }] };
  const read = { ...scene.run, mapping: 'm2' };
  const added = await take(scene.journal, read, someDraft('after'), { shape, drift: 'hold', kinds: 1 });
  expect(added).toMatchObject({ drift: undefined, outcome: 'revised' });
  expect(scene.rows(shapes)).toEqual(before);
});

for (const [what, change, says] of [
  ['is gone', (path: string) => rmSync(path), /its file is no longer at .*a\.csv/],
  ['has other bytes', (path: string) => writeFileSync(path, 'b'), /a\.csv has changed/],
  ['is longer', (path: string) => writeFileSync(path, 'aa'), /a\.csv has changed/],
  [
    'has become a folder',
    (path: string) => {
      rmSync(path);
      mkdirSync(path);
    },
    /a\.csv has changed/,
  ],
] as const) {
  test(`a done run whose file ${what} is not remapped, as the answer says`, async () => {
    const scene = await withDoneRun();
    change(scene.run.file.path);
    expect(await scene.remap()).toEqual({ done: false, text: expect.stringMatching(says) });
    expect(await knows(scene.journal, { ...scene.run, mapping: 'm2' })).toBe(true);
    expect(scene.rows('SELECT * FROM remaps')).toEqual([]);
  });
}

test('a file that changes before it is read again becomes a run of its own, and the done run has the reason', async () => {
  const scene = await withDoneRun();
  await scene.remap();
  const { path } = scene.run.file;
  const other = newRun('b', { path, mapping: 'm2' });
  expect(await scene.journal.intake.wasTaken('balance', other.file)).toBe(true);
  expect(await scene.journal.intake.wasTaken('balance', scene.run.file)).toBe(false);
  await take(scene.journal, other, someDraft('b'));
  expect(scene.state()).toMatchObject({
    step: 'done',
    reason: expect.stringMatching(/a\.csv now belongs to run 2$/),
  });
  expect(await knows(scene.journal, { ...scene.run, mapping: 'm2' })).toBe(true);
});

test('a run is remapped from its own file, and from a copy only if its own is gone', async () => {
  const scene = await withDoneRun();
  const copy = join(tempFolder(), 'copy.csv');
  writeFileSync(copy, 'a');
  const seen = newRun('a', { path: copy });
  expect(await knows(scene.journal, seen)).toBe(true);
  await scene.remap();
  expect(await knows(scene.journal, seen)).toBe(true);
  expect(await knows(scene.journal, scene.run)).toBe(false);
  rmSync(scene.run.file.path);
  expect((await scene.remap()).text).toContain(copy);
  expect(await knows(scene.journal, scene.run)).toBe(true);
  expect(await knows(scene.journal, seen)).toBe(false);
});

test('only a done run with a draft can be remapped', async () => {
  const scene = await withDoneRun();
  const { journal, run } = scene;
  expect(await scene.remap(77)).toEqual({ done: false, text: 'there is no run 77' });
  await take(journal, newRun('b'), someDraft('b'));
  expect((await scene.remap(2)).text).toMatch(/^run 2 \(b\.csv\) is being delivered; only a done run/);
  await journal.outbox.record(2, { kind: 'parked', as: 'held', failure: 'conflict', reason: 'r' });
  expect((await scene.remap(2)).text).toMatch(/^run 2 \(b\.csv\) is held; .*use labfeed retry 2/);
  await journal.recovery.take({
    server: SERVER,
    experiment: 50,
    instrument: 'balance',
    sha256: newRun('c').file.sha256,
    file: 'c.csv',
    copies: false,
    comments: [],
  });
  expect((await scene.remap(3)).text).toMatch(/has no draft, because it was recovered .*refile 3$/);
  await scene.ask({ kind: 'refile', run: 1 });
  expect((await scene.remap(1)).text).toBe('run 1 (a.csv) was refiled as run 4; remap that one');
  expect(await knows(journal, run)).toBe(true);
});

test('a run that is being remapped when the notebook is restored is described first, then its missing comments are posted', async () => {
  const scene = await withDoneRun();
  await scene.remap();
  await scene.read(someDraft('after', ['uno', 'due']));
  const [placed] = await scene.journal.recovery.placedFrom(SERVER, 12);
  if (!placed) throw new Error('it has an experiment');
  expect(await scene.journal.recovery.keepComments(placed, new Set([1]))).toBe(true);
  expect(await scene.journal.outbox.load(1)).toMatchObject({
    step: 'created',
    earlier: [{ title: 'before' }],
    comments: [
      { n: 1, comment: 41, earlier: ['one'] },
      { n: 2, comment: undefined, intentAt: 0, earlier: ['two'] },
    ],
  });
});

test('a run that an older version filed without the journal in its origin line is not updated for that', async () => {
  const scene = await withDoneRun();
  const line = 'labfeed balance a.csv sha256:0000';
  await scene.remap();
  expect(await scene.read({ ...BEFORE, body: `<p>${line}</p>` })).toMatchObject({ outcome: 'revised' });
  await scene.journal.outbox.record(1, { kind: 'finished' });
  await scene.remap();
  const body = `<p>${line} journal:1a2b3c4d</p>`;
  expect(await scene.read({ ...BEFORE, body })).toMatchObject({ outcome: 'unchanged' });
});
