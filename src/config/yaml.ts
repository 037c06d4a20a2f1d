import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { type Place, type Problem, systemCode } from '../errors.js';

export type ConfigPath = readonly (string | number)[];

/** A YAML file with the location of each value. */
export interface YamlFile {
  readonly file: string;
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** The location of the value at this path, or of the nearest value around it. */
  placeOf(path: ConfigPath): Place;
  /** The location of the key that is the last part of this path. */
  placeOfKey(path: ConfigPath): Place;
}

const unreadable = (where: Place, message: string, hint: string): YamlFile => ({
  file: where.file,
  value: undefined,
  problems: [{ where, message, hint, stops: 'daemon' }],
  placeOf: () => where,
  placeOfKey: () => where,
});

/** `draft`: what the file would contain. */
export function readYaml(file: string, draft?: string): YamlFile {
  let bytes: Buffer;
  try {
    bytes = draft === undefined ? readFileSync(file) : Buffer.from(draft);
  } catch (error) {
    return explainUnreadable(file, error);
  }
  const text = bytes.toString('utf8');
  if (!isUtf8(bytes)) return unreadable(firstInvalid(file, text), 'the file is not UTF-8', 'save it as UTF-8');
  try {
    return parseYaml(file, text);
  } catch (error) {
    // The parser calls itself for each level, until the stack is full.
    if (!(error instanceof RangeError)) throw error;
    return unreadable({ file }, TOO_DEEP, 'check for brackets that are not closed');
  }
}

function explainUnreadable(file: string, error: unknown): YamlFile {
  switch (systemCode(error)) {
    case 'ENOENT':
      return unreadable({ file }, 'the file does not exist', 'create it, or choose another with --config');
    case 'EISDIR':
      return unreadable(
        { file },
        'this is a folder, not a file',
        `specify a file, or include ${basename(file)}/*.yaml`,
      );
    case 'EACCES':
      return unreadable({ file }, 'permission denied', 'make the file readable by this user');
    default:
      return unreadable({ file }, `cannot read the file (${systemCode(error) ?? error})`, 'check the path');
  }
}

/** The first invalid byte: decoding replaced it by U+FFFD. */
function firstInvalid(file: string, text: string): Place {
  const before = text.slice(0, text.indexOf('\ufffd')).split('\n');
  return { file, line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

const TOO_DEEP = 'the file has too many levels of nesting';

function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter();
  // Its check for duplicate keys takes quadratic time; findMistakes does it instead.
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, uniqueKeys: false };
  const document = parseDocument(text, options);
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  // Tabs cause most other errors in the same file.
  const tabs = document.errors.filter(({ code }) => code === 'TAB_AS_INDENT');
  const mistakes = [
    ...(tabs.length > 0 ? tabs : document.errors).map((error) => explainSyntax(error, text, document)),
    ...findMistakes(document, text),
  ];
  const { value, tooLong } = mistakes.length === 0 ? expand(document) : {};
  if (tooLong) mistakes.push(tooLong);
  const problems = mistakes.map(
    ({ offset, ...mistake }): Problem => ({ where: at(offset), ...mistake, stops: 'daemon' }),
  );
  const finder = new NodeFinder(document);
  return {
    file,
    value,
    // One mistake often makes the parser report several errors on the same line.
    problems: [...new Map(problems.toReversed().map((problem) => [problem.where.line, problem])).values()].toReversed(),
    placeOf: (path) => at(finder.offsetOf(path)),
    placeOfKey: (path) => at(finder.keyOffset(path) ?? finder.offsetOf(path)),
  };
}

/** Aliases of aliases can stand for more values than fit into memory. */
const MAX_ALIASES = 1000;

/** The values of the document, or why there are too many. */
function expand(document: Document): { value?: unknown; tooLong?: SyntaxMistake } {
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }) };
  } catch (error) {
    if (!(error instanceof ReferenceError || error instanceof RangeError)) throw error;
    const message = `the aliases (*name) of this file stand for more than ${MAX_ALIASES} values`;
    const hint = 'write these values out, or split the file';
    return { tooLong: { offset: firstAlias(document), message, hint } };
  }
}

function firstAlias(document: Document): number {
  let offset: number | undefined;
  visit(document, {
    Alias(_key, alias) {
      offset = alias.range?.[0];
      return visit.BREAK;
    },
  });
  return offset ?? 0;
}

interface SyntaxMistake extends Pick<Problem, 'message' | 'hint'> {
  readonly offset: number;
}

