import type { Refuse } from '../refuse.js';
import type { Found } from './tree.js';

/** A place in JSON or XML. Attributes are children whose names begin with `@`. */
export interface Node {
  /** Empty for the top and for the items of a list. */
  readonly name: string;
  readonly parent: Node | undefined;
  readonly children: Node[];
  /** What is written there; undefined where there are only further places. */
  text: string | undefined;
  readonly isList: boolean;
  /** Grows with the place in the file. */
  readonly order: number;
  readonly line: number;
}

/** More are not kept: each takes a hundred bytes, and the file may be one of commas only. */
const MOST_NODES = 3_000_000;

const NONE: Node[] = [];

/** Puts a tree together while a file is read from top to end. */
export interface Grower {
  /** Goes into a new place; what comes next belongs to it. */
  open(name: string, isList: boolean, at: Position): Node;
  close(): void;
  leaf(name: string, text: string, at: Position): void;
  /** Where we are; the top until something was opened. */
  readonly here: Node;
  readonly root: Node;
  readonly size: number;
}

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** `isList`: whether the top is a list of what the file holds. */
export function createGrower(maxNesting: number, refuse: Refuse, isList = false): Grower {
  let size = 0;
  let depth = 0;
  const root: Node = create('', undefined, isList, 1, []);
  let here = root;

  function create(name: string, parent: Node | undefined, isList: boolean, line: number, children: Node[]) {
    return { name, parent, children, text: undefined as string | undefined, isList, order: size++, line };
  }
  function add(name: string, isList: boolean, at: Position, children: Node[]): Node {
    if (size > MOST_NODES) {
      throw refuse(`the file has more than ${MOST_NODES} values, more than are read`, { at });
    }
    const node = create(name, here, isList, at.line, children);
    here.children.push(node);
    return node;
  }

  return {
    open(name, isList, at) {
      if (++depth > maxNesting) {
        throw refuse(`the file is nested more than ${maxNesting} deep`, {
          at,
          hint: `if such files are to be read, allow more: \`limits: { nesting: ${maxNesting * 10} }\``,
        });
      }
      here = add(name, isList, at, []);
      return here;
    },
    close() {
      depth--;
      here = here.parent ?? root;
    },
    leaf(name, text, at) {
      add(name, false, at, NONE).text = text;
    },
    get here() {
      return here;
    },
    root,
    get size() {
      return size;
    },
  };
}

const UNIT = /^@?units?$/i;
const VALUE = /^@?value$/i;

/** What is written at a place. `{ value, unit }` is one value; undefined where there is more than that. */
export function writtenAt(node: Node): Found | undefined {
  const { text, children, line, isList } = node;
  if (children.length === 0 && text !== undefined) return { text, unit: undefined, line };
  if (isList) return undefined;
  const unit = unitOf(children);
  if (text) return { text, unit, line };
  const value = children.find(({ name }) => VALUE.test(name));
  const isOneValue = unit !== undefined || children.length === 1;
  if (value?.text !== undefined && isOneValue) return { text: value.text, unit, line };
  return text === undefined ? undefined : { text, unit, line };
}

/** `unit: mg`, or `unit: { name: mg }`. */
function unitOf(children: readonly Node[]): string | undefined {
  const unit = children.find(({ name }) => UNIT.test(name));
  const named = unit?.text ?? unit?.children.find(({ name }) => /^@?name$/i.test(name))?.text;
  return named?.trim() || undefined;
}

/** The items where it is a list, else itself. */
export const itemsOf = (node: Node): readonly Node[] => (node.isList ? node.children : [node]);
