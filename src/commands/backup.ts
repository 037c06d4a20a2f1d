import { resolve } from 'node:path';
import type { Command } from 'commander';
import { journalOf } from '../config/locations.js';
import { backUp } from '../journal/maintenance.js';
import { type ConfigOption, configOption, loadNamed, requireJournal } from './config-option.js';

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
