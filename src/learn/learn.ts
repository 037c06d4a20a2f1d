import { basename, dirname, extname, parse, relative, resolve, sep } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { systemClock } from '../clock.js';
import type { Instrument } from '../config/load.js';
import { INSTRUMENT_NAME, instrumentSchema } from '../config/schema.js';
import { NO_MAPPING, type ParseMapping } from '../config/vocabulary.js';
import { explain, FileError } from '../errors.js';
import { createMapping } from '../mapping/mapping.js';
import { openSample } from '../mapping/sample.js';
import { changesBetween, type FileRecord, type IdentifiedFile, shapeOf } from '../model.js';
import { firstLines, openText } from '../parse/cells.js';
import { formatOf } from '../parse/parse.js';
import { openFile } from '../parse/source.js';
import { shellWord } from '../text.js';
import { contentOf } from '../watch/identify.js';
import { createMatcher } from '../watch/match.js';
import { measureFile, tablesOf } from './formats.js';
import { type Measured, noRunDate, withLine } from './measure.js';

export function addLearn(command: Command): void {
  command
    .argument('<file...>', 'Sample files of one instrument; several give a better mapping')
    .option('--json', 'Print the result as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed learn samples/run-17.tsv samples/run-18.tsv > instruments.d/nanodrop.yaml',
    )
    .action(learnCommand);
}

async function learnCommand(paths: string[], { json }: { readonly json?: boolean }): Promise<void> {
  const unique = [...new Set(paths.map((path) => resolve(path)))];
  const files = [];
  for (const path of unique) files.push(await openSample(path));
  const learned = await learn(files, systemClock.now());
  if (!json) return console.log(await toYaml(learned, unique));
  const { name, instrument, doubts } = learned;
  console.log(JSON.stringify({ instruments: { [name]: instrument }, doubts }, null, 2));
}

type Learned = Awaited<ReturnType<typeof learn>>;

/** Makes an instrument as in a configuration from samples. `doubts`: what a person should check. */
export async function learn(files: readonly IdentifiedFile[], nowMs: number, signal?: AbortSignal) {
  const paths = files.map(({ path }) => path);
  const watch = commonFolder(paths);
  const name = suggestName(watch, paths);
  const choice = await chooseMapping(files, {
    measure: (file) => measureSample(file, signal),
    lines: (file) => firstTexts(file, signal),
    read: (file, parse) => createMapping(toInstrument(name, { watch, parse })).parse(file, signal),
  });
  const records = choice.read.map(({ record }) => record);
  const tags = suggestTags(records);
  // Until a person has checked the mapping, a run with many unread readings is quarantined.
  const written = {
    watch,
    files: suggestFiles(watch, paths),
    parse: choice.mapping,
    unread: 'quarantine' as const,
    experiment: {
      title: suggestTitle(records),
      ...(choice.date !== undefined && { date: choice.date }),
      ...(tags.length > 0 && { tags: ['{{ instrument }}', ...tags] }),
    },
  };
  const instrument = toInstrument(name, written);
  const doubts = [
    ...choice.doubts,
    ...choice.unread.map(
      ({ file, reason }) =>
        `this mapping cannot read ${file.path}: ${reason}. If the file is from another instrument, learn its mapping separately`,
    ),
    ...checkSamples(instrument, choice, nowMs),
    ...unmatchedSamples(instrument, paths),
    ...positionDoubts(choice.mapping),
  ];
  return { name, instrument: written, doubts };
}

/** The instrument as the daemon would use it. */
export function toInstrument(name: string, written: object): Instrument {
  const placeOf = () => ({ file: name });
  return { ...instrumentSchema.parse(written), name, mapping: '', layout: '', written, placeOf };
}

