import { basename, dirname, extname, parse, relative, sep } from 'node:path';
import { stringify } from 'yaml';
import type { Instrument } from '../config/load.js';
import { INSTRUMENT_NAME, instrumentSchema } from '../config/schema.js';
import { type ParseMapping, withDefaults } from '../config/vocabulary.js';
import { explain, FileError } from '../errors.js';
import { createMapping } from '../mapping/mapping.js';
import { changesBetween, type FileRecord, type IdentifiedFile, shapeOf } from '../model.js';
import { openFile } from '../parse/source.js';
import { contentOf } from '../watch/identify.js';
import { createMatcher } from '../watch/match.js';
import { measureFile } from './formats.js';

/** An instrument as it would stand in a configuration, made from samples. */
interface Learnt {
  readonly name: string;
  readonly instrument: {
    readonly watch: string;
    readonly files: string | string[];
    readonly parse: ParseMapping;
    readonly experiment: { readonly title: string };
  };
  /** What a person should look at, one thing each. */
  readonly doubts: readonly string[];
}

/** Looks at sample files and says how an instrument that writes such files would be configured. */
export async function learn(
  files: readonly IdentifiedFile[],
  nowMs: number,
  signal?: AbortSignal,
): Promise<Learnt> {
  const paths = files.map(({ path }) => path);
  const watch = commonFolder(paths);
  const name = suggestName(watch, paths);
  const choice = await choose(files, {
    measure: (file) => measureSample(file, signal),
    read: (file, parse) => createMapping(asInstrument(name, { watch, parse })).parse(file, signal),
  });
  const instrument = {
    watch,
    files: suggestFiles(watch, paths),
    parse: choice.mapping,
    experiment: { title: suggestTitle(choice.read.map(({ record }) => record)) },
  };
  const doubts = [
    ...choice.doubts,
    ...choice.unread.map(({ file, reason }) => `${file.path} is not read by it: ${reason}`),
    ...refusedDrafts(asInstrument(name, instrument), choice, nowMs),
    ...ignored(asInstrument(name, instrument), paths),
    ...(files.length === 1 ? ['it was learnt from one file; a few more make it surer'] : []),
  ];
  return { name, instrument, doubts };
}

/** The instrument as the daemon would use it. */
export function asInstrument(name: string, written: object): Instrument {
  const placeOf = () => ({ file: name });
  return { ...instrumentSchema.parse(written), name, mapping: '', written, placeOf };
}

/** Files that read well can still be quarantined: for a date that can be read two ways, for example. */
function refusedDrafts(instrument: Instrument, { read }: Choice<IdentifiedFile>, nowMs: number): string[] {
  const mapping = createMapping(instrument);
  return read.flatMap(({ file, record }) => {
    try {
      mapping.map(record, file, nowMs);
      return [];
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return [`it would be quarantined: ${explain(error)}`];
    }
  });
}

function ignored({ watch, files, ignore, ready }: Instrument, paths: readonly string[]): string[] {
  const matcher = createMatcher({ files, ignore, doneFile: ready.doneFile });
  return paths.flatMap((path) => {
    const verdict = matcher.verdict(path.slice(watch.length).replace(/^[\\/]+/, ''));
    if (verdict.taken) return [];
    const why = verdict.rule === 'files' ? 'files does not fit it' : `it is ignored by ${verdict.pattern}`;
    return [`${path} would not be taken: ${why}`];
  });
}

interface LearnDeps<File> {
  /** How a file is to be read, by its looks. A FileError where that cannot be told. */
  measure(file: File): Promise<{ readonly mapping: ParseMapping; readonly doubts: readonly string[] }>;
  /** Reads a file as a mapping says. A FileError where it does not. */
  read(file: File, mapping: ParseMapping): Promise<FileRecord>;
}

/** The mapping that reads the most of the samples, and what is to be said about it. */
interface Choice<File> {
  readonly mapping: ParseMapping;
  readonly doubts: readonly string[];
  readonly read: readonly { readonly file: File; readonly record: FileRecord }[];
  readonly unread: readonly { readonly file: File; readonly reason: string }[];
}

/** What one sample says by itself. */
interface Lesson<File> {
  readonly file: File;
  readonly mapping: ParseMapping;
  readonly doubts: readonly string[];
  readonly record: FileRecord;
}

