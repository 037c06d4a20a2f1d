import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Connection } from './database.js';

/**
 * The journal's id, which is part of every origin line: it tells our experiments from those of another PC with an
 * instrument of the same name.
 */
export function identify(db: Connection, makeId: () => string = randomId): string {
  const known = db.value<string>`SELECT id FROM identity`;
  if (known !== undefined) return known;
  const id = makeId();
  db.run`INSERT INTO identity (id) VALUES (${id})`;
  return id;
}

const randomId = (): string => randomBytes(4).toString('hex');

/** The same for a journal that was lost and created again in this place on this machine, so that it is recognised. */
export function idOfPlace(path: string, machineFile = '/etc/machine-id'): string {
  try {
    const place = [readFileSync(machineFile, 'utf8').trim(), hostname(), realPath(path)];
    return createHash('sha256').update(JSON.stringify(place)).digest('hex').slice(0, 8);
  } catch {
    return randomId();
  }
}

const realPath = (path: string): string => join(realpathSync(dirname(path)), basename(path));
