import { type ParseMapping, type ParseOptions, withDefaults } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { FORMATS, type FormatReader } from './formats/formats.js';
import type { OpenFile } from './formats/open-file.js';
import { HEAD_BYTES, recognise } from './formats/recognise.js';
import { join } from './join.js';
import { withMapping } from './measure/measure.js';
import type { Measured } from './measure/measured.js';
import { createPace } from './pace.js';
import { mainOf, otherOf } from './parts.js';
import { AbsentError, createRefuse, type Refuse } from './refuse.js';
import { requireWhen } from './require-when.js';
import { headOf, type Source } from './source.js';

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
  if (!alternatives) {
    const options = withDefaults({});
    return readMeasured(openFile(mainOf(source, options, refuse), options, signal));
  }
  return readFirstFitting(source, alternatives, refuse, signal);
}

/** Looks at a sample file and says how it is to be read, and what it leaves open. */
export async function learn(source: Source, signal?: AbortSignal): Promise<Measured> {
  signal?.throwIfAborted();
  return measureFile(openFile(source, withDefaults({}), signal));
}

function openFile(source: Source, { limits }: ParseOptions, signal: AbortSignal | undefined): OpenFile {
  const refuse = createRefuse(source.path);
  return { source, refuse, pace: createPace({ maxMs: limits.maxMs, signal, refuse }), signal };
}

/** The first of several mappings whose patterns are all found in the file. */
async function readFirstFitting(
  source: Source,
  alternatives: readonly ParseOptions[],
  refuse: Refuse,
  signal: AbortSignal | undefined,
): Promise<FileRecord> {
  const refusals: FileError[] = [];
  for (const [n, options] of alternatives.entries()) {
    try {
      return await readAll(source, options, { refuse, signal, isAlternative: n + 1 < alternatives.length });
    } catch (error) {
      if (alternatives.length === 1 || !(error instanceof AbsentError)) throw error;
      refusals.push(error);
    }
  }
  const reasons = refusals.map(({ message }, n) => `${n + 1}: ${message}`).join('; ');
  throw refuse(`none of the ${refusals.length} alternatives of the mapping fits: ${reasons}`);
}

/** The main file, and what `also` names beside it. */
async function readAll(
  source: Source,
  options: ParseOptions,
  {
    refuse,
    signal,
    isAlternative,
  }: { refuse: Refuse; signal: AbortSignal | undefined; isAlternative: boolean },
): Promise<FileRecord> {
  const main = mainOf(source, options, refuse);
  const record = await readAs({ ...openFile(main, options, signal), isAlternative }, options);
  const others: FileRecord[] = [];
  for (const [name, readings] of Object.entries(options.also ?? {})) {
    others.push(await parse(otherOf(source, main, name, refuse), readings, signal));
  }
  return join(record, others);
}

async function readAs(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const format = await formatOf(file, options);
  await requireWhen(file, options, format);
  const record = await format.read(file, options);
  return { ...record, dates: options.dates };
}

async function formatOf(
  { source, refuse }: OpenFile,
  { format, limits }: ParseOptions,
): Promise<FormatReader> {
  if (format !== 'auto') return FORMATS[format];
  const most = limits.maxBytes ?? Number.POSITIVE_INFINITY;
  const recognised = recognise(await headOf(source, HEAD_BYTES, most, refuse), source.name);
  if ('format' in recognised) return FORMATS[recognised.format];
  throw refuse(`the file is not text: it is ${recognised.unreadable}`, {
    hint: 'to file it without reading it: `parse: { format: none }`',
    isAbsent: true,
  });
}

async function readMeasured(file: OpenFile): Promise<FileRecord> {
  const { mapping, refusal } = await measureFile(file);
  if (refusal) throw refusal;
  try {
    return await readAs(file, withDefaults(mapping));
  } catch (error) {
    throw error instanceof FileError ? withMapping(error, mapping) : error;
  }
}

async function measureFile(file: OpenFile): Promise<Measured> {
  const options = withDefaults({});
  const format = await formatOf(file, options);
  return format.measure(file, options, (mapping: ParseMapping) => readAs(file, withDefaults(mapping)));
}
