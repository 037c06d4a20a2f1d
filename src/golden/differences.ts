/** How a difference is shown to a scientist: what was expected, what came, one below the other. */

/** Two lines of what was expected and what came; further lines where they help. */
export const showDifference = (expected: string, came: string, more: Record<string, string> = {}): string =>
  Object.entries({ expected, came, ...more })
    .map(([label, text]) => `\n    ${label.padEnd(8)}  ${text}`)
    .join('');

/** Quoted, so that blanks at its ends and numbers that are texts can be seen. */
export const quote = (text: string): string => JSON.stringify(shorten(text, LONGEST));

export const quoteAll = (texts: readonly string[]): string =>
  texts.length === 0 ? 'none' : texts.map(quote).join(', ');

const LONGEST = 300;
const AROUND = 40;

const shorten = (text: string, longest: number): string =>
  text.length > longest ? `${text.slice(0, longest)}…` : text;

/** Two texts from shortly before the place where they part, if they are long. */
export function quoteDifference(expected: string, came: string): { expected: string; came: string } {
  let same = 0;
  while (same < expected.length && expected[same] === came[same]) same++;
  if (Math.max(expected.length, came.length) <= 2 * AROUND) {
    return { expected: quote(expected), came: quote(came) };
  }
  return { expected: quoteAround(expected, same), came: quoteAround(came, same) };
}

/** What a long text has instead of the one that it should contain: from where the best beginning of it ends. */
export function quoteInstead(part: string, text: string): string {
  let end = 0;
  let at = 0;
  for (let length = 1; length <= part.length; length++) {
    const found = text.indexOf(part.slice(0, length), at);
    if (found < 0) break;
    [end, at] = [length, found];
  }
  // A few letters stand anywhere: they show nothing.
  return end < Math.min(8, part.length) ? quote(text) : quoteAround(text, at + end);
}

function quoteAround(text: string, at: number): string {
  const from = Math.max(0, at - AROUND);
  const piece = shorten(text.slice(from), 3 * AROUND);
  return JSON.stringify(from > 0 ? `…${piece}` : piece);
}