/** Files that can be read may still be quarantined, for example for an ambiguous date, or have lines that are not used. */
function checkSamples(instrument: Instrument, { read, doubts }: Choice<IdentifiedFile>, nowMs: number): string[] {
  const mapping = createMapping(instrument);
  return read.flatMap(({ file, record }) => {
    try {
      const { warnings } = mapping.map(record, file, nowMs);
      return warnings.map(withNames).map((warning) => (read.length > 1 ? `${file.path}: ${warning}` : warning));
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      // The doubt about such a date also says what to write.
      const isKnown =
        /^the date .* is ambiguous/.test(error.message) && doubts.some((doubt) => /is ambiguous/.test(doubt));
      return isKnown ? [] : [`this sample would be quarantined: ${explain(error)}`];
    }
  });
}

/** With the line that names a column. */
function withNames(warning: string): string {
  const [, column] = /without a name in the file: column (\d+)/.exec(warning) ?? [];
  return column === undefined ? warning : `${warning}. To name them, add to the table: columns: { NAME: ${column}, … }`;
}

/** Keys of tables and finders that hold a line. */
const LINE_KEYS = ['header', 'after', 'until', 'skip', 'line'] as const;

/** Lines without words to find them by: the next file may have them elsewhere. */
function positionDoubts(written: WrittenMapping): string[] {
  const mappings = [written].flat();
  const finders = mappings.flatMap(({ meta = [] }) => meta);
  const tables = mappings.flatMap((mapping) => Object.values(tablesOf(mapping)));
  const keys = [...finders, ...tables].flatMap((each: Readonly<Record<string, unknown>>) =>
    LINE_KEYS.flatMap((key) =>
      [each[key]].flat().flatMap((line) => (typeof line === 'number' ? `${key}: ${line}` : [])),
    ),
  );
  const names = finders.flatMap(({ cells = {} }) => Object.keys(cells).filter((name) => /^[A-Z]{1,2}\d+$/.test(name)));
  return [
    ...(keys.length === 0
      ? []
      : [
          `no words mark some lines, so the mapping has line numbers: ${listed([...new Set(keys)])}. If these lines are elsewhere in other files, write words of the file instead`,
        ]),
    ...(names.length === 0 ? [] : [`some facts have no name in the file: ${listed(names)}. Rename them under meta`]),
  ];
}

const MAX_LISTED = 5;

const listed = (all: readonly string[]): string =>
  all.length <= MAX_LISTED
    ? all.join(', ')
    : `${all.slice(0, MAX_LISTED - 1).join(', ')} and ${all.length - MAX_LISTED + 1} more`;

function unmatchedSamples({ watch, files, ignore, ready }: Instrument, paths: readonly string[]): string[] {
  const matcher = createMatcher({ files, ignore, ready });
  return paths.flatMap((path) => {
    const verdict = matcher.verdict(path.slice(watch.length).replace(/^[\\/]+/, ''));
    if (verdict.taken) return [];
    const reason =
      verdict.rule === 'files'
        ? 'no pattern in `files` matches it'
        : `the \`ignore\` pattern ${verdict.pattern} matches it. To take such files, write ignore: []`;
    return [`${path} would not be taken: ${reason}`];
  });
}

interface Suggestion {
  readonly mapping: ParseMapping;
  /** The template of the date, if it is not a fact. */
  readonly date?: string | undefined;
  readonly doubts: readonly string[];
}

interface ChooseDeps<File> {
  /** Throws a FileError if the file cannot be measured. */
  measure(file: File): Promise<Suggestion>;
  /** The first lines of a text file, to find one that other samples do not have. */
  lines?(file: File): Promise<readonly string[]>;
  /** Throws a FileError if the mapping, or the first of its alternatives that matches, does not read the file. */
  read(file: File, mapping: WrittenMapping): Promise<FileRecord>;
}

type WrittenMapping = ParseMapping | ParseMapping[];

/** The mapping that reads the most samples, or alternatives for samples with different layouts. */
interface Choice<File> {
  readonly mapping: WrittenMapping;
  readonly date?: string | undefined;
  readonly doubts: readonly string[];
  readonly read: readonly { readonly file: File; readonly record: FileRecord }[];
  readonly unread: readonly { readonly file: File; readonly reason: string }[];
}

