import { expect, test } from 'vitest';
import { provisionalTitle } from '../../src/markers.js';
import type { Extras } from '../../src/model.js';
import { FAULTS, intercept, withFaults } from '../support/fake-notebook.js';
import { contextOf, SERVER } from '../support/filing.js';
import { take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { GRACE_MS, setUp } from './scene.js';

const PH = { value: '7.4', type: 'number', unit: 'pH' };

async function setUpNamed(isKnown = true) {
  const scene = await setUp({ dialect: 'elabftw' });
  const { notebook, journal, add, deliverAll } = scene;
  Object.assign(notebook.named, {
    category: [
      { id: 3, title: 'Raw data' },
      { id: 4, title: 'Analysis' },
    ],
    template: [{ id: 5, title: 'Measurement' }],
    link: [{ id: 6, title: 'Plate reader' }],
  });
  if (isKnown) {
    await add('first', ['only']);
    await deliverAll();
    notebook.writes.length = 0;
  }
  return {
    ...scene,
    entry: (title: string) => [...notebook.experiments.values()].find((experiment) => experiment.title === title),
    async addWith(title: string, extras: Extras): Promise<number> {
      return (await take(journal, newRun(title), { ...someDraft(title, ['only']), extras })).run;
    },
    /** The file is read again, with another mapping. */
    async remap(run: number, title: string, extras: Extras): Promise<void> {
      await journal.requests.decide({ kind: 'remap', run }, { path: newRun(title).file.path, has: 'itsBytes' });
      await journal.outbox.add(newRun(title), { draft: { ...someDraft(title, ['only']), extras } });
    },
    /** The file has this content now, and is read. */
    async revise(title: string, extras?: Extras): Promise<number> {
      const run = newRun(title, { path: '/data/a.csv', revises: { last: undefined } });
      const draft = someDraft(title, ['only']);
      return (await take(journal, run, extras ? { ...draft, extras } : draft)).run;
    },
  };
}

const fieldsOf = (entry: { metadata?: string } | undefined) => JSON.parse(entry?.metadata ?? '{}').extra_fields;

test('the creation carries fields, category and permissions, and a link follows', async () => {
  const { addWith, deliverAll, notebook, entry } = await setUpNamed();
  await addWith('A', { fields: { pH: PH }, category: 'raw DATA', canread: 'team', link: 'Plate reader' });
  await deliverAll();
  expect(entry('A')).toMatchObject({ category: 3, canread_base: 30, items: [6] });
  expect(fieldsOf(entry('A'))).toEqual({ pH: { type: 'number', value: '7.4', unit: 'pH', units: ['pH'] } });
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'linkItem', 'postComment']);
});

test('they are set afterwards where the creation carried nothing, beside what people put there', async () => {
  const { addWith, deliverAll, notebook, entry, context, journal, clock } = await setUpNamed(false);
  await addWith('A', { fields: { pH: PH }, category: 3 });
  const metadata = JSON.stringify({ elabftw: { x: 1 }, extra_fields: { Mood: { value: 'good' } } });
  const people: typeof notebook = {
    ...notebook,
    async createExperiment(content) {
      const id = await notebook.createExperiment(content);
      Object.assign(notebook.experiments.get(id) ?? {}, { metadata });
      return id;
    },
  };
  await deliverAll({ ...contextOf(journal, people, clock), unknown: context.unknown });
  expect(entry('A')?.category).toBe(3);
  expect(JSON.parse(entry('A')?.metadata ?? '')).toEqual({
    elabftw: { x: 1 },
    extra_fields: { Mood: { value: 'good' }, pH: { type: 'number', value: '7.4', unit: 'pH', units: ['pH'] } },
  });
});

test('a remap replaces the values that labfeed wrote, and none that a person changed', async () => {
  const { addWith, remap, deliverAll, entry } = await setUpNamed();
  const run = await addWith('A', { fields: { Sample: text('one'), Batch: text('7') }, category: 'Raw data' });
  await deliverAll();
  const before = fieldsOf(entry('A'));
  Object.assign(entry('A') ?? {}, {
    metadata: JSON.stringify({ extra_fields: { ...before, Batch: text('8, by hand') } }),
  });
  await remap(run, 'A', { fields: { Sample: text('two'), Batch: text('9') }, category: 'Analysis' });
  await deliverAll();
  expect(fieldsOf(entry('A'))).toMatchObject({ Sample: { value: 'two' }, Batch: { value: '8, by hand' } });
  expect(entry('A')?.category).toBe(4);
  Object.assign(entry('A') ?? {}, { category: 9 });
  await remap(run, 'A', { fields: { Sample: text('three') }, category: 'Raw data' });
  await deliverAll();
  expect(entry('A')?.category).toBe(9);
});

