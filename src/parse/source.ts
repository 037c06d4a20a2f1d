import type { Refuse } from './refuse.js';

/** A file as the caller has it: its bytes, or a way to read them, from the beginning each time. */
export interface Source {
  /** For people: places in errors, and `in: path`. */
  readonly path: string;
  /** The file's own name, for `in: name`. */
  readonly name: string;
  /** In bytes, where it is known beforehand: a file that is too large is then not even opened. */
  readonly size?: number;
  readonly content: Uint8Array | (() => AsyncIterable<Uint8Array>);
  /** The files of a run of several; it has no content of its own then. */
  readonly parts?: readonly Part[] | undefined;
}

export interface Part extends Source {
  /** Its name seen from the run's folder. */
  readonly within: string;
}

/** The bytes of a file in pieces, unless they are too many: a long file is never in memory as a whole. */
export async function* piecesOf(
  { content, size }: Source,
  maxBytes: number,
  refuse: Refuse,
): AsyncGenerator<Uint8Array> {
  const refuseMore = (bytes: number) => {
    if (bytes <= maxBytes) return;
    throw refuse(`the file has ${megabytes(bytes)}, more than the ${megabytes(maxBytes)} that are read`, {
      hint: `if such files are to be read, allow more: \`limits: { bytes: ${Math.ceil(bytes / 2 ** 20)}MB }\``,
    });
  };
  if (content instanceof Uint8Array) {
    refuseMore(content.byteLength);
    yield content;
    return;
  }
  refuseMore(size ?? 0);
  let bytes = 0;
  for await (const piece of content()) {
    bytes += piece.byteLength;
    refuseMore(bytes);
    yield piece;
  }
}

/** All bytes of a file at once, for formats that cannot be read piece by piece. */
export async function load(source: Source, maxBytes: number, refuse: Refuse): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of piecesOf(source, maxBytes, refuse)) pieces.push(piece);
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
}

/** The first bytes of a file, to see what it is. */
export async function headOf(
  source: Source,
  bytes: number,
  maxBytes: number,
  refuse: Refuse,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of piecesOf(source, maxBytes, refuse)) {
    pieces.push(piece);
    length += piece.byteLength;
    if (length >= bytes) break;
  }
  const head = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
  return head.subarray(0, bytes);
}

const megabytes = (bytes: number): string =>
  bytes < 2 ** 20 ? `${bytes} bytes` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
