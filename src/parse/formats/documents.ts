import iconv from 'iconv-lite';
import { SaxesParser } from 'saxes';
import type { ParseOptions } from '../../config/vocabulary.js';
import { FileError } from '../../errors.js';
import {
  createNodeTree,
  createTreeBuilder,
  type Position,
  type Tree,
  type TreeBuilder,
} from '../extract/tree.js';
import { quoted, type Refuse } from '../lines.js';
import { decodeWhole, readText, refuseTooLarge, type WholeFile } from '../source.js';
import { createDecimalWriter } from '../values/value.js';

/**
 * Reads JSON, and lines of JSON, which are a list. Not by JSON.parse, which forgets how numbers are written (`2.100`),
 * nests as deep as the file likes, lets the last of two like names win, and cannot be interrupted.
 */
export async function readJson(file: WholeFile, options: ParseOptions): Promise<Tree> {
  const text = await readText(file, options);
  const grower = createTreeBuilder(options.limits.maxNesting, file.refuse, true);
  const scanner = createScanner(text, file.refuse);
  const writePoint = createDecimalWriter(options);
  for (let n = 1; takeStep(scanner, grower, writePoint); n++) {
    if (n % 512 === 0 && file.slice.isOver()) await file.slice.renew();
  }
  const { root, size } = grower;
  const [only] = root.children;
  return createNodeTree(only && root.children.length === 1 ? only : root, size);
}

/** One value with what stands before it and the ends after it; false at the end of the file. */
function takeStep(scanner: Scanner, grower: TreeBuilder, writePoint: (number: string) => string): boolean {
  const isTop = grower.here === grower.root;
  const name = isTop || grower.here.isList ? '' : scanner.key();
  const at = scanner.position();
  const sign = scanner.peek();
  if (sign === '{' || sign === '[') {
    scanner.skip();
    grower.open(name, sign === '[', at);
    if (scanner.peek() !== (sign === '[' ? ']' : '}')) return true;
  } else if (sign === '"') {
    grower.leaf(name, scanner.string(), at);
  } else {
    const word = scanner.word();
    grower.leaf(name, word === 'null' ? '' : writePoint(word), at);
  }
  return takeEnds(scanner, grower);
}

/** Closes what ends here, up to the comma before the next value; false at the end of the file. */
function takeEnds(scanner: Scanner, grower: TreeBuilder): boolean {
  while (grower.here !== grower.root) {
    const end = grower.here.isList ? ']' : '}';
    const sign = scanner.peek();
    if (sign !== ',' && sign !== end) throw scanner.mistake(`a comma or ${end}`);
    scanner.skip();
    if (sign === ',') return true;
    grower.close();
  }
  const { line } = scanner.position();
  if (scanner.peek() === undefined) return false;
  if (scanner.position().line === line) throw scanner.mistake('nothing more, or another line');
  return true;
}

/** Whether a text begins as JSON does, and goes on so to where it ends or was cut. */
export function looksLikeJson(text: string): boolean {
  const refuse: Refuse = (message) => new FileError(message);
  const scanner = createScanner(text, refuse);
  const first = scanner.peek();
  if (first !== '{' && first !== '[') return false;
  const grower = createTreeBuilder(LOOK_NESTING, refuse, true);
  try {
    while (takeStep(scanner, grower, String));
    return true;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return scanner.isCut();
  }
}

interface Scanner {
  /** The next sign that is no blank; undefined at the end. */
  peek(): string | undefined;
  skip(): void;
  string(): string;
  /** A name and the colon after it. */
  key(): string;
  /** A number, true, false or null. */
  word(): string;
  position(): Position;
  mistake(expected: string): Error;
  /** Whether it stands at the end of the text, or in a word that the end may have cut. */
  isCut(): boolean;
}

/** Deeper than this it is JSON all the same, and refused as such. */
const LOOK_NESTING = 10_000;
const CUT = /^(?:|\.|e[+-]?|-|-?I\w*|t\w{0,2}|f\w{0,3}|nu?l?|Na?)$/i;

/** Numbers that are none are no JSON, but what several programs write. */
const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity/y;

