import iconv from 'iconv-lite';
import { SaxesParser } from 'saxes';
import { FileError } from '../../errors.js';
import { createNodeTree, type Node, type Tree } from '../extract/tree.js';
import type { LineRange } from '../extract/unread.js';
import { quoted, type Refuse, raiseLimit } from '../lines.js';
import { decode, knownEncoding, loadText, loadWhole, type OpenFile } from '../source.js';
import { createDecimalWriter } from '../values/value.js';

interface Position {
  readonly line: number;
  readonly column: number;
}

/** A node takes about 100 bytes. */
const MAX_NODES = 3_000_000;
const NONE: Node[] = [];

/** A tree while its file is read from start to end. */
type TreeBuilder = ReturnType<typeof openTree>;

/** `isList`: whether the root is a list of the values in the file. */
function openTree(maxNesting: number, refuse: Refuse, isList = false) {
  const root: Node = { name: '', parent: undefined, children: [], text: undefined, isList, order: 0, line: 1 };
  return { maxNesting, refuse, root, here: root, size: 1, depth: 0, comments: [] as LineRange[] };
}

function addNode(tree: TreeBuilder, name: string, isList: boolean, at: Position, children: Node[]): Node {
  if (tree.size > MAX_NODES) throw tree.refuse(`the file has more than ${MAX_NODES} values`, at);
  const { here: parent, size: order } = tree;
  tree.size++;
  const node: Node = { name, parent, children, text: undefined, isList, order, line: at.line };
  parent.children.push(node);
  return node;
}

/** Adds a node; what follows belongs to it until `closeNode`. */
function openNode(tree: TreeBuilder, name: string, isList: boolean, at: Position): void {
  const { maxNesting } = tree;
  if (++tree.depth > maxNesting) {
    const hint = raiseLimit('nesting', maxNesting * 10);
    throw tree.refuse(`the file is nested deeper than ${maxNesting} levels`, { ...at, hint });
  }
  tree.here = addNode(tree, name, isList, at, []);
}

function closeNode(tree: TreeBuilder): void {
  tree.depth--;
  tree.here = tree.here.parent ?? tree.root;
}

function addLeaf(tree: TreeBuilder, name: string, text: string, at: Position): void {
  addNode(tree, name, false, at, NONE).text = text;
}

/**
 * Reads JSON and JSON lines. Not with JSON.parse, which loses how numbers are written (`2.100`), has no nesting limit,
 * keeps only the last of duplicate names, and blocks the event loop.
 */
export async function readJson(file: OpenFile): Promise<Tree> {
  const { options, refuse, slice } = file;
  const builder = openTree(options.limits.maxNesting, refuse, true);
  const scanner = openScanner(await loadText(file), refuse);
  const writeNumber = createDecimalWriter(options);
  for (let n = 1; readValue(scanner, builder, writeNumber); n++) {
    if (n % 512 === 0 && slice.isOver()) await slice.renew();
  }
  const { root, size } = builder;
  const [only] = root.children;
  return createNodeTree(only && root.children.length === 1 ? only : root, size);
}

/** Reads a value, with its name before it and closing brackets after it; false at the end of the file. */
function readValue(scanner: Scanner, builder: TreeBuilder, writeNumber: (text: string) => string): boolean {
  const isTop = builder.here === builder.root;
  const name = isTop || builder.here.isList ? '' : readKey(scanner);
  const next = peek(scanner);
  const at = position(scanner);
  if (next === '{' || next === '[') {
    scanner.at++;
    openNode(builder, name, next === '[', at);
    if (peek(scanner) !== (next === '[' ? ']' : '}')) return true;
  } else if (next === '"') {
    addLeaf(builder, name, readString(scanner), at);
  } else {
    const word = readWord(scanner);
    addLeaf(builder, name, word === 'null' ? '' : writeNumber(word), at);
  }
  return readEnds(scanner, builder);
}

