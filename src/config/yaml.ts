import { readFileSync } from 'node:fs';
import { type Document, isMap, isNode, isPair, isScalar, LineCounter, type Node, parseDocument } from 'yaml';
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

/** The top of a file that could not be read has no better place than its beginning. */
const unreadable = (file: string, message: string, hint: string): YamlFile => ({
  file,
  value: undefined,
  problems: [{ where: { file }, message, hint, stops: 'daemon' }],
  placeOf: () => ({ file }),
  placeOfKey: () => ({ file }),
});

export function readYaml(file: string): YamlFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT')
      return unreadable(file, 'there is no such file', 'create it, or name another with --config');
    return unreadable(
      file,
      `cannot be read (${code ?? error})`,
      'check that it is a file and may be read by this user',
    );
  }
  return parseYaml(file, text);
}

export function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  const problems = document.errors.map(
    (error): Problem => ({ where: at(error.pos[0]), message: error.message, stops: 'daemon' }),
  );
  return {
    file,
    value: problems.length === 0 ? document.toJS({ maxAliasCount: 1000 }) : undefined,
    problems,
    placeOf: (path) => at(offsetOf(document, path)),
    placeOfKey: (path) => at(keyOffset(document, path) ?? offsetOf(document, path)),
  };
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
