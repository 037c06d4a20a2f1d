import { isUtf8 } from 'node:buffer';
import { type Dirent, readdir } from 'node:fs';
import { promisify } from 'node:util';
import { systemCode } from '../errors.js';
import type { FoundFile } from '../model.js';
import { identityOf, isAbsent, reasonOf, stampOf, statAll } from './identify.js';

/** Something that a folder holds, before it is known what it is. */
export interface Candidate {
  /** For people. */
  readonly path: string;
  readonly location: string | Buffer;
  /** Seen from the watched folder, with `/` between names. */
  readonly relative: string;
}

export interface Folder extends Candidate {
  /** Changes when another folder comes to stand under the same name. */
  readonly id: string;
}

/** What could not be looked at, though it may be there. */
export interface Unread {
  readonly path: string;
  readonly reason: string;
  /** Not for this user, like a disk's `lost+found`: waiting for it would be in vain. */
  readonly forbidden: boolean;
}

export const unreadOf = (path: string, error: unknown): Unread => ({
  path,
  reason: reasonOf(error),
  forbidden: ['EACCES', 'EPERM'].includes(systemCode(error) ?? ''),
});

interface Looked {
  readonly files: readonly FoundFile[];
  readonly folders: readonly Folder[];
  /** Gone between being named and being looked at. */
  readonly absent: readonly Candidate[];
  readonly unread: readonly Unread[];
}

/** Looks at each of them once: files are those that `takes` wants, folders are named, all else is passed over. */
export async function look(
  candidates: readonly Candidate[],
  takes: (relative: string) => boolean,
): Promise<Looked> {
  const files: FoundFile[] = [];
  const folders: Folder[] = [];
  const absent: Candidate[] = [];
  const unread: Unread[] = [];
  const seen = await statAll(candidates.map(({ location }) => location));
  candidates.forEach((candidate, index) => {
    const stats = seen[index];
    if (stats === undefined) return;
    if (stats instanceof Error) {
      if (isAbsent(stats)) absent.push(candidate);
      else unread.push(unreadOf(candidate.path, stats));
    } else if (stats.isDirectory()) {
      folders.push({ ...candidate, id: identityOf(stats) });
    } else if (stats.isFile() && takes(candidate.relative)) {
      files.push({ path: candidate.path, location: candidate.location, ...stampOf(stats) });
    }
  });
  return { files, folders, absent, unread };
}

const readFolder = promisify(readdir);

export interface Entry {
  /** For people. Bytes that are not UTF-8 stand in it as `\xNN`. */
  readonly name: string;
  /** Set where the name is not UTF-8. */
  readonly bytes?: Buffer;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** What is in one folder. Names are text where they can be, and bytes where they must be. */
export async function folderEntries(location: string | Buffer): Promise<Entry[]> {
  const entries = await readFolder(location, { withFileTypes: true });
  // U+FFFD is what Node puts for bytes that it could not decode: such a name opens nothing.
  if (!entries.some(({ name }) => name.includes('\ufffd'))) {
    return entries.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
  }
  const raw = await readFolder(location, { withFileTypes: true, encoding: 'buffer' });
  return raw.map((entry) =>
    isUtf8(entry.name)
      ? { name: entry.name.toString(), kind: kindOf(entry) }
      : { name: readable(entry.name), bytes: entry.name, kind: kindOf(entry) },
  );
}

/** Where an entry is. Bytes once, bytes for all that lies below. */
export function locationOf(folder: string | Buffer, { name, bytes }: Entry): string | Buffer {
  if (typeof folder === 'string' && bytes === undefined) {
    return folder.endsWith('/') ? folder + name : `${folder}/${name}`;
  }
  return Buffer.concat([Buffer.from(folder), Buffer.from('/'), bytes ?? Buffer.from(name)]);
}

function kindOf(entry: Dirent | Dirent<Buffer>): Entry['kind'] {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

/** Decodes what is UTF-8 and writes the other bytes as `\xNN`. */
function readable(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((n) => at + n <= bytes.length && isUtf8(bytes.subarray(at, at + n)));
    text += length
      ? bytes.toString('utf8', at, at + length)
      : `\\x${(bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, '0')}`;
    at += length ?? 1;
  }
  return text;
}
