import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import type { Connection } from './database.js';
import type { Store } from './store.js';

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

const noteSchema = z.object({ journal: z.string(), noted: z.number() });

/**
 * How far the journal had come. The journal counts its notes, and the last one is also in the file `JOURNAL.seen`, which
 * no backup of the journal brings back: a note that the journal does not have shows that the journal was lost, or
 * restored from a copy. This needs no request, so it works on every server.
 */
export type Note = z.output<typeof noteSchema>;

const noteFileOf = (path: string): string => `${path}.seen`;

/** The last note beside this journal; undefined if there is none that can be read. */
export function readNote(path: string): Note | undefined {
  try {
    return noteSchema.parse(JSON.parse(readFileSync(noteFileOf(path), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically. If root writes it, it belongs to the owner of the journal. */
export async function writeNote(path: string, note: Note): Promise<void> {
  const file = noteFileOf(path);
  // The owner of the folder, who is not root, could have put a link there.
  await rm(`${file}.new`, { force: true });
  const handle = await open(`${file}.new`, 'wx', 0o600);
  try {
    await handle.writeFile(JSON.stringify(note));
    if (process.geteuid?.() === 0) {
      const { uid, gid } = await stat(path);
      await handle.chown(uid, gid);
    }
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
}

export function createNotes({ db, commit }: Store, id: string, before: Note | undefined) {
  const noted = (): number => db.value<number>`SELECT noted FROM identity` ?? 0;
  const changes = (): number => db.value<number>`SELECT total_changes()` ?? 0;
  let lastChanges = -1;
  return {
    /** Whether the journal lacks what the note from before it was opened shows. Then `take` would hide that. */
    isBehind: before !== undefined && (before.journal !== id || before.noted > noted()),
    /** A new note, durable in the journal before it may be written to the file; undefined if nothing has changed. */
    async take(): Promise<Note | undefined> {
      if (changes() === lastChanges) return undefined;
      return commit(() => {
        db.run`UPDATE identity SET noted = max(noted, ${before?.noted ?? 0}) + 1`;
        lastChanges = changes();
        return { journal: id, noted: noted() };
      });
    },
  };
}
