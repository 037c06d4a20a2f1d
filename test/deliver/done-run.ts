import { expect } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import type { Request } from '../../src/journal/decisions.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import { referenceOf } from '../../src/markers.js';
import type { Dialect, Draft } from '../../src/model.js';
import { askRemap } from '../support/ask-remap.js';
import { type FakeExperiment, type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, FIRST_ID, SERVER } from '../support/filing.js';
import { decide, due, knows, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase } from '../support/memory-journal.js';
import { newRun } from '../support/runs.js';

/** A done run, and what can happen to it. */
export interface DoneRun {
  readonly server: string;
  readonly journal: Journal;
  readonly notebook: FakeNotebook;
  /** The grace periods that were waited for. */
  readonly waits: string[];
  /** Remaps it to this draft and delivers it, with different behaviour of these requests. */
  remap(draft: Draft, overrides?: Partial<Notebook>): Promise<void>;
  /** Applies a decision and delivers it. */
  decide(request: Request): Promise<void>;
  /** Its experiment, the only one in the notebook. */
  entry(): Omit<FakeExperiment, 'comments'> & { comments: string[]; reference: string };
  /** Edits in the web interface. Comments count from 1. */
  edit(changes: Partial<FakeExperiment>): void;
  editComment(n: number, text: string): void;
  deleteComment(n: number): void;
  /** Expects it to be held, and resolves with the reason. */
  held(): Promise<string>;
}

export async function withDone(draft: Draft, kind: { readonly dialect: Dialect }): Promise<DoneRun> {
  const clock = manualClock();
  const database = emptyDatabase();
  const journal = createJournal({ database, clock, release: () => undefined });
  const notebook = fakeNotebook(kind);
  const waits: string[] = [];
  const run = newRun('a');
  const { instrument, file, copy } = run;
  const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling: 0 });
  const context = contextOf(journal, notebook, clock);
  await journal.outbox.server(SERVER).learn(kind);

  async function deliverAll(overrides: Partial<Notebook> = {}): Promise<void> {
    while ((await due(journal, Number.MAX_SAFE_INTEGER, 1)).length > 0) {
      const open = await journal.outbox.load(1);
      await deliver(open, { ...context, notebook: { ...notebook, ...overrides } }).catch(async (error: unknown) => {
        const change = afterFailure(error, { attempts: open.attempts }, clock.now());
        await journal.outbox.record(1, change);
        if (change.kind !== 'postponed') return;
        if (change.reason.includes('may still')) waits.push(change.reason);
        clock.advance(Math.max(0, change.dueAt - clock.now()));
      });
    }
  }

  const only = (): FakeExperiment => {
    expect([...notebook.experiments.keys()]).toEqual([FIRST_ID]);
    return notebook.experiments.get(FIRST_ID) as FakeExperiment;
  };
  const commentId = (n: number): number => [...only().comments.keys()][n - 1] ?? 0;
  await take(journal, run, draft);
  await deliverAll();
  expect(await journal.outbox.count()).toEqual({ done: 1 });

  return {
    server: SERVER,
    journal,
    notebook,
    waits,
    async remap(now, overrides) {
      askRemap(database, 1, file.path, clock.now());
      expect(await knows(journal, run)).toBe(false);
      await take(journal, run, now);
      await deliverAll(overrides);
    },
    async decide(request) {
      database.prepare('INSERT INTO inbox (at, request) VALUES (0, ?)').run(JSON.stringify(request));
      expect(await decide(journal)).toMatchObject([{ done: true }]);
      await deliverAll();
    },
    entry: () => ({ ...only(), comments: [...only().comments.values()], reference }),
    edit: (changes) => void Object.assign(only(), changes),
    editComment: (n, text) => void only().comments.set(commentId(n), text),
    deleteComment: (n) => void only().comments.delete(commentId(n)),
    async held() {
      expect(await journal.outbox.count()).toEqual({ held: 1 });
      const row: unknown = database.prepare('SELECT reason FROM runs').get();
      return (row as { reason: string }).reason;
    },
  };
}
