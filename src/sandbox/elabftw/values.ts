import { z } from 'zod';
import { parseJson } from '../../text.js';
import { isDate, Refusal } from '../http.js';
import { type Rules, sanitise } from '../sanitise.js';

/** The address that the server believes it has. It does not resolve, so a client that follows it fails. */
export const SITE_URL = 'https://eln.invalid';

export const improper = (message: string) => new Refusal(400, message, { description: '' });
/** eLabFTW names 422 in the body and answers 400. */
export const unprocessable = (message: string) => new Refusal(400, message, { code: 422, description: '' });
export const forbidden = () =>
  new Refusal(403, 'Sorry, you are not allowed to perform that action.', { description: '' });
export const missing = () => new Refusal(404, 'Nothing to show with this id', { description: '' });
/** `code` is the error number of MySQL. */
const refusedBySql = (code: number, message: string) => new Refusal(500, message, { code, description: '' });
/** A value of the wrong type stops the PHP script: 500 with an empty page. */
export const typeError = () => new Refusal(500, '', { html: true });
/** eLabFTW can do this. */
export const unsupported = (what: string) => new Refusal(501, `the sandbox does not support ${what}`);

/** As PHP converts text to an integer: `12abc` is 12, `abc` is 0. */
export function toInteger(text: string | undefined): number {
  const number = Number(/^\s*[+-]?\d+/.exec(text ?? '')?.[0] ?? 0);
  // SQLite rejects larger numbers, and no record has such an id.
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** Zero and negative numbers become null. */
export const toPositive = (text: string): number | null => Math.max(0, toInteger(text)) || null;

/** As PHP converts a JSON value to text. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? '1' : '';
  return value === null || value === undefined ? '' : 'Array';
}

/** PHP converts nothing where a type is declared. Null counts as absent. */
const optional =
  <T>(type: z.ZodType<T>) =>
  (value: unknown): T | undefined => {
    const { success, data } = type.nullish().safeParse(value);
    if (!success) throw typeError();
    return data ?? undefined;
  };
export const optionalText = optional(z.string());
export const optionalInteger = optional(z.int());

const MAX_TITLE_GRAPHEMES = 255;
const MAX_TAG_CHARACTERS = 255;
const MAX_CONTENT_BYTES = 4_120_000;
const MAX_COMMENT_BYTES = 65_535;

/** Line breaks become spaces, and a long title is cut silently. */
export function cleanTitle(text: string): string {
  const title = text.trim().replace(/\r\n|\n|\r/g, ' ');
  if (title.length <= MAX_TITLE_GRAPHEMES) return title || 'Untitled';
  const graphemes = [...new Intl.Segmenter('en').segment(title)];
  return title.slice(0, graphemes[MAX_TITLE_GRAPHEMES]?.index ?? title.length);
}

export function cleanTag(tag: unknown): string {
  if (typeof tag !== 'string') throw typeError();
  const clean = tag.replaceAll('\\', '').replaceAll('|', ' ').trim();
  if (clean === '') throw improper('Input is too short! (minimum: 1)');
  if ([...clean].length > MAX_TAG_CHARACTERS) {
    throw refusedBySql(1406, "Data too long for column 'tag' at row 1");
  }
  return clean;
}

export function checkComment(comment: unknown): string {
  if (typeof comment !== 'string') throw typeError();
  if (comment === '') throw improper('Invalid comment.');
  if (Buffer.byteLength(comment) > MAX_COMMENT_BYTES) {
    throw refusedBySql(1406, "Data too long for column 'comment' at row 1");
  }
  return comment;
}

/** MySQL also accepts YYYYMMDD. */
export function checkDate(text: string): string {
  const date = text.replace(/^(\d{4})(\d{2})(\d{2})$/, '$1-$2-$3');
  if (isDate(date)) return date;
  throw refusedBySql(1292, `Incorrect date value: '${text}' for column 'date' at row 1`);
}

/** JSON as MySQL stores it: with spaces, and keys ordered by length. */
export function checkJson(text: string): string {
  const value = parseJson(text);
  if (value !== undefined) return formatJson(value);
  throw refusedBySql(
    3140,
    `Invalid JSON text: "Invalid value." at position 0 in value for column 'experiments.metadata'.`,
  );
}

export function formatJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(formatJson).join(', ')}]`;
  const entries = Object.entries(value).sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1));
  return `{${entries.map(([key, content]) => `${JSON.stringify(key)}: ${formatJson(content)}`).join(', ')}}`;
}

/** Who may read or write, besides the base permission. */
export function checkVisibility(text: string): string {
  const value = parseJson(text);
  if (value === undefined) throw improper('The visibility parameter could not be decoded as JSON.');
  for (const name of ['teams', 'teamgroups', 'users']) {
    if (!Array.isArray(Object(value)[name])) throw improper(`The visibility parameter ${name} is wrong.`);
  }
  return formatJson(value);
}

const BASE_PERMISSIONS = [10, 20, 30, 40, 50];

export function checkBase(text: string): number {
  const base = toInteger(text);
  if (!BASE_PERMISSIONS.includes(base)) throw improper('The base visibility parameter is not valid.');
  return base;
}

/** Markdown is cleaned like HTML. */
export function cleanBody(text: string): string {
  if (Buffer.byteLength(text) > MAX_CONTENT_BYTES) throw improper('Content is too big! Cannot save!');
  return sanitise(text, KEPT);
}

/** As eLabFTW configures HTML Purifier. */
const KEPT: Rules = {
  elements: {
    ...elements('br sub sup strong b em u s dl dt dd blockquote hr code details summary caption figure figcaption'),
    ...elements('div p h1 h2 h3 h4 h5 h6', ['class', 'style']),
    ...elements('span ul ol li tr', ['style']),
    ...elements('td th', ['style', 'colspan', 'rowspan']),
    a: ['href'],
    pre: ['class'],
    table: ['style', 'data-table-sort', 'border'],
    img: ['src', 'class', 'style', 'width', 'height'],
    audio: ['src', 'controls'],
    video: ['src', 'controls', 'style', 'width', 'height'],
    source: ['src', 'type'],
  },
  renamed: { strike: 's', tt: 'code' },
  attribute: cleanAttribute,
  complete(element, attributes) {
    const { href, src } = attributes;
    if (element === 'img') return src ? { ...attributes, alt: src.split('/').at(-1) ?? '' } : undefined;
    const isAbsolute = /^(?:https?|ftp):/i.test(href ?? '');
    return isAbsolute ? { ...attributes, target: '_blank', rel: 'noreferrer noopener' } : attributes;
  },
};

function elements(names: string, attributes: readonly string[] = []): Rules['elements'] {
  return Object.fromEntries(names.split(' ').map((name) => [name, attributes]));
}

function cleanAttribute(name: string, value: string): string | undefined {
  switch (name) {
    case 'href':
      return cleanAddress(value, /^(?:https?|mailto|ftp|nntp|news|tel)$/i);
    case 'src':
      return cleanAddress(value, /^(?:https?|ftp)$/i);
    case 'class':
      return (
        value
          .split(/\s+/)
          .filter((one) => CLASSES.has(one))
          .join(' ') || undefined
      );
    case 'style':
      return cleanStyle(value);
    case 'colspan':
    case 'rowspan':
    case 'border':
    case 'width':
    case 'height':
      return /^\d{1,9}%?$/.test(value) ? value : undefined;
    case 'data-table-sort':
      return value === 'true' ? value : undefined;
    default:
      return value;
  }
}

const LANGUAGES = `bash c cpp css diff fortran go igor java javascript json julia latex lua makefile matlab perl python r
  ruby rust sql tcl vhdl yaml`;
const CLASSES = new Set(LANGUAGES.split(/\s+/).map((name) => `language-${name}`));

/** An address without a scheme is a path on the server itself. */
function cleanAddress(value: string, schemes: RegExp): string | undefined {
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(value)?.[1];
  if (scheme !== undefined && !schemes.test(scheme)) return undefined;
  return value.replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, encodeURIComponent);
}

const PROPERTIES = new Set(
  `background-color border border-color color display font-family font-size font-style font-weight font-variant height
   line-height margin-left margin-right min-width text-align text-decoration word-spacing width white-space`.split(
    /\s+/,
  ),
);

/** Values are checked by their characters only, unlike in HTML Purifier, which also writes colours as numbers. */
function cleanStyle(value: string): string | undefined {
  const declarations = value.split(';').map((declaration) => {
    const [name = '', content = ''] = declaration.split(':').map((part) => part.trim());
    const isAllowed =
      PROPERTIES.has(name.toLowerCase()) && /^[\w\s#%.,'()-]+$/.test(content) && !/url|expr/i.test(content);
    return isAllowed ? `${name.toLowerCase()}:${content};` : '';
  });
  return declarations.join('') || undefined;
}
