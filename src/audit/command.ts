import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { type RequestResult, sendRequests } from '../commands/decisions.js';
import {
  type ConfigOption,
  configOption,
  examples,
  jsonOption,
  usableConfigFrom,
} from '../commands/options.js';
import { terminalWidth } from '../commands/terminal.js';
import { journalOf } from '../config/load.js';
import { EXIT, explainProblem, UsageError } from '../errors.js';
import { isFree } from '../journal/database.js';
import { onStopRequest } from '../process.js';
import { plural, terminalLine, withoutPath } from '../text.js';
import { type Audited, audit, type Progress } from './audit.js';
import { differs, FINDING_KINDS, type Finding, type FindingKind, type SafeFile } from './findings.js';

interface AuditCommandOptions extends ConfigOption {
  readonly repair?: boolean;
  readonly instrument?: string;
  readonly safe?: boolean;
  readonly null?: boolean;
  readonly json?: boolean;
}

export function addAudit(command: Command): void {
  command
    .addOption(configOption())
    .option('--instrument <instrument>', 'Only this instrument')
    .option(
      '--repair',
      'Post missing comments again and continue waiting runs at once; never changes what people changed',
    )
    .option('--safe', 'Print only the paths of the files that are safe to delete')
    .option('-0, --null', 'With --safe: end each path with a zero byte, for xargs -0')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `${examples('labfeed audit', 'labfeed audit --safe -0 --instrument nanodrop | xargs -0 rm --')}\n\n${EXIT_STATUS}`,
    )
    .action(runAudit);
}

const EXIT_STATUS = `Exit status: 0 if nothing differs, 1 if something differs or could not be
checked.`;

async function runAudit({
  repair,
  instrument,
  json,
  safe,
  null: zero,
  ...rest
}: AuditCommandOptions): Promise<void> {
  refuseTogether({ '--safe': safe, '--json': json });
  refuseTogether({ '--safe': safe, '--repair': repair });
  if (zero && !safe) throw new UsageError('-0 is for the paths that --safe prints');
  const config = usableConfigFrom(rest);
  for (const problem of config.problems) process.stderr.write(`${explainProblem(problem)}\n`);
  const display = createDisplay();
  const path = journalOf(config);
  const signal = onStopRequest();
  const audited = await audit({ config, path, instrument, clock: systemClock, signal, ...display }).finally(
    display.end,
  );
  const repaired = repair ? await askFor(audited, path) : undefined;
  if (safe) printSafe(audited.safe, zero ? '\0' : '\n');
  else if (json) console.log(JSON.stringify(asJson(audited, repaired?.outcomes), null, 2));
  else console.log(report(audited, repaired, terminalWidth()));
  if (audited.brokenOff !== undefined)
    process.stderr.write(`labfeed: the audit was broken off: ${audited.brokenOff}\n`);
  if (audited.brokenOff !== undefined || audited.findings.some(differs)) process.exitCode = EXIT.failed;
}

function refuseTogether(options: Readonly<Record<string, boolean | undefined>>): void {
  if (Object.values(options).every(Boolean))
    throw new UsageError(`${Object.keys(options).join(' and ')} do not go together`);
}

/** Asks whoever holds the journal to mend what can be mended. Nothing is sent from here. */
async function askFor(
  { repairs }: Audited,
  path: string,
): Promise<{ readonly outcomes: readonly RequestResult[]; readonly hasDaemon: boolean }> {
  if (repairs.length === 0) return { outcomes: [], hasDaemon: true };
  const outcomes = await sendRequests(path, async () =>
    repairs.map((repair) => ({ kind: 'repair', ...repair })),
  );
  return { outcomes, hasDaemon: !isFree(path) };
}

const asJson = (
  { findings, safe, repairs: _, ...rest }: Audited,
  repaired: readonly RequestResult[] | undefined,
) => ({
  ...rest,
  findings: findings.map((finding) => ({ ...finding, differs: differs(finding) })),
  safe: safe.map(({ location: _bytes, ...file }) => file),
  ...(repaired && { repaired }),
});

