import { createHash } from 'node:crypto';
import { decodeEntities } from './text.js';

/** What identifies a run. `copy` is the path if equal content at another path is a separate run, else empty. */
export interface RunIdentity {
  readonly instrument: string;
  readonly sha256: string;
  readonly copy: string;
  /** How many times a person has had this run refiled. */
  readonly refiling: number;
}

/**
 * The run's name in the notebook. It is derived from its identity alone, so that an older or a new journal generates the
 * same one and finds what was filed before.
 */
export function referenceOf({ instrument, sha256, copy, refiling }: RunIdentity): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([instrument, sha256, copy, refiling]))
    .digest('hex');
  return digest.slice(0, 16);
}

/**
 * Instead of a fingerprint, for a run of a growing file: `start` is the hash of the lines up to its first reading. A
 * lost journal generates the same one from the file. `nth`: how many earlier files at this path began alike.
 */
export const growingFingerprint = (run: {
  readonly path: string;
  readonly start: string;
  readonly nth: number;
  /** Empty if all of the file is one run. */
  readonly day: string;
}): string =>
  createHash('sha256')
    .update(JSON.stringify(['growing', run.path, run.start, run.nth, run.day]))
    .digest('hex');

/** How many refilings of a run are recognised. */
const MAX_REFILINGS = 100;

/** The refiling count of each possible reference of a run. */
export const refilingsOf = (identity: Omit<RunIdentity, 'refiling'>): ReadonlyMap<string, number> =>
  new Map(Array.from({ length: MAX_REFILINGS }, (_, refiling) => [referenceOf({ ...identity, refiling }), refiling]));

/** The provisional title, which an experiment has until its draft is written. */
export const provisionalTitle = (reference: string): string => `labfeed ${reference}`;

/** No draft has such a title: the map stage rejects it. */
export const isProvisional = (title: string): boolean => PROVISIONAL.test(title);

/** The reference in a provisional title. */
export const provisionalReference = (title: string): string | undefined => PROVISIONAL.exec(title)?.[1];

const PROVISIONAL = /^labfeed ([0-9a-f]{16})$/;

/** The marker line that ends and identifies a run's n-th comment (from 1). */
export const commentMark = (reference: string, n: number): string => `labfeed ${reference}.${n}`;

export interface CommentMark {
  readonly reference: string;
  readonly n: number;
}

/** The last marker line in a comment, of any run. Part of a line does not count. */
export function markIn(text: string): CommentMark | undefined {
  const marks = text.matchAll(/^labfeed ([0-9a-f]{16})\.([1-9][0-9]{0,4})\r?$/gm);
  const [, reference, n] = [...marks].at(-1) ?? [];
  return reference === undefined ? undefined : { reference, n: Number(n) };
}

export const markComment = (text: string, reference: string, n: number): string =>
  `${text.trimEnd()}\n\n${commentMark(reference, n)}`;

/** The maximum size of a marker line with its line breaks. */
export const MARK_BYTES = Buffer.byteLength(markComment('', '0'.repeat(16), 99_999));

/** The content of an origin line. `label`: the instrument and the file, separated by a space. */
export interface Origin {
  readonly label: string;
  readonly sha256: string;
  /** The id of the journal that it was filed from. Lines of older versions have none. */
  readonly journal?: string | undefined;
}

/** The line that ends every body, as plain text. */
export const originLine = ({ label, sha256, journal }: Origin): string =>
  `labfeed ${label} sha256:${sha256}${journal === undefined ? '' : ` journal:${journal}`}`;

/** A body without the journal's id in its origin line, as older versions wrote it. */
export const withoutJournalId = (body: string): string => body.replace(/ journal:[0-9a-f]{8}(?=<\/p>$)/, '');

/** A body that names another journal in its origin line. */
export const withJournalId = (body: string, journal: string): string =>
  body.replace(/ journal:[0-9a-f]{8}(?=<\/p>$)/, ` journal:${journal}`);

/** The last origin line in a body as the notebook returns it. */
export function originIn(body: string): Origin | undefined {
  const last = [...body.matchAll(/labfeed ([^<>]*) sha256:([0-9a-f]{64})(?: journal:([0-9a-f]{8})\b)?/g)].at(-1);
  if (last === undefined) return undefined;
  const [, label = '', sha256 = '', journal] = last;
  return { label: decodeEntities(label), sha256, journal };
}

/** Splits a label. Instrument names may contain spaces: the longest that fits is used. */
export function readLabel(label: string, instruments: readonly string[]) {
  const [instrument] = instruments.filter((name) => label.startsWith(`${name} `)).sort((a, b) => b.length - a.length);
  return instrument === undefined ? undefined : { instrument, file: label.slice(instrument.length + 1) };
}

/**
 * Replaces an erased name: the same name is still recognised, but cannot be read back. Paths are absolute, so none
 * starts like this.
 */
const erased = (...parts: readonly string[]): string =>
  `${ERASED}${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;

export const ERASED = 'erased:';

export const erasedPath = (instrument: string, path: string): string => erased(instrument, path);

/** The same for all runs with this content at this path, including later ones. */
export const erasedCopy = ({ instrument, sha256, copy }: Omit<RunIdentity, 'refiling'>): string =>
  copy === '' || copy.startsWith(ERASED) ? copy : erased(instrument, sha256, copy);
