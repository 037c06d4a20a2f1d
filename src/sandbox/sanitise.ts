import { decodeEntities, escapeHtml } from '../text.js';

/** What HTML may contain. Tags of other elements are removed; their content stays. */
export interface Rules {
  /** The elements that are kept, with the names of the attributes that each may have. */
  readonly elements: Readonly<Record<string, readonly string[]>>;
  /** Elements that are replaced by another. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** The value to be written. Undefined removes the attribute. */
  attribute(name: string, value: string): string | undefined;
  /** Adds attributes. Undefined removes the element. */
  complete(element: string, attributes: Attributes): Attributes | undefined;
}

type Attributes = Readonly<Record<string, string>>;

interface Element {
  readonly name: string;
  readonly attributes: Attributes;
  readonly children: (Element | string)[];
}

/** These are removed with their content, which is not HTML. */
const HIDDEN = new Set(['script', 'style']);
const VOID = new Set(['br', 'hr', 'img', 'source']);
/** Deeper elements lose their tags. The limit also bounds the search for the element that a closing tag closes. */
const MAX_DEPTH = 100;

/**
 * Keeps text and allowed elements. Nothing is copied: text, tags and attributes are parsed and written again, so nothing
 * else can appear in the output. Takes linear time.
 */
export function sanitise(source: string, rules: Rules): string {
  return contentOf({ name: '', attributes: {}, children: parse(clean(source), rules) }, '');
}

/** `&nbsp;` is a no-break space, unlike in our own text. */
const decode = (text: string): string => decodeEntities(text.replaceAll('&nbsp;', '\u00a0'));

/** Line breaks become LF. Control characters and processing instructions are removed. */
const clean = (source: string): string =>
  source
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\t\n]/gu, '')
    .replace(/<\?[^?]*\?>/g, '');

function parse(source: string, rules: Rules): (Element | string)[] {
  const root: (Element | string)[] = [];
  const open: Element[] = [];
  const append = (child: Element | string) => void (open.at(-1)?.children ?? root).push(child);
  const close = (index: number) => void (index === -1 || open.splice(index));
  let at = 0;
  while (at < source.length) {
    const start = indexOrEnd(source, '<', at);
    if (start > at) append(decode(source.slice(at, start)));
    if (start === source.length) break;
    const tag = /^<(\/?)([a-z][^\s/>]*)/i.exec(source.slice(start, start + 20));
    const written = tag?.[2]?.toLowerCase() ?? '';
    const name = rules.renamed?.[written] ?? written;
    at = tag ? endOfTag(source, start) : endOfOther(source, start);
    if (!tag && at === start + 1) append('<');
    else if (tag?.[1]) close(open.findLastIndex((element) => element.name === name));
    else if (HIDDEN.has(name)) at = endOfElement(source, name, at);
    else if (Object.hasOwn(rules.elements, name) && open.length < MAX_DEPTH) {
      close(impliedEnd(open, name));
      const attributes = rules.complete(name, attributesIn(source.slice(start + written.length + 1, at), name, rules));
      if (!attributes) continue;
      const element = { name, attributes, children: [] };
      append(element);
      if (!VOID.has(name)) open.push(element);
    }
  }
  return root;
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
  return /[!/]/.test(source[start + 1] ?? '') ? indexOrEnd(source, '>', start) + 1 : start + 1;
}

