import { type ParseOptions, withDefaults } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { decode } from './decode.js';
import { readDelimited, type TextFile } from './formats/delimited.js';
import { toLines } from './lines.js';
import { load, type Source } from './load.js';
import { asLine, measure } from './measure/measure.js';
import { createPace } from './pace.js';
import { createRefuse } from './refuse.js';

/**
 * Reads a file as its mapping says; without a mapping, as measuring it suggests.
 * What does not read as the mapping says, or would have to be guessed, is a FileError.
 */
export async function parse(
  source: Source,
  alternatives: readonly ParseOptions[] | undefined,
  signal?: AbortSignal,
): Promise<FileRecord> {
  signal?.throwIfAborted();
  const options = alternatives?.[0];
  const { limits, encoding } = options ?? withDefaults({});
  const refuse = createRefuse(source.path);
  const pace = createPace({ maxMs: limits.maxMs, signal, refuse });
  const bytes = await load(source, limits.maxBytes ?? 64 * 2 ** 20, refuse);
  const texts = await toLines(decode(bytes, encoding, refuse), pace);
  if (texts.every((text) => text.trim() === '')) throw refuse('the file is empty: it has only blank lines');
  const file: TextFile = { path: source.path, name: source.name, texts, refuse, pace };
  return options ? readDelimited(file, options) : readMeasured(file);
}

/** Without a mapping there is none that a hint could be put into, so a refusal also tells the one that was used. */
async function readMeasured(file: TextFile): Promise<FileRecord> {
  const mapping = await measure(file);
  try {
    return await readDelimited(file, withDefaults(mapping));
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const { message, where, hint } = error;
    throw new FileError(message, {
      ...(where && { where }),
      hint: `${hint ? `${hint}; ` : ''}the file was read with \`${asLine(mapping)}\``,
    });
  }
}