test('what a person changes before the title is set stays', async () => {
  const { addWith, attempt, deliverAll, notebook, entry } = await setUpNamed();
  const run = await addWith('A', { fields: { pH: PH }, category: 'Raw data' });
  await expect(attempt(run, withFaults(notebook, { patchExperiment: 'unreachable' }))).rejects.toThrow('refused');
  const created = [...notebook.experiments.values()].at(-1);
  const metadata = JSON.stringify({ extra_fields: { pH: { type: 'number', value: '7.0' } } });
  Object.assign(created ?? {}, { category: 4, metadata });
  await deliverAll();
  expect(entry('A')).toMatchObject({ category: 4, metadata });
});

test('a spare with the category of its run is not used by another run', async () => {
  const { addWith, deliverAll, journal, notebook, entry } = await setUpNamed();
  const { reference } = await journal.outbox.load(await addWith('A', { category: 'Raw data' }));
  await deliverAll();
  const content = { title: provisionalTitle(reference), body: '<p>A</p>', content_type: 1, category: 3 };
  const spare = await notebook.createFilledExperiment(content);
  await journal.outbox.server(SERVER).addSpare(spare, reference);
  await addWith('B', { category: 'Analysis' });
  await deliverAll();
  expect(entry('B')?.category).toBe(4);
  expect(notebook.experiments.get(spare)?.title).toBe(content.title);
});

test('a name that the notebook does not have quarantines the run with the names that it has, before anything is created', async () => {
  const { addWith, attempt, notebook } = await setUpNamed();
  const run = await addWith('A', { category: 'Raw dta' });
  await expect(attempt(run)).rejects.toMatchObject({
    failure: 'request',
    message: 'the notebook has no category "Raw dta"; it has "Raw data" and "Analysis"',
    hint: expect.stringContaining('Did you mean "Raw data"?'),
  });
  expect(notebook.writes).toEqual([]);
});

test('a category that is renamed on the server keeps its id; two resources with one name need an id', async () => {
  const { addWith, deliverAll, attempt, notebook, entry, clock } = await setUpNamed();
  await addWith('A', { category: 'Raw data' });
  await deliverAll();
  notebook.named['category'] = [{ id: 3, title: 'Raw results' }];
  clock.advance(600_000);
  await addWith('B', { category: 'Raw data' });
  await deliverAll();
  expect(entry('B')?.category).toBe(3);
  notebook.named['link'] = [6, 7].map((id) => ({ id, title: 'Plate reader' }));
  await expect(attempt(await addWith('C', { link: 'Plate reader' }))).rejects.toThrow('several with the name');
});

test('a link by id needs no list', async () => {
  const { addWith, deliverAll, notebook, entry } = await setUpNamed();
  notebook.named['link'] = [];
  await addWith('A', { link: 2000 });
  await deliverAll();
  expect(entry('A')?.items).toEqual([2000]);
});

test('with a template, every creation names it, and the content follows in the PATCH', async () => {
  const { addWith, deliverAll, notebook, entry, context } = await setUpNamed();
  const sent: unknown[] = [];
  const createExperiment = (fields: { title: string }) => {
    sent.push(fields);
    return notebook.createExperiment(fields);
  };
  await addWith('A', { template: 'Measurement' });
  await deliverAll({ ...context, notebook: { ...notebook, createExperiment } });
  expect(sent).toMatchObject([{ template: 5 }]);
  expect(entry('A')?.body).toContain('<p>A</p>');
});

test('metadata that is not JSON is left as it is, and the run is held', async () => {
  const { addWith, attempt, notebook } = await setUpNamed(false);
  const run = await addWith('A', { fields: { pH: PH } });
  const odd = {
    ...notebook,
    patchExperiment: async (id: number, changes: Parameters<typeof notebook.patchExperiment>[1]) => ({
      ...(await notebook.patchExperiment(id, changes)),
      metadata: '{broken',
    }),
  };
  await expect(attempt(run, odd)).rejects.toMatchObject({
    failure: 'conflict',
    message: expect.stringContaining('not JSON'),
  });
});

test('on a server that only keeps the contract, nothing of this is tried', async () => {
  const { journal, deliverAll, notebook } = await setUp();
  const extras = { fields: { pH: PH }, category: 'Raw data', template: 'x', link: 'y' };
  await take(journal, newRun('A'), { ...someDraft('A', ['only']), extras });
  await deliverAll();
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'postComment']);
  expect(Object.keys([...notebook.experiments.values()][0] ?? {})).not.toContain('extras');
});

test('a category that labfeed set is replaced although the notebook fails when an earlier name is looked up', async () => {
  const { addWith, remap, deliverAll, entry, notebook, journal, clock, context } = await setUpNamed();
  Object.assign(notebook.named, { status: [{ id: 8, title: 'Running' }] });
  const run = await addWith('A', { category: 'Raw data', status: 'Running' });
  await deliverAll();
  await remap(run, 'A', { category: 'Analysis' });
  // Names are read again after a while.
  clock.advance(3_600_000);
  let lookups = 0;
  const failing = intercept(notebook, async ({ operation, args, carryOut }) => {
    if (operation === 'listNamed' && args[0] === 'status' && lookups++ === 0) throw FAULTS.badGateway.error(false);
    return carryOut();
  });
  await deliverAll({ ...contextOf(journal, failing, clock), unknown: context.unknown });
  expect(lookups).toBeGreaterThan(0);
  expect(entry('A')?.category).toBe(4);
});

