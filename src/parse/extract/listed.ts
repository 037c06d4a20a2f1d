import { regexSource } from '../../config/grammar.js';
import type { Line } from '../lines.js';
import { groupNames, type LinePattern } from './context.js';

/**
 * Column names that are not in a row: `# name 0 = Depth [m]`, one in each line, or `# Labels: energy rate`. The pattern of
 * `header` has a group `name` or `names` then.
 */

/** The names up to a line, of those before it. Undefined if the line has none. */
type Listed = (line: Line, before: readonly string[]) => readonly string[] | undefined;

/** Undefined if the header is a row. A name that repeats is the first of another list. */
export function compileListed(header: readonly LinePattern[]): Listed | undefined {
  const listed = header.filter((written) => groupNames([written]).some((name) => name === 'name' || name === 'names'));
  if (listed.length === 0) return undefined;
  const patterns = listed.map((written) => new RegExp(regexSource(String(written)) ?? ''));
  return ({ text }, before) => {
    const { name, names } = patterns.map((pattern) => pattern.exec(text)?.groups).find((groups) => groups) ?? {};
    if (name === undefined) return names === undefined ? undefined : splitNames(names);
    const own = name.replace(WITH_VALUE, '').trim();
    return before.includes(own) ? [own] : [...before, own];
  };
}

/** `flag:  0.000e+00` */
const WITH_VALUE = /:\s+[-+]?[\d.]+(?:[eE][-+]?\d+)?\s*$/;

/** At commas, semicolons, tabs or wide gaps, or else at blanks. */
export function splitNames(text: string): string[] {
  const names = text.trim().split(/\s*[,;\t|]\s*| {2,}/);
  return names.length > 1 ? names : text.trim().split(/\s+/);
}

/** Stands for the row that a list of names is. No line has this text. */
export const listedRow = (line: Line, names: readonly string[]): Line => ({
  ...line,
  text: '\u0000',
  cells: [...names],
});
