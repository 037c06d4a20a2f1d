import type { ParseOptions } from '../../config/vocabulary.js';
import { decode, findEncoding } from '../decode.js';
import type { Pace } from '../pace.js';
import type { Refuse } from '../refuse.js';

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