/** The bytes of each name as they are. One with a line break in it would read as two others: left out, and told. */
function printSafe(files: readonly SafeFile[], end: '\0' | '\n'): void {
  const isPlain = ({ location }: SafeFile): boolean => end === '\0' || !location.includes('\n');
  const names = files
    .filter(isPlain)
    .map(({ location }) => Buffer.concat([Buffer.from(location), Buffer.from(end)]));
  process.stdout.write(Buffer.concat(names));
  const left = files.length - names.length;
  if (left > 0) process.stderr.write(`${left} with a line break in their names are left out: use -0\n`);
}

/** Beside the data, and only where somebody watches. */
function createDisplay() {
  const terminal = process.stderr.isTTY;
  const show = (text: string): void => void process.stderr.write(`\r\x1b[K${text}`);
  let shownAt = 0;
  return {
    progress(so: Progress): void {
      const now = systemClock.monotonic();
      if (!terminal || now - shownAt < SHOW_MS) return;
      shownAt = now;
      show(
        so.part === 'notebook'
          ? `reading back run ${so.runs + 1} of ${so.of}`
          : `reading the files of ${so.instrument}: ${so.files}`,
      );
    },
    trouble(reason: string): void {
      if (terminal) show('');
      process.stderr.write(`the notebook does not answer, trying again: ${reason}\n`);
    },
    end(): void {
      if (terminal) show('');
    },
  };
}

const SHOW_MS = 100;

interface Repaired {
  readonly outcomes: readonly RequestResult[];
  readonly hasDaemon: boolean;
}

/** So many of a kind are shown; all of them are in the JSON. */
const MOST_SHOWN = 20;

/** What was found, for people. `columns`: how wide the terminal is, where it is one. */
export function report(
  audited: Audited,
  repaired: Repaired | undefined,
  columns = Number.POSITIVE_INFINITY,
): string {
  const { findings } = audited;
  return [
    ...summary(audited),
    ...FINDING_KINDS.flatMap((kind) => {
      const some = findings.filter((finding) => finding.kind === kind);
      return some.length === 0 ? [] : section(kind, some, columns);
    }),
    ...safeFiles(audited),
    ...(repaired ? ['', ...repairs(repaired)] : []),
    '',
    conclusion(audited),
  ].join('\n');
}

function summary({ server, runs, folders, brokenOff }: Audited): string[] {
  return [
    brokenOff === undefined
      ? `${plural(runs.filed, 'run')} filed at ${server}: ${runs.proved} read back as they were filed`
      : `${server} could not be read to the end: ${plural(runs.filed, 'run')} looked at, ${runs.proved} read back as they were filed`,
    ...folders.map(
      ({ name, watch, files, proved, unproved, onTheirWay, resting, notTaken }) =>
        `${name}: ${plural(files, 'file')} in ${watch}${listed({
          'safe to delete': proved,
          'filed, but not proved': unproved,
          'on their way': onTheirWay,
          resting,
          'not taken': notTaken,
        })}`,
    ),
  ];
}

function listed(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, files]) => files > 0);
  return some.length === 0 ? '' : `: ${some.map(([what, files]) => `${files} ${what}`).join(', ')}`;
}

function section(kind: FindingKind, findings: readonly Finding[], columns: number): string[] {
  const [what, hint] = MEANING[kind];
  const shown = findings.slice(0, MOST_SHOWN);
  const width = Math.max(...shown.map((finding) => whoOf(finding).length));
  const more = findings.length - shown.length;
  return [
    '',
    `${what} (${findings.length})`,
    ...(hint === undefined ? [] : [`  → ${hint}`]),
    ...shown.map((finding) => cut(rowOf(finding, width, columns), columns)),
    ...(more > 0 ? [`  and ${more} more: --json has all`] : []),
  ];
}

