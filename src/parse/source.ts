import type { ParseOptions } from '../config/vocabulary.js';
import { decode, findEncoding } from './decode.js';
import { createPace, createRefuse, type Pace, type Refuse } from './lines.js';

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

/** A file that is being read, and what reading it needs. */
export interface OpenFile {
  readonly source: Source;
  /** Whether there are further mappings to try where this one is not for the file. */
  readonly isAlternative?: boolean;
  readonly refuse: Refuse;
  readonly pace: Pace;
  readonly signal?: AbortSignal | undefined;
}

/** `limits.maxMs` holds for everything that is done with the file until it is opened again. */
export function openFile(
  source: Source,
  { limits }: Pick<ParseOptions, 'limits'>,
  signal?: AbortSignal,
): OpenFile {
  const refuse = createRefuse(source.path);
  return { source, refuse, pace: createPace({ maxMs: limits.maxMs, signal, refuse }), signal };
}

/** A file that must be held as a whole before anything can be said of it, unlike lines. */
export interface WholeFile {
  readonly bytes: Uint8Array;
  readonly refuse: Refuse;
  readonly pace: Pace;
}

export const MOST_WHOLE_BYTES = 32 * 2 ** 20;

/** Refuses a file that takes too much memory as a whole. */
export function refuseLarge(
  { bytes, refuse }: Pick<WholeFile, 'bytes' | 'refuse'>,
  { limits }: Pick<ParseOptions, 'limits'>,
): void {
  const most = limits.maxBytes ?? MOST_WHOLE_BYTES;
  if (bytes.byteLength <= most) return;
  const megabytes = Math.ceil(bytes.byteLength / 2 ** 20);
  throw refuse(
    `the file has ${bytes.byteLength} bytes, more than the ${most} that are read of such a format`,
    {
      hint: `if such files are to be read, allow more: \`limits: { bytes: ${megabytes}MB }\``,
    },
  );
}

/** The text of a whole file. */
export async function wholeText(
  file: WholeFile,
  options: Pick<ParseOptions, 'limits' | 'encoding'>,
): Promise<string> {
  refuseLarge(file, options);
  const pieces: string[] = [];
  for await (const piece of wholeDecoded(file, options.encoding)) {
    pieces.push(piece);
    if (file.pace.due()) await file.pace.rest();
  }
  return pieces.join('');
}

/** The text of a whole file, piece by piece. */
export async function* wholeDecoded({ bytes, refuse }: WholeFile, encoding: string): AsyncGenerator<string> {
  const name = encoding === 'auto' ? await findEncoding([bytes]) : encoding;
  yield* decode([bytes], name, refuse);
}