/**
 * Measures each sample, tries each mapping on all of them, and takes the surest under which all read; if there is none,
 * the one that reads the most. Where no sample can be measured, the reasons are thrown.
 */
export async function choose<File>(files: readonly File[], deps: LearnDeps<File>): Promise<Choice<File>> {
  const lessons: Lesson<File>[] = [];
  const refusals: FileError[] = [];
  for (const file of files) {
    try {
      const measured = await deps.measure(file);
      lessons.push({ file, ...measured, record: await deps.read(file, measured.mapping) });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      refusals.push(error);
    }
  }
  let best: Choice<File> | undefined;
  for (const { mapping, doubts } of candidates(lessons)) {
    const choice = { mapping, doubts, ...(await tryOn(files, mapping, lessons, deps)) };
    if (choice.unread.length === 0) return choice;
    if (best === undefined || choice.unread.length < best.unread.length) best = choice;
  }
  if (best) return best;
  throw new FileError(refusals.map((refusal) => explain(refusal)).join('\n'));
}

/**
 * The mapping of each sample, the surest first: what one leaves open, another settles. Each also with the words for no
 * value that the other samples have.
 */
function candidates<File>(lessons: readonly Lesson<File>[]): Pick<Lesson<File>, 'mapping' | 'doubts'>[] {
  const wordsOf = ({ missing = [] }: ParseMapping) => [missing].flat();
  const words = [...new Set(lessons.flatMap(({ mapping }) => wordsOf(mapping)))];
  const surest = lessons.toSorted((a, b) => a.doubts.length - b.doubts.length);
  return surest.flatMap(({ mapping, doubts }) => [
    { mapping, doubts },
    ...(words.length > wordsOf(mapping).length ? [{ mapping: { ...mapping, missing: words }, doubts }] : []),
  ]);
}

async function tryOn<File>(
  files: readonly File[],
  mapping: ParseMapping,
  lessons: readonly Lesson<File>[],
  deps: LearnDeps<File>,
): Promise<Pick<Choice<File>, 'read' | 'unread'>> {
  const read: { file: File; record: FileRecord }[] = [];
  const unread: { file: File; reason: string }[] = [];
  for (const file of files) {
    try {
      const record = await deps.read(file, mapping);
      const own = lessons.find((lesson) => lesson.file === file)?.record;
      const lost = own && whatIsLost(own, record);
      if (lost === undefined) read.push({ file, record });
      else unread.push({ file, reason: lost });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      const { line } = error.where ?? {};
      unread.push({ file, reason: `${line === undefined ? '' : `line ${line}: `}${error.message}` });
    }
  }
  return { read, unread };
}

/** What a sample says under the mapping that was made for it, and not under another one. */
function whatIsLost(own: FileRecord, other: FileRecord): string | undefined {
  const [change] = changesBetween(shapeOf(own), shapeOf(other));
  if (change !== undefined) return `read so, ${change}`;
  const fewer = own.tables.find((table, n) => table.count !== other.tables[n]?.count);
  if (fewer) return `read so, ${JSON.stringify(fewer.name)} has another number of rows than it should`;
  const fact = [...own.meta.keys()].find((name) => !other.meta.has(name));
  if (fact !== undefined) return `read so, the fact ${JSON.stringify(fact)} is lost`;
  return countNumbers(other) < countNumbers(own) ? 'read so, some of its numbers are texts' : undefined;
}

const countNumbers = ({ tables }: FileRecord): number =>
  tables
    .flatMap(({ rows }) => rows.flat())
    .reduce((count, { value }) => count + (typeof value === 'number' ? 1 : 0), 0);

/** Folders whose names say nothing about the instrument. */
const ANY_FOLDER =
  /^(samples?|data|daten|te?mp|downloads?|desktop|documents?|files?|exports?|results?|runs?|tests?|examples?)$/i;

/** What the instrument may be called: after its folder, or else after the first sample. */
export function suggestName(watch: string, paths: readonly string[]): string {
  const stem = parse(paths[0] ?? '').name.replace(/[\s._-]*\d[\d\s._-]*$/, '');
  const folder = basename(watch);
  const names = (ANY_FOLDER.test(folder) ? [stem, folder] : [folder, stem]).map(cleanName);
  return names.find((name) => INSTRUMENT_NAME.test(name)) ?? 'instrument';
}

const cleanName = (name: string): string =>
  name
    .normalize('NFC')
    .replace(/[^\p{L}\p{N} ._-]+/gu, '-')
    .replace(/^[^\p{L}\p{N}]+|[ ._-]+$/gu, '')
    .slice(0, 64);

