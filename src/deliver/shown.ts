/**
 * Whether an experiment's body shows what was written, and nothing that somebody added. Servers clean the markup that
 * they store: so the text is compared, without its blanks, and there must be no element or link that was not written.
 */
export function showsBody(shown: unknown, written: string): boolean {
  if (typeof shown !== 'string' || cellsOf(shown) !== cellsOf(written)) return false;
  const [now, before] = [markupOf(shown), markupOf(written)];
  return [...now].every(([what, count]) => count <= (before.get(what) ?? 0));
}

/** Servers show an empty body as nothing at all, or as markup without text. */
export const isBlankBody = (shown: unknown): boolean =>
  shown === null || (typeof shown === 'string' && textOf(shown) === '' && markupOf(shown).size === 0);

/** The tags of a record: a list, or eLabFTW's `one|two`. Undefined where the server does not show them. */
export function tagsIn({ tags }: Readonly<Record<string, unknown>>): string[] | undefined {
  if (tags === null) return [];
  if (typeof tags === 'string') return tags.split('|');
  return Array.isArray(tags) ? tags.map(String) : undefined;
}

export const isSameTags = (a: readonly string[], b: readonly string[]): boolean =>
  a.every((tag) => hasTag(b, tag)) && b.every((tag) => hasTag(a, tag));

/** Servers fold the case of tags, and their blanks. */
export const hasTag = (tags: readonly string[], wanted: string): boolean =>
  tags.some((tag) => folded(tag) === folded(wanted));

const folded = (tag: string): string => textOf(tag).toLowerCase();

/** Its text, and where the cells of tables end: a number that somebody moved to the next cell is another one. */
export const cellsOf = (html: string): string => textOf(html.replace(/<\/(?:td|th)\s*>/gi, '\u0000'));

/** The text of markup, without its blanks. */
export const textOf = (html: string): string => decoded(html.replace(/<[^>]*>/g, '')).replace(/\s+/g, '');

/** Elements that servers add, drop or move by themselves. */
const LAYOUT = /^(?:p|br|div|thead|tbody|tfoot|colgroup|col|html|head|body)$/;

const SYNONYMS: Readonly<Record<string, string>> = { b: 'strong', i: 'em', del: 's', strike: 's' };

/** How often each kind of element, and each link, is there. */
function markupOf(html: string): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  for (const [, name = '', attributes = ''] of html.matchAll(
    /<([a-z][a-z0-9]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi,
  )) {
    const element = name.toLowerCase();
    if (!LAYOUT.test(element)) count(SYNONYMS[element] ?? element);
    for (const [, , link = ''] of attributes.matchAll(/\b(?:href|src)\s*=\s*(["'])(.*?)\1/gi))
      count(decoded(link));
  }
  return counts;
}

const decoded = (text: string): string => text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, character);

function character(entity: string, decimal?: string, hex?: string, name = ''): string {
  const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : (NAMED[name] ?? entity);
}

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
};
