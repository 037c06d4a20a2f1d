import { regexSource, type SplitWord } from '../../config/grammar.js';

/** Where a line is cut into cells, or a name from its value. */
export interface Split {
  /** All pieces, trimmed. */
  cut(text: string): string[];
  /** What stands before and after the first cut, trimmed; undefined where there is none. */
  cutOnce(text: string): readonly [before: string, after: string] | undefined;
  /** The text at which it cuts, where that is one fixed text: only then can cells be quoted. */
  readonly text?: string;
}

export function compileSplit(written: SplitWord): Split {
  if (typeof written === 'object') return byPlaces(written.at);
  if (written === 'spaces') return byRegex(/ *\t *|[ \u00a0]{2,}/, true);
  if (written === 'whitespace') return byRegex(/\s+/, true);
  const source = regexSource(written);
  if (source !== undefined) return byRegex(new RegExp(source), false);
  return byText(written === 'tab' ? '\t' : written);
}

/** A line that is not cut is one cell. */
export const NO_SPLIT: Split = { cut: (text) => [text.trim()], cutOnce: () => undefined };

function byText(delimiter: string): Split {
  return {
    text: delimiter,
    cut: (text) => trimmed(text.split(delimiter)),
    cutOnce(text) {
      const at = text.indexOf(delimiter);
      return at < 0 ? undefined : [text.slice(0, at).trim(), text.slice(at + delimiter.length).trim()];
    },
  };
}

/** Where tables are printed, each cell begins at the same character of every line, counted from 1. */
function byPlaces(written: readonly number[]): Split {
  const places = written.map((place) => place - 1);
  const [first = 0] = places;
  return {
    cut: (text) => trimmed([0, ...places].map((place, n) => text.slice(place, places[n]))),
    cutOnce: (text) =>
      text.length > first ? [text.slice(0, first).trim(), text.slice(first).trim()] : undefined,
  };
}

/** `margin`: blanks at the ends of a line are no empty cells. */
function byRegex(regex: RegExp, margin: boolean): Split {
  // `split` puts what the groups of a pattern caught among the pieces: they are passed over.
  const step = new RegExp(`${regex.source}|`).exec('')?.length ?? 1;
  return {
    cut(text) {
      const pieces = (margin ? text.trim() : text).split(regex);
      return trimmed(step === 1 ? pieces : pieces.filter((_, n) => n % step === 0));
    },
    cutOnce(written) {
      const text = margin ? written.trim() : written;
      const match = regex.exec(text);
      if (!match) return undefined;
      return [text.slice(0, match.index).trim(), text.slice(match.index + match[0].length).trim()];
    },
  };
}

function trimmed(cells: string[]): string[] {
  for (let n = 0; n < cells.length; n++) cells[n] = cells[n]?.trim() ?? '';
  return cells;
}