/** The folder that holds all samples. */
export function commonFolder(paths: readonly string[]): string {
  return paths
    .map((path) => dirname(path))
    .reduce((common, folder) => {
      let shared = common;
      while (relative(shared, folder).startsWith('..')) shared = dirname(shared);
      return shared;
    });
}

/** Globs for files of the samples' kinds, seen from the folder that holds them. */
export function suggestFiles(watch: string, paths: readonly string[]): string | string[] {
  const isFlat = paths.every((path) => !relative(watch, path).includes(sep));
  const endings = [...new Set(paths.map((path) => extname(path)))].sort();
  const globs = endings.map(
    (ending) => `${isFlat ? '' : '**/'}*${ending.replace(/[^\p{L}\p{N}.]/gu, '\\$&')}`,
  );
  return globs.length === 1 ? (globs[0] ?? '*') : globs;
}

/** What names a sample, the surest first. `Sample volume` or `Run date` are about it, and do not name it. */
const TITLES = [
  /^(sample|specimen|probe|[ée]chantillon|muestra|campione|サンプル|試料)([ _-]?(id|name|no\.?|nr\.?|number))?$/i,
  /^(plate|platte|plaque)([ _-]?(id|name|no\.?|nr\.?|number|barcode))?$/i,
  /^(name|title|titel|titre|id|run([ _-]?(id|name|no\.?|number))?)$/i,
];

/** A title that tells the runs apart: by a fact that names the sample in all files, else by the file's name. */
export function suggestTitle(records: readonly FileRecord[]): string {
  const isInAll = (name: string) => records.every(({ meta }) => (meta.get(name)?.text ?? '').trim() !== '');
  const names = [...(records[0]?.meta.keys() ?? [])].filter((name) => isNameable(name) && isInAll(name));
  const [sample] = TITLES.flatMap((title) => names.filter((name) => title.test(name)));
  return `${sample === undefined ? '{{ file.stem }}' : insert(sample)} ({{ instrument }})`;
}

/** Liquid has no way to write a quote, or a brace that closes, within a name. */
const isNameable = (name: string): boolean => !/["\\{}%]/.test(name);

const insert = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) ? `{{ meta.${name} }}` : `{{ meta["${name}"] }}`;

/** What looking at a file suggests about how it is to be read. */
interface Measured {
  /** With the likelier answer to each question that the file leaves open. */
  readonly mapping: ParseMapping;
  /** Those questions, in words for who reads the mapping. */
  readonly doubts: readonly string[];
}

/** The one place that knows how a file is measured. What cannot be measured is a FileError. */
export async function measureSample(file: IdentifiedFile, signal?: AbortSignal): Promise<Measured> {
  const { path, size } = file;
  const source = { path, name: basename(path), size, content: contentOf(file) };
  const { likely, doubts, refusal } = await measureFile(openFile(source, withDefaults({}), signal));
  const questions =
    doubts.length > 0 || !refusal ? doubts : [`by itself it would be refused: ${said(refusal)}`];
  return { mapping: likely, doubts: questions };
}

const said = ({ message, where }: FileError): string =>
  where?.line === undefined ? message : `line ${where.line}: ${message}`;

/** What was learnt, as a part of a configuration; what was unsure stands in comments. */
export async function learntAsYaml(
  { name, instrument, doubts }: Learnt,
  samples: readonly string[],
): Promise<string> {
  const from = samples.length === 1 ? samples[0] : `${samples.length} files`;
  const comments = [
    `Learnt from ${from}. Look through it, then try it: labfeed try --config THIS ${shellWord(name)} FILE`,
    'watch is where the samples are: put the folder there that the instrument writes to.',
    ...doubts.map((doubt) => `Unsure: ${doubt}`),
  ];
  const part = stringify({ instruments: { [name]: instrument } }, { lineWidth: 0 });
  return `${comments.map(asComment).join('')}${part}`.trimEnd();
}

const shellWord = (text: string): string => (/^[\w.-]+$/.test(text) ? text : `'${text}'`);

/** Whatever a file or an error says stays within the comment. */
const asComment = (text: string): string =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line, n) => `# ${n === 0 ? '' : '  '}${line.replace(/[^\P{Cc}\t]/gu, ' ').trimEnd()}\n`)
    .join('');
