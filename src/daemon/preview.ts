import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { stringify } from 'yaml';
import type { Instrument, LoadedConfig } from '../config/load.js';
import { ConfigError, explain, explainProblem, FileError, LabfeedError } from '../errors.js';
import { learn, toInstrument, toYaml } from '../learn/learn.js';
import { checkMapping } from '../map/draft.js';
import { choosePlot, describePlot, isPlot } from '../map/plot.js';
import { DATE_FROM, type MappingOptions, markedComments, type Trial, tryFile } from '../mapping/mapping.js';
import { compare } from '../mapping/tests.js';
import type { FileRecord, IdentifiedFile, Table } from '../model.js';
import type { Preview, PreviewTable, UploadedSample as Sample } from '../status/api.js';
import { nearest } from '../text.js';
import { createMatcher } from '../watch/match.js';
import { readDraft } from './instrument-files.js';

/** `page.ts` and the thread load this file on demand: learning a mapping needs code that nothing else needs. */

/** What a thread needs to make a preview: plain data. Without an instrument, a mapping is learned from the file. */
export interface PreviewTask {
  readonly sample: Sample;
  readonly instrument: PreviewInstrument | undefined;
  readonly nowMs: number;
}

type PreviewInstrument = MappingOptions & Pick<Instrument, 'watch' | 'duplicates' | 'written' | 'tests'>;

interface PreviewDeps {
  readonly config: LoadedConfig;
  readonly nowMs: number;
  /** Makes the preview in a thread. */
  make(task: PreviewTask): Promise<Preview>;
}

/** The folder of an instrument that does not exist yet. A neutral name, so that the sample provides the name. */
const ANY_FOLDER = '/data';

/** The experiment that this file would become, by a configured mapping or by one learned from the file. */
export async function previewSample(sample: Sample, { config, nowMs, make }: PreviewDeps): Promise<Preview> {
  if (sample.mapping !== undefined) return previewDraft(sample, sample.mapping, { config, nowMs, make });
  const instrument = sample.learn ? undefined : instrumentFor(sample, config);
  if (!instrument && !sample.learn && sample.instrument !== undefined)
    return { ok: false, reason: unknownInstrument(sample.instrument, config) };
  const [mistake] = instrument ? checkMapping(instrument) : [];
  if (instrument && mistake) return { ok: false, reason: explainProblem(mistake), mapping: yamlOf(instrument) };
  return orRefusal({ path: sample.name }, {}, () =>
    make({ sample, instrument: instrument && plain(instrument), nowMs }),
  );
}

/** By a mapping that is being edited. */
async function previewDraft(sample: Sample, mapping: string, { config, nowMs, make }: PreviewDeps): Promise<Preview> {
  let instrument: Instrument;
  try {
    instrument = readDraft(mapping, config.file).instrument;
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    return { ok: false, reason: explainMistake(error), mapping, isMistake: true };
  }
  return orRefusal({ path: sample.name }, { mapping }, () => make({ sample, instrument: plain(instrument), nowMs }));
}

/** The first one: the others often follow from it. */
function explainMistake(error: LabfeedError): string {
  const [first] = error instanceof ConfigError ? error.problems : [];
  return first ? explainProblem({ ...first, where: { ...first.where, file: 'mapping' } }) : explain(error);
}

const instrumentFor = ({ name, instrument }: Sample, { instruments }: LoadedConfig): Instrument | undefined =>
  instrument === undefined
    ? instruments.find((candidate) => createMatcher(candidate).takes(name))
    : instruments.find((candidate) => candidate.name === instrument);

/** Without what cannot be sent to a thread, such as functions. */
const plain = (instrument: Instrument): PreviewInstrument => {
  const { name, parse, unread, experiment, comments, watch, duplicates, written, tests } = instrument;
  return { name, parse, unread, experiment, comments, watch, duplicates, written, tests };
};

const yamlOf = ({ name, written }: PreviewInstrument): string =>
  stringify({ instruments: { [name]: written } }, { lineWidth: 0 });