/** Reads closing brackets up to the comma before the next value; false at the end of the file. */
function readEnds(scanner: Scanner, builder: TreeBuilder): boolean {
  while (builder.here !== builder.root) {
    const end = builder.here.isList ? ']' : '}';
    const next = peek(scanner);
    if (next !== ',' && next !== end) throw unexpected(scanner, `a comma or ${end}`);
    scanner.at++;
    if (next === ',') return true;
    closeNode(builder);
  }
  const { line } = scanner;
  if (peek(scanner) === undefined) return false;
  if (scanner.line === line) throw unexpected(scanner, 'the end of the line');
  return true;
}

/** The nesting up to which the start of a file is checked. */
const MAX_CHECKED_NESTING = 10_000;
const TRUNCATED = /^(?:|\.|e[+-]?|-|-?I\w*|t\w{0,2}|f\w{0,3}|nu?l?|Na?)$/i;

/** Whether a text is JSON up to its end, where it may be truncated. */
export function looksLikeJson(text: string): boolean {
  const refuse: Refuse = (message) => new FileError(message);
  const scanner = openScanner(text, refuse);
  const first = peek(scanner);
  if (first !== '{' && first !== '[') return false;
  const builder = openTree(MAX_CHECKED_NESTING, refuse, true);
  try {
    while (readValue(scanner, builder, String));
    return true;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const rest = text.slice(scanner.at, scanner.at + 10);
    // Only at the end of the text: `[Instrument]` is a title.
    return rest.length < 10 && TRUNCATED.test(rest);
  }
}

const openScanner = (text: string, refuse: Refuse) => ({ text, refuse, at: 0, line: 1, lineStart: 0 });
type Scanner = ReturnType<typeof openScanner>;

/** Skips blanks and returns the next character; undefined at the end. */
function peek(scanner: Scanner): string | undefined {
  const { text } = scanner;
  for (; scanner.at < text.length; scanner.at++) {
    const character = text[scanner.at];
    if (character === '\n') {
      scanner.line++;
      scanner.lineStart = scanner.at + 1;
    } else if (character !== ' ' && character !== '\r' && character !== '\t') return character;
  }
  return undefined;
}

const position = ({ at, line, lineStart }: Scanner): Position => ({ line, column: at - lineStart + 1 });

function unexpected(scanner: Scanner, expected: string): Error {
  const { text, refuse } = scanner;
  const isEnd = peek(scanner) === undefined;
  const found = isEnd ? 'the end of the file' : quoted(text.slice(scanner.at, scanner.at + 20));
  return refuse(`the file is not valid JSON: expected ${expected}, found ${found}`, {
    ...position(scanner),
    hint: 'the file may be truncated; if it is not JSON, specify its format: `format: delimited`',
  });
}

/** A name and the colon after it. */
function readKey(scanner: Scanner): string {
  const name = readString(scanner);
  if (peek(scanner) !== ':') throw unexpected(scanner, 'a colon');
  scanner.at++;
  return name;
}

function readString(scanner: Scanner): string {
  const { text } = scanner;
  if (peek(scanner) !== '"') throw unexpected(scanner, 'a name in quotes');
  let end = text.indexOf('"', scanner.at + 1);
  while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  if (end < 0) {
    const error = unexpected(scanner, 'a closing quote');
    scanner.at = text.length;
    throw error;
  }
  const content = decodeString(text.slice(scanner.at, end + 1));
  if (content === undefined) throw unexpected(scanner, 'a string without line breaks or unknown escapes');
  scanner.at = end + 1;
  return content;
}

/** Whether an odd number of backslashes is before the quote. */
function isEscaped(text: string, quoteAt: number): boolean {
  let from = quoteAt;
  while (text[from - 1] === '\\') from--;
  return (quoteAt - from) % 2 === 1;
}

function decodeString(written: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in texts.
  if (!/[\\\u0000-\u001f]/.test(written)) return written.slice(1, -1);
  try {
    return JSON.parse(written);
  } catch {
    return undefined;
  }
}

