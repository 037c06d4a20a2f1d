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
  type YAMLError,
} from 'yaml';
import { type Place, type Problem, systemCode } from '../errors.js';

export type ConfigPath = readonly (string | number)[];

/** A YAML file that knows where each of its values stands. */
export interface YamlFile {
  readonly file: string;
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Where the value at this path stands, or the nearest thing around it that does stand in the file. */
  placeOf(path: ConfigPath): Place;
  /** Where the last part of this path stands as a key. */
  placeOfKey(path: ConfigPath): Place;
}

/** What could not be read has no better place than where it ceased to be readable. */
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
    const code = systemCode(error);
    if (code === 'ENOENT')
      return unreadable({ file }, 'there is no such file', 'create it, or name another with --config');
    if (code === 'EISDIR')
      return unreadable(
        { file },
        'this is a folder',
        `name a file in it; include also takes a glob such as ${basename(file)}/*.yaml`,
      );
    return unreadable(
      { file },
      `cannot be read (${code ?? error})`,
      'check that it is a file and may be read by this user',
    );
  }
  const text = bytes.toString('utf8');
  if (!isUtf8(bytes))
    return unreadable(firstUnread(file, text), 'this is not UTF-8', 'save the file as UTF-8');
  return parseYaml(file, text);
}

/** Where the first byte stands that is no UTF-8: it was read as the character that stands for such. */
function firstUnread(file: string, text: string): Place {
  const before = text.slice(0, text.indexOf('\ufffd')).split('\n');
  return { file, line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

export function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  const problems = document.errors.map(
    (error): Problem => ({ where: at(error.pos[0]), ...inOurWords(error, text), stops: 'daemon' }),
  );
  return {
    file,
    value: problems.length === 0 ? document.toJS({ maxAliasCount: 1000 }) : undefined,
    problems,
    placeOf: (path) => at(offsetOf(document, path)),
    placeOfKey: (path) => at(keyOffset(document, path) ?? offsetOf(document, path)),
  };
}

/** The parser's own words, but where they do not say what to do. */
function inOurWords(
  { code, message, pos: [start] }: YAMLError,
  text: string,
): Pick<Problem, 'message' | 'hint'> {
  switch (code) {
    case 'DUPLICATE_KEY': {
      const [key = ''] = /^[^:\n]*/.exec(text.slice(start)) ?? [];
      return { message: `the key ${key.trim()} stands in this map already`, hint: 'keep one of the two' };
    }
    case 'TAB_AS_INDENT':
      return { message: 'a tab cannot indent a line', hint: 'indent it with blanks' };
    default:
      return { message };
  }
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

/** `watch:` with nothing behind it has a value without a place worth showing. */
const isEmpty = (node: Node): boolean => isScalar(node) && node.value === null && node.source === '';

function keyOffset(document: Document, path: ConfigPath): number | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find(
    (item) => isPair(item) && isScalar(item.key) && item.key.value === path.at(-1),
  );
  return isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
}
