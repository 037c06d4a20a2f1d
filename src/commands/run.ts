import { dirname, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { systemClock } from '../clock.js';
import { defaultJournal, journalOf } from '../config/locations.js';
import { createDaemon } from '../daemon/daemon.js';
import { backUp } from '../journal/maintenance.js';
import { createLog } from '../log.js';
import type { Dialect } from '../model.js';
import { keepHeapSmall, onStopRequest, stopRequested } from '../process.js';
import { createSandbox, DIALECTS } from '../sandbox/server.js';
import {
  type ConfigOption,
  configOption,
  loadNamed,
  makeFolder,
  portOption,
  requireJournal,
  requireVital,
} from './options.js';

export function addRun(program: Command): void {
  program
    .command('run')
    .description('watch the folders and file what comes, in the foreground')
    .addOption(configOption())
    .addHelpText('after', '\nExample:\n  labfeed run --config /etc/labfeed/config.yaml')
    .action(run);
}

async function run(options: ConfigOption): Promise<void> {
  keepHeapSmall();
  const config = loadNamed(options);
  requireVital(config);
  const stop = onStopRequest();
  // Who read the log has gone: the files still come. For other commands it means that nobody wants the answer.
  process.stdout.removeAllListeners('error').on('error', () => undefined);
  const logging = createLog({ level: config.settings.log, pretty: process.stdout.isTTY });
  const daemon = createDaemon({ config, ...logging, clock: systemClock });
  process.on('SIGHUP', () => {
    daemon
      .reload(() => loadNamed(options))
      .catch((error: unknown) => logging.log.fatal({ err: error }, 'the reload broke'));
  });
  try {
    // A stop may be asked for while the first scan still goes on.
    await Promise.race([daemon.start().then(() => stopRequested(stop)), stopRequested(stop)]);
  } finally {
    await daemon.stop();
  }
  // A request that had no answer within the time for stopping would keep the process alive until it has one.
  process.exit(0);
}

interface BackupOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addBackup(program: Command): void {
  program
    .command('backup')
    .description('write a copy of the journal, while the daemon runs; overwrites nothing')
    .argument('<file>', 'where the copy goes')
    .addOption(configOption())
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed backup /var/backups/labfeed-$(date +%F).db\n\nTo restore it: stop the daemon, put the copy in the place of the journal, run labfeed recover, start the daemon.',
    )
    .action(backup);
}

async function backup(file: string, { json, ...options }: BackupOptions): Promise<void> {
  const config = loadNamed(options);
  requireJournal(config);
  const target = resolve(file);
  const written = backUp(journalOf(config), target, config.notebook?.url);
  if (json) console.log(JSON.stringify({ file: target, ...written }));
  else console.log(`${written.runs} runs, ${written.bytes} bytes: ${target}`);
}

interface SandboxOptions {
  readonly port: number;
  readonly data?: string;
  readonly dialect: Dialect;
  readonly json?: boolean;
}

export function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description('the built-in notebook alone, with a page to look at what it holds')
    .addOption(portOption(7781))
    .option('--data <file>', "where its content is kept (default: in the user's state folder)")
    .addOption(
      new Option('--dialect <dialect>', 'answer by the contract to the letter, or as eLabFTW does')
        .choices(DIALECTS)
        .default('v2'),
    )
    .option('--json', 'print address and key as JSON')
    .addHelpText('after', '\nExample:\n  labfeed sandbox --port 7781 --data notebook.db')
    .action(sandbox);
}

async function sandbox({ port, data, dialect, json }: SandboxOptions): Promise<void> {
  const file = data === undefined ? join(dirname(defaultJournal()), 'sandbox.db') : resolve(data);
  makeFolder(dirname(file), '--data');
  const notebook = createSandbox({ file, port, dialect });
  const stop = onStopRequest();
  const { url, key } = await notebook.start();
  if (json) console.log(JSON.stringify({ url, key, data: file }));
  else
    console.log(
      `notebook  ${url}\nkey       ${key}\ndata      ${file}\n\nCtrl-C ends it; what it holds stays in the file.`,
    );
  await stopRequested(stop);
  await notebook.stop();
}
