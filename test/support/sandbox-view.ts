import { DatabaseSync } from '@photostructure/sqlite';
import { onTestFinished } from 'vitest';
import type { Control } from '../../src/sandbox/control.js';
import { createSandbox } from '../../src/sandbox/server.js';

export interface FiledExperiment {
  readonly id: number;
  readonly title: string;
  readonly date: string;
  readonly body: string;
  readonly comments: readonly string[];
}

export interface RunningSandbox {
  readonly url: string;
  readonly key: string;
  readonly stop: () => Promise<void>;
  /** Everything that it holds, read past its HTTP interface. */
  experiments(): FiledExperiment[];
  /** Other people, and faults. */
  readonly control: Control;
}

/** The built-in notebook on a free port, with a view of what it holds. */
export async function runSandbox(
  file: string,
  port = 0,
  dialect: 'v2' | 'elabftw' = 'v2',
): Promise<RunningSandbox> {
  const sandbox = createSandbox({ file, port, dialect });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  return {
    url,
    key,
    stop: () => sandbox.stop(),
    control: sandbox.control,
    experiments() {
      const database = new DatabaseSync(file, { readOnly: true });
      try {
        const comments = database.prepare('SELECT comment FROM comments WHERE item_id = ? ORDER BY id');
        const rows = database.prepare('SELECT id, title, date, body FROM experiments ORDER BY id').all();
        return (rows as Omit<FiledExperiment, 'comments'>[]).map((row) => ({
          ...row,
          comments: (comments.all(row.id) as { comment: string }[]).map(({ comment }) => comment),
        }));
      } finally {
        database.close();
      }
    },
  };
}
