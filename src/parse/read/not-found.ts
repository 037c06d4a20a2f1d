import { regexSource } from '../../config/grammar.js';
import type { FileError } from '../../errors.js';
import { nearest } from '../../text.js';
import type { Line } from '../lines.js';
import type { Context } from './context.js';

/** How many of the first lines are kept for this. */
export const FIRST_LINES = 2000;

/** What to say where no line is the one that the mapping means by `key`: the nearest is named. */
export function lineNotFound(
  key: string,
  written: readonly (string | number)[],
  { first, refuse }: Pick<Context, 'first' | 'refuse'>,
): FileError {
  const near = nearestStart(written, first);
  return refuse(`no line fits \`${key}: ${written.join(' or ')}\``, {
    ...near,
    isAbsent: true,
    hint: near
      ? `did you mean \`${key}: ${JSON.stringify(near.start)}\`?`
      : `correct \`${key}\` in the mapping`,
  });
}

/** About so many characters, to the end of a word. */
const startOf = (text: string, length: number): string =>
  text.slice(0, length) + (/^[\p{L}\p{N}]*/u.exec(text.slice(length, length + 20))?.[0] ?? '');

/** A line that begins nearly like one of these texts. */
function nearestStart(
  written: readonly (string | number)[],
  lines: readonly Line[],
): { line: Line; start: string } | undefined {
  for (const wanted of written) {
    if (typeof wanted === 'number' || regexSource(wanted) !== undefined) continue;
    const starts = lines.map(({ text }) => startOf(text.trim(), wanted.length));
    const start = nearest(wanted.slice(0, 80), new Set(starts.filter((text) => text !== '')));
    const line = start === undefined ? undefined : lines[starts.indexOf(start)];
    if (start !== undefined && line) return { line, start };
  }
  return undefined;
}
