import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { Copy } from '../spool.js';

/** A file to put into an archive. */
interface Member {
  /** Relative, with slashes. */
  readonly name: string;
  readonly size: number;
  readonly mtimeNs: bigint;
}

const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;
/** Beyond these, the format needs extensions. */
const MAX_MEMBERS = 65_535;
const MAX_BYTES = 2 ** 32 - 1;

/** How long the archive of these files is; undefined if it cannot hold them. */
export function archiveSize(members: readonly Member[]): number | undefined {
  const size = members.reduce(
    (sum, member) => sum + member.size + LOCAL_BYTES + CENTRAL_BYTES + 2 * nameOf(member).length,
    END_BYTES,
  );
  return members.length <= MAX_MEMBERS && size <= MAX_BYTES ? size : undefined;
}

const nameOf = ({ name }: Member): Buffer => Buffer.from(name.replaceAll('\\', '_'));

interface Written {
  readonly member: Member;
  /** Where its header is. */
  readonly at: number;
  crc: number;
  bytes: number;
}

/**
 * A ZIP file without compression, written as its files are hashed, one after the other. The same files make the same
 * archive. Written here because the libraries that write ZIP files keep them in memory or compress them.
 */
export class ArchiveWriter {
  readonly #path: string;
  readonly #members: readonly Member[];
  readonly #written: Written[] = [];
  #file: FileHandle | undefined;
  #at = 0;
  #hasFailed = false;

  constructor(path: string, members: readonly Member[]) {
    this.#path = path;
    this.#members = members;
  }

  /** For the bytes of each file, in the order of the files. */
  get copies(): Copy[] {
    return this.#members.map((_, index) => ({ write: (bytes) => this.#attempt(() => this.#append(index, bytes)) }));
  }

  /** Completes the archive, and resolves with its fingerprint; undefined if it could not be written. */
  async finish(): Promise<string | undefined> {
    await this.#attempt(async () => {
      await this.#beginThrough(this.#members.length - 1);
      await this.#endMember();
      const start = this.#at;
      for (const one of this.#written) await this.#put(centralHeader(one), nameOf(one.member));
      await this.#put(endRecord(this.#members.length, start, this.#at - start));
    });
    await this.close();
    if (this.#hasFailed || this.#written.some(({ member, bytes }) => bytes !== member.size)) return undefined;
    const sha256 = createHash('sha256');
    for await (const chunk of createReadStream(this.#path)) sha256.update(chunk as Buffer);
    return sha256.digest('hex');
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close().catch(() => undefined);
  }

  async #attempt(act: () => Promise<void>): Promise<void> {
    if (this.#hasFailed) return;
    await act().catch(() => {
      this.#hasFailed = true;
    });
  }

  async #append(index: number, bytes: Uint8Array): Promise<void> {
    await this.#beginThrough(index);
    const current = this.#written[index];
    if (!current) return;
    current.crc = crc32(bytes, current.crc);
    current.bytes += bytes.length;
    await this.#put(bytes);
  }

  /** Also those before it that are empty, of which nothing was written. */
  async #beginThrough(index: number): Promise<void> {
    for (let next = this.#written.length; next <= index; next++) {
      const member = this.#members[next];
      if (!member) return;
      await this.#endMember();
      const begun = { member, at: this.#at, crc: 0, bytes: 0 };
      this.#written.push(begun);
      await this.#put(localHeader(begun), nameOf(member));
    }
  }

  /** The checksum is in the header, and known only now. */
  async #endMember(): Promise<void> {
    const last = this.#written.at(-1);
    if (last) await this.#write(localHeader(last), last.at);
  }

  async #put(...parts: readonly Uint8Array[]): Promise<void> {
    for (const part of parts) {
      await this.#write(part, this.#at);
      this.#at += part.length;
    }
  }

  async #write(bytes: Uint8Array, position: number): Promise<void> {
    this.#file ??= await open(this.#path, 'w', 0o600);
    for (let at = 0; at < bytes.length; )
      at += (await this.#file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}

/** Version 2.0, names in UTF-8, not compressed; then time, checksum, sizes and the length of the name. */
function commonFields({ member, crc }: Written, into: Buffer, at: number): void {
  const time = new Date(Number(member.mtimeNs / 1_000_000n));
  const year = Math.min(Math.max(time.getUTCFullYear(), 1980), 2107);
  into.writeUInt16LE(20, at);
  into.writeUInt16LE(0x0800, at + 2);
  into.writeUInt16LE((time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1), at + 6);
  into.writeUInt16LE(((year - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate(), at + 8);
  into.writeUInt32LE(crc, at + 10);
  into.writeUInt32LE(member.size, at + 14);
  into.writeUInt32LE(member.size, at + 18);
  into.writeUInt16LE(nameOf(member).length, at + 22);
}

function localHeader(written: Written): Buffer {
  const header = Buffer.alloc(LOCAL_BYTES);
  header.writeUInt32LE(0x04034b50, 0);
  commonFields(written, header, 4);
  return header;
}

function centralHeader(written: Written): Buffer {
  const header = Buffer.alloc(CENTRAL_BYTES);
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(20, 4);
  commonFields(written, header, 6);
  header.writeUInt32LE(written.at, 42);
  return header;
}

function endRecord(members: number, start: number, bytes: number): Buffer {
  const record = Buffer.alloc(END_BYTES);
  record.writeUInt32LE(0x06054b50, 0);
  record.writeUInt16LE(members, 8);
  record.writeUInt16LE(members, 10);
  record.writeUInt32LE(bytes, 12);
  record.writeUInt32LE(start, 16);
  return record;
}
