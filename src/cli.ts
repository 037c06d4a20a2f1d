#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { ConfigError, EXIT, explain, LabfeedError } from './errors.js';
import { limitBacktracking, version } from './process.js';

interface CommandEntry {
  readonly summary: string;
  /** Adds arguments, options, examples and the action. Only the command that is run is loaded. */
  load(): Promise<(command: Command) => void>;
}

/** By the headings under which the help lists them. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, CommandEntry>>>> = {
  'Getting started:': {
    demo: {
      summary: 'Try labfeed with sample instruments and a built-in notebook',
      load: async () => (await import('./commands/demo.js')).addDemo,
    },
    learn: {
      summary: 'Suggest a mapping for sample files',
      load: async () => (await import('./learn/learn.js')).addLearn,
    },
    try: {
      summary: 'Show what would be sent for a file, or run the tests of mappings',
      load: async () => (await import('./commands/try.js')).addTry,
    },
    check: {
      summary: 'Check the configuration, folders, journal, key and server',
      load: async () => (await import('./check/check.js')).addCheck,
    },
  },
  'Daemon:': {
    run: {
      summary: 'Run the daemon in the foreground',
      load: async () => (await import('./commands/run.js')).addRun,
    },
    status: {
      summary: 'Show what the daemon is doing and what needs attention',
      load: async () => (await import('./commands/status.js')).addStatus,
    },
  },
  'Runs:': {
    jobs: {
      summary: 'List runs, newest first',
      load: async () => (await import('./commands/jobs.js')).addJobs,
    },
    show: {
      summary: 'Show one run with its history, its draft and what to do next',
      load: async () => (await import('./commands/jobs.js')).addShow,
    },
    why: {
      summary: 'Explain why a file was or was not filed',
      load: async () => (await import('./why/command.js')).addWhy,
    },
    retry: {
      summary: 'Retry quarantined or held runs, or re-read done runs',
      load: async () => (await import('./commands/decisions.js')).addRetry,
    },
    refile: {
      summary: 'File runs once more, each as a new experiment',
      load: async () => (await import('./commands/decisions.js')).addRefile,
    },
    adopt: {
      summary: 'Assign an existing experiment to a held run',
      load: async () => (await import('./commands/decisions.js')).addAdopt,
    },
    ignore: {
      summary: 'Set quarantined or held runs aside; they are not filed',
      load: async () => (await import('./commands/decisions.js')).addIgnore,
    },
    erase: {
      summary: 'Erase the data about runs, except their fingerprints',
      load: async () => (await import('./commands/decisions.js')).addErase,
    },
    backfill: {
      summary: 'Decide about the backlog of an instrument: file it or skip it',
      load: async () => (await import('./commands/decisions.js')).addBackfill,
    },
  },
  'Journal and notebook:': {
    audit: {
      summary: 'Compare folders, journal and notebook',
      load: async () => (await import('./audit/command.js')).addAudit,
    },
    backup: {
      summary: 'Copy the journal while the daemon runs',
      load: async () => (await import('./commands/run.js')).addBackup,
    },
    recover: {
      summary: 'Rebuild the journal from the notebook; sends nothing',
      load: async () => (await import('./recover/command.js')).addRecover,
    },
    comments: {
      summary: 'List, show, edit or delete comments of an experiment',
      load: async () => (await import('./commands/comments.js')).addComments,
    },
    keys: {
      summary: 'List, create, set, rotate or delete API keys',
      load: async () => (await import('./keys/command.js')).addKeys,
    },
  },
  'Other commands:': {
    sandbox: {
      summary: 'Run the built-in notebook on its own',
      load: async () => (await import('./commands/run.js')).addSandbox,
    },
    schema: {
      summary: 'Print the JSON Schema of the configuration, for editors',
      load: async () => (await import('./commands/completion.js')).addSchema,
    },
    completion: {
      summary: 'Print a completion script for a shell',
      load: async () => (await import('./commands/completion.js')).addCompletion,
    },
  },
};

async function main(argv: readonly string[]): Promise<number> {
  limitBacktracking();
  const program = await createProgram(argv.slice(2));
  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has already printed its own errors; help and version are not errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    return report(error, program.opts<{ debug?: boolean }>().debug ?? false);
  }
}

async function createProgram(args: readonly string[]): Promise<Command> {
  const program = new Command('labfeed')
    .description('Watch instrument folders and file every run in the lab notebook, exactly once.')
    .usage('<command> [options]')
    .version(version(), '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print help')
    .helpCommand(false)
    .enablePositionalOptions()
    .option('--debug', 'Print stack traces of errors')
    .exitOverride();
  const wanted = args.find((arg) => !arg.startsWith('-'));
  // A completion script describes all commands.
  const needsAll = wanted === 'completion' && !args.includes('--instruments');
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    for (const [name, { summary, load }] of Object.entries(commands)) {
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
  // Mistakes in the configuration start with their place, as compilers write it.
  process.stderr.write(`${error instanceof ConfigError ? '' : 'labfeed: '}${explain(error)}\n`);
  if (debug) console.error(error);
  else if (!(error instanceof LabfeedError))
    process.stderr.write('  → this is a bug in labfeed; for details run: labfeed --debug …\n');
  return error instanceof LabfeedError ? error.exitStatus : EXIT.failed;
}

// A reader that stops early (`labfeed schema | head`) ends the command; that is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await main(process.argv);
