import type { Command } from 'commander';
import type { Existing } from '../config/schema.js';
import { UsageError } from '../errors.js';
import { ask, tellOutcomes } from './ask.js';
import { type ConfigOption, configOption } from './config-option.js';
import { readDate } from './date-argument.js';
import { reading, requireInstrument } from './reading.js';

interface BackfillOptions extends ConfigOption {
  readonly since?: string;
  readonly skip?: boolean;
  readonly json?: boolean;
}

export function addBackfill(program: Command): void {
  program
    .command('backfill')
    .description(
      'say what becomes of the many old files that the first scan of an instrument found: file them',
    )
    .argument('<instrument>', 'the instrument that asks')
    .addOption(configOption())
    .option('--since <date>', 'file those modified on this day or later, and pass over the others', readDate)
    .option('--skip', 'pass over all of them')
    .option('--json', 'print what became of it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed backfill nanodrop --since 2026-01-01')
    .action(backfill);
}

async function backfill(
  instrument: string,
  { since, skip, json, ...options }: BackfillOptions,
): Promise<void> {
  if (since !== undefined && skip)
    throw new UsageError('expected one of --since and --skip', {
      hint: `for example: labfeed backfill ${instrument} --since ${since}`,
    });
  const existing: Existing = skip ? 'skip' : since === undefined ? 'ingest' : { since };
  const journal = reading(options, (opened) => {
    requireInstrument(instrument, opened);
    return opened.journal;
  });
  tellOutcomes(journal, await ask(journal, () => [{ kind: 'backfill', instrument, existing }]), json);
}