/** NaN and Infinity are not JSON, but some programs write them. */
const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity/y;

/** A number, true, false or null. */
function readWord(scanner: Scanner): string {
  if (peek(scanner) === undefined) throw unexpected(scanner, 'a value');
  WORD.lastIndex = scanner.at;
  const [word] = WORD.exec(scanner.text) ?? [];
  if (word === undefined) throw unexpected(scanner, 'a value');
  scanner.at += word.length;
  return word;
}

/** Reads XML without namespaces. Only the predefined entities are expanded. */
export async function readXml(file: OpenFile): Promise<Tree> {
  const { options, refuse, slice } = file;
  const bytes = await loadWhole(file);
  const builder = openTree(options.limits.maxNesting, refuse);
  const parser = createParser(builder, refuse);
  const declared = options.encoding === 'auto' ? declaredEncoding(bytes) : options.encoding;
  for await (const text of decode([bytes], await knownEncoding([bytes], declared, refuse), refuse)) {
    parser.write(text);
    if (slice.isOver()) await slice.renew();
  }
  parser.close();
  return createNodeTree(builder.root, builder.size, builder.comments);
}

function createParser(builder: TreeBuilder, refuse: Refuse): SaxesParser {
  const parser = new SaxesParser({ xmlns: false, position: true });
  const at = (): Position => ({ line: parser.line, column: Math.max(parser.column, 1) });
  let attributes: { readonly name: string; readonly value: string }[] = [];
  parser.on('error', (error) => {
    throw refuse(`the file is not valid XML: ${withoutPosition(error.message)}`, {
      ...at(),
      hint: 'the file may be truncated; if it is not XML, specify its format: `format: delimited`',
    });
  });
  parser.on('doctype', (doctype) => {
    if (!/<!ENTITY/i.test(doctype)) return;
    throw refuse('the file declares its own entities (<!ENTITY …>), which are not expanded', {
      ...at(),
      hint: 'export it without a DOCTYPE',
    });
  });
  parser.on('attribute', (attribute) => attributes.push(attribute));
  parser.on('opentag', ({ name }) => {
    openNode(builder, localName(name), false, at());
    for (const attribute of attributes) {
      if (!/^xmlns(?::|$)/.test(attribute.name)) {
        addLeaf(builder, `@${localName(attribute.name)}`, attribute.value.trim(), at());
      }
    }
    attributes = [];
  });
  const append = (text: string) => {
    if (builder.here !== builder.root) builder.here.text = (builder.here.text ?? '') + text;
  };
  parser.on('comment', (text) => {
    const { line } = parser;
    if (/[\p{L}\p{N}]/u.test(text)) builder.comments.push({ from: line - text.split('\n').length + 1, to: line });
  });
  parser.on('text', append);
  parser.on('cdata', append);
  parser.on('closetag', () => {
    const { here } = builder;
    const text = here.text?.trim() ?? '';
    // Blanks between elements are layout.
    const isBranch = here.children.some(({ name }) => !name.startsWith('@'));
    here.text = text === '' && isBranch ? undefined : text;
    if (!isBranch && parser.line > here.line) here.lastLine = parser.line;
    closeNode(builder);
  });
  return parser;
}

/** Prefixes differ between files with the same content. */
const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** The parser puts the position before its message. */
const withoutPosition = (message: string): string => message.replace(/^(?:undefined:|\d+:)*\s*/, '').replace(/\.$/, '');

/** The encoding in the XML declaration, or `auto` if the bytes show it better. */
function declaredEncoding(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  const [, encoding = 'utf-8'] = /^<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(start) ?? [];
  // A declaration that is readable byte by byte is not UTF-16, and UTF-8 is recognised anyway.
  const isOther = !/^(?:utf|ucs)/i.test(encoding) && iconv.encodingExists(encoding);
  return isOther ? encoding : 'auto';
}
