import { existsSync, writeFileSync } from 'node:fs';
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
  systemCode,
  UsageError,
} from '../errors.js';
import { checkMapping } from '../map/draft.js';
import { choosePlot, describePlot, isPlot, type PlotChoice } from '../map/plot.js';
import { DATE_FROM, markedComments, type QuarantinedTrial, type Trial, tryQuarantined } from '../mapping/mapping.js';
import { openRun } from '../mapping/sample.js';
import { runGoldenTests, type TestResult } from '../mapping/tests.js';
import { type Column, NO_VALUE, type Table, type Value } from '../model.js';
import { keepHeapSmall } from '../system/process.js';
import { formatBytes, indent, plural, terminalLine, terminalText } from '../text.js';
import { configFrom, type JsonOption, unknownInstrument, withJson } from './options.js';
import { htmlToText } from './terminal.js';

interface TryOptions extends JsonOption {
  readonly test?: boolean;
  readonly plot?: string;
  readonly html?: boolean;
}

export function addTry(command: Command): void {
  withJson(command, [
    'labfeed try nanodrop samples/run-17.tsv',
    'labfeed try nanodrop samples/run-17.tsv --plot run-17.png',
    'labfeed try --test nanodrop',
  ])
    .argument('[instrument]', 'Instrument whose mapping to use')
    .argument('[file...]', 'Files to try; for a run of several files, its folder or one of the files')
    .option('--html', 'Print the source of the body, not its text')
    .option('--plot <file>', 'Also draw the plot, as FILE.svg or FILE.png; an existing file is not overwritten')
    .option('--test', 'Run the mapping tests of the instrument, or of all instruments, instead')
    .action(tryOrTest);
}

async function tryOrTest(name: string | undefined, files: string[], options: TryOptions): Promise<void> {
  if (options.test) {
    if (files.length > 0) throw new UsageError('--test takes no files: it uses the samples in the configuration');
    return runTests(name, options);
  }
  if (name === undefined || files.length === 0)
    throw new UsageError('expected an instrument and a file', {
      hint: 'for example: labfeed try nanodrop samples/run-17.tsv',
    });
  return tryFiles(name, files, options);
}

async function tryFiles(name: string, files: string[], options: TryOptions): Promise<void> {
  keepHeapSmall(true);
  if (options.plot !== undefined) checkPlotFile(options.plot, files);
  const instrument = usableInstrument(name, configFrom(options));
  const trials: (Trial | QuarantinedTrial)[] = [];
  for (const file of files) {
    try {
      trials.push(await tryQuarantined(instrument, await openRun(resolve(file), instrument), systemClock.now()));
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      process.stderr.write(`${error instanceof FileError ? 'would be quarantined: ' : ''}${explain(error)}\n`);
      process.exitCode = EXIT.failed;
    }
  }
  if (trials.length === 0) return;
  const shown = trials.map(trialAsJson);
  if (options.json) console.log(JSON.stringify(files.length === 1 ? shown[0] : shown, null, 2));
  else console.log(trials.map((trial) => trialAsText(trial, options.html ?? false)).join('\n\n'));
  if (options.plot !== undefined && trials[0]) await writePlot(trials[0], options.plot);
}

function checkPlotFile(file: string, files: readonly string[]): void {
  if (files.length > 1) throw new UsageError('--plot takes one file at a time');
  if (!/\.(svg|png)$/i.test(file))
    throw new UsageError(`cannot tell the format of ${file}`, { hint: 'use a name that ends in .svg or .png' });
  if (existsSync(file)) throw notOverwritten(file);
}

const notOverwritten = (file: string, cause?: unknown): LabfeedError =>
  new LabfeedError(`${file} already exists and was not overwritten`, { hint: 'choose another file', cause });

/** Nothing is written if there is no plot: `try` has printed why. */
async function writePlot({ record, instrument }: Trial, file: string): Promise<void> {
  const plot = choosePlot(record, instrument.experiment.plot);
  if (!isPlot(plot)) return;
  const { drawPlot } = await import('../plot/draw.js');
  const drawn = await drawPlot(plot, describePlot(plot), /\.png$/i.test(file) ? 'png' : 'svg');
  try {
    writeFileSync(file, drawn, { flag: 'wx' });
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw notOverwritten(file, error);
    throw new LabfeedError(`cannot write ${file} (${systemCode(error)})`, { cause: error });
  }
}

