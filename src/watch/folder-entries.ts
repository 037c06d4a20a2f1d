import { isUtf8 } from 'node:buffer';
import { type Dirent, readdir } from 'node:fs';
import { promisify } from 'node:util';

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
