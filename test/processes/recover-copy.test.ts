import { join } from 'node:path';
import { expect, test } from 'vitest';
import { backUp } from '../../src/journal/maintenance.js';
import { fakeNotebook, NOTEBOOK_KINDS, type NotebookKind } from '../support/fake-notebook.js';
import {
  contextOf,
  deliverAll,
  emptyJournal,
  expectExactly,
  FIRST_ID,
  recoverInto,
  SERVER,
  see,
} from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';
import { tempFolder } from '../support/temp-folder.js';

for (const kind of NOTEBOOK_KINDS) {
  test(`continuing from a copy of the journal, whenever it was made, files nothing twice on a notebook ${JSON.stringify(kind)}`, async () => {
    for (let at = 1; await copiedAt(at, kind); at++);
  });
}

/** Copies the journal at the n-th action of deliveries, lets them end, and continues from the copy. */
async function copiedAt(at: number, kind: NotebookKind): Promise<boolean> {
  const clock = manualClock();
  const notebook = fakeNotebook(kind);
  const folder = tempFolder();
  const path = join(folder, 'journal.db');
  const first = await emptyJournal(clock, path);
  let steps = 0;
  const counted = <T extends object>(parts: T): T =>
    Object.fromEntries(
      Object.entries(parts).map(([name, part]) => [
        name,
        typeof part !== 'function'
          ? part
          : async (...args: unknown[]) => {
              steps += 1;
              if (steps === at) backUp(path, join(folder, 'copy.db'), SERVER);
              return part(...args);
            },
      ]),
    ) as T;
  const deps = contextOf(first, notebook, clock);
  if (kind.dialect) await first.outbox.server(SERVER).learn({ dialect: kind.dialect });
  for (const content of ['a', 'b', 'c']) await see(first, content);
  const { record, apply } = deps.outbox;
  const outbox = { ...deps.outbox, ...counted({ record, apply }) };
  await deliverAll(first, { ...deps, outbox, notebook: counted(notebook) }, clock);
  await first.close();
  if (steps < at) return false;

  const second = await emptyJournal(clock, join(folder, 'copy.db'));
  expect((await second.outbox.server(SERVER).facts()).halted).toContain('recover');
  // Without any known id, recover needs a range.
  const isBlind = (await second.outbox.server(SERVER).facts()).highest === undefined;
  await recoverInto(second, notebook, isBlind ? {} : { range: undefined });
  for (const content of ['a', 'b', 'c']) await see(second, content);
  await deliverAll(second, contextOf(second, notebook, clock), clock);
  expectExactly(notebook, ['a', 'b', 'c']);
  expect(await second.outbox.count()).toEqual({ done: 3 });
  await second.close();
  return true;
}

test('a creation that was in flight when the journal was copied is found below an id that was answered sooner', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const folder = tempFolder();
  const path = join(folder, 'journal.db');
  const first = await emptyJournal(clock, path);
  await see(first, 'slow');
  await see(first, 'quick');
  const intended = { kind: 'intended', server: SERVER, floor: FIRST_ID - 1, at: 1 } as const;
  await first.outbox.record(1, intended);
  await first.outbox.record(2, intended, { kind: 'created', experiment: FIRST_ID + 1, found: false });
  const references = await Promise.all([1, 2].map(async (id) => (await first.outbox.load(id)).reference));
  for (const reference of references) await notebook.createExperiment({ title: `labfeed ${reference}` });
  const older = join(folder, 'copy.db');
  backUp(path, older, SERVER);
  await first.outbox.record(1, { kind: 'created', experiment: FIRST_ID, found: false });
  await deliverAll(first, contextOf(first, notebook, clock), clock);
  expectExactly(notebook, ['slow', 'quick']);

  const second = await emptyJournal(clock, older);
  expect(await recoverInto(second, notebook, { range: undefined })).toMatchObject({
    from: FIRST_ID,
    completed: 1,
  });
  await deliverAll(second, contextOf(second, notebook, clock), clock);
  expectExactly(notebook, ['slow', 'quick']);
});
