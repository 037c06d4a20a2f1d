#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { escapeOutput } from './commands/terminal.js';
import { ConfigError, EXIT, explain, LabfeedError } from './errors.js';
import { ignoreDebuggerSignal, keepHeapSmall, limitBacktracking, logsToJournal, version } from './system/process.js';

/** Adds arguments, options, examples and the action to a command. Only the command that is run is loaded. */
type Load = () => Promise<(command: Command) => void>;

const check = () => import('./check/check.js');
const comments = () => import('./commands/comments.js');
const completion = () => import('./commands/completion.js');
const decisions = () => import('./commands/decisions.js');
const demo = () => import('./commands/demo.js');
const jobs = () => import('./commands/jobs.js');
const keys = () => import('./keys/command.js');
const migrate = () => import('./fleet/migrate.js');
const recover = () => import('./recover/command.js');
const run = () => import('./commands/run.js');
/** Before the daemon is loaded: space that V8 has taken for new objects is not returned. */
const runDaemon = () => {
  keepHeapSmall(false);
  return run();
};
const setup = () => import('./setup/command.js');
const status = () => import('./commands/status.js');
const tryFile = () => import('./commands/try.js');

/** Grouped by their headings in the help. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, readonly [summary: string, load: Load]>>>> = {
  'Getting started:': {
    demo: ['Try labfeed with sample instruments and a built-in notebook', async () => (await demo()).addDemo],
    setup: ['Answer a few questions and write the first configuration', async () => (await setup()).addSetup],
    learn: ['Suggest a mapping for sample files', async () => (await import('./learn/learn.js')).addLearn],
    try: ['Show what would be sent for a file, or run mapping tests', async () => (await tryFile()).addTry],
    check: ['Check the configuration, folders, journal, key and server', async () => (await check()).addCheck],
  },
  'Daemon:': {
    run: ['Run the daemon in the foreground', async () => (await runDaemon()).addRun],
    status: ['Show what the daemon is doing and what needs attention', async () => (await status()).addStatus],
  },
  'Runs:': {
    jobs: ['List runs, newest first', async () => (await jobs()).addJobs],
    show: ['Show one run with its history, its draft and what to do next', async () => (await jobs()).addShow],
    why: ['Explain why a file was or was not filed', async () => (await import('./why/command.js')).addWhy],
    retry: ['Retry quarantined or held runs, or re-read done runs', async () => (await decisions()).addRetry],
    refile: ['File runs again, each as a new experiment', async () => (await decisions()).addRefile],
    adopt: ['Assign an existing experiment to a held run', async () => (await decisions()).addAdopt],
    ignore: ['Set quarantined or held runs aside without filing them', async () => (await decisions()).addIgnore],
    erase: ['Erase all data about runs except their fingerprints', async () => (await decisions()).addErase],
    backfill: ['File or skip the backlog of an instrument', async () => (await decisions()).addBackfill],
  },
  'Journal and notebook:': {
    audit: ['Compare folders, journal and notebook', async () => (await import('./audit/command.js')).addAudit],
    backup: ['Copy the journal while the daemon runs', async () => (await run()).addBackup],
    recover: ['Rebuild the journal from the notebook; sends nothing', async () => (await recover()).addRecover],
    migrate: ['Move the runs of this machine to a fleet, or back', async () => (await migrate()).addMigrate],
    comments: ['List, show, edit or delete comments on an experiment', async () => (await comments()).addComments],
    keys: ['List, create, set, rotate or delete API keys', async () => (await keys()).addKeys],
  },
  'Other commands:': {
    sandbox: ['Run the built-in notebook on its own', async () => (await run()).addSandbox],
    schema: ['Print the JSON Schema of the configuration, for editors', async () => (await completion()).addSchema],
    completion: ['Print a completion script for a shell', async () => (await completion()).addCompletion],
  },
};

async function main(argv: readonly string[]): Promise<number> {
  limitBacktracking();
  const program = await createProgram(argv.slice(2));
  try {
    const status = await throughDaemon(argv.slice(2));
    if (status !== undefined) return status;
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has already printed its own errors; help and version are not errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    return report(error, program.opts<{ debug?: boolean }>().debug ?? false);
  }
}

/** The exit status of a command that the service has run; undefined if it has to be run here. */
async function throughDaemon(args: readonly string[], env = process.env): Promise<number | undefined> {
  const width = env['LABFEED_THROUGH_DAEMON'];
  if (width === undefined && existsSync(env['RUNTIME_DIRECTORY'] ?? RUNTIME_FOLDER))
    return (await import('./commands/through-daemon.js')).runThroughDaemon(args);
  // Within the service: the terminal is at the other end of the socket.
  if (Number(width) > 0)
    for (const stream of [process.stdin, process.stdout, process.stderr])
      Object.assign(stream, { isTTY: true, columns: Number(width) });
  return undefined;
}

const RUNTIME_FOLDER = '/run/labfeed';

async function createProgram(args: readonly string[]): Promise<Command> {
  const program = new Command('labfeed')
    .description('Watch instrument folders and file every run in the lab notebook, exactly once.')
    .usage('<command> [options]')
    .version(version(), '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print help')
    .helpCommand(false)
    .enablePositionalOptions()
    .option('--debug', 'Print stack traces for errors')
    .exitOverride();
  const wanted = args.find((arg) => !arg.startsWith('-'));
  // A completion script describes all commands.
  const needsAll = wanted === 'completion' && !args.includes('--instruments');
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    for (const [name, [summary, load]] of Object.entries(commands)) {
      const command = program.command(name).description(summary).helpGroup(heading);
      if (needsAll || name === wanted) (await load())(command);
    }
  }
  pointToHelp(program, 'labfeed');
  return program;
}

/** After wrong usage, each command points to its own help. */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Try: ${name} --help`);
  for (const sub of command.commands) pointToHelp(sub, `${name} ${sub.name()}`);
}

function report(error: unknown, debug: boolean): number {
  // Configuration errors start with their location, as compiler errors do.
  const text = `${error instanceof ConfigError ? '' : 'labfeed: '}${explain(error)}\n`;
  process.stderr.write(logsToJournal(2) ? text.replace(/^(?=.)/gm, '<3>') : text);
  if (debug) console.error(error);
  else if (!(error instanceof LabfeedError))
    process.stderr.write('  → this is a bug in labfeed; please report it. For details, run: labfeed --debug …\n');
  return error instanceof LabfeedError ? error.exitStatus : EXIT.failed;
}

ignoreDebuggerSignal();
escapeOutput(process.stdout);
escapeOutput(process.stderr);
// A reader that stops early (`labfeed schema | head`) ends the command; that is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await main(process.argv);
