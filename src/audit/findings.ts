/** Something that is not as it should be, or that somebody may want to know. */
export interface Finding {
  readonly kind: FindingKind;
  readonly instrument?: string | undefined;
  readonly run?: number | undefined;
  readonly experiment?: number | undefined;
  readonly path?: string | undefined;
  /** What of it differs, for people, in one line. */
  readonly text: string;
}

/** In the order in which they are told. */
export const FINDING_KINDS = [
  'halted',
  'vanished',
  'deleted',
  'forbidden',
  'not ours',
  'comment missing',
  'comment twice',
  'edited',
  'held',
  'quarantined',
  'interrupted',
  'on its way',
  'folder',
  'unread',
  'changed',
  'never taken',
  'asked',
  'skipped',
  'thinned out',
  'elsewhere',
  'spare',
] as const;

export type FindingKind = (typeof FINDING_KINDS)[number];

/** What a person wanted, or what needs nobody: told, but nothing differs. */
const AS_SOMEBODY_WANTS: ReadonlySet<FindingKind> = new Set([
  'edited',
  'skipped',
  'thinned out',
  'elsewhere',
  'spare',
]);

export const differs = ({ kind }: Finding): boolean => !AS_SOMEBODY_WANTS.has(kind);

/** What `--repair` asks the daemon for. */
export interface Repair {
  readonly run: number;
  /** Those that are gone, each with the id under which it was missed; none where the run only waits. */
  readonly comments: readonly { readonly n: number; readonly comment: number }[];
}

/** A file whose content was proved to be in the notebook. */
export interface SafeFile {
  readonly path: string;
  /** The very bytes of its name, where they are not UTF-8. */
  readonly location: string | Buffer;
  readonly sha256: string;
  readonly run: number;
  readonly experiment: number | undefined;
}