interface MeasuredSample<File> extends Suggestion {
  readonly file: File;
  readonly record: FileRecord;
}

/**
 * Measures each sample, tries each mapping on all samples, and takes the one with the fewest doubts that reads all of
 * them, or else the one that reads the most. If no sample can be measured, throws all reasons.
 */
export async function chooseMapping<File>(files: readonly File[], deps: ChooseDeps<File>): Promise<Choice<File>> {
  const samples: MeasuredSample<File>[] = [];
  const errors: FileError[] = [];
  for (const file of files) {
    try {
      const measured = await deps.measure(file);
      samples.push({ file, ...measured, record: await deps.read(file, measured.mapping) });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      errors.push(error);
    }
  }
  let best: Choice<File> | undefined;
  for (const suggestion of candidates(samples)) {
    const choice = { ...suggestion, ...(await tryMapping(suggestion.mapping, files, samples, deps)) };
    if (choice.unread.length === 0) return choice;
    if (best === undefined || choice.unread.length < best.unread.length) best = choice;
  }
  if (best) return (await chooseAlternatives(best, files, samples, deps)) ?? best;
  throw new FileError(errors.map((error) => explain(error)).join('\n'));
}

/** The mapping of each sample, fewest doubts first; each also with all samples' words for no value. */
function candidates<File>(samples: readonly MeasuredSample<File>[]): Suggestion[] {
  const wordsOf = ({ missing = [] }: ParseMapping) => [missing].flat();
  const words = [...new Set(samples.flatMap(({ mapping }) => wordsOf(mapping)))];
  const sorted = samples.toSorted((a, b) => a.doubts.length - b.doubts.length);
  return sorted.flatMap(({ mapping, date, doubts }) => [
    { mapping, date, doubts },
    ...(words.length > wordsOf(mapping).length ? [{ mapping: { ...mapping, missing: words }, date, doubts }] : []),
  ]);
}

/** Samples with more layouts than this probably come from several instruments. */
const MAX_ALTERNATIVES = 5;

/**
 * A list of mappings, each for the samples with a line that the others do not have. Undefined if there is no such line,
 * or if the list reads no more samples than its first mapping.
 */
async function chooseAlternatives<File>(
  best: Choice<File>,
  files: readonly File[],
  samples: readonly MeasuredSample<File>[],
  deps: ChooseDeps<File>,
): Promise<Choice<File> | undefined> {
  const groups = [
    { mapping: [best.mapping].flat()[0] ?? {}, doubts: best.doubts, files: best.read.map(({ file }) => file) },
  ];
  let left = best.unread.map(({ file }) => file);
  while (groups.length < MAX_ALTERNATIVES) {
    // A text without a table is probably not a run of this instrument.
    const own = samples.find(({ file, record }) => left.includes(file) && record.tables.length > 0);
    if (!own) break;
    const { read } = await tryMapping(own.mapping, left, samples, deps);
    const taken = read.map(({ file }) => file);
    if (taken.length === 0) break;
    groups.push({ mapping: own.mapping, doubts: own.doubts, files: taken });
    left = left.filter((file) => !taken.includes(file));
  }
  const texts = new Map<File, readonly string[]>();
  for (const file of files) texts.set(file, (await deps.lines?.(file)) ?? []);
  const mapping = groups.flatMap((group) => {
    const others = files.filter((file) => !group.files.includes(file) && !left.includes(file));
    const when = findOwnLine(
      group.files.map((file) => texts.get(file) ?? []),
      others.flatMap((file) => texts.get(file) ?? []),
    );
    return when === undefined ? [] : [{ when, ...group.mapping }];
  });
  if (mapping.length < groups.length || groups.length < 2) return undefined;
  const doubts = [...new Set(groups.flatMap((group) => group.doubts))];
  const choice = { mapping, doubts, ...(await tryMapping(mapping, files, samples, deps)) };
  return choice.unread.length < best.unread.length ? choice : undefined;
}

