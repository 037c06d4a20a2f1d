import { cellReference, type Where } from '../../config/grammar.js';
import type { Value } from '../../model.js';
import { nearest } from '../../nearest.js';
import type { Line } from '../lines.js';
import { createDateReader, type DateOptions } from '../values/date.js';
import { isUnreadable, readTyped } from '../values/typed.js';
import { bareUnit, unitInBrackets } from '../values/unit.js';
import type { ValueReader } from '../values/value.js';
import type { Context } from './context.js';
import type { Pair } from './meta.js';
import { cleanName, createUniqueNames } from './names.js';

/** A fact: what the file says, where, and what it means. */
export interface Fact {
  readonly text: string;
  readonly line: Line | undefined;
  readonly value: Value;
}

export interface Facts {
  /** Under the names that the record will have. */
  readonly meta: Map<string, Value>;
  /** Under all names by which a mapping may call them: also with the unit that stood in the name. */
  readonly known: ReadonlyMap<string, Fact>;
  readonly values: ValueReader;
  readonly dates: DateOptions;
}

/** Reads what the finders found, and gives each fact a name of its own. */
export function nameFacts(pairs: readonly Pair[], values: ValueReader, dates: DateOptions): Facts {
  const meta = new Map<string, Value>();
  const facts = new Map<string, Fact>();
  const seen = new Set<string>();
  const unique = createUniqueNames();
  for (const { name, text, unit, line } of pairs) {
    // Two finders that read the same line found one fact, not two.
    const place = `${line?.number ?? 0} ${name}`;
    if (seen.has(place)) continue;
    seen.add(place);
    const read = values.read(text);
    const isBare = typeof read.value === 'number' && read.unit === undefined;
    const given = bareUnit(unit);
    const own = isBare && given === undefined ? unitInBrackets(name) : undefined;
    const known = given ?? own?.unit;
    const value = isBare && known !== undefined ? { ...read, unit: known } : read;
    const final = unique(own?.name ?? name);
    meta.set(final, value);
    for (const alias of [final, name]) if (!facts.has(alias)) facts.set(alias, { text, line, value });
  }
  return { meta, known: facts, values, dates };
}

/** Picks the facts that the mapping names from all that the file says. */
export function pickFacts(
  wanted: Readonly<Record<string, Where>>,
  facts: Facts,
  context: Context,
): Map<string, Value> {
  const picked = new Map<string, Value>();
  for (const [name, spec] of Object.entries(wanted)) {
    const parts = (spec.from ?? [name]).map((part) => requireFact(String(part), facts, context));
    const [only] = parts;
    const fact = only && parts.length === 1 ? only : join(parts, facts.values);
    const value = readAs(fact, spec, facts, context);
    const unit = unitOf(spec, facts, context);
    picked.set(name, unit === undefined || typeof value.value !== 'number' ? value : { ...value, unit });
  }
  return picked;
}

function join(parts: readonly Fact[], values: ValueReader): Fact {
  const texts = parts.map(({ text }) => text).filter((text) => text !== '');
  const text = texts.join(' ');
  return { text, line: parts[0]?.line, value: values.read(text) };
}

/** As the mapping types it, else as it was read by its looks. */
function readAs(
  { text, line, value }: Fact,
  spec: Where,
  { values, dates }: Facts,
  { refuse }: Context,
): Value {
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  if (type === undefined) return value;
  const reader = spec.format ? createDateReader({ ...dates, format: spec.format }) : values.dates;
  const read = readTyped(text, type, values, reader);
  if (isUnreadable(read)) throw refuse(read.problem, { line, hint: read.hint });
  return read;
}

/** One thing that the mapping refers to: a fact by its name, or a cell. */
export function requireFact(name: string, { known, values }: Facts, context: Context): Fact {
  const reference = cellReference(name);
  if (reference) {
    const text = cellAt(name, context);
    return { text, line: context.lines[reference.line - 1], value: values.read(text) };
  }
  const fact = known.get(name) ?? known.get(cleanName(name));
  if (fact) return fact;
  const names = [...known.keys()];
  const near = nearest(name, names);
  const all =
    names.length === 0
      ? 'the file says nothing by a name'
      : `the file says: ${names.slice(0, 20).join(', ')}`;
  throw context.refuse(`there is no fact ${JSON.stringify(name)}`, {
    line: near === undefined ? undefined : known.get(near)?.line,
    hint: near === undefined ? all : `did you mean ${JSON.stringify(near)}?`,
  });
}

/** The text of a cell, `=C3`. As in a spreadsheet, a quoted cell with line breaks stands in one line. */
export function cellAt(written: string, { lines, refuse }: Context): string {
  const { line, cell } = cellReference(written) ?? { line: 0, cell: 0 };
  const text = lines[line - 1]?.cells[cell - 1];
  if (text === undefined) throw refuse(`there is no cell ${written}`, { line: lines[line - 1] });
  return text;
}

/** The unit that the mapping gives to a fact or a column, or says where to find. */
export function unitOf({ unit }: Where, facts: Facts, context: Context): string | undefined {
  return typeof unit === 'object' ? requireFact(unit.from, facts, context).text : unit;
}
