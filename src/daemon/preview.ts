import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { stringify } from 'yaml';
import type { Instrument, LoadedConfig } from '../config/load.js';
import { explain, explainProblem, FileError } from '../errors.js';
import { learn, toInstrument, toYaml } from '../learn/learn.js';
import { checkMapping, DATE_FROM, markedComments, type Trial, tryFile } from '../mapping/mapping.js';
import type { FileRecord, IdentifiedFile, Table } from '../model.js';
import type { Preview, PreviewTable } from '../status/api.js';
import { nearest } from '../text.js';
import { createMatcher } from '../watch/match.js';

/** A file that somebody hands to the page. It is in memory, and nowhere else. */
export interface Sample {
  readonly name: string;
  readonly content: Uint8Array;
  readonly modifiedMs: number;
  /** The instrument whose mapping is to read it; else the first whose globs fit its name. */
  readonly instrument?: string | undefined;
  /** Whatever is configured: as it would be learned. */
  readonly learn?: boolean;
}

export interface PreviewDeps {
  readonly config: LoadedConfig;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** Stands for the folder of an instrument that there is not yet. Says nothing, so that the sample gives the name. */
const ANY_FOLDER = '/data';

/** What the experiment would be for this file, by a mapping of the configuration or by what can be learned from it. */
export async function previewSample(sample: Sample, deps: PreviewDeps): Promise<Preview> {
  const { config } = deps;
  if (sample.learn) return byLearning(sample, deps);
  const instrument =
    sample.instrument === undefined
      ? config.instruments.find((candidate) => fits(candidate, sample.name))
      : config.instruments.find(({ name }) => name === sample.instrument);
  if (instrument) return byInstrument(instrument, sample, deps);
  if (sample.instrument !== undefined) return { ok: false, reason: noSuch(sample.instrument, config) };
  return byLearning(sample, deps);
}

function fits({ files, ignore, ready }: Instrument, name: string): boolean {
  return createMatcher({ files, ignore, doneFile: ready.doneFile }).takes(name);
}

async function byInstrument(
  instrument: Instrument,
  sample: Sample,
  { nowMs, signal }: PreviewDeps,
): Promise<Preview> {
  const mapping = stringify({ instruments: { [instrument.name]: instrument.written } }, { lineWidth: 0 });
  const [mistake] = checkMapping(instrument);
  if (mistake) return { ok: false, reason: explainProblem(mistake), mapping };
  const file = asFile(sample, instrument.watch);
  return withRefusal(file, { mapping }, async () => {
    return { mapping, doubts: [], ...shown(await tryFile(instrument, file, nowMs, signal)) };
  });
}

async function byLearning(sample: Sample, { nowMs, signal }: PreviewDeps): Promise<Preview> {
  const file = asFile(sample, ANY_FOLDER);
  return withRefusal(file, {}, async () => {
    const learned = await learn([file], nowMs, signal);
    const doubts = learned.doubts.map((doubt) => doubt.replaceAll(file.path, sample.name));
    const mapping = await toYaml({ ...learned, doubts }, [sample.name]);
    return withRefusal(file, { mapping, doubts }, async () => {
      const instrument = toInstrument(learned.name, learned.instrument);
      return { mapping, doubts, ...shown(await tryFile(instrument, file, nowMs, signal)) };
    });
  });
}

/** A refusal is an answer too: it is what people came for. */
async function withRefusal(
  { path }: IdentifiedFile,
  known: { readonly mapping?: string; readonly doubts?: readonly string[] },
  act: () => Promise<Preview>,
): Promise<Preview> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    // Whoever dropped the file knows it by its name.
    return { ok: false, reason: explain(error).replaceAll(path, posix.basename(path)), ...known };
  }
}

function noSuch(name: string, { instruments, listed }: LoadedConfig): string {
  if (listed.some((one) => one.name === name)) {
    return `the instrument ${JSON.stringify(name)} has a mistake in the configuration`;
  }
  const guess = nearest(
    name,
    instruments.map((one) => one.name),
  );
  return `there is no instrument ${JSON.stringify(name)}${guess === undefined ? '' : `; did you mean ${guess}?`}`;
}

/** As if it lay in that folder: its bytes are at hand, so that nobody looks there. */
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

type Shown = Pick<Extract<Preview, { ok: true }>, 'ok' | 'instrument' | 'draft' | 'tables' | 'meta'>;

function shown(trial: Trial): Shown {
  const { title, date, tags, body } = trial.draft;
  const dateFrom = DATE_FROM[trial.dateFrom];
  return {
    ok: true,
    instrument: trial.instrument.name,
    draft: { title, date, dateFrom, tags, body, comments: markedComments(trial) },
    tables: trial.record.tables.map(shownTable),
    meta: shownFacts(trial.record),
  };
}

const ROWS_SHOWN = 50;

const shownTable = ({ name, columns, rows, count }: Table): PreviewTable => ({
  name,
  columns: columns.map(({ name, unit }) => ({ name, ...(unit === undefined ? {} : { unit }) })),
  rows: rows.slice(0, ROWS_SHOWN).map((row) => row.map(({ text }) => text)),
  count,
});

const shownFacts = ({ meta }: FileRecord) =>
  [...meta].map(([name, { text, unit }]) => ({ name, text, ...(unit === undefined ? {} : { unit }) }));
