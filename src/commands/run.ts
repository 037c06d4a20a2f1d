import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { systemClock } from '../clock.js';
import { type LoadedConfig, requireInstruments } from '../config/load.js';
import { backUp } from '../journal/maintenance.js';
import { createLog } from '../log.js';
import type { Dialect } from '../model.js';
import { exitNow, logsToJournal, onStopRequest, stopRequested } from '../system/process.js';
import { formatBytes, plural } from '../text.js';
import {
  type ConfigOption,
  configFrom,
  configOption,
  createFolder,
  type JsonOption,
  portOption,
  requireJournal,
  usableConfigFrom,
  withExamples,
  withJson,
} from './options.js';
import { pageLink } from './status.js';

export function addRun(command: Command): void {
  withExamples(command, ['labfeed run --config /etc/labfeed/config.yaml']).addOption(configOption()).action(run);
}

async function run(options: ConfigOption): Promise<void> {
  // Loaded here, so that `backup` does not load the daemon.
  const { createDaemon } = await import('../daemon/daemon.js');
  const { createService, meaningOfHangup } = await import('../daemon/service.js');
  const config = usableConfigFrom(options);
  requireInstruments(config);
  const hangup = meaningOfHangup();
  const stop = onStopRequest(hangup === 'stop' ? ['SIGTERM', 'SIGINT', 'SIGHUP'] : undefined);
  // The daemon continues if nobody reads its log any more. Other commands exit.
  process.stdout.removeAllListeners('error').on('error', () => undefined);
  const format = process.stdout.isTTY ? 'terminal' : logsToJournal(1) ? 'journal' : 'json';
  const logging = createLog({ level: config.settings.log, format });
  const { log } = logging;
  const daemon = createDaemon({ config, ...logging, clock: systemClock });
  const service = createService({ ...daemon, clock: systemClock, log });
  if (hangup !== 'stop')
    process.on('SIGHUP', () => {
      if (hangup === 'nothing') return;
      daemon.reload(() => configFrom(options)).catch((error: unknown) => log.fatal({ err: error }, 'reload failed'));
    });
  try {
    service.start();
    // A stop may be requested during the first scan, which a folder that does not respond can delay.
    const late = setTimeout(service.ready, MAX_START_MS);
    await Promise.race([
      daemon
        .start()
        .finally(() => clearTimeout(late))
        .then(service.ready)
        .then(() => printLink(config, daemon.live().page))
        .then(() => stopRequested(stop)),
      stopRequested(stop),
    ]);
  } finally {
    await service.stop();
    await daemon.stop();
  }
  await exitNow();
}

/** After this time the service counts as started, even if the first scan of a folder has not ended. */
const MAX_START_MS = 120_000;

/** Only on a terminal: a log that others can read must not contain the link. */
function printLink(config: LoadedConfig, page: string | undefined): void {
  if (!process.stdout.isTTY || config.settings.status === false) return;
  try {
    console.log(`page: ${pageLink(config, page)}`);
  } catch {
    // The daemon runs without the page, too. `labfeed status --login` explains what is wrong.
  }
}

export function addBackup(command: Command): void {
  withJson(command, ['labfeed backup /var/backups/labfeed-$(date +%F).db'], RESTORE)
    .argument('<file>', 'Where to write the copy; an existing file is not overwritten')
    .action(backup);
}

const RESTORE = `To restore: stop the daemon, replace the journal with the copy, run
\`labfeed recover\`, and start the daemon.`;

async function backup(file: string, { json, ...options }: JsonOption): Promise<void> {
  const config = configFrom(options);
  const target = resolve(file);
  const { runs, bytes } = backUp(requireJournal(config), target, config.notebook?.url);
  if (json) console.log(JSON.stringify({ file: target, runs, bytes }));
  else console.log(`${target}: ${plural(runs, 'run')}, ${formatBytes(bytes)}`);
}

export function addSandbox(command: Command): void {
  withExamples(command, ['labfeed sandbox --port 7781 --data notebook.db'])
    .addOption(portOption(7781))
    .option('--data <file>', "Where to keep the notebook's content (default: in your state folder)")
    .addOption(
      new Option('--dialect <dialect>', 'Behave as the REST API v2 specifies, or as eLabFTW does')
        .choices(['v2', 'elabftw'] satisfies Dialect[])
        .default('v2'),
    )
    .option('--json', 'Print address and key as JSON')
    .action(sandbox);
}

const stateFolder = (env = process.env): string =>
  join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'labfeed');

async function sandbox(options: { port: number; data?: string; dialect: Dialect; json?: boolean }): Promise<void> {
  const { port, data, dialect, json } = options;
  const { createSandbox } = await import('../sandbox/server.js');
  const file = data === undefined ? join(stateFolder(), 'sandbox.db') : resolve(data);
  createFolder(dirname(file), '--data');
  const notebook = createSandbox({ file, port, dialect });
  const stop = onStopRequest();
  const { url, key } = await notebook.start();
  if (json) console.log(JSON.stringify({ url, key, data: file }));
  else
    console.log(
      `notebook  ${url}\nkey       ${key}\ndata      ${file}\n\nPress Ctrl-C to stop. The content stays in the data file.`,
    );
  await stopRequested(stop);
  await notebook.stop();
}