function usableInstrument(name: string, config: LoadedConfig): Instrument {
  const instrument = config.instruments.find((candidate) => candidate.name === name);
  const problems = [
    ...config.problems.filter(({ stops }) => typeof stops === 'object' && stops.instrument === name),
    ...(instrument ? checkMapping(instrument) : []),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  if (instrument) return instrument;
  // If nothing could be read, the mistakes are more helpful than `unknown instrument`.
  if (config.instruments.length === 0 && config.problems.length > 0) throw new ConfigError(config.problems);
  throw unknownInstrument(
    name,
    config.instruments.map((candidate) => candidate.name),
    ` in ${config.file}`,
  );
}

const isUndated = (trial: Trial | QuarantinedTrial): boolean => 'isUndated' in trial && trial.isUndated;

export const trialAsJson = (trial: Trial | QuarantinedTrial) => ({
  file: trial.file.path,
  instrument: trial.instrument.name,
  /** Why nothing would be sent. What follows is only what was read. */
  ...('quarantine' in trial && { quarantine: explain(trial.quarantine) }),
  record: {
    meta: withUnits(trial.record.meta),
    tables: trial.record.tables.map(tableAsJson),
    unread: trial.record.unread,
  },
  draft: { ...trial.draft, ...(isUndated(trial) && { date: null }), comments: markedComments(trial) },
  warnings: trial.warnings,
  /** What the file has and the notebook will not. */
  omits: trial.omits,
  plot: plotAsJson(choosePlot(trial.record, trial.instrument.experiment?.plot)),
});

/** A unit stands beside its value as `NAME unit`, unless something else has that name. */
function withUnits(values: ReadonlyMap<string, Pick<Value, 'value' | 'unit'>>) {
  const entries = [...values].flatMap(([name, { value, unit }]) => {
    const unitName = `${name} unit`;
    const isAlone = unit === undefined || values.has(unitName);
    return isAlone
      ? [[name, value]]
      : [
          [name, value],
          [unitName, unit],
        ];
  });
  return Object.fromEntries(entries) as Record<string, Value['value']>;
}

/** `reason`: why there is none. */
function plotAsJson(plot: PlotChoice) {
  if (!isPlot(plot)) return { kind: 'none', reason: plot.reason };
  const y = plot.kind === 'heatmap' ? [plot.y.name] : plot.series.map(({ name }) => name);
  return { kind: plot.kind, x: plot.x.name, y, ...(plot.y.unit && { unit: plot.y.unit }), notes: plot.notes };
}

/** `count` is present if not all rows are kept. */
const tableAsJson = ({ name, columns, rows, count }: Table) => ({
  name,
  columns,
  ...(count > rows.length && { count }),
  rows: rows.map((row) =>
    withUnits(new Map(columns.map((column, index) => [column.name, cellIn(column, row[index])]))),
  ),
});

/** A cell whose unit is not that of its column has its own: `0.69 mm` among `118 um`. */
function cellIn(column: Column, { value, unit }: Value = NO_VALUE) {
  return { value, ...(unit !== undefined && unit !== column.unit && { unit }) };
}

export function trialAsText(trial: Trial | QuarantinedTrial, asHtml: boolean): string {
  const { draft, dateFrom, instrument, file } = trial;
  const comments = markedComments(trial);
  const size = (text: string): string => formatBytes(Buffer.byteLength(text));
  return [
    ...('quarantine' in trial ? [`would be quarantined: ${explain(trial.quarantine)}`, 'What was read:'] : []),
    `file        ${terminalLine(file.path)}`,
    `instrument  ${instrument.name}`,
    `title       ${terminalLine(draft.title)}`,
    `date        ${isUndated(trial) ? 'unknown' : `${draft.date} (${DATE_FROM[dateFrom]})`}`,
    `tags        ${terminalLine(draft.tags.join(', '))}`,
    ...listed('omitted', trial.omits),
    ...listed('check', trial.warnings),
    `plot        ${terminalLine(plotLine(choosePlot(trial.record, instrument.experiment.plot)))}`,
    `body        ${size(draft.body)} of HTML`,
    indent(terminalText(asHtml ? draft.body : htmlToText(draft.body))),
    ...comments.flatMap((text, index) => [
      `comment ${index + 1} of ${comments.length}, ${size(text)}`,
      indent(terminalText(text)),
    ]),
    ...(draft.attached?.comments ?? []).flatMap((text) => [
      'instead of these comments, where the raw file is attached (eLabFTW)',
      indent(terminalText(text)),
    ]),
  ].join('\n');
}

const listed = (label: string, texts: readonly string[]): string[] =>
  texts.map((text, index) => `${(index === 0 ? label : '').padEnd(12)}${terminalLine(text)}`);

const plotLine = (plot: PlotChoice): string =>
  isPlot(plot) ? [describePlot(plot), ...plot.notes].join('. ') : `none: ${plot.reason}`;

async function runTests(name: string | undefined, options: TryOptions): Promise<void> {
  const config = configFrom(options);
  const named = name === undefined ? config.instruments : [usableInstrument(name, config)];
  const usable = named.filter((instrument) => checkMapping(instrument).length === 0);
  printTests(usable, await runGoldenTests(usable, { clock: systemClock }), options.json);
  if (name !== undefined) return;
  const broken = config.problems.filter(({ stops }) => stops !== 'daemon');
  // A mistake that stops the daemon does not affect mappings, unless nothing could be read.
  const unread = named.length + broken.length === 0 ? config.problems : [];
  const problems = [...broken, ...unread, ...named.flatMap(checkMapping)];
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Summaries go to stdout, failures to stderr. */
function printTests(
  instruments: readonly Instrument[],
  results: readonly TestResult[],
  json: boolean | undefined,
): void {
  if (json) console.log(JSON.stringify(results.map(testAsJson), null, 2));
  else {
    for (const { name } of instruments) {
      const own = results.filter(({ instrument }) => instrument === name);
      console.log(testSummary(name, own));
      for (const problem of own.flatMap(({ problems }) => problems))
        process.stderr.write(`${explainProblem(problem)}\n`);
    }
  }
  if (results.some(({ problems }) => problems.length > 0)) process.exitCode = EXIT.failed;
}

/** `nanodrop: 2 tests passed`, `nanodrop: 1 of 2 tests failed`. */
export function testSummary(name: string, results: readonly TestResult[]): string {
  const failed = results.filter(({ problems }) => problems.length > 0).length;
  if (results.length === 0) return `${name}: no tests`;
  const tests = plural(results.length, 'test');
  return failed > 0 ? `${name}: ${failed} of ${tests} failed` : `${name}: ${tests} passed`;
}

const testAsJson = ({ instrument, file, problems }: TestResult) => ({
  instrument,
  file,
  passed: problems.length === 0,
  problems: problems.map(({ where, message, hint }) => ({ at: formatPlace(where), message, hint })),
});
