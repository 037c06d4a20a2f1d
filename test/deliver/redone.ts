import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { migrate } from '../../src/journal/database.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import type { Request } from '../../src/journal/requests.js';
import { referenceOf } from '../../src/markers.js';
import type { Dialect, Draft } from '../../src/model.js';
import { askRemap } from '../support/ask-remap.js';
import { type FakeExperiment, type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, FIRST_ID, SERVER } from '../support/filing.js';
import { decide, due, knows, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun } from '../support/runs.js';

/** A run that is done, and all that can become of it. */
export interface Redone {
  readonly server: string;
  readonly journal: Journal;
  readonly notebook: FakeNotebook;
  /** Why a delivery was put off. */
  readonly waits: string[];
  /** A person has it read anew; it reads so; and it is delivered, with these requests answered otherwise. */
  remap(draft: Draft, otherwise?: Partial<Notebook>): Promise<void>;
  /** A person decides something else about it, and it is delivered. */
  decide(request: Request): Promise<void>;
  /** Its experiment, which is the only one. */
  entry(): Omit<FakeExperiment, 'comments'> & { comments: string[]; reference: string };
  /** What people do in the notebook. Comments are counted from 1. */
  edit(changes: Partial<FakeExperiment>): void;
  editComment(n: number, text: string): void;
  deleteComment(n: number): void;
  /** Why it is held, which it must be. */
  held(): Promise<string>;
}

export async function withDone(draft: Draft, kind: { readonly dialect: Dialect }): Promise<Redone> {
  const clock = manualClock();
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  const journal = createJournal({ database, clock, release: () => undefined });
  const notebook = fakeNotebook(kind);
  const waits: string[] = [];
  const run = newRun('a');
  const { instrument, file, copy } = run;
  const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling: 0 });
  const deps = contextOf(journal, notebook, clock);
  await journal.outbox.server(SERVER).learn(kind);

  async function deliverAll(otherwise: Partial<Notebook> = {}): Promise<void> {
    while ((await due(journal, Number.MAX_SAFE_INTEGER, 1)).length > 0) {
      const open = await journal.outbox.load(1);
      await deliver(open, { ...deps, notebook: { ...notebook, ...otherwise } }).catch(
        async (error: unknown) => {
          const change = afterFailure(
            error,
            { attempts: open.attempts, rejections: open.attempts },
            clock.now(),
          );
          await journal.outbox.record(1, change);
          if (change.kind !== 'postponed') return;
          if (change.reason.includes('may still')) waits.push(change.reason);
          clock.advance(Math.max(0, change.dueAt - clock.now()));
        },
      );
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
    async remap(now, otherwise) {
      askRemap(database, 1, file.path, clock.now());
      expect(await knows(journal, run)).toBe(false);
      await take(journal, run, now);
      await deliverAll(otherwise);
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
