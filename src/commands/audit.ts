import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { journalOf } from '../config/locations.js';
import { EXIT, explainProblem, UsageError } from '../errors.js';
import { isFree } from '../journal/database.js';
import { onStopRequest } from '../process.js';
import { differs, type SafeFile } from '../tasks/audit/findings.js';
import { type Audited, audit, type Progress } from '../tasks/audit.js';
import { ask, type Outcome } from './ask.js';
import { report } from './audit-report.js';
import { type ConfigOption, configOption, loadNamed, requireVital } from './config-option.js';
import { outputWidth } from './table.js';

interface AuditCommandOptions extends ConfigOption {
  readonly repair?: boolean;
  readonly instrument?: string;
  readonly safe?: boolean;
  readonly null?: boolean;
  readonly json?: boolean;
}

export function addAudit(program: Command): void {
  program
    .command('audit')
    .description(
      'hold folders, journal and notebook against each other, name what differs, and list the files that are safe to delete',
    )
    .addOption(configOption())
    .option('--instrument <name>', 'only this one')
    .option(
      '--repair',
      'post comments again that are gone, and let runs that wait go on at once; touches nothing that a person changed',
    )
    .option('--safe', 'print nothing but the paths of the files that are proved to be in the notebook')
    .option('-0, --null', 'with --safe: end each path with a zero byte, for xargs -0')
    .option('--json', 'print everything as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed audit\n  labfeed audit --safe -0 --instrument nanodrop | xargs -0 rm --\n\nExit status: 0 nothing differs, 1 something does, or not all of it could be looked at.',
    )
    .action(runAudit);
}

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
  const config = loadNamed(rest);
  requireVital(config);
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
  else console.log(report(audited, repaired, outputWidth()));
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
): Promise<{ readonly outcomes: readonly Outcome[]; readonly hasDaemon: boolean }> {
  if (repairs.length === 0) return { outcomes: [], hasDaemon: true };
  const outcomes = await ask(path, () => repairs.map((repair) => ({ kind: 'repair', ...repair })));
  return { outcomes, hasDaemon: !isFree(path) };
}

const asJson = (
  { findings, safe, repairs: _, ...rest }: Audited,
  repaired: readonly Outcome[] | undefined,
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