/** In the thread. */
export async function makePreview({ sample, instrument, nowMs }: PreviewTask): Promise<Preview> {
  if (!instrument) return byLearning(sample, nowMs);
  const mapping = yamlOf(instrument);
  const file = asFile(sample, instrument.watch);
  return orRefusal(file, { mapping }, async () => {
    const trial = await tryFile(instrument, file, nowMs);
    return { mapping, doubts: trial.warnings, ...(await resultOf(trial, instrument.tests)) };
  });
}

async function byLearning(sample: Sample, nowMs: number): Promise<Preview> {
  const file = asFile(sample, ANY_FOLDER);
  return orRefusal(file, {}, async () => {
    const learned = await learn([file], nowMs);
    const doubts = learned.doubts.map((doubt) => doubt.replaceAll(file.path, sample.name));
    const mapping = await toYaml({ ...learned, doubts }, [sample.name]);
    return orRefusal(file, { mapping, doubts }, async () => {
      const instrument = toInstrument(learned.name, learned.instrument);
      return { mapping, doubts, ...(await resultOf(await tryFile(instrument, file, nowMs))) };
    });
  });
}

/** A FileError is a result too: it shows why the file would be quarantined. */
async function orRefusal(
  { path }: Pick<IdentifiedFile, 'path'>,
  known: { readonly mapping?: string; readonly doubts?: readonly string[] },
  act: () => Promise<Preview>,
): Promise<Preview> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    // People know the file by its name, without a folder.
    return { ok: false, reason: explain(error).replaceAll(path, posix.basename(path)), ...known };
  }
}

function unknownInstrument(name: string, { instruments, listed }: LoadedConfig): string {
  if (listed.some((one) => one.name === name)) {
    return `the configuration of instrument ${JSON.stringify(name)} has an error`;
  }
  const names = instruments.map((one) => one.name);
  const guess = nearest(name, names);
  return `there is no instrument ${JSON.stringify(name)}${guess === undefined ? '' : `. Did you mean ${guess}?`}`;
}

/** As if it were in that folder. Its content is in memory, so nothing is read from disk. */
function asFile({ name, content, modifiedMs }: Sample, folder: string): IdentifiedFile {
  const path = posix.join(folder, name);
  return {
    path,
    location: path,
    size: content.byteLength,
    mtimeNs: BigInt(Math.trunc(modifiedMs)) * 1_000_000n,
    inode: 0n,
    sha256: createHash('sha256').update(content).digest('hex'),
    content,
  };
}

type Result = Pick<
  Extract<Preview, { ok: true }>,
  'ok' | 'instrument' | 'draft' | 'omits' | 'plot' | 'tests' | 'tables' | 'meta'
>;

async function resultOf(trial: Trial, tests: Instrument['tests'] = []): Promise<Result> {
  const { title, date, tags, body } = trial.draft;
  const dateFrom = DATE_FROM[trial.dateFrom];
  return {
    ok: true,
    instrument: trial.instrument.name,
    draft: { title, date, dateFrom, tags, body, comments: markedComments(trial) },
    omits: trial.omits,
    plot: await previewPlot(trial),
    tests: tests
      .filter(({ file }) => posix.basename(file) === posix.basename(trial.file.path))
      .map(({ file, expect }) => ({
        file: posix.basename(file),
        failures: compare(expect, trial).map(({ key, message }) => (key ? `${key}: ${message}` : message)),
      })),
    tables: trial.record.tables.map(previewTable),
    meta: previewFacts(trial.record),
  };
}

async function previewPlot({ record, instrument }: Trial): Promise<Result['plot']> {
  const plot = choosePlot(record, instrument.experiment.plot);
  if (!isPlot(plot)) return { reason: plot.reason };
  const { drawSvg } = await import('../plot/draw.js');
  const description = describePlot(plot);
  return { svg: drawSvg(plot, description), description };
}

const MAX_ROWS = 50;

const previewTable = ({ name, columns, rows, count }: Table): PreviewTable => ({
  name,
  columns: columns.map(({ name, unit }) => ({ name, ...(unit !== undefined && { unit }) })),
  rows: rows.slice(0, MAX_ROWS).map((row) => row.map(({ text }) => text)),
  count,
});

const previewFacts = ({ meta }: FileRecord) =>
  [...meta].map(([name, { text, unit }]) => ({ name, text, ...(unit !== undefined && { unit }) }));
