import { z } from 'zod';
import type { ServerFacts } from '../model.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';

export interface ServerJournal {
  server(url: string): Promise<ServerFacts>;
  learn(url: string, facts: Partial<Pick<ServerFacts, 'keepsTitle' | 'keepsComments'>>): Promise<void>;
}

const flag = z
  .number()
  .nullable()
  .transform((value) => (value === null ? undefined : value === 1));
const serverRow = z.object({
  highest: z
    .number()
    .nullable()
    .transform((value) => value ?? undefined),
  keepsTitle: flag,
  keepsComments: flag,
});

const UNKNOWN: ServerFacts = { highest: undefined, keepsTitle: undefined, keepsComments: undefined };

export function createServerJournal(database: Database, commit: Commit): ServerJournal {
  const get = database.prepare(
    'SELECT highest, keeps_title AS keepsTitle, keeps_comments AS keepsComments FROM servers WHERE url = ?',
  );
  const put = database.prepare(
    `INSERT INTO servers (url, keeps_title, keeps_comments) VALUES (?, ?, ?)
       ON CONFLICT (url) DO UPDATE SET keeps_title = ifnull(excluded.keeps_title, keeps_title),
                                       keeps_comments = ifnull(excluded.keeps_comments, keeps_comments)`,
  );
  const asInteger = (value: boolean | undefined): number | null =>
    value === undefined ? null : Number(value);
  return {
    async server(url) {
      const row = get.get(url);
      return row === undefined ? UNKNOWN : serverRow.parse(row);
    },
    learn: (url, { keepsTitle, keepsComments }) =>
      commit(() => {
        put.run(url, asInteger(keepsTitle), asInteger(keepsComments));
      }),
  };
}
