import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Instrument, LoadedConfig } from '../config/load.js';
import { ConfigError, EXIT, explain, FileError, LabfeedError, systemCode, UsageError } from '../errors.js';
import type { IdentifiedFile } from '../model.js';
import { nearest } from '../nearest.js';
import { type ConfigOption, configOption, loadNamed } from './config-option.js';
import { type Trial, trialAsJson, trialAsText } from './trial.js';

interface TryOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addTry(program: Command): void {
  program
    .command('try')
    .description('show exactly what would be sent for a file; sends nothing, records nothing')
    .argument('<instrument>', 'the instrument whose mapping is used')
    .argument('<file...>', 'the files to try')
    .addOption(configOption())
    .option('--json', 'print the record and the draft as JSON')
    .addHelpText('after', '\nExample:\n  labfeed try nanodrop samples/run-17.tsv')
    .action(tryFiles);
}

async function tryFiles(name: string, files: string[], options: TryOptions): Promise<void> {
  const instrument = await usableInstrument(name, loadNamed(options));
  const trials: Trial[] = [];
  for (const file of files) {
    try {
      trials.push(await tryFile(instrument, file));
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      process.stderr.write(
        `${error instanceof FileError ? 'would be quarantined: ' : ''}${explain(error)}\n`,
      );
      process.exitCode = EXIT.failed;
    }
  }
  if (!options.json) console.log(trials.map(trialAsText).join('\n\n'));
  else if (trials.length > 0)
    console.log(
      JSON.stringify(files.length === 1 ? trials.map(trialAsJson)[0] : trials.map(trialAsJson), null, 2),
    );
}

async function usableInstrument(name: string, config: LoadedConfig): Promise<Instrument> {
  const { checkMapping } = await import('../mapping.js');
  const instrument = config.instruments.find((candidate) => candidate.name === name);
  const problems = [
    ...config.problems.filter(({ stops }) => typeof stops === 'object' && stops.instrument === name),
    ...(instrument ? checkMapping(instrument) : []),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  if (instrument) return instrument;
  // Nothing at all could be read: say why, rather than that the instrument is unknown.
  if (config.instruments.length === 0 && config.problems.length > 0) throw new ConfigError(config.problems);
  const names = config.instruments.map((candidate) => candidate.name);
  const guess = nearest(name, names);
  throw new UsageError(`there is no instrument ${JSON.stringify(name)} in ${config.file}`, {
    hint: guess ? `did you mean ${guess}?` : `it has: ${names.join(', ') || 'none'}`,
  });
}

async function tryFile(instrument: Instrument, path: string): Promise<Trial> {
  const [{ createMapping }, { systemClock }] = await Promise.all([
    import('../mapping.js'),
    import('../clock.js'),
  ]);
  const mapping = createMapping(instrument);
  const file = await identifyAt(resolve(path));
  const record = await mapping.parse(file);
  return { instrument, file, record, ...mapping.map(record, file, systemClock.now()) };
}

async function identifyAt(path: string): Promise<IdentifiedFile> {
  const [{ identify }, { stampOf }] = await Promise.all([
    import('../watch/identify.js'),
    import('../watch/stamp.js'),
  ]);
  const stats = await stat(path, { bigint: true }).catch((error: unknown) => {
    const message =
      systemCode(error) === 'ENOENT' ? 'there is no such file' : `cannot be read (${systemCode(error)})`;
    throw new LabfeedError(message, { where: { file: path }, cause: error });
  });
  if (!stats.isFile()) throw new LabfeedError('expected a file', { where: { file: path } });
  return identify({ path, location: path, ...stampOf(stats) }, { signal: new AbortController().signal });
}