const text = (value: string) => ({ value, type: 'text' });

test('a version replaces the fields of the one before, empties those that it lacks, and leaves those of people', async () => {
  const { revise, deliverAll, entry } = await setUpNamed();
  await revise('A', { fields: { Sample: text('one'), Batch: text('7') } });
  await deliverAll();
  const mine = { ...fieldsOf(entry('A')), Mood: text('good') };
  Object.assign(entry('A') ?? {}, { metadata: JSON.stringify({ extra_fields: mine }) });
  await revise('B', { fields: { Sample: text('two') } });
  await deliverAll();
  expect(fieldsOf(entry('B'))).toEqual({ Sample: text('two'), Batch: text(''), Mood: text('good') });
  await revise('C');
  await deliverAll();
  expect(fieldsOf(entry('C'))).toEqual({ Sample: text(''), Batch: text(''), Mood: text('good') });
  await revise('A', { fields: { Sample: text('one'), Batch: text('7') } });
  await deliverAll();
  expect(fieldsOf(entry('A'))).toEqual(mine);
});

test.each(['before', 'after'] as const)(
  'a version that was interrupted %s its fields were written leaves none of them behind',
  async (moment) => {
    const { revise, deliverAll, attempt, entry, notebook } = await setUpNamed();
    const run = await revise('A', { fields: { Sample: text('one') }, category: 'Raw data' });
    await deliverAll();
    await revise('B', { fields: { Sample: text('two'), Batch: text('7') }, category: 'Analysis' });
    const patchExtras: typeof notebook.patchExtras = async (...args) => {
      if (moment === 'after') await notebook.patchExtras(...args);
      throw FAULTS.lost.error(true);
    };
    await expect(attempt(run, { ...notebook, patchExtras })).rejects.toThrow('reset');
    await revise('C', { fields: { Sample: text('three') }, category: 'Raw data' });
    await deliverAll();
    expect(fieldsOf(entry('C'))).toMatchObject({ Sample: text('three') });
    expect(fieldsOf(entry('C'))['Batch'] ?? text('')).toEqual(text(''));
    expect(entry('C')?.category).toBe(3);
  },
);

test('a version is held if somebody changed a field that it changes, until the experiment is adopted', async () => {
  const { revise, deliverAll, entry, notebook, journal, clock } = await setUpNamed();
  const run = await revise('A', { fields: { Sample: text('one'), Batch: text('7') } });
  await deliverAll();
  const changed = { Sample: text('mine'), Batch: text('8, by hand') };
  Object.assign(entry('A') ?? {}, { metadata: JSON.stringify({ extra_fields: changed }) });
  const writes = notebook.writes.length;
  await revise('B', { fields: { Sample: text('two'), Batch: text('7') } });
  await deliverAll();
  const [held] = (await journal.outbox.waitingForPeople()).values();
  expect(held?.held?.reason).toContain('field Sample: “mine”; labfeed wrote “one”');
  expect(held?.held?.reason).not.toContain('Batch');
  expect(notebook.writes).toHaveLength(writes);
  const experiment = [...notebook.experiments.keys()].at(-1) ?? 0;
  await journal.requests.decide({ kind: 'adopt', run, server: SERVER, experiment }, { path: '', has: 'nothing' });
  clock.advance(GRACE_MS);
  await deliverAll();
  expect(fieldsOf(entry('B'))).toEqual({ Sample: text('two'), Batch: text('7') });
});

test('a field that somebody changed stays if the version has the same value as the one before', async () => {
  const { revise, deliverAll, entry, journal } = await setUpNamed();
  await revise('A', { fields: { Sample: text('one'), Batch: text('7') } });
  await deliverAll();
  const changed = { Sample: text('one'), Batch: text('8, by hand') };
  Object.assign(entry('A') ?? {}, { metadata: JSON.stringify({ extra_fields: changed }) });
  await revise('B', { fields: { Sample: text('two'), Batch: text('7') } });
  await deliverAll();
  expect(fieldsOf(entry('B'))).toEqual({ Sample: text('two'), Batch: text('8, by hand') });
  expect(await journal.outbox.count()).toEqual({ done: 2 });
});

test('a version is held before anything is written if the metadata is not JSON', async () => {
  const { revise, deliverAll, entry, notebook, journal } = await setUpNamed();
  await revise('A', { fields: { pH: PH } });
  await deliverAll();
  Object.assign(entry('A') ?? {}, { metadata: '{broken' });
  const writes = notebook.writes.length;
  await revise('B', { fields: { pH: { ...PH, value: '7.5' } } });
  await deliverAll();
  expect(await journal.outbox.count()).toMatchObject({ held: 1 });
  expect(notebook.writes).toHaveLength(writes);
});
