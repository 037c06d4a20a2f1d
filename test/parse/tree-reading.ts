import { type CellReference, cellReference } from '../../src/config/grammar.js';
import { type ParseMapping, type ParseOptions, withDefaults } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import type { FileRecord } from '../../src/model.js';
import { readLabelled, readTree, type TreeFile } from '../../src/parse/extract/tree-facts.js';
import { readJson, readXml } from '../../src/parse/formats/documents.js';
import { readJcamp } from '../../src/parse/formats/jcamp.js';
import { readRecords } from '../../src/parse/formats/records.js';
import { createRefuse, createTimeSlice } from '../../src/parse/lines.js';
import type { WholeFile } from '../../src/parse/source.js';

export type TreeFormat = 'json' | 'xml' | 'records' | 'jcamp';

export function wholeFile(content: string | Uint8Array, path = 'runs/plate 7.txt'): WholeFile {
  const refuse = createRefuse(path);
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { bytes, refuse, slice: createTimeSlice({ maxMs: 60_000, refuse }) };
}

/** Reads a file of a format that is no table, as a mapping says. */
export async function readAs(
  format: TreeFormat,
  content: string | Uint8Array,
  mapping: ParseMapping,
  named: TreeFile['named'] = [],
): Promise<FileRecord> {
  const options = withDefaults(mapping);
  const file = wholeFile(content);
  return readFormat(format, file, options, { refuse: file.refuse, slice: file.slice, named });
}

async function readFormat(
  format: TreeFormat,
  whole: WholeFile,
  options: ParseOptions,
  file: TreeFile,
): Promise<FileRecord> {
  switch (format) {
    case 'json':
      return readTree(await readJson(whole, options), file, options);
    case 'xml':
      return readTree(await readXml(whole, options), file, options);
    case 'jcamp':
      return readLabelled(await readJcamp(whole, options), file, options);
    case 'records': {
      const { tree, lines } = await readRecords(whole, options);
      const textAt = ({ line, cell }: CellReference) => lines[line - 1]?.cells[cell - 1];
      const cell = (written: string) => textAt(cellReference(written) ?? { sheet: '', line: 0, cell: 0 });
      return readTree(tree, { ...file, cell }, options);
    }
  }
}

/** The refusal of a file that must not be read. */
export async function refusalAs(
  format: TreeFormat,
  content: string | Uint8Array,
  mapping: ParseMapping,
): Promise<FileError> {
  const outcome = await readAs(format, content, mapping).catch((error: unknown) => error);
  if (outcome instanceof FileError) return outcome;
  throw new Error('expected a refusal', { cause: outcome });
}

/** Reads whatever it is; anything but a record or a refusal is a failure. */
export async function readOrRefuse(reading: Promise<unknown>): Promise<void> {
  await reading.catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
  });
}
