import { resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import type { Instrument, LoadedConfig } from '../config/load.js';
import {
  ConfigError,
  EXIT,
  explain,
  explainProblem,
  FileError,
  formatPlace,
  LabfeedError,
  UsageError,
} from '../errors.js';
import { checkMapping, DATE_FROM, markedComments, type Trial, tryFile } from '../mapping/mapping.js';
import { openRun } from '../mapping/sample.js';
import { runGoldenTests, type TestResult } from '../mapping/tests.js';
import type { Table } from '../model.js';
import { nearest } from '../text.js';
import { type ConfigOption, configOption, loadNamed } from './options.js';

interface TryOptions extends ConfigOption {
  readonly json?: boolean;
  readonly test?: boolean;
}

export function addTry(program: Command): void {
  program
    .command('try')
    .description("show exactly what would be sent for a file, or run a mapping's own tests; sends nothing")
    .argument('[instrument]', 'the instrument whose mapping is used')
    .argument('[file...]', 'the files to try; of runs of several files, their folder or one of them')
    .addOption(configOption())
    .option('--test', "run the instrument's golden tests instead; without an instrument, those of all")
    .option('--json', 'print the record and the draft, or what came of the tests, as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed try nanodrop samples/run-17.tsv\n  labfeed try --test nanodrop',
    )
    .action(tryOrTest);
}

async function tryOrTest(name: string | undefined, files: string[], options: TryOptions): Promise<void> {
  if (options.test) {
    if (files.length > 0)
      throw new UsageError('--test takes no files: those to test with are in the configuration');
    return tryTests(name, options);
  }
  if (name === undefined || files.length === 0)
    throw new UsageError('expected an instrument and a file', {
      hint: 'for example: labfeed try nanodrop samples/run-17.tsv',
    });
  return tryFiles(name, files, options);
}

async function tryTests(name: string | undefined, options: TryOptions): Promise<void> {
  const config = loadNamed(options);
  const named = name === undefined ? config.instruments : [await usableInstrument(name, config)];
  const usable = named.filter((instrument) => checkMapping(instrument).length === 0);
  tellTests(usable, await runGoldenTests(usable, { clock: systemClock }), options.json);
  if (name !== undefined) return;
  const broken = config.problems.filter(({ stops }) => stops !== 'daemon');
  // What keeps the daemon from starting is no matter of the mappings, unless nothing could be read at all.
  const unread = named.length + broken.length === 0 ? config.problems : [];
  const problems = [...broken, ...unread, ...named.flatMap(checkMapping)];
  if (problems.length > 0) throw new ConfigError(problems);
}

async function tryFiles(name: string, files: string[], options: TryOptions): Promise<void> {
  const instrument = await usableInstrument(name, loadNamed(options));
  const trials: Trial[] = [];
  for (const file of files) {
    try {
      trials.push(await tryNamed(instrument, file));
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

async function tryNamed(instrument: Instrument, path: string): Promise<Trial> {
  return tryFile(instrument, await openRun(resolve(path), instrument), systemClock.now());
}

export const trialAsJson = (trial: Trial) => ({
  file: trial.file.path,
  instrument: trial.instrument.name,
  record: {
    meta: Object.fromEntries([...trial.record.meta].map(([name, { value }]) => [name, value])),
    tables: trial.record.tables.map(tableAsJson),
  },
  draft: { ...trial.draft, comments: markedComments(trial) },
});

/** Of very many rows the first are shown, and how many there are. */
const tableAsJson = ({ name, columns, rows, count }: Table) => ({
  name,
  columns,
  ...(count > rows.length && { count }),
  rows: rows.map((row) =>
    Object.fromEntries(columns.map((column, index) => [column.name, row[index]?.value ?? null])),
  ),
});

function trialAsText(trial: Trial): string {
  const { draft, dateFrom, instrument, file } = trial;
  const comments = markedComments(trial);
  return [
    `file        ${file.path}`,
    `instrument  ${instrument.name}`,
    `title       ${draft.title}`,
    `date        ${draft.date} (${DATE_FROM[dateFrom]})`,
    `tags        ${draft.tags.join(', ')}`,
    `body        ${Buffer.byteLength(draft.body)} bytes of HTML`,
    indent(draft.body),
    ...comments.flatMap((text, index) => [
      `comment ${index + 1} of ${comments.length}, ${Buffer.byteLength(text)} bytes`,
      indent(text),
    ]),
  ].join('\n');
}

const indent = (text: string): string => text.replace(/^/gm, '  ');

/** Tells what came of the golden tests: what passes on stdout, what fails on stderr. */
function tellTests(
  instruments: readonly Instrument[],
  results: readonly TestResult[],
  json: boolean | undefined,
): void {
  if (json) console.log(JSON.stringify(results.map(testAsJson), null, 2));
  else for (const { name } of instruments) tellInstrument(name, results);
  if (results.some(({ problems }) => problems.length > 0)) process.exitCode = EXIT.failed;
}

function tellInstrument(name: string, results: readonly TestResult[]): void {
  const own = results.filter(({ instrument }) => instrument === name);
  console.log(testSummary(name, own));
  for (const problem of own.flatMap(({ problems }) => problems))
    process.stderr.write(`${explainProblem(problem)}\n`);
}

/** How many tests of an instrument pass, in a line. */
export function testSummary(name: string, results: readonly TestResult[]): string {
  const failing = results.filter(({ problems }) => problems.length > 0).length;
  const tests = results.length === 1 ? '1 test' : `${results.length} tests`;
  if (results.length === 0) return `${name}: no tests`;
  if (failing > 0) return `${name}: ${failing} of ${tests} ${failing === 1 ? 'fails' : 'fail'}`;
  return `${name}: ${tests} ${results.length === 1 ? 'passes' : 'pass'}`;
}

const testAsJson = ({ instrument, file, problems }: TestResult) => ({
  instrument,
  file,
  passed: problems.length === 0,
  problems: problems.map(({ where, message, hint }) => ({ at: formatPlace(where), message, hint })),
});
