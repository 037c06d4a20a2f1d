const KEPT = new Set(
  `a b blockquote br caption code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i ins li ol p pre s small span
   strong sub sup table tbody td tfoot th thead tr u ul`.split(/\s+/),
);
const VOID = new Set(['br', 'hr']);
/** Elements whose content is not readable text or not HTML. They are removed with their content. */
const DROPPED = new Set(
  'iframe math noembed noframes noscript object script select style svg template textarea title xmp'.split(' '),
);
/** Browsers stop nesting at 512. The limit also bounds the search for the element that a closing tag closes. */
const MAX_DEPTH = 100;

/**
 * Keeps text and the harmless tags above. Nothing is copied verbatim: each tag is written again with at most the
 * attributes below, and everything else becomes text, so nothing else can appear in the output. Takes linear time.
 */
export function sanitise(source: string): string {
  const out: string[] = [];
  const open: string[] = [];
  let at = 0;
  while (at < source.length) {
    const start = indexOrEnd(source, '<', at);
    out.push(source.slice(at, start).replaceAll('>', '&gt;'));
    if (start === source.length) break;
    const tag = /^<(\/?)([a-z][^\s/>]*)/i.exec(source.slice(start, start + 20));
    const name = tag?.[2]?.toLowerCase() ?? '';
    at = tag ? endOfTag(source, start) : endOfOther(source, start);
    if (!tag) out.push(at === start + 1 ? '&lt;' : '');
    else if (tag[1]) out.push(close(open, open.lastIndexOf(name)));
    else if (DROPPED.has(name)) at = endOfElement(source, name, at);
    else if (KEPT.has(name) && open.length < MAX_DEPTH) {
      out.push(close(open, impliedEnd(open, name)));
      if (!VOID.has(name)) open.push(name);
      out.push(`<${name}${attributes(name, source.slice(start, at))}>`);
    }
  }
  return out.join('') + close(open, 0);
}

function indexOrEnd(source: string, text: string, from: number): number {
  const index = source.indexOf(text, from);
  return index === -1 ? source.length : index;
}

/** After the first `>` outside quotes. A tag that never ends swallows the rest, as in browsers. */
function endOfTag(source: string, start: number): number {
  for (let at = start; at < source.length; at += 1) {
    const character = source[at];
    if (character === '>') return at + 1;
    if (character === '"' || character === "'") at = indexOrEnd(source, character, at + 1);
  }
  return source.length;
}

/** After a comment or a declaration. Any other `<` is text. */
function endOfOther(source: string, start: number): number {
  if (source.startsWith('<!--', start)) return indexOrEnd(source, '-->', start + 4) + 3;
  return /[!?/]/.test(source[start + 1] ?? '') ? indexOrEnd(source, '>', start) + 1 : start + 1;
}

function endOfElement(source: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}`, 'gi');
  closing.lastIndex = from;
  const match = closing.exec(source);
  return match ? endOfTag(source, match.index) : source.length;
}

/** Elements whose end tags may be left out, with the starts that end them, and the element they end within. */
const IMPLIED_ENDS: Readonly<Record<string, readonly [ends: RegExp, within: RegExp]>> = {
  td: [/^(?:td|th)$/, /^table$/],
  th: [/^(?:td|th)$/, /^table$/],
  tr: [/^(?:td|th|tr)$/, /^table$/],
  li: [/^li$/, /^(?:ul|ol)$/],
};

/** The outermost open element that the start of this one ends; -1 if there is none. */
function impliedEnd(open: readonly string[], name: string): number {
  const [ends, within] = IMPLIED_ENDS[name] ?? [];
  if (!ends || !within) return -1;
  const from = open.findLastIndex((one) => within.test(one)) + 1;
  const index = open.slice(from).findIndex((one) => ends.test(one));
  return index === -1 ? -1 : from + index;
}

/** Closes an open element and everything open inside it. A stray closing tag (-1) is ignored. */
function close(open: string[], index: number): string {
  return index === -1 ? '' : open.splice(index).reduceRight((tags, name) => `${tags}</${name}>`, '');
}

function attributes(name: string, tag: string): string {
  if (name === 'td' || name === 'th') {
    const spans = tag.matchAll(/\s(colspan|rowspan)\s*=\s*["']?(\d{1,3})/gi);
    return [...spans].map(([, key, value]) => ` ${key?.toLowerCase()}="${value}"`).join('');
  }
  const link = name === 'a' ? /\shref\s*=\s*(["'])((?:https?:\/\/|mailto:)[^"'<>\s]*)\1/i.exec(tag)?.[2] : undefined;
  return link === undefined ? '' : ` href="${link}" rel="noopener noreferrer nofollow"`;
}