function rowOf(finding: Finding, width: number, columns: number): string {
  const who = width > 0 ? `${whoOf(finding).padEnd(width)}  ` : '';
  const start = `  ${who}${terminalLine(withoutPath(finding.text, finding.path ?? ''))}`;
  return finding.path === undefined ? start : `${start}: ${endOf(finding.path, columns - start.length - 2)}`;
}

const whoOf = ({ run, experiment }: Finding): string =>
  [run === undefined ? '' : `run ${run}`, experiment === undefined ? '' : `experiment ${experiment}`]
    .filter(Boolean)
    .join(', ');

/** The end of a path is what people know a file by. */
function endOf(path: string, room: number): string {
  const text = terminalLine(path);
  return text.length <= room ? text : `…${text.slice(text.length - Math.max(1, room - 1))}`;
}

/** What the findings of a kind have in common, and what can be done about it. */
const MEANING: Readonly<Record<FindingKind, readonly [what: string, hint?: string]>> = {
  halted: ['notebook to which nothing is sent'],
  vanished: ['filed, and gone from the notebook', '`labfeed refile RUN` files it once more'],
  deleted: ['filed, and deleted by somebody', '`labfeed refile RUN` files it once more; or restore it there'],
  forbidden: ['filed, and no longer to be read with this key', 'ask who owns it, or leave it'],
  'not ours': [
    'filed, and rewritten: nothing there says that it is ours',
    '`labfeed refile RUN` files it once more, beside it',
  ],
  'comment missing': [
    'comments that are gone',
    '--repair posts them again; those too that somebody deleted on purpose, which nobody can tell',
  ],
  'comment twice': ['comments that are there twice', 'delete one of them in the notebook'],
  edited: ['changed by somebody, and left to them'],
  held: ['held', '`labfeed show RUN` says what can be decided'],
  quarantined: ['quarantined', '`labfeed show RUN` says why; with that mended, `labfeed retry RUN`'],
  interrupted: ['interrupted', 'the daemon tries them again by itself; with --repair at once'],
  'on its way': ['on their way'],
  folder: ['folders that cannot be looked into'],
  unread: ['that could not be read'],
  changed: ['changed since they were filed, and not taken again yet'],
  'never taken': ['never taken', '`labfeed why PATH` says what they wait for'],
  asked: [
    'old files that wait for an answer',
    '`labfeed backfill INSTRUMENT`, or existing: ingest, skip or { since: DATE }',
  ],
  skipped: ['passed over, as somebody wanted'],
  'thinned out': ['filed with more files than are there now: what is left proves nothing by itself'],
  elsewhere: ['filed at another notebook, where nobody looked'],
  spare: ['made by labfeed and not filled in yet'],
};

function safeFiles({ safe }: Audited): string[] {
  if (safe.length === 0) return [];
  const more = safe.length - MOST_SHOWN;
  return [
    '',
    `${plural(safe.length, 'file')} proved to be in the notebook, and safe to delete:`,
    ...safe.slice(0, MOST_SHOWN).map(({ path }) => `  ${terminalLine(path)}`),
    ...(more > 0 ? [`  and ${more} more: --safe prints all`] : []),
  ];
}

function repairs({ outcomes, hasDaemon }: Repaired): string[] {
  if (outcomes.length === 0) return ['nothing that could be repaired'];
  return [
    'repair:',
    ...outcomes.map(({ text }) => `  ${text}`),
    ...(hasDaemon ? [] : ['  no daemon runs: the next `labfeed run` sends it']),
  ];
}

function conclusion({ findings, brokenOff }: Audited): string {
  const differences = findings.filter(differs).length;
  if (differences > 0) return `${plural(differences, 'difference')}`;
  return brokenOff === undefined ? 'nothing differs' : 'nothing differs in what was looked at';
}

const cut = (line: string, columns: number): string =>
  line.length <= columns ? line : `${line.slice(0, Math.max(0, columns - 1))}…`;
