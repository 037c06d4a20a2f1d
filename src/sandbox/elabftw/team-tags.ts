import type { Database } from '../datafile.js';

export interface TeamTag {
  readonly id: number;
  readonly tag: string;
}

export type TeamTags = ReturnType<typeof storeTeamTags>;

/** The team's tags. Two spellings that differ in case only are one tag, written as it was first. */
export function storeTeamTags(db: Database) {
  const find = db.prepare('SELECT id, tag FROM tags WHERE folded = ?');
  const insert = db.prepare('INSERT INTO tags (tag, folded) VALUES (?, ?) RETURNING id, tag');
  const fold = (tag: string) => tag.toLowerCase();

  const existing = (tag: string): TeamTag | undefined => find.get(fold(tag));
  return {
    existing,
    named: (tag: string): TeamTag => existing(tag) ?? insert.get(tag, fold(tag)),
  };
}