/** The start of a line that all these files have and no other file has: words that are not a value. */
function findOwnLine(files: readonly (readonly string[])[], others: readonly string[]): string | undefined {
  const [first = [], ...further] = files;
  const starts = first.map((text) => /^\s*([^\d:=,;\t|"]*\p{L}{2}[^\d:=,;\t|"]*)/u.exec(text)?.[1]?.trim() ?? '');
  const isIn = (texts: readonly string[], start: string) => texts.some((text) => text.trimStart().startsWith(start));
  return starts.find(
    (start) => start.length >= 3 && further.every((texts) => isIn(texts, start)) && !isIn(others, start),
  );
}

/** Enough to see the layout. */
const MAX_TEXTS = 200;

/** Empty if the file is not text. */
async function firstTexts(file: IdentifiedFile, signal?: AbortSignal): Promise<readonly string[]> {
  const opened = openSource(file, signal);
  const format = await formatOf(opened);
  return format === 'delimited' || format === 'text' ? firstLines(await openText(opened), MAX_TEXTS) : [];
}

async function tryMapping<File>(
  mapping: WrittenMapping,
  files: readonly File[],
  samples: readonly MeasuredSample<File>[],
  deps: ChooseDeps<File>,
): Promise<Pick<Choice<File>, 'read' | 'unread'>> {
  const read: { file: File; record: FileRecord }[] = [];
  const unread: { file: File; reason: string }[] = [];
  for (const file of files) {
    try {
      const record = await deps.read(file, mapping);
      const own = samples.find((sample) => sample.file === file)?.record;
      const loss = own && findLoss(own, record);
      if (loss === undefined) read.push({ file, record });
      else unread.push({ file, reason: loss });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      unread.push({ file, reason: withLine(error) });
    }
  }
  return { read, unread };
}

/** What a sample's own mapping reads and another mapping does not. */
function findLoss(own: FileRecord, other: FileRecord): string | undefined {
  const [change] = changesBetween(shapeOf(own), shapeOf(other));
  if (change !== undefined) return change;
  const table = own.tables.find(({ count }, n) => count !== other.tables[n]?.count);
  if (table) return `${JSON.stringify(table.name)} would have a different number of rows`;
  const narrower = own.tables.find(({ columns }, n) => columns.length > (other.tables[n]?.columns.length ?? 0));
  if (narrower) return `${JSON.stringify(narrower.name)} would have fewer columns`;
  const fact = [...own.meta.keys()].find((name) => !other.meta.has(name));
  if (fact !== undefined) return `the fact ${JSON.stringify(fact)} would be missing`;
  return countNumbers(other) < countNumbers(own) ? 'some numbers would be read as text' : undefined;
}

const countNumbers = ({ tables }: FileRecord): number =>
  tables
    .flatMap(({ rows }) => rows.flat())
    .reduce((count, { value }) => count + (typeof value === 'number' ? 1 : 0), 0);

export async function measureSample(file: IdentifiedFile, signal?: AbortSignal): Promise<Suggestion> {
  const { likely, firstRow, undated, doubts } = await measureFile(openSource(file, signal));
  const mapping = likely();
  if (undated === undefined) return { mapping, date: firstRow && firstDate(firstRow, mapping), doubts };
  const doubt = `${noRunDate(undated)}. Entries get the day the file was modified; to use ${undated.line === undefined ? 'a date of the file, change experiment.date' : `that date, write ${undated.line}`}`;
  return { mapping, date: '{{ file.modified }}', doubts: [...doubts, doubt] };
}

/** The date of the first reading, as a template. */
function firstDate({ table, column, joined }: NonNullable<Measured['firstRow']>, mapping: ParseMapping) {
  const [first = 'readings'] = Object.keys(mapping.tables ?? {});
  const isTree = mapping.format === 'json' || mapping.format === 'xml' || mapping.format === 'records';
  const name = isTree ? column : (joined ?? column);
  if (!isInsertable(table + name)) return undefined;
  const rows = table === first ? 'readings' : `tables["${table}"]`;
  return `{{ ${rows}[0]["${name}"] | default: file.modified }}`;
}

