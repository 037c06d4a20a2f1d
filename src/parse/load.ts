import type { Refuse } from './refuse.js';

/** A file as the caller has it: its bytes, or the stream that they come from. */
export interface Source {
  /** For people: places in errors, and `in: path`. */
  readonly path: string;
  /** The file's own name, for `in: name`. */
  readonly name: string;
  /** In bytes, where it is known beforehand: a file that is too large is then not even opened. */
  readonly size?: number;
  readonly content: Uint8Array | AsyncIterable<Uint8Array>;
}

/** The bytes of a file, unless they are too many. */
export async function load(source: Source, maxBytes: number, refuse: Refuse): Promise<Uint8Array> {
  const tooLarge = (bytes: number) =>
    refuse(`the file has ${megabytes(bytes)}, more than the ${megabytes(maxBytes)} that are read`, {
      hint: `if such files are to be read, allow more: \`limits: { bytes: ${Math.ceil(bytes / 2 ** 20)}MB }\``,
    });
  const { content } = source;
  const known = content instanceof Uint8Array ? content.byteLength : source.size;
  if (known !== undefined && known > maxBytes) throw tooLarge(known);
  if (content instanceof Uint8Array) return content;

  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw tooLarge(bytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}

const megabytes = (bytes: number): string =>
  bytes < 2 ** 20 ? `${bytes} bytes` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
