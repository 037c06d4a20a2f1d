import { type BigIntStats, type Dirent, promises, readlinkSync } from 'node:fs';
import { type FileHandle, lstat, open, opendir, readdir, realpath, stat } from 'node:fs/promises';
import { endWithStarter } from './process.js';

/** The process that makes the calls to one file system that may hang. `disk.ts` starts it, and gives it up if it hangs. */

export type Location = string | Buffer;

/** `f`: file, `d`: folder, `l`: link. */
export type Kind = 'f' | 'd' | 'l' | '-';

/** Calls that change what has a name, or find out whether that is allowed. */
export type Change = 'access' | 'chmod' | 'chown' | 'link' | 'mkdir' | 'rename' | 'rmdir' | 'unlink' | 'utimes';

/** The first one names what is changed. */
export type ChangeArgs = readonly [Location, ...(Location | number)[]];

const files = new Map<number, FileHandle>();

const operations = {
  /** Of each, its fields or an error. */
  stats: (locations: readonly Location[]) =>
    Promise.all(locations.map((location) => stat(location, { bigint: true }).catch(toSent))),

  lstat: (location: Location): Promise<BigIntStats> => lstat(location, { bigint: true }),

  async change(name: Change, args: ChangeArgs): Promise<void> {
    await (promises[name] as (...args: ChangeArgs) => Promise<unknown>)(...args);
  },

  realpath: (location: Location): Promise<Buffer> => realpath(location, { encoding: 'buffer' }),

  async entries(location: Location, progress?: () => void) {
    const entries = await listEntries(location, progress);
    return { names: entries.map(({ name }) => name), kinds: entries.map(kindOf).join('') };
  },

  async open(location: Location, flags: number | string, mode?: number) {
    const file = await open(location, flags, mode);
    files.set(file.fd, file);
    return { descriptor: file.fd, stats: await file.stat({ bigint: true }), path: pathOf(file.fd) };
  },

  async read(descriptor: number, bytes: number, from: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(bytes);
    const read = await files.get(descriptor)?.read(buffer, 0, bytes, from);
    return buffer.subarray(0, read?.bytesRead);
  },

  async write(descriptor: number, bytes: Buffer): Promise<void> {
    await files.get(descriptor)?.writeFile(bytes);
  },

  async sync(descriptor: number): Promise<void> {
    await files.get(descriptor)?.sync();
  },

  async close(descriptor: number): Promise<void> {
    const file = files.get(descriptor);
    files.delete(descriptor);
    await file?.close();
  },
};

export type Operations = typeof operations;

export interface Request {
  readonly id: number;
  readonly name: keyof Operations;
  readonly args: readonly unknown[];
}

/** Without a result or an error, the call is slow but makes progress. */
export interface Response {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: SentError;
}

/** An error as it is sent between processes. */
export interface SentError {
  readonly code: string | undefined;
  readonly message: string;
}

const toSent = (error: unknown): SentError => {
  const { code, message } = error as NodeJS.ErrnoException;
  return { code, message };
};

/** A folder with very many entries takes long, so progress is reported. Names that are not UTF-8 are read as bytes. */
async function listEntries(location: Location, progress?: () => void): Promise<(Dirent | Dirent<Buffer>)[]> {
  const entries: Dirent[] = [];
  if (typeof location === 'string') {
    for await (const entry of await opendir(location, { bufferSize: ENTRIES_PER_CALL })) {
      entries.push(entry);
      if (entries.length % ENTRIES_PER_CALL === 0) progress?.();
    }
    if (!entries.some(({ name }) => name.includes('\ufffd'))) return entries;
  }
  return readdir(location, { withFileTypes: true, encoding: 'buffer' });
}

const ENTRIES_PER_CALL = 1024;

function kindOf(entry: Dirent | Dirent<Buffer>): Kind {
  if (entry.isFile()) return 'f';
  if (entry.isDirectory()) return 'd';
  return entry.isSymbolicLink() ? 'l' : '-';
}

/** Where an open file is, without links, one character per byte. */
function pathOf(descriptor: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`, 'latin1');
  } catch {
    return undefined;
  }
}

async function serve({ id, name, args }: Request): Promise<void> {
  const send = (response: Response) => process.connected && process.send?.(response);
  const operation = operations[name] as (...args: readonly unknown[]) => Promise<unknown>;
  try {
    send({ id, result: (await operation(...args, () => send({ id }))) ?? null });
  } catch (error) {
    send({ id, error: toSent(error) });
  }
}

process.on('message', serve);
endWithStarter();