/** Explains the usual mistakes in our own words; others in the words of the parser. */
function explainSyntax({ code, message, pos: [offset] }: YAMLError, text: string, document: Document): SyntaxMistake {
  const rest = /^[^\n]*/.exec(text.slice(offset))?.[0] ?? '';
  const mistake = (what: string, hint: string): SyntaxMistake => ({ offset, message: what, hint });
  switch (code) {
    case 'TAB_AS_INDENT':
      return mistake('a tab cannot be used for indentation', 'indent with spaces');
    case 'NON_STRING_KEY':
      return text.slice(0, offset).endsWith('{')
        ? mistake('a template must be quoted', quoted(`{${rest}`, text, offset))
        : mistake('a key must be text', 'quote it');
    case 'BAD_SCALAR_START':
      return mistake(`a value that starts with ${rest[0]} must be quoted`, quoted(rest, text, offset));
    case 'BAD_DQ_ESCAPE':
      return mistake(
        `${message.replace(/^Invalid escape sequence /, '').slice(0, 2)} is not valid in double quotes`,
        "use single quotes: 'C:\\data'",
      );
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return explainKey(rest, mistake, quoted(rest, text, offset));
    case 'MISSING_CHAR':
      return message.includes('quote')
        ? { offset: lastQuote(document), message: 'this quote is not closed', hint: 'add the closing quote' }
        : message.startsWith('Implicit map keys')
          ? explainKey(rest, mistake, quoted(rest, text, offset))
          : { offset, message };
    case 'BAD_INDENT':
      return mistake(
        'this line is not indented enough, or a { or [ above it is not closed',
        'indent the line, or close the bracket',
      );
    case 'RESOURCE_EXHAUSTION':
      return mistake(TOO_DEEP, 'check for brackets that are not closed');
    default:
      return { offset, message };
  }
}

/** Only values of these keys are repeated in a message; others may be secrets. */
const PRINTABLE = /\b(?:watch|files|ignore|include|title|date|body|tags|text|main|doneFile|folder):[^:]*$/;

function quoted(value: string, text: string, offset: number): string {
  const before = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  return PRINTABLE.test(before) ? `write "${value.trimEnd()}"` : 'put it in quotes';
}

/** A quote that is not closed runs to the end of the file, so it is the last one. */
function lastQuote(document: Document): number {
  let offset = 0;
  visit(document, {
    Scalar(_key, { type, range }) {
      if (type?.startsWith('QUOTE') && range) offset = range[0];
    },
  });
  return offset;
}

/** The parser takes `url:x`, `title: a: b` and a wrong indentation for a key over several lines. */
function explainKey(
  rest: string,
  mistake: (what: string, hint: string) => SyntaxMistake,
  quote: string,
): SyntaxMistake {
  const key = /^([\w.-]+):(?!\/\/)\S/.exec(rest)?.[1];
  if (key) return mistake('a space is missing after the colon', `write ${key}: …`);
  if (!rest.includes(':')) return mistake('a colon is missing after the key', 'write KEY: VALUE');
  if (/: /.test(rest)) return mistake('a value that contains ": " must be quoted', quote);
  return mistake('the next line is indented too far', 'indent all keys of a map equally');
}

/** Mistakes that the parser accepts: aliases without an anchor, and duplicate keys. */
function findMistakes(document: Document, text: string): SyntaxMistake[] {
  const found: SyntaxMistake[] = [];
  const anchors = new Set<string>();
  visit(document, {
    Alias(_key, { source, range }, ancestors) {
      const offset = range?.[0] ?? 0;
      if (!anchors.has(source)) {
        // `files: *.csv`: YAML takes an unquoted asterisk for an alias.
        const message = 'a value that starts with * must be quoted';
        found.push({ offset, message, hint: quoted(`*${source}`, text, offset) });
      } else if (ancestors.some((node) => 'anchor' in node && node.anchor === source)) {
        found.push({ offset, message: `*${source} is part of what it stands for`, hint: 'write the value out' });
      }
    },
    Value(_key, { anchor }) {
      if (anchor) anchors.add(anchor);
    },
    Map(_key, map) {
      if (map.anchor) anchors.add(map.anchor);
      const keys = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) found.push(duplicate(key));
        keys.add(key.value);
      }
    },
  });
  return found;
}

const duplicate = ({ value, range }: Scalar): SyntaxMistake => ({
  offset: range?.[0] ?? 0,
  message: `the key ${value} appears twice`,
  hint: 'remove one of them',
});

/** Finds the nodes of a document by path. The library searches a map from its start for each key. */
class NodeFinder {
  readonly #contents: Document['contents'];
  readonly #pairs = new WeakMap<YAMLMap, ReadonlyMap<unknown, Pair>>();

  constructor({ contents }: Document) {
    this.#contents = contents;
  }

  /** The offset of the value at this path, or of the nearest value around it. */
  offsetOf(path: ConfigPath): number {
    for (let depth = path.length; depth > 0; depth--) {
      const node = this.#nodeAt(path.slice(0, depth));
      if (isNode(node) && node.range && !isEmpty(node)) return node.range[0];
      const key = this.keyOffset(path.slice(0, depth));
      if (key !== undefined) return key;
    }
    return this.#contents?.range?.[0] ?? 0;
  }

  keyOffset(path: ConfigPath): number | undefined {
    const key = this.#pairAt(this.#nodeAt(path.slice(0, -1)), path.at(-1))?.key;
    return isScalar(key) ? key.range?.[0] : undefined;
  }

  #nodeAt(path: ConfigPath): unknown {
    return path.reduce<unknown>(
      (node, part) => (isSeq(node) ? node.items[Number(part)] : this.#pairAt(node, part)?.value),
      this.#contents,
    );
  }

  #pairAt(node: unknown, key: unknown): Pair | undefined {
    if (!isMap(node)) return undefined;
    let pairs = this.#pairs.get(node);
    if (!pairs) {
      pairs = new Map(node.items.map((pair) => [isScalar(pair.key) ? pair.key.value : pair.key, pair]));
      this.#pairs.set(node, pairs);
    }
    return pairs.get(key);
  }
}

/** `watch:` without a value: the key is the better location. */
const isEmpty = (node: Node): boolean => isScalar(node) && node.value === null && node.source === '';
