import { expect, test } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import { type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import {
  contextOf,
  deliverAll,
  emptyJournal,
  expectExactly,
  type ManualClock,
  recoverInto,
  SERVER,
  see,
} from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';

/** A proxy takes the Location header away. */
const withoutLocation = (notebook: FakeNotebook): FakeNotebook => ({
  ...notebook,
  async createExperiment(fields) {
    await notebook.createExperiment(fields);
    throw new NotebookError('server', 'answered 201 with no Location', {
      status: 201,
      outcomeUnknown: true,
      scope: 'run',
    });
  },
});

async function filedWithoutIds(clock: ManualClock, ...contents: string[]) {
  const notebook = fakeNotebook();
  const journal = await emptyJournal(clock);
  for (const content of contents) await see(journal, content);
  const deps = contextOf(journal, withoutLocation(notebook), clock);
  await deliverAll(journal, deps, clock);
  return { notebook, journal, deps };
}

test.each([
  ['one run', ['a']],
  ['many runs', ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']],
])(
  'a notebook that never says what it made is not filled with blank experiments: %s',
  async (_many, contents) => {
    const { notebook, journal } = await filedWithoutIds(manualClock(), ...contents);
    expect(notebook.experiments.size).toBe(3);
    const { halted } = await journal.outbox.server(SERVER).facts();
    expect(halted).toMatch(
      /without reporting their ids: answered 201 with no Location\. .*labfeed recover --ids A-B/,
    );
  },
);

test('recover finds what was made, and with its ids known even such a notebook gets every run once', async () => {
  const clock = manualClock();
  const { notebook, journal, deps } = await filedWithoutIds(clock, 'a', 'b', 'c', 'd', 'e');
  await recoverInto(journal, notebook);
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['a', 'b', 'c', 'd', 'e']);
});
