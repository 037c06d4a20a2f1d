import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { posix } from 'node:path';
import { crc32 } from 'node:zlib';
import { type FoundFile, filesOf, type IdentifiedFile, type PlotPicture } from '../model.js';
import type { NewRun } from '../outbox.js';
import { type Copy, CopyWriter, type Incoming, type Spool } from '../spool.js';
import { formatBytes, singleLine } from '../text.js';
import type { NewAttachment, NewPlot } from '../uploads.js';

/** Runs with more files are attached as one archive. */
const MAX_SINGLE = 20;

interface RawFilesOptions {
  readonly spool: Pick<Spool, 'admit' | 'discard' | 'keep' | 'handedOver'>;
  /** How much all copies may take. */
  readonly maxBytes: number;
  /** Whether plots are attached, too. */
  readonly isPlotted: boolean;
  /** Whether the notebook takes files, as far as known. */
  isWanted(): Promise<boolean>;
  /** Whether the journal has a run that still needs this content. */
  isNeeded(sha256: string): Promise<boolean>;
}

/** The raw files of an instrument's runs are copied into the spool while they are hashed. */
export interface RawFiles {
  /** Whether plots are attached, too. */
  readonly isPlotted: boolean;
  /** Undefined if the files of this run are not attached. */
  begin(run: FoundFile): Promise<RawCopies | undefined>;
  /** The plots of a growing file, which itself is attached when it is complete. Undefined if they are not attached. */
  beginPlots(): Promise<PlotCopies | undefined>;
}

/** The plots of a batch of lines, until its hand-over. */
type PlotCopies = Pick<RawCopies, 'end'> & {
  keep(file: IdentifiedFile, plot: PlotPicture): Promise<NewPlot>;
};

/** The copies of one run's files, until its hand-over. */
export interface RawCopies {
  /** Where a thread copies the file of a run with one file. */
  readonly path: string | undefined;
  /** For files that are hashed in this thread. */
  copies(): readonly (Copy | undefined)[];
  /** Whether the plot is attached, too. */
  readonly isPlotted: boolean;
  /** Makes the copies durable. Resolves with what is to be attached. `isCopied`: what a thread copied is complete. */
  keep(file: IdentifiedFile, isCopied: boolean | undefined, plot?: PlotPicture): Promise<Attached>;
  /** The run was handed over, or not: removes what nobody needs. */
  end(): Promise<void>;
}

type Attached = Pick<NewRun, 'attachments' | 'plot'>;

/** How the copies of one run's raw files are made. */
type Copies = Pick<RawCopies, 'path' | 'copies' | 'end'> & {
  keep(file: IdentifiedFile, isCopied: boolean | undefined): Promise<NewAttachment[]>;
};

export const createRawFiles = (options: RawFilesOptions): RawFiles => ({
  isPlotted: options.isPlotted,
  async beginPlots() {
    if (!options.isPlotted || !(await options.isWanted())) return undefined;
    const { keep, handOver } = keepIn(options);
    return { keep: (file, plot) => keepPlot(plot, file, keep, options), end: handOver };
  },
  async begin(run) {
    if (!(await options.isWanted())) return undefined;
    const { keep, handOver } = keepIn(options);
    const isArchive = filesOf(run).length > MAX_SINGLE;
    const copies = isArchive ? await copyArchive(run, keep, options) : await copyFiles(run, keep, options);
    return {
      ...copies,
      isPlotted: options.isPlotted,
      async keep(file, isCopied, plot) {
        const attachments = await copies.keep(file, isCopied);
        return { attachments, plot: plot && (await keepPlot(plot, file, keep, options)) };
      },
      async end() {
        await copies.end();
        await handOver();
      },
    };
  },
});

