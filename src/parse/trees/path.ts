/** A path into a tree: `/a/b`, `//b`, `peak list/0/@id`, `//Series[@name=Value]/F`. */
export interface Path {
  readonly written: string;
  /** From the top of the file; else from the row. */
  readonly isAbsolute: boolean;
  readonly steps: readonly Step[];
}

export interface Step {
  /** As the file has it, `@` before an attribute; `*` is any, a number is the n-th item. */
  readonly name: string;
  /** Undefined where the name is no number. */
  readonly place: number | undefined;
  /** At any depth below, not only right below. */
  readonly isDeep: boolean;
  /** `[key=value]`: only where this holds. */
  readonly conditions: readonly Condition[];
}

export interface Condition {
  readonly key: readonly Step[];
  readonly value: string;
}

/** A row's own place is `.`; the top is `/`. A name with a slash or a bracket in it can stand in double quotes. */
export function parsePath(written: string | number): Path {
  const text = String(written).trim();
  const steps: Step[] = [];
  let isDeep = false;
  for (const [n, piece] of cutAtSlashes(text).entries()) {
    if (piece === '') isDeep = n > 0;
    else if (piece !== '.') {
      steps.push(stepOf(piece, isDeep));
      isDeep = false;
    }
  }
  return { written: text, isAbsolute: text.startsWith('/'), steps };
}

/** Slashes within brackets and quotes belong to a name: `Flow [mL/min]`. */
function cutAtSlashes(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    const close = sign === '"' ? text.indexOf('"', at + 1) : sign === '[' ? text.indexOf(']', at) : -1;
    if (close > at) at = close;
    else if (sign === '/') {
      pieces.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...pieces, text.slice(from).trim()];
}

const CONDITIONS = /^(.*?)((?:\[[^[\]=]+=[^[\]]*\])+)$/s;

function stepOf(piece: string, isDeep: boolean): Step {
  const [, before = piece, brackets = ''] = CONDITIONS.exec(piece) ?? [];
  const isQuoted = before.length > 2 && before.startsWith('"') && before.endsWith('"');
  const name = isQuoted ? before.slice(1, -1) : before.trim();
  const place = !isQuoted && /^\d{1,9}$/.test(name) ? Number(name) : undefined;
  return { name: name === '' ? '*' : name, place, isDeep, conditions: conditionsIn(brackets) };
}

function conditionsIn(brackets: string): Condition[] {
  return [...brackets.matchAll(/\[([^=]+)=([^\]]*)\]/g)].map(([, key = '', value = '']) => ({
    key: parsePath(key).steps,
    value: value.trim().replace(/^(["'])(.*)\1$/s, '$2'),
  }));
}

/** A path as a mapping writes it, up to and with the n-th of its steps: for people. */
export function writtenTo({ isAbsolute, steps }: Path, n: number): string {
  const parts = steps.slice(0, n + 1).map(({ name, isDeep }) => (isDeep ? `/${name}` : name));
  return `${isAbsolute ? '/' : ''}${parts.join('/')}`;
}