function openSource(file: IdentifiedFile, signal?: AbortSignal) {
  const { path, size, mtimeNs } = file;
  const modifiedMs = Number(mtimeNs / 1_000_000n);
  return openFile({ path, name: basename(path), size, modifiedMs, content: contentOf(file) }, NO_MAPPING, signal);
}

/** Folder names that say nothing about the instrument. */
const GENERIC_FOLDER =
  /^(samples?|data|daten|te?mp|downloads?|desktop|documents?|files?|exports?|results?|runs?|tests?|examples?)$/i;

/** A name for the instrument: that of its folder, or else that of the first sample. */
export function suggestName(watch: string, paths: readonly string[]): string {
  const stem = parse(paths[0] ?? '').name.replace(/[\s._-]*\d[\d\s._-]*$/, '');
  const folder = basename(watch);
  const names = (GENERIC_FOLDER.test(folder) ? [stem, folder] : [folder, stem]).map(cleanName);
  return names.find((name) => INSTRUMENT_NAME.test(name)) ?? 'instrument';
}

const cleanName = (name: string): string =>
  name
    .normalize('NFC')
    .replace(/[^\p{L}\p{N} ._-]+/gu, '-')
    .replace(/^[^\p{L}\p{N}]+|[ ._-]+$/gu, '')
    .slice(0, 64);

export const commonFolder = (paths: readonly string[]): string =>
  paths
    .map((path) => dirname(path))
    .reduce((common, folder) => {
      let shared = common;
      while (relative(shared, folder).startsWith('..')) shared = dirname(shared);
      return shared;
    });

/** Globs that match the extensions of the samples. */
export function suggestFiles(watch: string, paths: readonly string[]): string | string[] {
  const isFlat = paths.every((path) => !relative(watch, path).includes(sep));
  const extensions = [...new Set(paths.map((path) => extname(path)))].sort();
  const globs = extensions.map(
    (extension) => `${isFlat ? '' : '**/'}*${extension.replace(/[^\p{L}\p{N}.]/gu, '\\$&')}`,
  );
  return globs.length === 1 ? (globs[0] ?? '*') : globs;
}

/** A part of a configuration, with the doubts as comments. */
export async function toYaml({ name, instrument, doubts }: Learned, samples: readonly string[]): Promise<string> {
  const from = samples.length === 1 ? samples[0] : `${samples.length} files`;
  const comments = [
    `Learned from ${from}. Review it, then test it: labfeed try --config THIS_FILE ${shellWord(name)} SAMPLE`,
    'watch is the folder of the samples. Replace it with the folder that the instrument writes to.',
    ...(samples.length === 1 ? ['Several samples give a better mapping: labfeed learn FILE FILE…'] : []),
    ...[...new Set(doubts)].map((doubt) => `Unsure: ${doubt}`),
  ];
  const part = stringify({ instruments: { [name]: instrument } }, { lineWidth: 0 });
  return `${comments.map(toComment).join('')}${part}`.trimEnd();
}

/** Text from files and errors cannot leave the comment. */
export const toComment = (text: string): string =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line, n) => `# ${n === 0 ? '' : '  '}${line.replace(/[^\P{Cc}\t]/gu, ' ').trimEnd()}\n`)
    .join('');

/** Titles and tags for the runs of an instrument, from the facts of its samples. */

