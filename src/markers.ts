import { createHash } from 'node:crypto';

/** What a run is known by. `copy` is empty unless the instrument files equal bytes under other paths again. */
export interface RunIdentity {
  readonly instrument: string;
  readonly sha256: string;
  readonly copy: string;
  /** How often a person had this run filed anew. */
  readonly refiling: number;
}

/**
 * The run's name in the notebook. Derived from nothing but its identity, so that a journal
 * that was set back, or lost, makes the same one and finds what it filed before.
 */
export function referenceOf({ instrument, sha256, copy, refiling }: RunIdentity): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([instrument, sha256, copy, refiling]))
    .digest('hex');
  return digest.slice(0, 16);
}

/** No one has a run filed anew more often than that. */
const MOST_REFILINGS = 100;

/** Which refiling of a run each reference means. */
export const refilingsOf = (identity: Omit<RunIdentity, 'refiling'>): ReadonlyMap<string, number> =>
  new Map(
    Array.from({ length: MOST_REFILINGS }, (_, refiling) => [
      referenceOf({ ...identity, refiling }),
      refiling,
    ]),
  );

/** The title under which an experiment is created, before it gets its real one. */
export const provisionalTitle = (reference: string): string => `labfeed ${reference}`;

/** No real title has this form: the map stage refuses it. */
export const isProvisional = (title: string): boolean => PROVISIONAL.test(title);

/** Whose provisional title this is, if it is one. */
export const provisionalReference = (title: string): string | undefined => PROVISIONAL.exec(title)?.[1];

const PROVISIONAL = /^labfeed ([0-9a-f]{16})$/;

/** The last line of a run's n-th comment (from 1), by which it is found again. */
export const commentMark = (reference: string, n: number): string => `labfeed ${reference}.${n}`;

export interface CommentMark {
  readonly reference: string;
  readonly n: number;
}

/** The last mark that stands as a whole line in a comment's text, whoever's it is. */
export function markIn(text: string): CommentMark | undefined {
  const marks = text.matchAll(/^labfeed ([0-9a-f]{16})\.([1-9][0-9]{0,4})\r?$/gm);
  const [, reference, n] = [...marks].at(-1) ?? [];
  return reference === undefined ? undefined : { reference, n: Number(n) };
}

export const markComment = (text: string, reference: string, n: number): string =>
  `${text.trimEnd()}\n\n${commentMark(reference, n)}`;

/** The longest that a mark with its line breaks can be, for who must leave room for it. */
export const MARK_BYTES = Buffer.byteLength(markComment('', '0'.repeat(16), 99_999));

/** What the last line of a body says: the instrument and the file, with a blank between them, and the content. */
export interface Origin {
  readonly label: string;
  readonly sha256: string;
}

/** Where an experiment came from, read from its body as the notebook gives it back. */
export function originIn(body: string): Origin | undefined {
  const last = [...body.matchAll(/labfeed ([^<>]*) sha256:([0-9a-f]{64})/g)].at(-1);
  if (last === undefined) return undefined;
  const [, label = '', sha256 = ''] = last;
  return {
    label: label.replace(/&(amp|lt|gt|quot|#0?39|apos);/g, (_, name: string) => ENTITIES[name] ?? ''),
    sha256,
  };
}

/** The instrument and the file that a label names. Names may hold blanks: the longest that fits is meant. */
export function readLabel(
  label: string,
  instruments: readonly string[],
): { readonly instrument: string; readonly file: string } | undefined {
  const [instrument] = instruments
    .filter((name) => label.startsWith(`${name} `))
    .sort((a, b) => b.length - a.length);
  return instrument === undefined ? undefined : { instrument, file: label.slice(instrument.length + 1) };
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  '#39': "'",
  '#039': "'",
};

/**
 * Stands in for a name that a person erased: the same name is recognised, but cannot be read back. Paths are absolute,
 * so none begins like this.
 */
const erased = (...parts: readonly string[]): string =>
  `${ERASED}${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;

export const ERASED = 'erased:';

export const erasedPath = (instrument: string, path: string): string => erased(instrument, path);

/** The same for all runs of these bytes at this path, later ones included. */
export const erasedCopy = ({ instrument, sha256, copy }: Omit<RunIdentity, 'refiling'>): string =>
  copy === '' || copy.startsWith(ERASED) ? copy : erased(instrument, sha256, copy);
