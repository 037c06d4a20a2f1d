import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { createDaemon } from '../daemon/daemon.js';
import { createLog } from '../log.js';
import { keepHeapSmall, onStopRequest, stopRequested } from '../process.js';
import { type ConfigOption, configOption, loadNamed, requireVital } from './config-option.js';

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
