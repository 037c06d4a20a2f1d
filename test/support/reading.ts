import { type ParseMapping, withDefaults } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { measureFile } from '../../src/learn/formats.js';
import { parseRun } from '../../src/mapping/mapping.js';
import type { FileRecord, Value } from '../../src/model.js';
import { openFile, type Source } from '../../src/parse/source.js';

type Content = string | Source['content'];

/** Reads a text, bytes or a stream as a mapping says, or the first that fits; without one, as measuring suggests. */
export function read(
  content: Content,
  mapping?: ParseMapping | readonly ParseMapping[],
  path = 'runs/plate 7_scan.csv',
): Promise<FileRecord> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const options = mapping && [mapping].flat().map(withDefaults);
  return parseRun({ path, name: path.split('/').at(-1) ?? path, content: bytes }, options);
}

/** The refusal of a text that must not be read. */
export async function refusal(
  content: Content,
  mapping?: ParseMapping | readonly ParseMapping[],
): Promise<FileError> {
  const outcome = await read(content, mapping).catch((error: unknown) => error);
  if (outcome instanceof FileError) return outcome;
  throw new Error('expected a refusal', { cause: outcome });
}

/** Rows of a table as objects, with what the cells mean. */
export function rows(record: FileRecord, table = 0): Record<string, Value['value']>[] {
  const { columns = [], rows: cells = [] } = record.tables[table] ?? {};
  return cells.map((row) => Object.fromEntries(row.map(({ value }, n) => [columns[n]?.name ?? '', value])));
}

/** Columns of a table as `name [unit]`. */
export const columns = (record: FileRecord, table = 0): string[] =>
  record.tables[table]?.columns.map(({ name, unit }) => (unit === undefined ? name : `${name} [${unit}]`)) ??
  [];

export const meta = (record: FileRecord): Record<string, Value['value']> =>
  Object.fromEntries([...record.meta].map(([name, { value }]) => [name, value]));

/** What measuring a text suggests. */
export const measured = (text: string) => {
  const source = { path: 'x', name: 'x', content: Buffer.from(text) };
  return measureFile(openFile(source, withDefaults({})));
};
