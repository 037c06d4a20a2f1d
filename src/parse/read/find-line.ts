import { regexSource } from '../../config/grammar.js';
import { nearest } from '../../nearest.js';
import { compileLine, type LineMatcher } from '../grammar/line.js';
import type { Line } from '../lines.js';
import type { Context } from './context.js';

/** Where the first line is that fits, from `from` to before `to`; -1 where none does. */
export function indexOfLine(
  lines: readonly Line[],
  matches: LineMatcher,
  from: number,
  to = lines.length,
): number {
  for (let index = from; index < to; index++) {
    const line = lines[index];
    if (line && matches(line)) return index;
  }
  return -1;
}

/** The first line that the mapping means by `key`; where there is none the file is refused, naming the nearest. */
export function requireLine(
  key: string,
  written: readonly (string | number)[],
  context: Context,
  from = 0,
  to = context.lines.length,
): number {
  const index = indexOfLine(context.lines, compileLine(written, context.lines), from, to);
  if (index >= 0) return index;
  const near = nearestStart(written, context.lines.slice(from, to));
  throw context.refuse(`no line fits \`${key}: ${written.join(' or ')}\``, {
    ...near,
    hint: near
      ? `did you mean \`${key}: ${JSON.stringify(near.start)}\`?`
      : `correct \`${key}\` in the mapping`,
  });
}

/** About so many characters, to the end of a word. */
const startOf = (text: string, length: number): string =>
  text.slice(0, length) + (/^[\p{L}\p{N}]*/u.exec(text.slice(length, length + 20))?.[0] ?? '');

/** A line that begins nearly like one of these texts. Only the first lines are looked at: this is a courtesy. */
function nearestStart(
  written: readonly (string | number)[],
  lines: readonly Line[],
): { line: Line; start: string } | undefined {
  const known = lines.slice(0, 2000);
  for (const wanted of written) {
    if (typeof wanted === 'number' || regexSource(wanted) !== undefined) continue;
    const starts = known.map(({ text }) => startOf(text.trim(), wanted.length));
    const start = nearest(wanted.slice(0, 80), new Set(starts.filter((text) => text !== '')));
    const line = start === undefined ? undefined : known[starts.indexOf(start)];
    if (start !== undefined && line) return { line, start };
  }
  return undefined;
}
