#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { EXIT, explain, LabfeedError } from './errors.js';
import { limitBacktracking, version } from './process.js';

type AddCommand = (program: Command) => void;

/** In the order in which the help lists them. Each is loaded on demand: together they take half a second. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import('./commands/demo.js')).addDemo,
  run: async () => (await import('./commands/run.js')).addRun,
  check: async () => (await import('./check/check.js')).addCheck,
  try: async () => (await import('./commands/try.js')).addTry,
  learn: async () => (await import('./learn/learn.js')).addLearn,
  status: async () => (await import('./commands/status.js')).addStatus,
  jobs: async () => (await import('./commands/jobs.js')).addJobs,
  show: async () => (await import('./commands/jobs.js')).addShow,
  why: async () => (await import('./why/command.js')).addWhy,
  retry: async () => (await import('./commands/decisions.js')).addRetry,
  refile: async () => (await import('./commands/decisions.js')).addRefile,
  adopt: async () => (await import('./commands/decisions.js')).addAdopt,
  ignore: async () => (await import('./commands/decisions.js')).addIgnore,
  erase: async () => (await import('./commands/decisions.js')).addErase,
  backfill: async () => (await import('./commands/decisions.js')).addBackfill,
  audit: async () => (await import('./audit/command.js')).addAudit,
  backup: async () => (await import('./commands/run.js')).addBackup,
  recover: async () => (await import('./recover/command.js')).addRecover,
  comments: async () => (await import('./commands/comments.js')).addComments,
  keys: async () => (await import('./keys/command.js')).addKeys,
  sandbox: async () => (await import('./commands/run.js')).addSandbox,
  schema: async () => (await import('./commands/completion.js')).addSchema,
  completion: async () => (await import('./commands/completion.js')).addCompletion,
};

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
  for (const name of commandsFor(argv.slice(2))) (await COMMANDS[name]?.())?.(program);
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

/** The one command that was asked for; all of them for the help, for a misspelt name and for shell completion. */
function commandsFor(args: readonly string[]): readonly string[] {
  const asked = args.find((arg) => !arg.startsWith('-')) ?? '';
  const needsAll = asked === 'completion' && !args.includes('--instruments');
  return Object.hasOwn(COMMANDS, asked) && !needsAll ? [asked] : Object.keys(COMMANDS);
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
