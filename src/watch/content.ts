import { createReadStream } from 'node:fs';
import { FileChangedError } from '../errors.js';
import type { DiskFile, Hashed } from '../model.js';
import { explained } from './identify.js';
import { sameStamp, stampOf, statAll } from './stamp.js';

/** The bytes that were hashed: those that were kept, or the file once more, as long as it is still the same. */
export const contentOf = (file: DiskFile & Hashed): Uint8Array | (() => AsyncIterable<Uint8Array>) =>
  file.content ?? (() => readAgain(file));

async function* readAgain(file: DiskFile & Hashed): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of createReadStream(file.location, { highWaterMark: 256 * 1024 })) yield piece;
  } catch (error) {
    throw explained(file, error);
  }
  const [stats] = await statAll([file.location]);
  if (stats === undefined || stats instanceof Error || !sameStamp(stampOf(stats), file)) {
    throw new FileChangedError('the file was changed while it was read', { where: { file: file.path } });
  }
}
