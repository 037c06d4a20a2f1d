/** A path into a tree: `/a/b`, `//b`, `peak list/0/@id`, `//Series[@name=Value]/F`, `../id`, `name()`. */
export interface Path {
  readonly written: string;
  /** From the root of the file; otherwise from the row. */
  readonly isAbsolute: boolean;
  readonly steps: readonly Step[];
}

export interface Step {
  /** As in the file, with `@` before an attribute; `*` matches any name. */
  readonly name: string;
  /** The name as a number, if it is one. */
  readonly index: number | undefined;
  /** `..`: what contains the node, without the list that it is an item of; `name()`: the name of the node. */
  readonly turn: 'up' | 'name' | undefined;
  /** At any depth. */
  readonly isDeep: boolean;
  readonly conditions: readonly Condition[];
}

/** `[key=value]`. */
export interface Condition {
  readonly key: readonly Step[];
  readonly value: string;
}

/** The row itself is `.`, the root `/`. Names with slashes or brackets can be in double quotes. */
export function parsePath(written: string | number): Path {
  const text = String(written).trim();
  const steps: Step[] = [];
  let isDeep = false;
  for (const [n, piece] of splitAtSlashes(text).entries()) {
    if (piece === '') isDeep = n > 0;
    else if (piece !== '.') {
      steps.push(parseStep(piece, isDeep));
      isDeep = false;
    }
  }
  return { written: text, isAbsolute: text.startsWith('/'), steps };
}

/** Slashes in brackets and quotes belong to a name: `Flow [mL/min]`. */
function splitAtSlashes(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    const close = character === '"' ? text.indexOf('"', at + 1) : character === '[' ? text.indexOf(']', at) : -1;
    if (close > at) at = close;
    else if (character === '/') {
      pieces.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...pieces, text.slice(from).trim()];
}

const CONDITIONS = /^(.*?)((?:\[[^[\]=]+=[^[\]]*\])+)$/s;

function parseStep(piece: string, isDeep: boolean): Step {
  const [, before = piece, brackets = ''] = CONDITIONS.exec(piece) ?? [];
  const isQuoted = before.length > 2 && before.startsWith('"') && before.endsWith('"');
  const name = isQuoted ? before.slice(1, -1) : before.trim();
  const index = !isQuoted && /^\d{1,9}$/.test(name) ? Number(name) : undefined;
  const turn = isQuoted ? undefined : name === '..' ? 'up' : name === 'name()' ? 'name' : undefined;
  return { name: name === '' ? '*' : name, index, turn, isDeep, conditions: parseConditions(brackets) };
}

function parseConditions(brackets: string): Condition[] {
  return [...brackets.matchAll(/\[([^=]+)=([^\]]*)\]/g)].map(([, key = '', value = '']) => ({
    key: parsePath(key).steps,
    value: value.trim().replace(/^(["'])(.*)\1$/s, '$2'),
  }));
}

/** The path up to its n-th step. */
export function writtenTo({ isAbsolute, steps }: Path, n: number): string {
  const parts = steps.slice(0, n + 1).map(({ name, isDeep }) => (isDeep ? `/${name}` : name));
  return `${isAbsolute ? '/' : ''}${parts.join('/')}`;
}

/** In quotes if it would mean something else in a path. */
export const quotePart = (name: string): string =>
  /[/[\]"*]|^(?:\d+|\.{1,2}|name\(\))$|^\s|\s$/.test(name) ? `"${name}"` : name;
