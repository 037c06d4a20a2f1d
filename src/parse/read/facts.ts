import type { Where } from '../../config/grammar.js';
import type { Value } from '../../model.js';
import { nearest } from '../../text.js';
import type { Line } from '../lines.js';
import type { Refuse } from '../refuse.js';
import { cleanName, createUniqueNames } from '../table/names.js';
import { createDateReader, type DateOptions } from '../values/date.js';
import { isUnreadable, readTyped } from '../values/typed.js';
import { bareUnit, unitInBrackets } from '../values/unit.js';
import type { ValueReader } from '../values/value.js';

/** A name and a value that a finder found. */
export interface Pair {
  readonly name: string;
  readonly text: string;
  readonly unit?: string | undefined;
  readonly line: Line | undefined;
}

/** A fact: what the file says, where, and what it means. */
export interface Fact {
  readonly text: string;
  readonly line: Line | undefined;
  readonly value: Value;
}

export interface Facts {
  /** Under the names that the record will have. */
  readonly meta: Map<string, Value>;
  /** One thing that the mapping refers to: a fact by its name, or a place in the file. Refused where there is none. */
  require(name: string): Fact;
  /** The unit that the mapping gives to a fact or a column, or says where to find. */
  unitOf(spec: Where): string | undefined;
}

export interface FactsDeps {
  readonly pairs: readonly Pair[];
  readonly values: ValueReader;
  readonly dates: DateOptions;
  readonly refuse: Refuse;
  /** What stands at a place that is no name: a cell such as `=C3`, or a path. Undefined where it is none. */
  at(place: string): { readonly text: string; readonly line: Line | undefined } | undefined;
}

/** Reads what the finders found, gives each fact a name of its own, and picks those that the mapping names. */
export function createFacts(wanted: Readonly<Record<string, Where>>, deps: FactsDeps): Facts {
  const { values, refuse } = deps;
  const { meta, known } = nameFacts(deps);
  /** Under your names, which do not hide the file's own. */
  const picked = new Map<string, Value>();

  function require(name: string): Fact {
    const place = deps.at(name);
    if (place) return { ...place, value: values.read(place.text) };
    const fact = known.get(name) ?? known.get(cleanName(name));
    if (fact) return fact;
    const own = picked.get(name);
    if (own) return { text: own.text, line: undefined, value: own };
    const names = [...known.keys()];
    const near = nearest(name, names);
    const all =
      names.length === 0
        ? 'the file says nothing by a name'
        : `the file says: ${names.slice(0, 20).join(', ')}`;
    throw refuse(`there is no fact ${JSON.stringify(name)}`, {
      line: near === undefined ? undefined : known.get(near)?.line,
      hint: near === undefined ? all : `did you mean ${JSON.stringify(near)}?`,
      isAbsent: true,
    });
  }

  const facts: Facts = {
    meta,
    require,
    unitOf: ({ unit }) => (typeof unit === 'object' ? require(unit.from).text : unit),
  };
  for (const [name, spec] of Object.entries(wanted)) picked.set(name, pick(name, spec, facts, deps));
  for (const [name, value] of picked) meta.set(name, value);
  return facts;
}

function nameFacts({ pairs, values }: FactsDeps): { meta: Map<string, Value>; known: Map<string, Fact> } {
  const meta = new Map<string, Value>();
  const known = new Map<string, Fact>();
  const seen = new Set<string>();
  const unique = createUniqueNames();
  for (const { name, text, unit, line } of pairs) {
    // Two finders that read the same line found one fact, not two.
    const place = `${line?.sheet ?? 0} ${line?.number ?? 0} ${name}`;
    if (seen.has(place)) continue;
    seen.add(place);
    const read = values.read(text);
    const isBare = typeof read.value === 'number' && read.unit === undefined;
    const given = bareUnit(unit);
    const own = isBare && given === undefined ? unitInBrackets(name) : undefined;
    const ownUnit = given ?? own?.unit;
    const value = isBare && ownUnit !== undefined ? { ...read, unit: ownUnit } : read;
    const final = unique(own?.name ?? name);
    meta.set(final, value);
    for (const alias of [final, name]) if (!known.has(alias)) known.set(alias, { text, line, value });
  }
  return { meta, known };
}

function pick(name: string, spec: Where, facts: Facts, deps: FactsDeps): Value {
  const parts = (spec.from ?? [name]).map((part) => facts.require(String(part)));
  const [only] = parts;
  const fact = only && parts.length === 1 ? only : join(parts, deps.values);
  const value = readAs(fact, spec, deps);
  const unit = facts.unitOf(spec);
  return unit === undefined || typeof value.value !== 'number' ? value : { ...value, unit };
}

function join(parts: readonly Fact[], values: ValueReader): Fact {
  const texts = parts.map(({ text }) => text).filter((text) => text !== '');
  const text = texts.join(' ');
  return { text, line: parts[0]?.line, value: values.read(text) };
}

/** As the mapping types it, else as it was read by its looks. */
function readAs({ text, line, value }: Fact, spec: Where, { values, dates, refuse }: FactsDeps): Value {
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  if (type === undefined) return value;
  const reader = spec.format ? createDateReader({ ...dates, format: spec.format }) : values.dates;
  const read = readTyped(text, type, values, reader);
  if (isUnreadable(read)) throw refuse(read.problem, { line, hint: read.hint });
  return read;
}