/** Liquid cannot escape a quote or a closing brace in a name. */
const isInsertable = (name: string): boolean => !/["\\{}%]/.test(name);

/** Parts of names in the languages that instruments use. */
const NUMBER =
  '(?:id|code|name|nom|nombre|nome|label|title|bezeichnung|barcode|no\\.?|nr\\.?|number|nummer|名称?|番号|编号)';
const FILE = '(?:file|file ?name|datei|type|model|modell|typ|version|型号)';
const named = (words: string, parts: string) =>
  new RegExp(
    `^(?:${words})(?:[ _./-]?${parts})?$|^${parts}[ _-](?:de |of |da |del )?(?:the |l['’]|la )?(?:${words})$`,
    'i',
  );

/** Facts that name a sample, best first. `Sample volume` and `Run date` do not. */
const TITLE_FACTS = [
  named(
    'sample|specimen|proben?|[ée]chantillon|muestra|campione|amostra|monster|サンプル|試料|样品|樣品|시료|образец',
    NUMBER,
  ),
  named('plate|platte|plaque|placa|piastra|プレート|板', NUMBER),
  named('(?:experiment|test|measurement|messung|essai|batch|lot|charge|run)', NUMBER),
  /^(?:name|title|titel|titre|id|titolo|t[íi]tulo|タイトル)$/i,
];

const METHOD = named(
  'method|methode|méthode|método|metodo|protocol|protokoll|protocole|protocolo|assay|technique|メソッド|方法',
  `(?:${NUMBER}|${FILE})`,
);

/** Who measured, how, and with what. */
const TAG_FACTS = [
  named(
    '(?:acq\\. )?(?:operator|user|analyst|bediener|benutzer|anwender|op[ée]rateur|utilisateur|operador|usuario|operatore|utente|analista|オペレータ[ーｰ]?|測定者|操作员|操作者)',
    NUMBER,
  ),
  METHOD,
  named(
    'instrument|device|reader|gerät|messgerät|spectrometer|appareil|instrumento|strumento|機種|装置|仪器',
    `(?:${NUMBER}|${FILE})`,
  ),
];

/** What software writes where nobody entered anything. */
const PLACEHOLDER =
  /^(?:n\.?\/?a\.?|none|null|nil|unknown|undefined|untitled|(?:un|not )specified|not (?:set|applicable|available|appl\.?)|default.*|<.*>|\(.*\)|user|operator|admin(?:istrator)?|guest|sample|new|keine?|unbekannt|inconnu|x+)$/i;

const isMeaningful = (text: string): boolean => /[\p{L}\p{N}]/u.test(text) && !PLACEHOLDER.test(text.trim());

/** The facts that all files have, with a value that is not a placeholder. */
function usableFacts(records: readonly FileRecord[]): string[] {
  const isInAll = (name: string) => records.every(({ meta }) => isMeaningful(meta.get(name)?.text ?? ''));
  return [...(records[0]?.meta.keys() ?? [])].filter((name) => isInsertable(name) && isInAll(name));
}

/** A title that distinguishes the runs: by the sample and the method, or else by the file name. */
export function suggestTitle(records: readonly FileRecord[]): string {
  const names = usableFacts(records);
  const [sample] = TITLE_FACTS.flatMap((title) => names.filter((name) => title.test(name)));
  const method = names.find((name) => METHOD.test(name) && records.every((record) => isShort(record, name)));
  if (sample === undefined) return '{{ file.stem }} ({{ instrument }})';
  const title = insert(sample, ' | default: file.stem');
  return `${title}${method === undefined ? '' : addition(method)} ({{ instrument }})`;
}

/** Templates for tags from facts with a few words or a name. */
export function suggestTags(records: readonly FileRecord[]): string[] {
  const names = usableFacts(records).filter((name) => records.every((record) => isShort(record, name)));
  return TAG_FACTS.flatMap((tag) => names.filter((name) => tag.test(name)).slice(0, 1)).map((name) => insert(name));
}

/** Not a path, a serial number or a remark. */
const isShort = ({ meta }: FileRecord, name: string): boolean => {
  const { text = '', value } = meta.get(name) ?? {};
  return typeof value === 'string' && text.length <= 40 && !/[\\/]/.test(text);
};

const factOf = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? `meta.${name}` : `meta["${name}"]`);

const insert = (name: string, filter = ''): string => `{{ ${factOf(name)}${filter} }}`;

/** Nothing for a file without the fact. */
const addition = (name: string): string => `{% if ${factOf(name)} %}, ${insert(name)}{% endif %}`;
