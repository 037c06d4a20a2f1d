import { regexSource } from '../../config/grammar.js';
import type { Finder } from '../../config/vocabulary.js';
import { caught, compileLine } from '../grammar/line.js';
import { isBlank, type Line, placeOf } from '../lines.js';
import { cleanName } from '../table/names.js';
import { type Context, withoutMark } from './context.js';
import type { Pair } from './facts.js';
import { lineNotFound } from './not-found.js';
import { createPairReader } from './pair-reader.js';
import { createPlace } from './place.js';

/** Finds facts while the lines go by: in those that no table claimed, or in the range that the finder names. */
export interface PairFinder {
  take(line: Line, isClaimed: boolean): void;
  /**
   * Refuses where something that the mapping names was never found.
   * `late`: places of lines that turned out to belong to a table after they had gone by.
   */
  finish(late: ReadonlySet<string>): Pair[];
}

/** More facts than this are no facts, but the rows of a table that the mapping does not name. */
const MOST_PAIRS = 100_000;

export function createPairFinder(finder: Finder, context: Context): PairFinder {
  const { after, until, line: only, match } = finder;
  const isNamed = after !== undefined || until !== undefined || only !== undefined;
  const isAfter = compileLine(after ?? []);
  const isUntil = compileLine((until ?? []).filter((form) => form !== 'blank'));
  const endsAtBlank = until?.includes('blank') ?? false;
  const isOnly = compileLine(only ?? []);
  const place = createPlace(finder, context);
  const reader = match === undefined ? createPairReader(finder, place.cut) : createMatcher(match);
  const pairs: Pair[] = [];
  let state: 'before' | 'within' | 'ended' = after === undefined ? 'within' : 'before';
  let hasBegun = false;
  let wasFound = false;

  function keep(found: readonly Pair[]): void {
    for (const { name, line, ...pair } of found) {
      const clean = cleanName(name);
      if (clean !== '') pairs.push({ ...pair, name: clean, line: line?.number ? line : undefined });
    }
    if (pairs.length <= MOST_PAIRS) return;
    throw context.refuse(`more than ${MOST_PAIRS} facts: these may be the rows of a table`, {
      line: pairs.at(-1)?.line,
      hint: 'say where the table is: `table: { after: "…" }`',
    });
  }

  if (finder.in === 'name' || finder.in === 'path') {
    const text = finder.in === 'name' ? context.name : context.path;
    // The name of the file is no line of it.
    keep(reader.read({ number: 0, text, cells: place.cut.split.cut(text) }));
    state = 'ended';
    wasFound = true;
  }

  return {
    take(original, isClaimed) {
      if (state === 'ended') return;
      const line = place.see(original);
      if (!line) return;
      if (state === 'before') {
        if (isAfter(line)) state = 'within';
        return;
      }
      const isVoid = isBlank(line);
      // Blank lines at the top do not end what has not begun.
      hasBegun ||= !isVoid;
      if (isUntil(line) || (endsAtBlank && isVoid && hasBegun)) {
        state = 'ended';
        return;
      }
      if (isVoid || (isClaimed && !isNamed) || (only !== undefined && !isOnly(line))) return;
      wasFound = true;
      keep(reader.read(withoutMark(line, context, place.cut)));
      if (only !== undefined || reader.isDone()) state = 'ended';
    },
    finish(late) {
      if (state === 'before') throw lineNotFound('after', after ?? [], context);
      if (only !== undefined && !wasFound) throw lineNotFound('line', only, context);
      if (match !== undefined && !reader.isDone()) {
        const hint = 'correct the pattern, or narrow it with `line`';
        throw context.refuse(`nothing fits \`match: ${match}\``, { hint, isAbsent: true });
      }
      return isNamed ? pairs : pairs.filter(({ line }) => !line || !late.has(placeOf(line)));
    },
  };
}

/** The named groups, from the first line that fits. */
function createMatcher(match: string) {
  const regex = new RegExp(regexSource(match) ?? match);
  let isDone = false;
  return {
    read(line: Line): Pair[] {
      const found = regex.exec(line.text);
      isDone ||= found !== null;
      return [...caught(found)].map(([name, text]) => ({ name, text: text.trim(), line }));
    },
    isDone: () => isDone,
  };
}
