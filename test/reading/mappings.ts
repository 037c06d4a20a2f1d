import { createHash } from 'node:crypto';
import { parse } from 'yaml';
import type { Instrument } from '../../src/config/load.js';
import { FileError } from '../../src/errors.js';
import { learn, toInstrument, toYaml } from '../../src/learn/learn.js';
import { checkMapping } from '../../src/map/draft.js';
import { createMapping, tryQuarantined } from '../../src/mapping/mapping.js';
import type { FileRecord, IdentifiedFile, Value } from '../../src/model.js';
import { type Random, seeded } from '../support/random.js';
import type { Generated } from './generate.js';

/** After all dates in the files. */
const NOW = Date.UTC(2026, 0, 2);

function toFile(bytes: Buffer, extension: string): IdentifiedFile {
  const path = `/data/run.${extension}`;
  return {
    ...{ path, location: path, size: bytes.length, mtimeNs: BigInt(NOW) * 1_000_000n, inode: 0n },
    ...{ sha256: createHash('sha256').update(bytes).digest('hex'), content: bytes },
  };
}

const unmapped = createMapping(toInstrument('instrument', { watch: '/data' }));

const refusalOf = (error: unknown): FileError => {
  if (error instanceof FileError) return error;
  throw error;
};

/** The instrument as a configuration with what `learn` prints would have it; undefined if the file is refused. */
async function learnFrom(file: IdentifiedFile): Promise<Instrument | undefined> {
  const learned = await learn([file], NOW).catch(refusalOf);
  if (learned instanceof FileError) return undefined;
  const { instruments } = parse(await toYaml(learned, [file.path])) as { instruments: Record<string, object> };
  const [[name, written] = ['', {}]] = Object.entries(instruments);
  return toInstrument(name, written);
}

const tablesIn = ({ tables }: FileRecord): string =>
  JSON.stringify(tables.map(({ name, columns, rows }) => [name, columns, rows]));

/** Without the date of the run, which a mapping can also have as a template. */
const factsIn = ({ meta }: FileRecord): [string, Value][] => [...meta].filter(([name]) => name !== 'date').toSorted();

/** What is wrong with the mapping that `learn` prints for a file: a complaint about it, or another reading. */
export async function findMappingProblem({ bytes, extension }: Generated): Promise<string | undefined> {
  const file = toFile(bytes, extension);
  const instrument = await learnFrom(file);
  if (!instrument) return undefined;
  const [complaint] = checkMapping(instrument);
  if (complaint) return `check says: ${complaint.message}`;
  const trial = await tryQuarantined(instrument, file, NOW).catch(refusalOf);
  if (trial instanceof FileError) return `try says: ${trial.message}`;
  const measured = await unmapped.parse(file).catch(refusalOf);
  if (measured instanceof FileError) return undefined;
  if (tablesIn(measured) !== tablesIn(trial.record)) return 'the mapping reads other tables';
  return JSON.stringify(factsIn(measured)) === JSON.stringify(factsIn(trial.record))
    ? undefined
    : 'the mapping reads other facts';
}

/** Grammars whose facts cannot be added or removed alone, or whose last line looks like a row. */
export const TOGETHER: readonly string[] = [
  'beside',
  'names above values',
  'pairs in one line',
  'legends',
  'typed lines',
];

/** What is wrong when the mapping learned from a file reads the next one, with other facts and more rows. */
export async function findNextProblem(generated: Generated, seed: number): Promise<string | undefined> {
  const file = toFile(Buffer.from(generated.text), generated.extension);
  const instrument = await learnFrom(file);
  const next = writeNext(generated, JSON.stringify(instrument?.parse ?? ''), seeded(seed));
  if (!instrument || !next) return undefined;
  const mapping = createMapping(instrument);
  const before = await mapping.parse(file);
  const after = await mapping.parse(toFile(Buffer.from(next.text), generated.extension)).catch(refusalOf);
  if (after instanceof FileError) return `the next file is refused: ${after.message}`;
  for (const [name, value] of before.meta) {
    if (next.removed !== undefined && name.startsWith(next.removed)) continue;
    if (JSON.stringify(after.meta.get(name)) !== JSON.stringify(value)) return `the fact ${name} is lost`;
  }
  const rows = ({ tables }: FileRecord) => tables.map((table) => JSON.stringify(table.rows).slice(0, -1));
  const [was, is] = [rows(before), rows(after)];
  if (!was.every((text, n) => is[n]?.startsWith(text))) return 'a table is read in another way';
  const count = ({ tables }: FileRecord) => tables.reduce((sum, table) => sum + table.rows.length, 0);
  // A table of two columns may be read as facts.
  return before.tables.length === 0 || count(after) === count(before) + next.rows
    ? undefined
    : 'the new rows are not read';
}

/** The file with one fact more, one less, and more rows at the end. Undefined if it has too few facts. */
function writeNext({ text, facts, tables }: Generated, mapping: string, random: Random) {
  const lines = text.split('\n');
  const placed = facts.flatMap((fact) => {
    const at = lines.findIndex((line) => line.includes(fact.name) && line.includes(fact.text));
    return at < 0 ? [] : [{ ...fact, at }];
  });
  const [model] = placed;
  if (!model || placed.length < 3) return undefined;
  const added = (lines[model.at] ?? '').replace(model.text, 'other').replace(model.name, 'Extra note');
  const free = placed.filter(({ name }) => !mapping.includes(name));
  const removed = free[random.below(Math.max(1, free.length))];
  // The last line of the file is a row if nothing follows the last table.
  const last = lines.at(-2) ?? '';
  const isRow = tables.length === 1 && /\d/.test(last) && (tables[0]?.[0]?.name ?? 'well') !== 'well';
  const where = placed[random.below(placed.length)]?.at ?? 0;
  const changed = lines.flatMap((line, n) => [
    ...(n === where ? [added] : []),
    ...(n === removed?.at ? [] : [line]),
    ...(isRow && n === lines.length - 2 ? [line, line] : []),
  ]);
  return { text: changed.join('\n'), removed: removed?.name, rows: isRow ? 2 : 0 };
}
