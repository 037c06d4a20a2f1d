import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.js';
import {
  type ConfigOption,
  configFrom,
  configOption,
  examples,
  jsonOption,
  parseNumber,
  requireJournal,
} from '../commands/options.js';
import { journalOf, type LoadedConfig } from '../config/load.js';
import { ConfigError, explainProblem } from '../errors.js';
import { onStopRequest } from '../process.js';
import { type IdRange, type Recovered, recoverJournal } from './recover.js';

interface RecoverOptions extends ConfigOption {
  readonly ids?: IdRange;
  readonly json?: boolean;
}

export function addRecover(command: Command): void {
  command
    .addOption(configOption())
    .option(
      '--ids <A-B>',
      'Read the experiments with these numbers (default: from the last one that the journal knows to the end)',
      parseRange,
    )
    .addOption(jsonOption())
    .addHelpText('after', `${examples('labfeed recover', 'labfeed recover --ids 1-25000')}\n\n${STOP_FIRST}`)
    .action(runRecover);
}

const STOP_FIRST = `Stop the daemon first. Run this also after the server was restored from a
backup.`;

function parseRange(text: string): IdRange {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const range = from && to ? { from: parseNumber(from), to: parseNumber(to) } : undefined;
  if (range === undefined || range.from > range.to)
    throw new InvalidArgumentError('Expected the first and the last number, such as 1-25000.');
  return range;
}

async function runRecover({ ids, json, ...options }: RecoverOptions): Promise<void> {
  const config = configFrom(options);
  requireListed(config);
  const display = createDisplay();
  const found = await recoverJournal({
    config,
    path: journalOf(config),
    clock: systemClock,
    signal: onStopRequest(),
    range: ids,
    ...display,
  }).finally(display.end);
  console.log(json ? JSON.stringify(found, null, 2) : asText(found, ids === undefined));
}

/**
 * Only the notebook, the journal and the names of the instruments are needed; what else is wrong is told. But the runs of
 * an instrument that is not seen would be passed over now, and filed again once it is.
 */
function requireListed(
  config: LoadedConfig,
): asserts config is LoadedConfig & Required<Pick<LoadedConfig, 'notebook'>> {
  requireJournal(config);
  if (!config.notebook) throw new ConfigError(config.problems);
  if (config.incompleteBecause.length > 0) throw new ConfigError(config.incompleteBecause);
  for (const problem of config.problems) process.stderr.write(`${explainProblem(problem)}\n`);
}

/** Beside the data, and only where somebody watches. */
function createDisplay() {
  const terminal = process.stderr.isTTY;
  const show = (text: string): void => void process.stderr.write(`\r\x1b[K${text}`);
  return {
    progress(id: number, { recovered, completed }: Recovered): void {
      if (terminal) show(`reading experiment ${id}; ${recovered + completed} runs recovered`);
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

function asText(found: Recovered, toTheEnd: boolean): string {
  const { from, to, recovered, completed, known, spares, others } = found;
  const read =
    to < from
      ? `no experiment was found from ${from}`
      : `read experiments ${from} to ${to}: ${recovered} runs recovered, ${completed} completed, ${known} known already`;
  return [
    read,
    ...(spares > 0 ? [`${spares} made by labfeed and never filled in: the next runs use them`] : []),
    ...(others > 0 ? [`${others} are not labfeed's`] : []),
    ...listed('from instruments that this configuration does not have, left alone', found.unknownInstruments),
    ...listed(
      'recovered without a comment of labfeed: look whether they should have some',
      found.withoutComments,
    ),
    ...listed(
      'runs are held, since their experiments are gone; `labfeed refile` files them once more',
      found.gone,
    ),
    ...listed('runs lack something in the older notebook; it is written again', found.reopened),
    ...(toTheEnd
      ? ['it ended where eight ids in a row do not exist; if the notebook has later ones, use --ids A-B']
      : []),
  ].join('\n');
}

const MOST_LISTED = 20;

function listed(what: string, ids: readonly number[]): string[] {
  if (ids.length === 0) return [];
  const more = ids.length > MOST_LISTED ? ` and ${ids.length - MOST_LISTED} more` : '';
  return [`${ids.length} ${what}: ${ids.slice(0, MOST_LISTED).join(', ')}${more}`];
}
