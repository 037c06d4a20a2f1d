import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  type Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
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

export function readYaml(file: string): YamlFile {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    return explainUnreadable(file, error);
  }
  const text = bytes.toString('utf8');
  if (isUtf8(bytes)) return parseYaml(file, text);
  return unreadable(firstInvalid(file, text), 'the file is not UTF-8', 'save it as UTF-8');
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

function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  // Tabs cause most other errors in the same file.
  const tabs = document.errors.filter(({ code }) => code === 'TAB_AS_INDENT');
  const mistakes = [
    ...(tabs.length > 0 ? tabs : document.errors).map((error) => explainSyntax(error, text, document)),
    ...findAliases(document, text),
  ];
  const problems = mistakes.map(
    ({ offset, ...mistake }): Problem => ({ where: at(offset), ...mistake, stops: 'daemon' }),
  );
  return {
    file,
    value: problems.length === 0 ? document.toJS({ maxAliasCount: 1000 }) : undefined,
    // One mistake often makes the parser report several errors on the same line.
    problems: problems.filter(
      ({ where }, index) => index === problems.findIndex((other) => other.where.line === where.line),
    ),
    placeOf: (path) => at(offsetOf(document, path)),
    placeOfKey: (path) => at(keyOffset(document, path) ?? offsetOf(document, path)),
  };
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
    case 'DUPLICATE_KEY':
      return mistake(`the key ${/^[^:]*/.exec(rest)?.[0].trim()} appears twice`, 'remove one of them');
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

/** `files: *.csv`: YAML takes an unquoted asterisk for an alias, and none of these has an anchor. */
function findAliases(document: Document, text: string): SyntaxMistake[] {
  const found: SyntaxMistake[] = [];
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document)) return;
      const offset = alias.range?.[0] ?? 0;
      const message = 'a value that starts with * must be quoted';
      found.push({ offset, message, hint: quoted(`*${alias.source}`, text, offset) });
    },
  });
  return found;
}

function offsetOf(document: Document, path: ConfigPath): number {
  for (let depth = path.length; depth > 0; depth--) {
    const node = document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range && !isEmpty(node)) return node.range[0];
    const key = keyOffset(document, path.slice(0, depth));
    if (key !== undefined) return key;
  }
  return document.contents?.range?.[0] ?? 0;
}

/** `watch:` without a value: the key is the better location. */
const isEmpty = (node: Node): boolean => isScalar(node) && node.value === null && node.source === '';

function keyOffset(document: Document, path: ConfigPath): number | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === path.at(-1));
  return isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
}
