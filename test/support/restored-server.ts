import { join } from 'node:path';
import { expect } from 'vitest';
import { HaltedError } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import type { Request } from '../../src/journal/decisions.js';
import type { Journal } from '../../src/journal/journal.js';
import { openClient } from '../../src/journal/requests.js';
import { type FakeNotebook, fakeNotebook, type NotebookKind } from './fake-notebook.js';
import { contextOf, deliverAll, emptyJournal, type ManualClock, recoverInto, SERVER, see } from './filing.js';
import { decide, due } from './journal.js';
import { manualClock } from './manual-clock.js';
import { tempFolder } from './temp-folder.js';

export interface Scene {
  readonly clock: ManualClock;
  readonly notebook: FakeNotebook;
  readonly journal: Journal;
  readonly path: string;
  file(...contents: string[]): Promise<void>;
  /** Delivers what is due, and expects that sending is halted. */
  expectHalt(): Promise<void>;
  states(): Promise<Record<string, number>>;
}

export async function setUp(kind: NotebookKind = {}): Promise<Scene> {
  const clock = manualClock();
  const notebook = fakeNotebook(kind);
  const path = join(tempFolder(), 'journal.db');
  const journal = await emptyJournal(clock, path);
  if (kind.dialect) await journal.outbox.server(SERVER).learn({ dialect: kind.dialect });
  return {
    clock,
    notebook,
    journal,
    path,
    async file(...contents) {
      for (const content of contents) await see(journal, content);
      await deliverAll(journal, contextOf(journal, notebook, clock), clock);
    },
    async expectHalt() {
      const [id = 0] = await due(journal, Number.MAX_SAFE_INTEGER, 1);
      const run = await journal.outbox.load(id);
      await expect(deliver(run, contextOf(journal, notebook, clock))).rejects.toBeInstanceOf(HaltedError);
    },
    states: () => journal.outbox.count(),
  };
}

export const recovered = ({ journal, notebook }: Scene) => recoverInto(journal, notebook, { range: undefined });

/** Leaves a request in the inbox, as a command does, and applies it. */
export async function ask({ journal, path }: Scene, request: Request) {
  const client = openClient(path);
  try {
    await client.ask([request], 1);
    return (await decide(journal))[0];
  } finally {
    await client.close();
  }
}
