import { type Format, type ParseMapping, withDefaults } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { measureFile } from '../../src/learn/formats.js';
import { parseRun } from '../../src/mapping/mapping.js';
import type { FileRecord, Value } from '../../src/model.js';
import { type OpenFile, openFile, type Source } from '../../src/parse/source.js';

type Content = string | Source['content'];

/** Reads a text, bytes or a stream by the first mapping that matches; without one, as measured. */
export function read(
  content: Content,
  mapping?: ParseMapping | readonly ParseMapping[],
  path = 'runs/plate 7_scan.csv',
): Promise<FileRecord> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const options = mapping && [mapping].flat().map(withDefaults);
  return parseRun({ path, name: path.split('/').at(-1) ?? path, content: bytes }, options);
}

/** The refusal of a file that must not be read. */
export async function refusal(content: Content, mapping?: ParseMapping | readonly ParseMapping[]): Promise<FileError> {
  const outcome = await read(content, mapping).catch((error: unknown) => error);
  if (outcome instanceof FileError) return outcome;
  throw new Error('expected a refusal', { cause: outcome });
}

/** Reads a file of a given format. */
export const readAs = (
  format: Format,
  content: Content,
  mapping: ParseMapping = {},
  path = 'runs/plate 7.txt',
): Promise<FileRecord> => read(content, { ...mapping, format }, path);

export const refusalAs = (format: Format, content: Content, mapping: ParseMapping = {}): Promise<FileError> =>
  refusal(content, { ...mapping, format });

/** Fails with any error that is not a refusal. */
export async function readOrRefuse(reading: Promise<unknown>): Promise<void> {
  await reading.catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
  });
}

/** A file for a format reader. */
export const opened = (content: string | Uint8Array, path = 'runs/plate 7.txt'): OpenFile =>
  openFile({ path, name: path.split('/').at(-1) ?? path, content: Buffer.from(content) }, withDefaults({}));

/** Rows of a table as objects. */
export function rows(record: FileRecord, table = 0): Record<string, Value['value']>[] {
  const { columns = [], rows: cells = [] } = record.tables[table] ?? {};
  return cells.map((row) => Object.fromEntries(row.map(({ value }, n) => [columns[n]?.name ?? '', value])));
}

/** Columns of a table as `name [unit]`. */
export const columns = (record: FileRecord, table = 0): string[] =>
  record.tables[table]?.columns.map(({ name, unit }) => (unit === undefined ? name : `${name} [${unit}]`)) ?? [];

export const meta = (record: FileRecord): Record<string, Value['value']> =>
  Object.fromEntries([...record.meta].map(([name, { value }]) => [name, value]));

/** The mapping that measuring a text suggests. */
export const measured = (text: string | Uint8Array) => measureFile(opened(text, 'x'));
