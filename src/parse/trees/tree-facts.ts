import { cellReference, type Where } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { Value } from '../../model.js';
import { nearest } from '../../text.js';
import type { Refuse } from '../refuse.js';
import { cleanName, createUniqueNames } from '../table/names.js';
import { createDateReader, type DateOptions, withKnownZone } from '../values/date.js';
import { isUnreadable, readTyped } from '../values/typed.js';
import { unitInBrackets } from '../values/unit.js';
import type { ValueReader } from '../values/value.js';
import { zoneNamed } from '../values/zones.js';
import type { Found, Tree } from './tree.js';

/** A fact that the file says by a name, or that its own name says. */
export interface NamedFact {
  readonly name: string;
  readonly text: string;
  readonly unit?: string | undefined;
  /** Of the file, where it stands in one. */
  readonly line?: number | undefined;
}

/** Where facts are looked for. */
export interface FactSources {
  /** What finders found, or labels. */
  readonly named: readonly NamedFact[];
  readonly tree: Tree | undefined;
  /** The text of a cell such as `=C3`, where the file has lines. */
  readonly cell: ((written: string) => string | undefined) | undefined;
  readonly refuse: Refuse;
}

/** Whatever a mapping refers to: a path, a cell, or a fact by its name. What is not there is refused. */
export function requireFound(written: string | number, sources: FactSources): Found {
  const { tree, named, refuse } = sources;
  const name = String(written);
  if (cellReference(name)) return cellAt(name, sources);
  const known = name.startsWith('/') ? undefined : named.find((fact) => isCalled(fact, name));
  if (known) return { text: known.text, unit: known.unit, line: known.line ?? 0 };
  const found = tree?.lookup(written)();
  if (found) return found;
  const names = named.map((fact) => fact.name);
  const { message, hint, line } = tree?.deadEnd(written) ?? noSuchFact(name, names);
  throw refuse(message, { hint, at: line === undefined ? undefined : { line }, isAbsent: true });
}

const isCalled = (fact: NamedFact, name: string): boolean =>
  fact.name === name || fact.name === cleanName(name) || unitInBrackets(fact.name)?.name === name;

function noSuchFact(
  name: string,
  names: readonly string[],
): { message: string; hint: string; line?: number } {
  const near = nearest(name, names);
  return {
    message: `there is no fact ${JSON.stringify(name)}`,
    hint:
      near === undefined
        ? `the file says: ${names.slice(0, 20).join(', ')}`
        : `did you mean ${JSON.stringify(near)}?`,
  };
}

function cellAt(written: string, { cell, refuse }: FactSources): Found {
  const text = cell?.(written);
  if (text === undefined) throw refuse(`there is no cell ${written}`);
  return { text, unit: undefined, line: cellReference(written)?.line ?? 0 };
}

/** The zone may be a fact of the file itself, and every date waits for it. */
export function knownDates({ dates }: ParseOptions, sources: FactSources): DateOptions {
  if (typeof dates.zone !== 'object') return withKnownZone(dates);
  const { text, line } = requireFound(dates.zone.from, sources);
  const zone = zoneNamed(text);
  if (zone !== undefined) return { ...withKnownZone(dates), zone };
  throw sources.refuse(`this is no time zone: ${JSON.stringify(text)}`, {
    at: { line },
    hint: 'give the zone itself: `dates: { zone: Europe/Zurich }`',
  });
}

/** Everything that the record will say of the file: what has a name in it, then what the mapping names. */
export function readFacts(
  wanted: Readonly<Record<string, Where>>,
  sources: FactSources,
  values: ValueReader,
  dates: DateOptions,
): Map<string, Value> {
  const meta = new Map<string, Value>();
  const unique = createUniqueNames();
  for (const { name, text, unit } of sources.named) {
    const value = values.read(text);
    const isBare = typeof value.value === 'number' && value.unit === undefined;
    const own = isBare && unit === undefined ? unitInBrackets(name) : undefined;
    meta.set(unique(own?.name ?? name), isBare ? withUnit(value, unit ?? own?.unit) : value);
  }
  for (const [name, spec] of Object.entries(wanted)) {
    const found = (spec.from ?? [name]).map((part) => requireFound(part, sources));
    meta.set(name, readFact(found, spec, sources, values, dates));
  }
  return meta;
}

function readFact(
  found: readonly Found[],
  spec: Where,
  sources: FactSources,
  values: ValueReader,
  dates: DateOptions,
): Value {
  const texts = found.map(({ text }) => text.trim()).filter((text) => text !== '');
  const text = texts.join(' ');
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  const reader = spec.format ? createDateReader({ ...dates, format: spec.format }) : values.dates;
  const read = type === undefined ? values.read(text) : readTyped(text, type, values, reader);
  if (isUnreadable(read)) {
    throw sources.refuse(read.problem, { hint: read.hint, at: { line: found[0]?.line ?? 1 } });
  }
  const unit = typeof spec.unit === 'object' ? requireFound(spec.unit.from, sources).text : spec.unit;
  return withUnit(read, unit ?? (found.length === 1 ? found[0]?.unit : undefined));
}

/** Only numbers have units. */
const withUnit = (value: Value, unit: string | undefined): Value =>
  unit === undefined || unit === '' || typeof value.value !== 'number' ? value : { ...value, unit };
