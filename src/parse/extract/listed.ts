import { regexSource } from '../../config/grammar.js';
import type { Line } from '../lines.js';
import { groupNames, type LinePattern } from './context.js';

/**
 * Column names that are not in a row: `# name 0 = Depth [m]`, one in each line, or `# Labels: energy rate`. The pattern of
 * `header` has a group `name` or `names` then, and `unit` if the unit of a name stands apart from it.
 */

export interface Listing {
  readonly names: readonly string[];
  /** Empty if no name has one. */
  readonly units: readonly string[];
}

export const NO_NAMES: Listing = { names: [], units: [] };

/** The names up to a line, of those before it. Undefined if the line has none. */
type Listed = (line: Line, before: Listing) => Listing | undefined;

/** Undefined if the header is a row. A name that repeats is the first of another list. */
export function compileListed(header: readonly LinePattern[]): Listed | undefined {
  const listed = header.filter((written) => groupNames([written]).some((name) => name === 'name' || name === 'names'));
  if (listed.length === 0) return undefined;
  const patterns = listed.map((written) => new RegExp(regexSource(String(written)) ?? ''));
  return ({ text }, before) => {
    const groups = patterns.map((pattern) => pattern.exec(text)?.groups).find((found) => found) ?? {};
    const { name, names, unit } = groups;
    if (name === undefined) return names === undefined ? undefined : { names: splitNames(names), units: [] };
    const own = name.replace(WITH_VALUE, '').trim();
    const known = before.names.includes(own) ? NO_NAMES : before;
    return { names: [...known.names, own], units: unit === undefined ? [] : [...known.units, unit] };
  };
}

/** `flag:  0.000e+00` */
const WITH_VALUE = /:\s+[-+]?[\d.]+(?:[eE][-+]?\d+)?\s*$/;

/** At commas, semicolons, tabs or wide gaps, or else at blanks. */
export function splitNames(text: string): string[] {
  const names = text.trim().split(/\s*[,;\t|]\s*| {2,}/);
  return names.length > 1 ? names : text.trim().split(/\s+/);
}

/** Stands for the rows that lists of names and units are. No line has this text. */
export const listedRow = (line: Line, cells: readonly string[]): Line => ({ ...line, text: '\u0000', cells });
