import { oneLine } from '../text.js';

/** In code points, as databases count. */
const MAX_CHARACTERS = 255;

/** Tags as notebooks take them: one line, no `|`, not too long, none empty, none twice in whatever case. */
export function cleanTags(filledIn: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const text of filledIn) {
    const tag = cutCharacters(oneLine(text).replaceAll('|', ' ').trim());
    const folded = tag.toLowerCase();
    if (tag !== '' && !tags.has(folded)) tags.set(folded, tag);
  }
  return [...tags.values()];
}

function cutCharacters(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  // A character has at most two code units: more need not be looked at.
  const characters = Array.from(text.slice(0, 2 * MAX_CHARACTERS + 2));
  if (characters.length <= MAX_CHARACTERS) return text;
  return `${characters.slice(0, MAX_CHARACTERS - 1).join('')}…`;
}
