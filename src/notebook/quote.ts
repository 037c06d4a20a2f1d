const MAX_CHARACTERS = 300;

/** One short line for people: no control characters, and not the key, even where the server echoes it. */
export function quote(words: readonly string[], key: string): string {
  // The key goes before anything is cut, so that no half of it stays; and again once broken lines are joined.
  const line = words.map((text) => withoutKey(printable(withoutKey(text, key)), key)).join(' — ');
  if (line.length <= MAX_CHARACTERS) return line;
  // By code points: half a surrogate pair would not survive being written to a log.
  return `${[...line.slice(0, 2 * MAX_CHARACTERS)].slice(0, MAX_CHARACTERS - 1).join('')}…`;
}

export function withoutKey(text: string, key: string): string {
  if (key === '') return text;
  const spellings = new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]);
  let rest = text;
  for (const spelling of spellings) rest = rest.replaceAll(spelling, '[key]');
  return rest;
}

/** Control and format characters could forge a line in a log, or move a terminal's cursor. */
const printable = (text: string): string => text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