/** Keeps copies in the spool, and after the hand-over removes those that no run needs. */
function keepIn({ spool, isNeeded }: RawFilesOptions) {
  const kept: string[] = [];
  const keep: Keep = async (place, sha256) => {
    const isKept = await spool.keep(place, sha256);
    if (isKept) kept.push(sha256);
    return isKept;
  };
  const handOver = async (): Promise<void> => {
    for (const sha256 of kept) await spool.handedOver(sha256, () => isNeeded(sha256));
  };
  return { keep, handOver };
}

type Keep = (place: Incoming, sha256: string) => Promise<boolean>;

/** Longer names are cut: the notebook takes at most 255 characters. */
const MAX_STEM = 200;

/** The run is filed even if its plot cannot be kept. */
async function keepPlot(
  plot: PlotPicture,
  { path }: IdentifiedFile,
  keep: Keep,
  { spool, maxBytes }: RawFilesOptions,
): Promise<NewPlot> {
  if (!plot.png) return plot;
  const { png, sha256, description, at } = plot;
  const place = await spool.admit(png.length, maxBytes);
  const noRoom = { at, reason: 'there is no room for it beside the journal', isFailed: true };
  if (!place) return noRoom;
  const writer = new CopyWriter(place.path);
  await writer.write(png);
  await writer.close();
  if (!writer.isComplete) await spool.discard(place);
  if (!writer.isComplete || !(await keep(place, sha256))) return noRoom;
  const name = `${singleLine(posix.parse(path).name).slice(0, MAX_STEM)}-plot.png`;
  return { name, sha256, size: png.length, description, at };
}

async function copyFiles(run: FoundFile, keep: Keep, { spool, maxBytes }: RawFilesOptions): Promise<Copies> {
  const places: (Incoming | undefined)[] = [];
  for (const { size } of filesOf(run)) places.push(await spool.admit(size, maxBytes));
  let writers: readonly (CopyWriter | undefined)[] | undefined;
  return {
    path: run.parts ? undefined : places[0]?.path,
    copies() {
      writers = places.map((place) => place && new CopyWriter(place.path));
      return writers;
    },
    async keep(file, isCopied = false) {
      for (const writer of writers ?? []) await writer?.close();
      const files = file.parts ?? [{ ...file, name: posix.basename(file.path) }];
      const attachments: NewAttachment[] = [];
      for (const [index, { name, path, sha256, size }] of files.entries()) {
        const place = places[index];
        const isComplete = writers ? (writers[index]?.isComplete ?? false) : isCopied;
        if (isComplete) places[index] = undefined;
        // Without a copy, it is uploaded from its path, if that still has the same content.
        if (place && isComplete) await keep(place, sha256);
        attachments.push({ name, path, sha256, size });
      }
      return attachments;
    },
    async end() {
      for (const writer of writers ?? []) await writer?.close();
      for (const place of places) if (place) await spool.discard(place);
    },
  };
}

async function copyArchive(run: FoundFile, keep: Keep, { spool, maxBytes }: RawFilesOptions): Promise<Copies> {
  const parts = run.parts ?? [];
  const size = archiveSize(parts);
  let place = size === undefined ? undefined : await spool.admit(size, maxBytes);
  const archive = place && new ArchiveWriter(place.path, parts);
  return {
    path: undefined,
    copies: () => archive?.copies ?? [],
    async keep({ path }) {
      const sha256 = await archive?.finish();
      const wanted = place;
      if (sha256 !== undefined) place = undefined;
      const isSpooled = sha256 !== undefined && wanted !== undefined && (await keep(wanted, sha256));
      const name = `${posix.basename(path)}.zip`;
      const total = parts.reduce((sum, part) => sum + part.size, 0);
      if (isSpooled) return [{ name, path, sha256, size: size ?? 0 }];
      const problem = `the ${parts.length} raw files are not attached: there is no room for their archive (${formatBytes(total)}) beside the journal`;
      return [{ name, path, sha256: '', size: total, problem }];
    },
    async end() {
      await archive?.close();
      if (place) await spool.discard(place);
    },
  };
}

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
function archiveSize(members: readonly Member[]): number | undefined {
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
class ArchiveWriter {
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
