import type { Random } from '../support/random.js';
import { some, type TrueColumn } from './generate.js';

/*
 * What trees in JSON and XML are generated from.
 */

/** A value in a tree: JSON as it is, XML with elements and attributes. */
export type Plain = string | number;
export type Tree = Plain | readonly Tree[] | { readonly [name: string]: Tree };

const COLUMNS: readonly (readonly [string, string, number])[] = [
  ['absorbance', 'AU', 3],
  ['current', 'mA', 20],
  ['potential', 'V', 2],
  ['pressure', 'kPa', 120],
  ['signal', 'mV', 500],
  ['mass', 'mg', 40],
];

export const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
export interface Style {
  readonly random: Random;
  readonly isXml: boolean;
  /** A name as the file writes it. */
  readonly named: (name: string) => string;
  readonly units: 'object' | 'beside' | 'none';
  /** The prefix of all names in XML, with its sign. */
  readonly prefix: string;
}

export const numberBelow = ({ next }: Random, max: number): number => Number((next() * max + 0.011).toFixed(3));

/** Columns of a table, each with its values. */
export function someColumns({ random, units }: Style, rows: number, hasUnits = units === 'object'): TrueColumn[] {
  return some(random, COLUMNS, 2 + random.below(3)).map(([name, unit, max]) => ({
    ...{ name, unit: hasUnits ? unit : undefined },
    values: range(rows).map(() => numberBelow(random, max)),
  }));
}

export interface Body {
  readonly name: string;
  readonly tree: Tree;
  readonly tables: readonly (readonly TrueColumn[])[];
  /** Whether the members of the tree are beside the facts. */
  readonly isOpen?: boolean;
}

export const wells = (count: number): string[] =>
  range(count).map((n) => `${'ABCDEFGH'[n % 8]}${1 + Math.floor(n / 8)}`);

export const cell = ({ isXml }: Style, value: Plain, unit: string | undefined): Tree =>
  unit === undefined ? value : isXml ? { '@unit': unit, '#': value } : { value, unit };

/** Some columns are in an object of the row. */
export function rowsOf(style: Style, columns: readonly TrueColumn[], depth: number, from = 0, to?: number): Tree[] {
  const { named } = style;
  const count = to ?? columns[0]?.values.length ?? 0;
  return range(count - from).map((n) => {
    const cells = columns.map(
      ({ name, unit, values }) => [named(name), cell(style, values[from + n] as Plain, unit)] as const,
    );
    const inner = depth === 0 ? [] : cells.slice(2);
    const own = Object.fromEntries(cells.slice(0, cells.length - inner.length));
    return inner.length === 0 ? own : { ...own, [named('result data')]: Object.fromEntries(inner) };
  });
}

export const nameAll = ({ named }: Style, columns: readonly TrueColumn[]): TrueColumn[] =>
  columns.map((each) => ({ ...each, name: named(each.name) }));

export const inElements = ({ isXml, named }: Style, rows: readonly Tree[], name: string): Tree =>
  isXml ? { [named(name)]: rows } : rows;
