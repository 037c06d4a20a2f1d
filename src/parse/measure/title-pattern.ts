/** A pattern for lines that say the same about different things; its group is what differs. */
export function titlePattern(titles: readonly string[], group: string): string | undefined {
  const texts = [...new Set(titles.map((title) => title.trim()))];
  if (texts.length !== titles.length || texts.length === 0) return undefined;
  const skeletons = new Set(texts.map(skeleton));
  // Some titles stand above the middle of their table.
  const begin = titles.some((title) => /^\s/.test(title)) ? '^\\s*' : '^';
  if (skeletons.size === 1 && texts.length > 1) return `/${begin}(?<${group}>${[...skeletons][0]})\\s*$/`;
  const start = commonStart(texts);
  if (texts.length > 1 && start.replace(/\W/g, '').length >= 4) {
    // Of `Group: A` and `Group: B`, the letter is what differs.
    return `/${begin}${escaped(start)}(?<${group}>.+?)\\s*$/`;
  }
  return texts.length <= 12 ? `/${begin}(?<${group}>${texts.map(escaped).join('|')})\\s*$/` : undefined;
}

/** The text with its numbers left open: `2) Hold` and `3) Hold` are alike. */
const skeleton = (text: string): string =>
  text
    .split(/(\d+)/)
    .map((part, n) => (n % 2 === 1 ? '\\d+' : escaped(part)))
    .join('');

function commonStart(texts: readonly string[]): string {
  const [first = '', ...others] = texts;
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--;
  // Not within a word, nor within a number.
  return first.slice(0, length).replace(/[\p{L}\p{N}]+$/u, '');
}

/** A text as a pattern that fits nothing else. */
export const escaped = (text: string): string =>
  text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\t/g, '\\t');
