import type { RequestResult } from '../commands/decisions.js';
import type { ProgressLine } from '../commands/terminal.js';
import type { UsableConfig } from '../config/load.js';
import type { MissingComments, MissingUploads } from '../evidence.js';
import type { JournalReader } from '../journal/reader.js';
import type { Notebook } from '../notebook/client.js';
import { plural, terminalLine, withoutPath } from '../text.js';

/** What differs between folders, journal and notebook, or is worth knowing. */
export interface Finding {
  readonly kind: FindingKind;
  readonly instrument?: string | undefined;
  readonly run?: number | undefined;
  readonly experiment?: number | undefined;
  readonly path?: string | undefined;
  /** One line. */
  readonly text: string;
}

interface Meaning {
  readonly title: string;
  /** What can be done. */
  readonly hint?: string;
  /** Intended, or needs no action: reported, but not counted as a difference. */
  readonly isIntended?: true;
}

/** In the order of the report. The names of the kinds are part of `--json`. */
const MEANINGS = {
  halted: { title: 'sending is halted' },
  vanished: {
    title: 'filed, but missing from the notebook',
    hint: 'to file a run again: labfeed refile RUN',
  },
  deleted: {
    title: 'filed, but deleted in the notebook',
    hint: 'restore the experiment there, or file the run again: labfeed refile RUN',
  },
  forbidden: {
    title: 'filed, but not readable with this key',
    hint: 'ask the owner of the experiment for access',
  },
  'not ours': {
    title: 'filed, but the experiment was rewritten without its origin line',
    hint: 'to file a run again, as a new experiment: labfeed refile RUN',
  },
  outdated: {
    title: 'filed, but the experiment shows an earlier version of the file: it was restored there',
    hint: 'restore the newest version there, or file it again, as a new experiment: labfeed refile RUN',
  },
  'comment missing': {
    title: 'missing comments',
    hint: '--repair posts them again, even if somebody deleted them on purpose',
  },
  'comment twice': { title: 'duplicate comments', hint: 'delete all but one in the notebook' },
  'file missing': {
    title: 'raw files missing from the notebook',
    hint: '--repair attaches them again, from their folder, even if somebody deleted them on purpose',
  },
  'not attached': {
    title: 'filed without their raw files',
    hint: 'once the reason is fixed, --repair attaches them from their folder',
    isIntended: true,
  },
  edited: { title: 'edited in the notebook, and left as they are', isIntended: true },
  altered: {
    title: 'stored differently by the notebook, so that their files are not called safe to delete',
    hint: 'compare the experiment with the file',
    isIntended: true,
  },
  incomplete: {
    title: 'filed, but the notebook does not have all of the file, so it is not safe to delete',
    hint: 'what is missing: labfeed try INSTRUMENT FILE',
    isIntended: true,
  },
  held: { title: 'held runs', hint: 'to see the options: labfeed show RUN' },
  quarantined: {
    title: 'quarantined runs',
    hint: 'to see the reason: labfeed show RUN. Once it is fixed: labfeed retry RUN',
  },
  interrupted: {
    title: 'runs whose delivery has failed so far',
    hint: 'the daemon retries them; --repair makes it retry at once',
  },
  'on its way': { title: 'runs not sent yet' },
  folder: { title: 'folders that cannot be read' },
  unread: { title: 'files and experiments that could not be read' },
  changed: { title: 'files that changed after they were filed; the new content is not filed yet' },
  'never taken': { title: 'files that were never taken', hint: 'to see the reason: labfeed why PATH' },
  asked: {
    title: 'backlog files without a decision',
    hint: 'run labfeed backfill INSTRUMENT, or set `existing` in the configuration',
  },
  growing: { title: 'files that keep growing, which are not safe to delete', isIntended: true },
  skipped: { title: 'skipped files', isIntended: true },
  'thinned out': {
    title: 'incomplete runs: some of their files are gone, so the others cannot be verified',
    isIntended: true,
  },
  elsewhere: { title: 'filed in another notebook, which was not checked', isIntended: true },
  spare: { title: 'empty experiments created by labfeed', isIntended: true },
} as const satisfies Record<string, Meaning>;

export type FindingKind = keyof typeof MEANINGS;

const meaningOf = (kind: FindingKind): Meaning => MEANINGS[kind];

export const differs = ({ kind }: Finding): boolean => !meaningOf(kind).isIntended;

/** What `--repair` requests from the daemon. */
export interface Repair {
  readonly run: number;
  /** Empty if the run only waits for its next attempt. */
  readonly comments: MissingComments;
  readonly uploads?: MissingUploads;
}

/** A file whose attachment, or every reading of which, was read back from the notebook. */
export interface SafeFile {
  readonly path: string;
  /** The bytes of the path, if they are not UTF-8. */
  readonly location: string | Buffer;
  readonly sha256: string;
  readonly run: number;
  readonly experiment: number | undefined;
}

/** Files of an instrument by what became of them. The names are part of `--json`. */
export interface FileCounts {
  files: number;
  /** The attached file, or everything that it contains, was read back from the notebook. */
  proved: number;
  /** Verified in the notebook, which does not have all that they contain. */
  incomplete: number;
  /** Filed according to the journal, but not verified in the notebook. */
  unproved: number;
  onTheirWay: number;
  /** Quarantined, held or ignored. */
  resting: number;
  /** They keep growing, and what they contain is filed as it comes. */
  growing: number;
  /** Changed, never taken, skipped or unreadable. */
  notTaken: number;
}

