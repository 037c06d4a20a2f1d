import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { systemCode } from '../../../errors.js';

/** A part of a zip archive, unpacked. */
export interface ZipPart {
  readonly name: string;
  readonly content: Uint8Array;
}

/** Why an archive is not unpacked: for people. */
export class ZipProblem extends Error {
  readonly hint = undefined;
}

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly packed: number;
  readonly unpacked: number;
  readonly at: number;
}

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
/** The end of an archive, after which a comment of any length can stand. */
const END_BYTES = 22;
const LONGEST_COMMENT = 0xffff;
const MOST_PARTS = 10_000;

const inflate = promisify(inflateRaw);

/**
 * Unpacks those parts of an archive that are wanted, and never more than `mostBytes`:
 * what the archive says of itself is looked at first, and not believed afterwards.
 */
export async function unzip(
  bytes: Uint8Array,
  isWanted: (name: string) => boolean,
  mostBytes: number,
): Promise<ZipPart[]> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries = entriesIn(buffer).filter(({ name }) => isWanted(name));
  const declared = entries.reduce((sum, { unpacked }) => sum + unpacked, 0);
  if (declared > mostBytes) throw tooLarge(mostBytes);
  const parts: ZipPart[] = [];
  let room = mostBytes;
  for (const entry of entries) {
    const content = await unpack(buffer, entry, room, mostBytes);
    room -= content.byteLength;
    parts.push({ name: entry.name, content });
  }
  return parts;
}

const tooLarge = (mostBytes: number) =>
  new ZipProblem(`unpacked it has more than ${Math.floor(mostBytes / 2 ** 20)} MB, more than are read`);

const damaged = () => new ZipProblem('it is damaged or cut short');

/** The list of contents, which stands at the end of an archive. */
function entriesIn(buffer: Buffer): Entry[] {
  const end = endOf(buffer);
  const count = buffer.readUInt16LE(end + 10);
  if (count > MOST_PARTS) throw new ZipProblem(`it has ${count} parts, more than are read`);
  const entries: Entry[] = [];
  let at = buffer.readUInt32LE(end + 16);
  for (let n = 0; n < count; n++) {
    if (at + 46 > buffer.length || buffer.readUInt32LE(at) !== ENTRY) throw damaged();
    const lengths = [28, 30, 32].map((place) => buffer.readUInt16LE(at + place));
    const [name = 0, extra = 0, comment = 0] = lengths;
    if (buffer.readUInt16LE(at + 8) % 2 === 1) throw new ZipProblem('it is encrypted');
    entries.push({
      name: buffer.toString('utf8', at + 46, at + 46 + name).replaceAll('\\', '/'),
      method: buffer.readUInt16LE(at + 10),
      packed: buffer.readUInt32LE(at + 20),
      unpacked: buffer.readUInt32LE(at + 24),
      at: buffer.readUInt32LE(at + 42),
    });
    at += 46 + name + extra + comment;
  }
  return entries;
}

function endOf(buffer: Buffer): number {
  const last = buffer.length - END_BYTES;
  for (let at = last; at >= Math.max(0, last - LONGEST_COMMENT); at--) {
    if (buffer.readUInt32LE(at) === END) return at;
  }
  throw damaged();
}

async function unpack(buffer: Buffer, entry: Entry, room: number, mostBytes: number): Promise<Uint8Array> {
  const { at, packed, method } = entry;
  if (at + 30 > buffer.length || buffer.readUInt32LE(at) !== LOCAL) throw damaged();
  const from = at + 30 + buffer.readUInt16LE(at + 26) + buffer.readUInt16LE(at + 28);
  if (from + packed > buffer.length) throw damaged();
  const content = buffer.subarray(from, from + packed);
  if (method === 0 && packed <= room) return content;
  if (method !== 8)
    throw method === 0 ? tooLarge(mostBytes) : new ZipProblem('it is packed in an unknown way');
  try {
    return await inflate(content, { maxOutputLength: Math.max(room, 1) });
  } catch (error) {
    throw systemCode(error) === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(mostBytes) : damaged();
  }
}
