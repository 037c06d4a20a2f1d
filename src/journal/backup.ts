import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { LabfeedError, systemCode } from '../errors.js';
import { openBeside } from './client.js';

export interface Backup {
  readonly runs: number;
  readonly bytes: number;
}

/**
 * Writes a consistent copy of the journal, while the daemon goes on. The copy knows that it is one: whoever starts
 * from it is asked to recover first, since the notebook has moved on where nobody can see it.
 */
export function backUp(journal: string, file: string, server: string | undefined): Backup {
  if (existsSync(file)) throw exists(file);
  const part = `${file}.part`;
  claim(part);
  try {
    copy(journal, part);
    const runs = markAsCopy(part, server);
    sync(part);
    if (existsSync(file)) throw exists(file);
    renameSync(part, file);
    return { runs, bytes: statSync(file).size };
  } catch (error) {
    rmSync(part, { force: true });
    throw error instanceof LabfeedError ? error : cannotWrite(file, error);
  }
}

/** For this user alone: a journal names people's files. */
function claim(part: string): void {
  try {
    closeSync(openSync(part, 'wx', 0o600));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw cannotWrite(part, error);
    throw new LabfeedError(`${part} exists already`, {
      hint: 'another backup is under way there, or was broken off: delete it then',
      cause: error,
    });
  }
}

function copy(journal: string, part: string): void {
  const database = openBeside(journal);
  try {
    database.prepare('VACUUM INTO ?').run(part);
  } finally {
    database.close();
  }
}

function markAsCopy(part: string, server: string | undefined): number {
  const database = new DatabaseSync(part);
  try {
    const halt = database.prepare('UPDATE servers SET halted = ?');
    // Of a notebook that nothing was sent to yet, the journal knows nothing that could be marked.
    if (server !== undefined) database.prepare('INSERT OR IGNORE INTO servers (url) VALUES (?)').run(server);
    halt.run(COPY);
    database.exec('DELETE FROM inbox');
    const row: unknown = database.prepare('SELECT count(*) AS runs FROM runs').get();
    return (row as { runs: number }).runs;
  } finally {
    database.close();
  }
}

const COPY =
  'the journal was restored from a backup, and the notebook may have moved on since: run `labfeed recover`';

function sync(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const exists = (file: string): LabfeedError =>
  new LabfeedError(`${file} exists already, and is not overwritten`, { hint: 'name another file' });

const cannotWrite = (file: string, error: unknown): LabfeedError =>
  new LabfeedError(
    `the backup ${file} cannot be written: ${error instanceof Error ? error.message : error}`,
    {
      hint: 'check that its folder is there, has room and may be written by this user',
      cause: error,
    },
  );
