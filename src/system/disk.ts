import type { ChildProcess } from 'node:child_process';
import {
  type BigIntStats,
  close,
  type Dirent,
  fstat,
  lstatSync,
  open,
  promises,
  read,
  readdir,
  readlinkSync,
  stat,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { Change, ChangeArgs, Kind, Location, Operations, Request, Response, SentError } from './disk-process.js';
import { listMounts, type Mount, mountOf } from './mounts.js';
import { startHelper } from './process.js';

/**
 * Access to the files of instruments. A call to a network share, or to the program behind a FUSE file system, may never
 * return. It would block one of the few threads of this process for file access, and the process could not even exit. So
 * such calls are made by other processes, one for each mount. If a call takes too long, its process is given up, and all
 * calls to that mount fail with ETIMEDOUT until the process has ended.
 */

// These use a third less CPU time for a small file than fs/promises.
const local = {
  open: promisify(open),
  fstat: promisify(fstat),
  read: promisify(read),
  close: promisify(close),
  readdir: promisify(readdir),
};

/** A name in a folder. It is a Buffer if it is not UTF-8. */
export type FolderEntry = Pick<Dirent | Dirent<Buffer>, 'name' | 'isFile' | 'isDirectory' | 'isSymbolicLink'>;

/** An open file. Its stats are from just after the opening. */
export interface OpenFile {
  readonly stats: BigIntStats;
  /** Where it is, without links, one character per byte; undefined on systems without /proc. */
  readonly path: string | undefined;
  /** Returns how many bytes were read. */
  read(into: Buffer, at: number, bytes: number, from: number): Promise<number>;
  close(): Promise<void>;
}

const BIGINT = { bigint: true } as const;

/**
 * On local disks, calls are synchronous while the system has the answers in memory: handing one to another thread takes
 * three times as long. After the first slow call, the others use callbacks, so that the event loop is not blocked.
 */
export function statAll(locations: readonly Location[]): Promise<(BigIntStats | Error)[]> {
  return new Promise((resolve) => {
    const results: (BigIntStats | Error)[] = new Array(locations.length);
    let left = locations.length;
    if (left === 0) resolve(results);
    const settle = (index: number, result: BigIntStats | Error): void => {
      results[index] = result;
      left -= 1;
      if (left === 0) resolve(results);
    };
    const onShares = new Map<Share, number[]>();
    let beforeMs = performance.now();
    let untilMs = beforeMs + AT_ONCE_MS;
    for (const [index, location] of locations.entries()) {
      const share = shareOf(location);
      if (share) {
        onShares.set(share, [...(onShares.get(share) ?? []), index]);
      } else if (untilMs === 0) {
        stat(location, BIGINT, (error, stats) => settle(index, error ?? stats));
      } else {
        settle(index, statHere(location));
        const afterMs = performance.now();
        if (afterMs - beforeMs > SLOW_MS || afterMs > untilMs) untilMs = 0;
        beforeMs = afterMs;
      }
    }
    for (const [share, indexes] of onShares)
      for (let at = 0; at < indexes.length; at += STATS_PER_CALL)
        void share.stats(indexes.slice(at, at + STATS_PER_CALL), locations, settle);
  });
}

/** A call that has to read from the disk. */
const SLOW_MS = 1;
/** The longest time that calls keep the event loop. */
const AT_ONCE_MS = 10;

function statHere(location: Location): BigIntStats | Error {
  try {
    return statSync(location, BIGINT);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** So that a call to a slow share does not take too long. */
const STATS_PER_CALL = 64;

export async function statOne(location: Location): Promise<BigIntStats | Error> {
  const [result = noAnswer()] = await statAll([location]);
  return result;
}

/** Names that Node cannot decode could not be opened, so they are read as bytes. */
export async function entriesOf(location: Location): Promise<FolderEntry[]> {
  const share = shareOf(location);
  if (share) return share.entries(location);
  const entries = await local.readdir(location, { withFileTypes: true });
  if (!entries.some(({ name }) => name.includes('\ufffd'))) return entries;
  return local.readdir(location, { withFileTypes: true, encoding: 'buffer' });
}

/** The real place of a file or folder, without links, as bytes. */
export async function realPlace(location: Location): Promise<Buffer> {
  const share = shareOf(location);
  return share ? share.realpath(location) : promises.realpath(location, { encoding: 'buffer' });
}

export async function openFile(location: Location, flags: number): Promise<OpenFile> {
  const share = shareOf(location);
  if (share) return share.open(location, flags);
  const descriptor = await local.open(location, flags);
  return {
    stats: await local.fstat(descriptor, BIGINT),
    path: pathOf(descriptor),
    read: async (into, at, bytes, from) => (await local.read(descriptor, into, at, bytes, from)).bytesRead,
    close: () => local.close(descriptor),
  };
}

/** Of the name itself, not of what a link leads to. */
export async function lstatOne(location: Location): Promise<BigIntStats> {
  const share = shareOf(location);
  return share ? share.lstat(location) : promises.lstat(location, BIGINT);
}

/** Changes names or permissions. After ETIMEDOUT, the change may still be made. */
export async function change(name: Change, ...args: ChangeArgs): Promise<void> {
  const shares = args.flatMap((arg) => (typeof arg === 'number' ? [] : (shareOf(arg) ?? [])));
  const [share, other = share] = shares;
  if (share !== other) throw Object.assign(new Error('two shares'), { code: 'EXDEV' });
  if (share) await share.change(name, args);
  else await (promises[name] as (...args: ChangeArgs) => Promise<unknown>)(...args);
}

/** An open file or folder that can be written or synced, too. */
export interface WritableFile extends Pick<OpenFile, 'stats' | 'read' | 'close'> {
  write(bytes: Buffer): Promise<void>;
  sync(): Promise<void>;
}

export async function openWritable(location: Location, flags: number | string, mode?: number): Promise<WritableFile> {
  const share = shareOf(location);
  if (share) return share.open(location, flags, mode);
  const file = await promises.open(location, flags, mode);
  return {
    stats: await file.stat(BIGINT),
    read: async (into, at, bytes, from) => (await file.read(into, at, bytes, from)).bytesRead,
    write: (bytes) => file.writeFile(bytes),
    sync: () => file.sync(),
    close: () => file.close(),
  };
}

/** Where an open file is; undefined on systems without /proc. */
export function pathOf(descriptor: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`, 'latin1');
  } catch {
    return undefined;
  }
}

/** The mount of a place if calls to it may hang. Links to such a mount are followed. */
export function slowMountOf(location: Location): Mount | undefined {
  if (!table || performance.now() - table.readAt > TABLE_MS) table = readTable();
  if (!table.hasSlow) return undefined;
  const { mounts, points, folders } = table;
  const path = String(location);
  const above = dirname(path);
  const ofFolder = folders.get(above) ?? mountOf(above, mounts);
  folders.set(above, ofFolder);
  if (ofFolder.mayHang) return ofFolder;
  const isPlain = !points.has(path) && !isLink(path);
  const own = isPlain ? ofFolder : mountOf(path, mounts);
  return own.mayHang ? own : undefined;
}

/** How long the table of mounts is used before it is read again. */
const TABLE_MS = 1000;

/* Of the machine, not of an instrument: several may use the same share. */
let table: ReturnType<typeof readTable> | undefined;
const shares = new Map<string, Share>();

function readTable() {
  const mounts = listMounts();
  return {
    readAt: performance.now(),
    mounts,
    hasSlow: mounts.some(({ mayHang }) => mayHang),
    points: new Set(mounts.map(({ point }) => point)),
    folders: new Map<string, Mount>(),
  };
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    return false;
  }
}

function shareOf(location: Location): Share | undefined {
  const mount = slowMountOf(location);
  if (!mount) return undefined;
  const share = shares.get(mount.id) ?? new Share();
  shares.set(mount.id, share);
  return share;
}

/** The error of a call to a share that hangs. */
const noAnswer = (): Error => Object.assign(new Error('the share does not respond'), { code: 'ETIMEDOUT' });

const toError = ({ code, message }: SentError): Error => Object.assign(new Error(message), { code });

/** Stats of another process, with the methods that are lost on the way. */
const REMOTE_STATS: object = Object.create(Object.getPrototypeOf(statSync('/', BIGINT)), { isRemote: { value: true } });
const toStats = (fields: object): BigIntStats => Object.assign(Object.create(REMOTE_STATS), fields);

/** Whether the file is on a file system that may hang. */
export const isRemote = (stats: BigIntStats): boolean => 'isRemote' in stats;

interface Call {
  readonly request: Request;
  /** Set while the process works on it. */
  timer?: NodeJS.Timeout;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** After this time without progress, a share hangs. Disks of a NAS take 10 to 20 s to start. */
export const HANG_MS = 30_000;
/** As many as the process has threads for. */
const MAX_CALLS = 4;
/** An idle process keeps about 40 MB; starting it takes a tenth of a second. */
const IDLE_MS = 60_000;

/** The calls to one mount. */
export class Share {
  readonly #hangMs: number;
  #process: ChildProcess | undefined;
  /** A process that was given up and has not ended yet: another one would hang, too. */
  #lost: ChildProcess | undefined;
  readonly #calls = new Map<number, Call>();
  readonly #waiting: Call[] = [];
  #lastId = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(hangMs = HANG_MS) {
    this.#hangMs = hangMs;
  }

  async stats(
    indexes: readonly number[],
    locations: readonly Location[],
    settle: (index: number, result: BigIntStats | Error) => void,
  ): Promise<void> {
    const wanted = indexes.flatMap((index) => locations[index] ?? []);
    const results = await this.#call('stats', wanted).catch((error: Error) => error);
    indexes.forEach((index, n) => {
      const result = results instanceof Error ? results : results[n];
      if (result === undefined || result instanceof Error) settle(index, result ?? noAnswer());
      else settle(index, 'code' in result ? toError(result) : toStats(result));
    });
  }

  async entries(location: Location): Promise<FolderEntry[]> {
    const { names, kinds } = await this.#call('entries', location);
    return names.map((name, n) => {
      const kind = kinds[n] as Kind;
      return {
        name: typeof name === 'string' ? name : Buffer.from(name),
        isFile: () => kind === 'f',
        isDirectory: () => kind === 'd',
        isSymbolicLink: () => kind === 'l',
      } as FolderEntry;
    });
  }

  realpath = async (location: Location): Promise<Buffer> => Buffer.from(await this.#call('realpath', location));

  lstat = async (location: Location): Promise<BigIntStats> => toStats(await this.#call('lstat', location));

  change = async (name: Change, args: ChangeArgs): Promise<void> => void (await this.#call('change', name, args));

  async open(location: Location, flags: number | string, mode?: number): Promise<OpenFile & WritableFile> {
    const { descriptor, stats, path } = await this.#call('open', location, flags, mode);
    const opener = this.#process;
    const mustBeOpen = (): void => {
      if (this.#process !== opener) throw noAnswer();
    };
    return {
      stats: toStats(stats),
      path,
      read: async (into, at, bytes, from) => {
        mustBeOpen();
        const read = await this.#call('read', descriptor, bytes, from);
        into.set(read, at);
        return read.length;
      },
      write: async (bytes) => {
        mustBeOpen();
        await this.#call('write', descriptor, bytes);
      },
      sync: async () => {
        mustBeOpen();
        await this.#call('sync', descriptor);
      },
      close: async () => {
        // With its process, the file was closed, too.
        if (this.#process === opener) await this.#call('close', descriptor).catch(() => undefined);
      },
    };
  }

  /** Ends the process, which has no calls. The next call starts another one. */
  end(): void {
    this.#process?.disconnect();
    this.#process = undefined;
  }

  #call<Name extends keyof Operations>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<Awaited<ReturnType<Operations[Name]>>> {
    return new Promise((resolve, reject) => {
      if (this.#lost) return reject(noAnswer());
      const request = { id: ++this.#lastId, name, args };
      this.#waiting.push({ request, resolve: resolve as Call['resolve'], reject });
      this.#send();
    });
  }

  #send(): void {
    while (this.#calls.size < MAX_CALLS) {
      const call = this.#waiting.shift();
      if (!call) break;
      this.#process ??= this.#start();
      const own = this.#process;
      call.timer = setTimeout(() => this.#giveUp(own), this.#hangMs);
      this.#calls.set(call.request.id, call);
      own.send(call.request, (error) => error && this.#giveUp(own));
    }
    clearTimeout(this.#idle);
    // Only calls keep this process alive.
    if (this.#calls.size > 0) this.#process?.channel?.ref();
    else {
      this.#process?.channel?.unref();
      this.#idle = setTimeout(() => this.end(), IDLE_MS).unref();
    }
  }

  #start(): ChildProcess {
    const started = startHelper(new URL('./disk-process.js', import.meta.url));
    started.on('message', (response: Response) => {
      if (started === this.#process) this.#receive(response);
    });
    for (const event of ['error', 'exit'])
      started.once(event, () => {
        this.#giveUp(started);
        if (this.#lost === started) this.#lost = undefined;
      });
    return started;
  }

  #receive({ id, result, error }: Response): void {
    const call = this.#calls.get(id);
    if (result === undefined && !error) call?.timer?.refresh();
    else {
      clearTimeout(call?.timer);
      this.#calls.delete(id);
      if (error) call?.reject(toError(error));
      else call?.resolve(result);
      this.#send();
    }
  }

  /** Its calls fail, and so do others until it has ended: SIGKILL does not end a call to a FUSE program that hangs. */
  #giveUp(lost: ChildProcess | undefined): void {
    if (!lost || lost !== this.#process) return;
    this.#process = undefined;
    this.#lost = lost;
    lost.kill('SIGKILL');
    lost.channel?.unref();
    const calls = [...this.#calls.values(), ...this.#waiting.splice(0)];
    this.#calls.clear();
    for (const call of calls) {
      clearTimeout(call.timer);
      call.reject(noAnswer());
    }
  }
}
