import { expect, onTestFinished } from 'vitest';
import type { Clock } from '../../src/clock.js';
import type { ListedInstrument } from '../../src/config/load.js';
import { type DeliveryContext, type Notebook, trackUnknownOutcomes } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { createNotebookReader } from '../../src/evidence.js';
import { createJournal, type Journal, openJournal } from '../../src/journal/journal.js';
import type { Draft } from '../../src/model.js';
import type { NewRun } from '../../src/outbox.js';
import { type RecoverDeps, type Recovered, recover } from '../../src/recover/recover.js';
import type { FakeNotebook } from './fake-notebook.js';
import { due, knows, take } from './journal.js';
import { manualClock } from './manual-clock.js';
import { emptyDatabase } from './memory-journal.js';
import { newRun, someDraft } from './runs.js';

export const SERVER = 'https://eln.example.org';
export const FIRST_ID = 101;

export type ManualClock = ReturnType<typeof manualClock>;

/** In memory, unless it has a path. */
export async function emptyJournal(clock: ManualClock, path?: string): Promise<Journal> {
  const inMemory = () => createJournal({ database: emptyDatabase(), clock, release: () => undefined });
  const journal = path === undefined ? inMemory() : await openJournal(path, clock);
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

/** How a run is delivered from this journal to this notebook. */
export const contextOf = (
  journal: Journal,
  notebook: Notebook,
  clock: Clock,
  { url = SERVER, timeoutMs = 30_000 } = {},
): DeliveryContext => ({
  notebook,
  server: { ...journal.outbox.server(url), url, timeoutMs },
  outbox: journal.outbox,
  unknown: trackUnknownOutcomes(clock, timeoutMs),
  clock,
  stopping: new AbortController().signal,
});

/** As the map stage makes it: the body ends with the origin line. */
export function draftOf(content: string, { instrument, file }: NewRun, comments = ['one', 'two']): Draft {
  const body = `<p>labfeed ${instrument} ${content}.csv sha256:${file.sha256}</p>`;
  return { ...someDraft(content, comments), body };
}

/** What the daemon does with a file that it sees. */
export async function see(
  journal: Journal,
  content: string,
  changes: Parameters<typeof newRun>[1] = {},
): Promise<void> {
  const run = newRun(content, changes);
  if (!(await knows(journal, run))) await take(journal, run, draftOf(content, run));
}

export async function deliverAll(journal: Journal, context: DeliveryContext, clock: ManualClock): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const ids = await due(journal, Number.MAX_SAFE_INTEGER, 4);
    if (ids.length === 0) return;
    await Promise.all(
      ids.map(async (id) => {
        const run = await journal.outbox.load(id);
        await deliver(run, context).catch(async (error: unknown) => {
          const change = afterFailure(error, { attempts: run.attempts }, clock.now());
          await journal.outbox.record(id, change);
          if (change.kind === 'postponed') clock.advance(Math.max(0, change.dueAt - clock.now()));
        });
      }),
    );
  }
}

export async function file(notebook: FakeNotebook, clock: ManualClock, ...contents: string[]): Promise<Journal> {
  const journal = await emptyJournal(clock);
  for (const content of contents) await see(journal, content);
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  return journal;
}

export const instrument = (name: string, duplicates: 'skip' | 'ingest' = 'skip'): ListedInstrument => ({
  name,
  changed: 'new',
  duplicates,
  comments: { readings: 'table', maxBytes: 60_000, maxComments: 5 },
});

interface RecoverChanges extends Partial<Pick<RecoverDeps, 'instruments' | 'range' | 'skipUnreadable' | 'onProgress'>> {
  readonly signal?: AbortSignal;
  onRetry?(reason: string): void;
}

export function recoverInto(
  journal: Journal,
  notebook: FakeNotebook,
  changes: RecoverChanges = {},
): Promise<Recovered> {
  const { signal = new AbortController().signal, onRetry = () => undefined, ...deps } = changes;
  return recover({
    server: SERVER,
    instruments: [instrument('balance')],
    journal,
    notebook: createNotebookReader(notebook, { clock: manualClock(), signal, onRetry }),
    range: { from: FIRST_ID, to: FIRST_ID + 20 },
    onProgress: () => undefined,
    ...deps,
  });
}

export function expectExactly(notebook: FakeNotebook, titles: readonly string[]): void {
  const experiments = [...notebook.experiments.values()];
  expect(experiments.map(({ title }) => title).sort()).toEqual([...titles].sort());
  for (const { comments } of experiments) {
    const marks = [...comments.values()].map((text) => text.split('.').at(-1));
    expect(marks.sort()).toEqual(['1', '2']);
  }
}
