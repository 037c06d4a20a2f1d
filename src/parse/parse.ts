import { type ParseOptions, withDefaults } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { firstLines, type OpenFile, openText, readDelimited } from './formats/delimited.js';
import { type Measured, measure, withMapping } from './measure/measure.js';
import { createPace } from './pace.js';
import { AbsentError, createRefuse, type Refuse } from './refuse.js';
import { requireWhen } from './require-when.js';
import type { Source } from './source.js';

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
  const refuse = createRefuse(source.path);
  const open = ({ limits: { maxMs } }: ParseOptions): OpenFile => ({
    source,
    refuse,
    pace: createPace({ maxMs, signal, refuse }),
  });
  return alternatives ? readFirstFitting(open, alternatives, refuse) : readMeasured(open(withDefaults({})));
}

/** The first of several mappings whose patterns are all found in the file. */
async function readFirstFitting(
  open: (options: ParseOptions) => OpenFile,
  alternatives: readonly ParseOptions[],
  refuse: Refuse,
): Promise<FileRecord> {
  const refusals: FileError[] = [];
  for (const [n, options] of alternatives.entries()) {
    const file = { ...open(options), isAlternative: n + 1 < alternatives.length };
    try {
      await requireWhen(file, options);
      const record = await readAs(file, options);
      return alternatives.length === 1 ? record : { ...record, alternative: n };
    } catch (error) {
      if (alternatives.length === 1 || !(error instanceof AbsentError)) throw error;
      refusals.push(error);
    }
  }
  const reasons = refusals.map(({ message }, n) => `${n + 1}: ${message}`).join('; ');
  throw refuse(`none of the ${refusals.length} alternatives of the mapping fits: ${reasons}`);
}

const readAs = (file: OpenFile, options: ParseOptions): Promise<FileRecord> => readDelimited(file, options);

async function readMeasured(file: OpenFile): Promise<FileRecord> {
  const { mapping, refusal } = await measureFile(file);
  if (refusal) throw refusal;
  try {
    return await readAs(file, withDefaults(mapping));
  } catch (error) {
    throw error instanceof FileError ? withMapping(error, mapping) : error;
  }
}

/** More lines tell nothing new about how a file is written. */
const MEASURED_LINES = 20_000;

export async function measureFile(file: OpenFile): Promise<Measured> {
  const texts = await firstLines(await openText(file, withDefaults({})), MEASURED_LINES);
  if (texts.every((text) => text.trim() === ''))
    throw file.refuse('the file is empty: it has only blank lines');
  const { refuse, pace, source } = file;
  // Of a file that is not in memory, the first lines are tried, and not the whole of it again and again.
  const sample = source.content instanceof Uint8Array ? source.content : Buffer.from(texts.join('\n'));
  const head: OpenFile = { ...file, source: { ...source, content: sample } };
  return measure({
    name: source.name,
    texts,
    refuse,
    pace,
    read: (mapping) => readAs(head, withDefaults(mapping)),
  });
}
