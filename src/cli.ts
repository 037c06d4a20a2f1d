#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { limitBacktracking } from './backtracking.js';
import { addAdopt } from './commands/adopt.js';
import { addAudit } from './commands/audit.js';
import { addBackfill } from './commands/backfill.js';
import { addBackup } from './commands/backup.js';
import { addCheck } from './commands/check.js';
import { addComments } from './commands/comments.js';
import { addCompletion } from './commands/completion.js';
import { addDemo } from './commands/demo.js';
import { addErase } from './commands/erase.js';
import { addIgnore } from './commands/ignore.js';
import { addJobs } from './commands/jobs.js';
import { addKeys } from './commands/keys.js';
import { addLearn } from './commands/learn.js';
import { addRecover } from './commands/recover.js';
import { addRefile } from './commands/refile.js';
import { addRetry } from './commands/retry.js';
import { addRun } from './commands/run.js';
import { addSandbox } from './commands/sandbox.js';
import { addSchema } from './commands/schema.js';
import { addShow } from './commands/show.js';
import { addStatus } from './commands/status.js';
import { addTry } from './commands/try.js';
import { addWhy } from './commands/why.js';
import { EXIT, explain, LabfeedError } from './errors.js';
import { version } from './version.js';

/** In the order in which the help names them. */
const COMMANDS = [
  addDemo,
  addRun,
  addCheck,
  addTry,
  addLearn,
  addStatus,
  addJobs,
  addShow,
  addWhy,
  addRetry,
  addRefile,
  addAdopt,
  addIgnore,
  addErase,
  addBackfill,
  addAudit,
  addBackup,
  addRecover,
  addComments,
  addKeys,
  addSandbox,
  addSchema,
  addCompletion,
];

/** The command line: what was asked for, and how it ended. */
async function main(argv: readonly string[]): Promise<number> {
  limitBacktracking();
  const program = new Command('labfeed')
    .description('Files every run of every instrument in the notebook, exactly once.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true })
    .enablePositionalOptions()
    .option('--debug', 'show where in the program an error comes from')
    .exitOverride();
  for (const add of COMMANDS) add(program);
  pointToHelp(program, 'labfeed');
  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has printed its own messages already; help and version are not errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    return report(error, program.opts<{ debug?: boolean }>().debug ?? false);
  }
}

/** After wrong usage, each command names its own help. */
function pointToHelp(command: Command, called: string): void {
  command.showHelpAfterError(`Try: ${called} --help`);
  for (const sub of command.commands) pointToHelp(sub, `${called} ${sub.name()}`);
}

function report(error: unknown, debug: boolean): number {
  process.stderr.write(`labfeed: ${explain(error)}\n`);
  if (debug) console.error(error);
  else if (!(error instanceof LabfeedError))
    process.stderr.write('  → this is a fault in labfeed; --debug shows where\n');
  return error instanceof LabfeedError ? error.exitStatus : EXIT.failed;
}

// A reader that stops listening (`labfeed schema | head`) ends the command; it is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await main(process.argv);
