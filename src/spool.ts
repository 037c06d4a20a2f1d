import { mkdirSync, statSync, unlinkSync } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from './errors.js';

/** The folder for copies of raw files, beside the journal. */
export const spoolOf = (journal: string): string => `${journal}.spool`;

/** Copies leave at least this much of the disk free: the journal needs it. */
const MIN_FREE_BYTES = 512 * 1024 * 1024;

const INCOMING = 'incoming-';
const FINGERPRINT = /^[0-9a-f]{64}$/;

/** Where the bytes of a file are written to while they are hashed. */
export interface Incoming {
  readonly path: string;
  /** What was set aside for it. */
  readonly size: number;
}

/**
 * Copies of raw files until the notebook has them, by their SHA-256, so that the source may vanish. A copy is written
 * under another name, and gets its own name when its bytes are on disk and its run is handed over. Equal files share
 * one copy. All methods run in the main thread, so a copy that was checked to be superfluous cannot be needed again
 * before it is removed.
 */
export class Spool {
  readonly #folder: string;
  #bytes = 0;
  #last = 0;
  /** A file that would have fitted into an empty spool, but was not admitted. */
  #refused: { readonly size: number; readonly maxBytes: number } | undefined;
  /** Copies that runs need which the journal does not have yet, and how many of these runs there are. */
  readonly #arriving = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Removes what a crash left behind: everything but the copies of this content. */
  async clean(needed: ReadonlySet<string>): Promise<void> {
    this.#bytes = 0;
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const path = join(this.#folder, name);
      if (needed.has(name)) this.#bytes += await sizeOf(path);
      else if (name.startsWith(INCOMING) || FINGERPRINT.test(name)) await rm(path, { force: true });
    }
  }

  /** Removes copies of content that is not needed any more, such as that of erased runs. */
  async sweep(needed: () => Promise<ReadonlySet<string>>): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => []))
      if (FINGERPRINT.test(name)) await this.remove(name, async () => (await needed()).has(name));
  }

  /** How much the copies take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the last file that was not admitted has no room now either, and why. */
  async shortage(): Promise<'limit' | 'disk' | undefined> {
    const { size = 0, maxBytes = 0 } = this.#refused ?? {};
    if (this.#refused && this.#bytes + size > maxBytes) return 'limit';
    if (this.#refused && !(await this.#hasSpace(size))) return 'disk';
    this.#refused = undefined;
    return undefined;
  }

  /** A place for a copy, if there is room for it. Every place is either kept or discarded. */
  async admit(size: number, maxBytes: number): Promise<Incoming | undefined> {
    const hasRoom = this.#bytes + size <= maxBytes;
    if (hasRoom) this.#bytes += size;
    if (hasRoom && (await this.#hasSpace(size))) {
      this.#last += 1;
      return { path: join(this.#folder, `${INCOMING}${this.#last}`), size };
    }
    if (hasRoom) this.#bytes -= size;
    if (size <= maxBytes) this.#refused = { size, maxBytes };
    return undefined;
  }

  /** Filing does not depend on the spool: a folder that cannot be made has no space. */
  async #hasSpace(size: number): Promise<boolean> {
    try {
      // Private like the journal, whatever the umask.
      mkdirSync(this.#folder, { mode: 0o700, recursive: true });
      const { bavail, bsize } = await statfs(this.#folder);
      return bavail * bsize - size > MIN_FREE_BYTES;
    } catch {
      return false;
    }
  }

  async discard({ path, size }: Incoming): Promise<void> {
    this.#bytes -= size;
    await rm(path, { force: true }).catch(() => undefined);
  }

  /** Makes a copy durable under its fingerprint. It stays at least until `handedOver`. False if that failed. */
  async keep(incoming: Incoming, sha256: string): Promise<boolean> {
    this.#arriving.set(sha256, (this.#arriving.get(sha256) ?? 0) + 1);
    const { path, size } = incoming;
    const kept = this.#pathOf(sha256);
    let isRenamed = false;
    try {
      await sync(path);
      const isEqual = existing(kept) !== undefined;
      await rename(path, kept);
      isRenamed = true;
      if (isEqual) this.#bytes -= size;
      await sync(this.#folder);
      return true;
    } catch {
      // Otherwise, its bytes count until it is removed.
      if (!isRenamed) await this.discard(incoming);
      await this.handedOver(sha256, async () => true);
      return false;
    }
  }

  /** The journal now has the run that needs this copy, or no run needs it. */
  async handedOver(sha256: string, isNeeded: () => Promise<boolean>): Promise<void> {
    const others = (this.#arriving.get(sha256) ?? 1) - 1;
    if (others > 0) this.#arriving.set(sha256, others);
    else this.#arriving.delete(sha256);
    await this.remove(sha256, isNeeded);
  }

  /** Removes a copy, unless a run of the journal needs it, or one that is about to be there. */
  async remove(sha256: string, isNeeded: () => Promise<boolean>): Promise<void> {
    const path = this.#pathOf(sha256);
    if (!existing(path) || (await isNeeded()) || this.#arriving.has(sha256)) return;
    try {
      const size = existing(path)?.size ?? 0;
      // Not asynchronous: nothing may arrive between the check and the removal.
      unlinkSync(path);
      this.#bytes -= size;
    } catch {
      // Removed at the next start.
    }
  }

  /** Undefined if there is no such copy. */
  open(sha256: string): Promise<FileHandle | undefined> {
    return open(this.#pathOf(sha256)).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return undefined;
      throw error;
    });
  }

  #pathOf(sha256: string): string {
    return join(this.#folder, sha256);
  }
}

const existing = (path: string) => statSync(path, { throwIfNoEntry: false });

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

async function sync(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Receives the bytes of a file as they are hashed. A failure, such as a full disk, does not stop the hashing. */
export interface Copy {
  write(bytes: Uint8Array): Promise<void>;
}

/** Writes a copy into the spool, in whichever thread the file is read. */
export class CopyWriter implements Copy {
  readonly #path: string;
  #file: FileHandle | undefined;
  #hasFailed = false;

  constructor(path: string) {
    this.#path = path;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#hasFailed) return;
    try {
      this.#file ??= await open(this.#path, 'w', 0o600);
      for (let at = 0; at < bytes.length; ) at += (await this.#file.write(bytes, at, bytes.length - at)).bytesWritten;
    } catch {
      this.#hasFailed = true;
    }
  }

  /** Whether everything was written. */
  get isComplete(): boolean {
    return !this.#hasFailed;
  }

  async close(): Promise<void> {
    // Of an empty file, nothing was written.
    await this.write(new Uint8Array());
    await this.#file?.close().catch(() => {
      this.#hasFailed = true;
    });
  }
}
