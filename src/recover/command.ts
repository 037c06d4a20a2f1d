import { type Command, InvalidArgumentError } from 'commander';
import { configFrom, type JsonOption, parseNumber, requireJournal, withJson } from '../commands/options.js';
import { createProgressLine } from '../commands/terminal.js';
import type { LoadedConfig, UsableConfig } from '../config/load.js';
import { ConfigError, EXIT, explainProblem } from '../errors.js';
import { onStopRequest } from '../system/process.js';
import { plural } from '../text.js';
import { type IdRange, MAX_MISSING, type Recovered, recoverJournal } from './recover.js';

interface RecoverOptions extends JsonOption {
  readonly ids?: IdRange;
  readonly skipUnreadable?: boolean;
}

export function addRecover(command: Command): void {
  withJson(command, ['labfeed recover', 'labfeed recover --ids 1-25000'], STOP_FIRST)
    .option(
      '--ids <A-B>',
      'Read the experiments with these ids (default: from the last known id to the end)',
      parseRange,
    )
    .option('--skip-unreadable', 'Leave out experiments that the notebook fails to show')
    .action(runRecover);
}

const STOP_FIRST = `Stop the daemon first; in a fleet, those of all machines that deliver. Also run this
command after the server or the database of a fleet has been restored from a backup.`;

function parseRange(text: string): IdRange {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const range = from && to ? { from: parseNumber(from), to: parseNumber(to) } : undefined;
  if (range === undefined || range.from > range.to)
    throw new InvalidArgumentError('Expected the first and the last id, such as 1-25000.');
  return range;
}

async function runRecover({ ids, skipUnreadable, json, ...options }: RecoverOptions): Promise<void> {
  const config = configFrom(options);
  requireInstrumentNames(config);
  const progress = createProgressLine();
  const { fleet } = config.settings;
  // Loaded here, so that a single machine does not load it.
  const recovering = fleet ? (await import('../fleet/recover.js')).recoverFleet : recoverJournal;
  const result = await recovering(config, {
    signal: onStopRequest(),
    range: ids,
    skipUnreadable,
    onProgress: (id, { recovered, completed }) =>
      progress.show(`reading experiment ${id}; ${plural(recovered + completed, 'run')} recovered`),
    onRetry: progress.print,
  }).finally(progress.end);
  const isStuck = result.unreadable.length > 0 && !skipUnreadable;
  console.log(json ? JSON.stringify(result, null, 2) : summary(result, ids === undefined, isStuck));
  if (isStuck) process.exitCode = EXIT.failed;
}

/**
 * Only the notebook, the journal and the names of the instruments are needed; other mistakes are printed. But runs of
 * an instrument whose name cannot be read would not be recovered, and would be filed again once it can.
 */
function requireInstrumentNames(config: LoadedConfig): asserts config is UsableConfig {
  requireJournal(config);
  if (!config.notebook) throw new ConfigError(config.problems);
  if (config.incompleteBecause.length > 0) throw new ConfigError(config.incompleteBecause);
  for (const problem of config.problems) process.stderr.write(`${explainProblem(problem)}\n`);
}

function summary(result: Recovered, toTheEnd: boolean, isStuck: boolean): string {
  const { from, to, recovered, completed, known, spares, others } = result;
  const read =
    to < from
      ? `no experiments found from id ${from} on`
      : `read experiments ${from} to ${to}: ${plural(recovered, 'run')} recovered, ${completed} completed, ${known} already known`;
  return [
    read,
    ...(spares > 0 ? [`${plural(spares, 'empty experiment')} created by labfeed, to be used for the next runs`] : []),
    ...(others > 0 ? [`${plural(others, 'experiment')} created by other people`] : []),
    ...list(
      'experiment',
      'of instruments that are not in this configuration, not recovered',
      result.unknownInstruments,
    ),
    ...list('experiment', 'recovered without comments; check whether some are missing', result.withoutComments),
    ...list('run', 'held, because the experiment no longer exists; to file it again: labfeed refile RUN', result.gone),
    ...list(
      'run',
      'held, because the experiment has an earlier version of the file; to update it: labfeed adopt RUN EXPERIMENT',
      result.outdated,
    ),
    ...list('run', 'incomplete in the restored notebook; the daemon sends the rest again', result.reopened),
    ...(toTheEnd ? [`stopped after ${MAX_MISSING} missing ids in a row`] : []),
    ...list('experiment', isStuck ? UNREADABLE : 'could not be read, and left out', result.unreadable),
    isStuck
      ? 'nothing is sent until then'
      : result.endConfirmed
        ? `the end is confirmed: the notebook lists no experiment above id ${result.readThrough}`
        : `the end is not confirmed: the next experiment that labfeed creates shows whether runs are filed above id ${result.readThrough}; if so, labfeed halts again, and this command continues`,
  ].join('\n');
}

const UNREADABLE =
  'cannot be read, although the notebook works. Have them repaired or deleted and run this command again, or add --skip-unreadable: a run of labfeed among them is then filed again';

const MAX_LISTED = 20;

function list(what: string, text: string, ids: readonly number[]): string[] {
  if (ids.length === 0) return [];
  const more = ids.length > MAX_LISTED ? ` and ${ids.length - MAX_LISTED} more` : '';
  return [`${plural(ids.length, what)} ${text}: ${ids.slice(0, MAX_LISTED).join(', ')}${more}`];
}