function endOfElement(source: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}`, 'gi');
  closing.lastIndex = from;
  const match = closing.exec(source);
  return match ? endOfTag(source, match.index) : source.length;
}

function attributesIn(tag: string, element: string, rules: Rules): Attributes {
  const found: Record<string, string> = {};
  for (const match of tag.matchAll(/([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g)) {
    const name = match[1]?.toLowerCase() ?? '';
    if (!rules.elements[element]?.includes(name) || Object.hasOwn(found, name)) continue;
    const value = rules.attribute(name, decode(match[2] ?? match[3] ?? match[4] ?? '').trim());
    if (value !== undefined) found[name] = value;
  }
  return found;
}

const list = (names: string) => new Set(names.split(' '));

/** Elements that end an open paragraph. */
const BLOCKS = list('blockquote details div dl figure h1 h2 h3 h4 h5 h6 hr ol p pre table ul');
/** Elements whose end tags may be left out: the starts that end them, and the elements that these cannot leave. */
const IMPLIED_ENDS: Readonly<Record<string, readonly [ends: Set<string>, within: Set<string>]>> = {
  td: [list('td th'), list('table')],
  th: [list('td th'), list('table')],
  tr: [list('td th tr'), list('table')],
  li: [list('li'), list('ul ol')],
  dt: [list('dt dd'), list('dl')],
  dd: [list('dt dd'), list('dl')],
};
const OF_BLOCKS = [list('p'), list('blockquote caption dd details div dl dt figure li ol table td th ul')] as const;

/** The outermost open element that the start of this one ends; -1 if there is none. */
function impliedEnd(open: readonly Element[], name: string): number {
  const [ends, within] = IMPLIED_ENDS[name] ?? (BLOCKS.has(name) ? OF_BLOCKS : []);
  if (!ends || !within) return -1;
  const from = open.findLastIndex((element) => within.has(element.name)) + 1;
  const index = open.slice(from).findIndex((element) => ends.has(element.name));
  return index === -1 ? -1 : from + index;
}

/** Elements that are allowed in certain others only. Elsewhere they lose their tags. */
const PARENTS: Readonly<Record<string, Set<string>>> = {
  caption: list('table'),
  thead: list('table'),
  tbody: list('table'),
  tfoot: list('table'),
  tr: list('table thead tbody tfoot'),
  td: list('tr'),
  th: list('tr'),
  li: list('ul ol'),
  dt: list('dl'),
  dd: list('dl'),
  summary: list('details'),
  figcaption: list('figure'),
  source: list('audio video'),
};
/** Elements that contain nothing but their own parts and white space. */
const STRICT = list('table thead tbody tfoot tr');

/** `parent`: the name of the element that is written around the content, which differs where tags were removed. */
function contentOf({ children }: Element, parent: string): string {
  return children
    .map((child) => (typeof child === 'string' ? textOf(child, parent) : elementOf(child, parent)))
    .join('');
}

function textOf(text: string, parent: string): string {
  const isBlank = /^\s*$/.test(text);
  if (STRICT.has(parent) && !isBlank) return '';
  // Quotes need no escaping in text.
  const escaped = text.replace(/[&<>]/g, escapeHtml);
  return (parent === 'ul' || parent === 'ol') && !isBlank ? `<li>${escaped}</li>` : escaped;
}

function elementOf(element: Element, parent: string): string {
  const { name, attributes } = element;
  const parents = PARENTS[name];
  if (parents && !parents.has(parent)) return contentOf(element, parent);
  if (STRICT.has(parent) && !parents) return '';
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${value.replace(/[&<>"]/g, escapeHtml)}"`);
  const start = `<${name}${written.join('')}>`;
  if (VOID.has(name)) return start;
  const content = contentOf(element, name);
  // A row without cells is removed.
  return name === 'tr' && content.trim() === '' ? '' : `${start}${content}</${name}>`;
}

const NAMES = `b blockquote br caption code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i ins li ol p pre s small span strong
  sub sup table tbody tfoot thead tr u ul`;

/** For the page: styles are left out, and of images all but attached files. */
export const SHOWN: Rules = {
  elements: {
    ...Object.fromEntries(NAMES.split(/\s+/).map((name) => [name, []])),
    ...{ a: ['href'], img: ['src', 'alt', 'width'], td: ['colspan', 'rowspan'], th: ['colspan', 'rowspan'] },
  },
  attribute: (name, value) => (SAFE[name]?.test(value) ? value : undefined),
  complete(element, attributes) {
    const { href, src } = attributes;
    // Relative to the server's own pages, which have no folders.
    if (element === 'img') return src ? { ...attributes, src: `/${src}`, alt: attributes['alt'] ?? '' } : undefined;
    return href ? { ...attributes, rel: 'noopener noreferrer nofollow' } : attributes;
  },
};

const SAFE: Readonly<Record<string, RegExp>> = {
  href: /^(?:https?:\/\/|mailto:)[^"'<>\s]*$/i,
  src: /^app\/download\.php\?[^"'<>\s\\]*$/,
  alt: /^/,
  width: /^\d{1,4}$/,
  colspan: /^\d{1,3}$/,
  rowspan: /^\d{1,3}$/,
};