export interface AuditDeps {
  readonly config: UsableConfig;
  /** Only this instrument. */
  readonly instrument: string | undefined;
  readonly journal: JournalReader;
  readonly notebook: Notebook;
  readonly signal: AbortSignal;
  readonly progress: ProgressLine;
}

export type AuditResult = ReturnType<typeof emptyResult>;

export const emptyResult = (server: string) => ({
  server,
  findings: [] as Finding[],
  /** What can be repaired without touching anything that a person did. */
  repairs: [] as Repair[],
  safe: [] as SafeFile[],
  /** How many runs that are done in the journal were compared. */
  filed: 0,
  /** Those of these that the notebook has as they were filed. */
  verified: new Set<number>(),
  /** Those of which the notebook has everything that their files contain, or the files themselves. */
  proved: new Set<number>(),
  folders: [] as (FileCounts & { name: string; watch: string })[],
  /** Why the audit is incomplete. */
  stoppedBy: undefined as string | undefined,
});

export const toJson = (
  { server, findings, safe, filed, verified, folders, stoppedBy }: AuditResult,
  repaired: readonly RequestResult[] | undefined,
) => ({
  server,
  runs: { filed, proved: verified.size },
  folders,
  brokenOff: stoppedBy,
  findings: findings.map((finding) => ({ ...finding, differs: differs(finding) })),
  safe: safe.map(({ location: _, ...file }) => file),
  ...(repaired && { repaired }),
});

/** The rest is only in the JSON. */
const MAX_SHOWN = 20;

/** The result as text. `width`: that of the terminal. */
export function report(
  result: AuditResult,
  repaired: readonly RequestResult[] | undefined,
  width = Number.POSITIVE_INFINITY,
): string {
  const sections = Object.keys(MEANINGS).flatMap((kind) => {
    const some = result.findings.filter((finding) => finding.kind === kind);
    return some.length === 0 ? [] : section(meaningOf(kind as FindingKind), some, width);
  });
  return [
    ...summary(result),
    ...sections,
    ...safeFiles(result),
    ...(repaired ? ['', ...repairs(repaired)] : []),
    '',
    conclusion(result),
  ].join('\n');
}

function summary({ server, filed, verified, folders, stoppedBy }: AuditResult): string[] {
  const runs =
    stoppedBy === undefined
      ? `${plural(filed, 'run')} filed at ${server}, ${verified.size} verified`
      : `${server} was not read completely: ${plural(filed, 'run')} checked, ${verified.size} verified`;
  return [
    runs,
    ...folders.map(({ name, watch, files, ...counts }) => {
      const parts = [
        [counts.proved, 'safe to delete'],
        [counts.incomplete, 'filed in part'],
        [counts.unproved, 'filed but not verified'],
        [counts.onTheirWay, 'not sent yet'],
        [counts.resting, 'parked'],
        [counts.growing, 'still growing'],
        [counts.notTaken, 'not taken'],
      ] as const;
      const some = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
      return `${name}: ${plural(files, 'file')} in ${watch}${some.length === 0 ? '' : `: ${some.join(', ')}`}`;
    }),
  ];
}

function section({ title, hint }: Meaning, findings: readonly Finding[], width: number): string[] {
  const shown = findings.slice(0, MAX_SHOWN);
  const subjects = shown.map(subjectOf);
  const widest = Math.max(...subjects.map(({ length }) => length));
  const more = findings.length - shown.length;
  return [
    '',
    `${title} (${findings.length})`,
    ...(hint === undefined ? [] : [`  → ${hint}`]),
    ...shown.map((finding, n) => row(widest === 0 ? '' : `${subjects[n]?.padEnd(widest)}  `, finding, width)),
    ...(more > 0 ? [`  and ${more} more, see --json`] : []),
  ];
}

const subjectOf = ({ run, experiment }: Finding): string =>
  [
    ...(run === undefined ? [] : [`run ${run}`]),
    ...(experiment === undefined ? [] : [`experiment ${experiment}`]),
  ].join(', ');

/** The end of a path is what people recognise a file by. */
function row(subject: string, { text, path = '' }: Finding, width: number): string {
  const start = `  ${subject}${terminalLine(withoutPath(text, path))}${path === '' ? '' : ': '}`;
  const name = terminalLine(path);
  const room = width - start.length;
  const line = `${start}${name.length <= room ? name : `…${name.slice(name.length - Math.max(1, room - 1))}`}`;
  return line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1))}…`;
}

function safeFiles({ safe }: AuditResult): string[] {
  if (safe.length === 0) return [];
  const more = safe.length - MAX_SHOWN;
  return [
    '',
    `safe to delete: ${plural(safe.length, 'file')} (the attached file or every reading was read back from the notebook)`,
    ...safe.slice(0, MAX_SHOWN).map(({ path }) => `  ${terminalLine(path)}`),
    ...(more > 0 ? [`  and ${more} more, see --safe`] : []),
  ];
}

const repairs = (repaired: readonly RequestResult[]): string[] =>
  repaired.length === 0 ? ['nothing to repair'] : ['repair', ...repaired.map(({ text }) => `  ${text}`)];

function conclusion({ findings, stoppedBy }: AuditResult): string {
  const differences = findings.filter(differs).length;
  if (differences > 0) return plural(differences, 'difference');
  return stoppedBy === undefined ? 'no differences' : 'no differences in what was checked';
}
