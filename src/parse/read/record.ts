import { cellReference } from '../../config/grammar.js';
import type { FileRecord, Table } from '../../model.js';
import { createDateReader, type DateOptions, isZone, withKnownZone } from '../values/date.js';
import { createNumberReader } from '../values/number.js';
import { createValueReader } from '../values/value.js';
import type { Context } from './context.js';
import { cellAt, nameFacts, pickFacts } from './facts.js';
import { type Claims, type LocatedTable, locate } from './locate.js';
import { findPairs, type Pair } from './meta.js';
import { readTable } from './table.js';

/** Reads a file that was cut into lines: tables claim theirs, `meta` reads the others, `facts` picks from all. */
export async function readRecord(context: Context): Promise<FileRecord> {
  const { options, lines, refuse } = context;
  const claims: Claims = new Uint8Array(lines.length);
  const located: LocatedTable[] = [];
  for (const [name, table] of Object.entries(options.tables)) {
    located.push(await locate(name, table, context, claims));
  }
  refuseTooManyRows(located, context);

  const pairs: Pair[] = [];
  for (const finder of options.meta) {
    for (const pair of await findPairs(finder, context, claims)) pairs.push(pair);
  }
  const dates = knownDates(pairs, context);
  const numbers = createNumberReader(options);
  const values = createValueReader({ numbers, dates: createDateReader(dates), missing: options.missing });
  const facts = nameFacts(pairs, values, dates);
  for (const [name, value] of pickFacts(options.facts, facts, context)) facts.meta.set(name, value);

  const tables: Table[] = [];
  for (const table of located) tables.push(await readTable(table, facts, claims, context));
  if (facts.meta.size === 0 && tables.every(({ rows }) => rows.length === 0)) {
    throw refuse('the mapping finds no fact and no row', {
      hint: 'if the file is one plain table: `table: {}`',
    });
  }
  return { meta: facts.meta, tables };
}

function refuseTooManyRows(located: readonly LocatedTable[], { options, refuse }: Context): void {
  const blocks = located.flatMap((table) => table.blocks);
  const rows = blocks.reduce((sum, block) => sum + block.rows.length, 0);
  if (rows <= options.limits.maxRows) return;
  throw refuse(`the tables have ${rows} rows, more than are read`, {
    hint: `if such files are to be read, allow more: \`limits: { rows: ${rows} }\``,
  });
}

/** The zone may be a fact of the file itself, and every date waits for it. */
function knownDates(pairs: readonly Pair[], context: Context): DateOptions {
  const { dates } = context.options;
  const known = withKnownZone(dates);
  if (typeof dates.zone !== 'object') return known;
  const { from } = dates.zone;
  const pair = pairs.find(({ name }) => name === from);
  const zone = cellReference(from) ? cellAt(from, context) : pair?.text;
  if (zone !== undefined && isZone(zone)) return { ...known, zone };
  throw context.refuse(
    `${zone === undefined ? 'there is no fact' : 'this is no time zone:'} ${JSON.stringify(zone ?? from)}`,
    {
      line: pair?.line,
      hint: 'give the zone itself: `dates: { zone: Europe/Zurich }`',
    },
  );
}
