import type { Clock } from '../../clock.js';
import type { Database } from '../datafile.js';
import { timestamp } from '../times.js';

export interface Upload {
  readonly id: number;
  readonly item_id: number;
  readonly userid: number;
  readonly real_name: string;
  readonly comment: string | null;
  readonly filesize: number;
  /** SHA-256, in hexadecimal. */
  readonly hash: string;
  readonly created_at: string;
}

export type Uploads = ReturnType<typeof storeUploads>;

/** Which files were attached. Their bytes are not kept: what they were is in the hash. */
export function storeUploads(db: Database, clock: Clock) {
  const insert = db.prepare(
    `INSERT INTO uploads (item_id, userid, real_name, comment, filesize, hash, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
  );
  const list = db.prepare(
    `SELECT id, item_id, userid, real_name, comment, filesize, hash, created_at
     FROM uploads WHERE item_id = ? ORDER BY id`,
  );
  return {
    create({
      item_id,
      userid,
      real_name,
      comment,
      filesize,
      hash,
    }: Omit<Upload, 'id' | 'created_at'>): number {
      const values = [item_id, userid, real_name, comment, filesize, hash, timestamp(clock)];
      const row: { id: number } = insert.get(...values);
      return row.id;
    },
    list: (experiment: number): Upload[] => list.all(experiment),
  };
}
