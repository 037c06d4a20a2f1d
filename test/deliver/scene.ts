import { expect } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { fakeNotebook, type NotebookKind, withFaults } from '../support/fake-notebook.js';
import { contextOf, SERVER } from '../support/filing.js';
import { due, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';

/** Twice the time-out of `contextOf`. */
export const GRACE_MS = 60_000;

/** A journal, a notebook, and deliveries from one to the other. */
export async function setUp(kind: NotebookKind = {}) {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook(kind);
  if (kind.dialect) await journal.outbox.server(SERVER).learn({ dialect: kind.dialect });
  const context = contextOf(journal, notebook, clock);

  /** One attempt, by default without faults. */
  const attempt = async (run: number, other: Notebook = notebook): Promise<number> =>
    deliver(await journal.outbox.load(run), { ...context, notebook: other });

  return {
    clock,
    journal,
    notebook,
    context,
    attempt,
    async add(title: string, comments = ['first', 'second']): Promise<number> {
      const { run } = await take(journal, newRun(title), someDraft(title, comments));
      return run;
    },
    /** One attempt that fails because of these faults. */
    async fail(run: number, faults: Parameters<typeof withFaults>[1]): Promise<void> {
      await expect(attempt(run, withFaults(notebook, faults))).rejects.toThrow(
        /^(connection (reset|refused)|slow down)$/,
      );
    },
    /** One run after the other until nothing is left to do, with time passing as in the queue. */
    async deliverAll(other = context): Promise<void> {
      for (let round = 0; round < 50; round++) {
        const [id] = await due(journal, Number.MAX_SAFE_INTEGER, 1);
        if (id === undefined) return;
        const run = await journal.outbox.load(id);
        const failures = { attempts: run.attempts };
        await deliver(run, other).catch(async (error: unknown) => {
          const change = afterFailure(error, failures, clock.now());
          await journal.outbox.record(id, change);
          if (change.kind === 'postponed') clock.advance(Math.max(0, change.dueAt - clock.now()));
        });
      }
    },
    /** How many experiments have this title. */
    count: (title: string): number =>
      [...notebook.experiments.values()].filter((experiment) => experiment.title === title).length,
    /** The notebook holds exactly these runs, each with its comments. */
    expectExactly(titles: readonly string[], comments = 2): void {
      const experiments = [...notebook.experiments.values()];
      expect(experiments.map(({ title }) => title).sort()).toEqual([...titles].sort());
      for (const experiment of experiments) {
        const marks = [...experiment.comments.values()].map((text) => /\.\d+$/.exec(text)?.[0]);
        expect(marks).toEqual(Array.from({ length: comments }, (_, index) => `.${index + 1}`));
      }
    },
  };
}