function createScanner(text: string, refuse: Refuse): Scanner {
  let at = 0;
  let line = 1;
  let lineStart = 0;

  function peek(): string | undefined {
    for (; at < text.length; at++) {
      const sign = text[at];
      if (sign === '\n') {
        line++;
        lineStart = at + 1;
      } else if (sign !== ' ' && sign !== '\r' && sign !== '\t') return sign;
    }
    return undefined;
  }

  function position(): Position {
    return { line, column: at - lineStart + 1 };
  }

  function mistake(expected: string): Error {
    const found = peek() === undefined ? 'the end of the file' : quoted(text.slice(at, at + 20));
    return refuse(`this is not JSON: expected ${expected}, and found ${found}`, {
      at: position(),
      hint: 'the file may be cut short; if it is not JSON, say what it is: `format: delimited`',
    });
  }

  function string(): string {
    if (peek() !== '"') throw mistake('a name in quotes');
    let end = text.indexOf('"', at + 1);
    while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
    if (end < 0) {
      const error = mistake('a text with a quote at its end');
      at = text.length;
      throw error;
    }
    const written = text.slice(at, end + 1);
    const content = decoded(written);
    if (content === undefined) throw mistake('a text without line breaks, and with known escapes only');
    at = end + 1;
    return content;
  }

  return {
    peek,
    position,
    mistake,
    string,
    isCut: () => CUT.test(text.slice(at, at + 10)),
    skip: () => void at++,
    key() {
      const name = string();
      if (peek() !== ':') throw mistake('a colon');
      at++;
      peek();
      return name;
    },
    word() {
      if (peek() === undefined) throw mistake('a value');
      WORD.lastIndex = at;
      const [word] = WORD.exec(text) ?? [];
      if (word === undefined) throw mistake('a value');
      at += word.length;
      return word;
    },
  };
}

/** An odd number of backslashes before it. */
function isEscaped(text: string, quoteAt: number): boolean {
  let from = quoteAt;
  while (text[from - 1] === '\\') from--;
  return (quoteAt - from) % 2 === 1;
}

function decoded(written: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them within texts.
  if (!/[\\\u0000-\u001f]/.test(written)) return written.slice(1, -1);
  try {
    return JSON.parse(written);
  } catch {
    return undefined;
  }
}

/** Reads XML. Namespaces do not count; nothing is expanded but the five entities that every XML has. */
export async function readXml(file: WholeFile, options: ParseOptions): Promise<Tree> {
  refuseTooLarge(file, options);
  const grower = createTreeBuilder(options.limits.maxNesting, file.refuse);
  const parser = createParser(grower, file.refuse);
  const encoding = options.encoding === 'auto' ? declaredEncoding(file.bytes) : options.encoding;
  for await (const piece of decodeWhole(file, encoding)) {
    parser.write(piece);
    if (file.slice.isOver()) await file.slice.renew();
  }
  parser.close();
  return createNodeTree(grower.root, grower.size);
}

function createParser(grower: TreeBuilder, refuse: Refuse): SaxesParser {
  const parser = new SaxesParser({ xmlns: false, position: true });
  const position = (): Position => ({ line: parser.line, column: Math.max(parser.column, 1) });
  let attributes: { readonly name: string; readonly value: string }[] = [];
  parser.on('error', (error) => {
    throw refuse(`this is not XML: ${plainly(error.message)}`, {
      at: position(),
      hint: 'the file may be cut short; if it is not XML, say what it is: `format: delimited`',
    });
  });
  parser.on('doctype', (doctype) => {
    if (!/<!ENTITY/i.test(doctype)) return;
    throw refuse('the file declares entities of its own (<!ENTITY …>), which are not expanded', {
      at: position(),
      hint: 'export it without a DOCTYPE',
    });
  });
  parser.on('attribute', (attribute) => attributes.push(attribute));
  parser.on('opentag', ({ name }) => {
    const at = position();
    grower.open(localName(name), false, at);
    for (const attribute of attributes) {
      if (!/^xmlns(?::|$)/.test(attribute.name)) {
        grower.leaf(`@${localName(attribute.name)}`, attribute.value.trim(), at);
      }
    }
    attributes = [];
  });
  const write = (text: string) => {
    if (grower.here !== grower.root) grower.here.text = (grower.here.text ?? '') + text;
  };
  parser.on('text', write);
  parser.on('cdata', write);
  parser.on('closetag', () => {
    const { here } = grower;
    const text = here.text?.trim() ?? '';
    // Blanks between elements are how the file is laid out, not what it says.
    const isBranch = here.children.some(({ name }) => !name.startsWith('@'));
    here.text = text === '' && isBranch ? undefined : text;
    grower.close();
  });
  return parser;
}

/** Prefixes are the file's own abbreviations, and differ between files that say the same. */
const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** Without the place, which the parser puts before its sentence, and which is told by itself. */
const plainly = (message: string): string =>
  message.replace(/^(?:undefined:|\d+:)*\s*/, '').replace(/\.$/, '');

/** What the first line says, unless a byte order mark or the bytes themselves say otherwise. */
function declaredEncoding(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 200)).toString(
    'latin1',
  );
  const [, encoding = 'utf-8'] = /^<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(start) ?? [];
  // Where the declaration can be read byte by byte, it is not in UTF-16; and UTF-8 is found out anyway.
  const isPlain = !/^(?:utf|ucs)/i.test(encoding) && iconv.encodingExists(encoding);
  return isPlain ? encoding : 'auto';
}
