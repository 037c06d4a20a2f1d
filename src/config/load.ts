import { createHash } from 'node:crypto';
import { type Dirent, existsSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join, parse, resolve } from 'node:path';
import picomatch from 'picomatch';
import { z } from 'zod';
import { ConfigError, EXIT, isForbidden, LabfeedError, type Place, type Problem, systemCode } from '../errors.js';
import { userName } from '../system/process.js';
import { globDepth, nearest } from '../text.js';
import { type FleetConfig, isPostgres, memberJournal, resolveFleet } from './fleet.js';
import { type CheckContext, checkValue, unknownKey } from './problems.js';
import {
  type Config,
  configSchema,
  INSTRUMENT_NAME,
  type InstrumentConfig,
  instrumentSchema,
  NAME_HINT,
} from './schema.js';
import { resolveSecret, type SecretSource, secretFile } from './secrets.js';
import { checkAuthority, notebookSchema, resolveCommand, resolveNotebook } from './settings.js';
import { type ConfigPath, readYaml, type YamlFile } from './yaml.js';

/** An instrument with its name, absolute paths, and the locations of its keys. */
export interface Instrument extends InstrumentConfig {
  readonly name: string;
  /** A hash of `parse`, `experiment`, `comments`, `links` and `unread`. */
  readonly mapping: string;
  /** A hash of `parse` alone: what determines the tables and columns of the files. */
  readonly layout: string;
  /** As it is in the YAML. */
  readonly written: object;
  /** Which files may be read. Absent for files that a person names. */
  readonly access?: AccessRules;
  /** The location of a key of this instrument, for errors that appear later. */
  placeOf(path: ConfigPath): Place;
}

/** Which files belong to an instrument. */
export type Claim = Pick<Instrument, 'name' | 'watch' | 'files' | 'ignore' | 'ready' | 'run'>;

/** Which files of an instrument may be read. Plain data, so that it can be sent to other threads. */
export interface AccessRules {
  /** The watched folder. */
  readonly folder: string;
  /** Folders that links may lead to. `hard`: files of other users may have several names. */
  readonly links: readonly string[];
  /** labfeed's own files: key, token, journal and configuration. */
  readonly own: readonly string[];
}

type Settings = Omit<Config, 'include' | 'instruments' | 'notebook' | 'journal' | 'role' | 'fleet'> & {
  readonly journal: string;
  /** Set if this machine is a member of a fleet. */
  readonly fleet?: FleetConfig;
};

/** What could be read of a configuration, and every mistake in it. */
export interface LoadedConfig {
  readonly file: string;
  readonly settings: Settings;
  /** Absent if it is missing or wrong, which is then one of the problems. */
  readonly notebook?: Config['notebook'];
  /** Those without a mistake. A file belongs to the first that matches it. */
  readonly instruments: readonly Instrument[];
  /** Which files belong to which instrument, in the same order. Includes instruments with a mistake elsewhere. */
  readonly claims: readonly Claim[];
  /** Every instrument, including those with mistakes. */
  readonly listed: readonly ListedInstrument[];
  readonly problems: readonly Problem[];
  /** Problems that may hide instruments from `listed`. */
  readonly incompleteBecause: readonly Problem[];
  /** Settings that have a mistake or could not be read. */
  readonly invalidSettings: ReadonlySet<string>;
  placeOf(path: ConfigPath): Place;
}

/** A configuration with which the daemon can start. */
export type UsableConfig = LoadedConfig & Required<Pick<LoadedConfig, 'notebook'>>;

/** A mistake in one of these keeps the daemon from starting. */
const NEEDED_TO_START: ReadonlySet<string> = new Set(['notebook', 'journal', 'role', 'fleet', 'status']);

/** `hiding`: problems that may hide instruments. */
interface Found {
  readonly problems: Problem[];
  readonly hiding: Problem[];
}

/** A file of instruments as it would be. */
export interface DraftFile {
  readonly file: string;
  readonly text: string;
}

export function loadConfig(file: string, draft?: DraftFile): LoadedConfig {
  const main = readYaml(resolve(file));
  const hiding: Problem[] = [...main.problems];
  const problems: Problem[] = [];
  const wrong = new Set<string>();
  const top = requireMap(main, hiding);
  const isUnreadable = hiding.length > 0;
  const setting = <K extends keyof Config>(key: K): Config[K] | undefined => {
    const stops = NEEDED_TO_START.has(key) ? 'daemon' : 'nothing';
    const schema = configSchema.shape[key];
    const checked = checkValue(schema, top[key], { yaml: main, path: [key], stops });
    if (checked.problems.length > 0 || isUnreadable) wrong.add(key);
    // If the file could not be read, missing keys are not mistakes.
    if (!isUnreadable) (key === 'include' ? hiding : problems).push(...checked.problems);
    return (checked.problems.length === 0 ? checked.value : schema.safeParse(undefined).data) as Config[K] | undefined;
  };
  reportUnknownKeys(main, top, Object.keys(configSchema.shape), { problems, hiding });
  const settings = readSettings(setting, main);
  if (settings.fleet === undefined && !wrong.has('journal')) problems.push(...refuseFleetKeys(main, top));
  // A watcher has no key, and sends nothing to the notebook.
  const isWatcher = settings.fleet?.role === 'watch' && top['notebook'] === undefined;
  const written = isWatcher ? notebookSchema.parse(NO_NOTEBOOK) : setting('notebook');
  const notebook = written && resolveNotebook(written, dirname(main.file));
  if (notebook?.ca !== undefined) problems.push(...checkAuthority(notebook.ca, main.placeOf(['notebook', 'ca'])));
  const parts = [main, ...readParts(main, setting('include'), { problems, hiding }, draft)];
  const entries = parts.flatMap((yaml) => readEntries(yaml, hiding));
  const checked = checkEntries(entries, problems, ownFiles(settings, notebook?.key, parts));
  const claims = checked.flatMap(readClaim);
  for (const { instrument } of checked) if (instrument) problems.push(...checkSource(instrument, claims));
  return {
    file: main.file,
    settings,
    ...(notebook ? { notebook } : {}),
    instruments: checked.flatMap(({ instrument }) => instrument ?? []),
    claims,
    listed: checked.map(readListed),
    problems: [...hiding, ...problems],
    incompleteBecause: hiding,
    invalidSettings: wrong,
    placeOf: main.placeOf,
  };
}

/** Files that are moved into a watched folder would be filed again. */
function checkSource({ name, source, placeOf }: Instrument, claims: readonly Claim[]): Problem[] {
  if (typeof source === 'string') return [];
  const watched = claims.find(({ watch }) => source.move === watch || source.move.startsWith(`${watch}/`));
  if (!watched) return [];
  const message = `source: the folder ${source.move} is watched, as part of ${watched.watch} of ${watched.name}`;
  const hint = 'choose a folder outside all watched folders; a relative path is relative to this file';
  return [{ where: placeOf(['source']), message, hint, stops: { instrument: name } }];
}

/** What the configuration of a watcher has instead of a notebook. Reserved by RFC 2606, so nothing can be sent there. */
export const NO_NOTEBOOK = { url: 'https://fleet.invalid', key: { env: 'LABFEED_NO_KEY' } };

function refuseFleetKeys(main: YamlFile, top: Readonly<Record<string, unknown>>): Problem[] {
  const hint = 'write journal: postgres://USER@HOST/DATABASE, or remove it';
  return ['role', 'fleet'].flatMap((key) =>
    top[key] === undefined
      ? []
      : {
          where: main.placeOf([key]),
          message: `${key}: this machine is not a member of a fleet`,
          hint,
          stops: 'daemon',
        },
  );
}

function readSettings(
  setting: <K extends keyof Config>(key: K) => Config[K] | undefined,
  { file, placeOf }: YamlFile,
): Settings {
  const folder = dirname(file);
  const [role, fleet] = [setting('role') ?? 'all', setting('fleet') ?? {}];
  const journal = setting('journal');
  const alarms = setting('alarms');
  const status = setting('status') ?? false;
  const resolved = (source: SecretSource | undefined) => source && resolveSecret(source, folder);
  return {
    status: status && { ...status, token: resolved(status.token), readToken: resolved(status.readToken) },
    log: setting('log') ?? 'info',
    keep: setting('keep') ?? 0,
    spool: setting('spool') ?? 0,
    journal:
      journal === undefined || isPostgres(journal)
        ? memberJournal(fleet.state, folder, defaultJournal(file))
        : resolve(folder, journal),
    ...(journal !== undefined &&
      isPostgres(journal) && {
        fleet: resolveFleet(journal, role, fleet, folder, placeOf(['fleet', 'password'])),
      }),
    ...(alarms === undefined ? {} : { alarms: resolveCommand(alarms, folder) }),
  };
}

function requireMap(yaml: YamlFile, problems: Problem[]): Readonly<Record<string, unknown>> {
  const { value } = yaml;
  if (isMap(value)) return value;
  if (yaml.problems.length === 0) {
    const message = value === null || value === undefined ? 'the file is empty' : 'expected keys and values';
    const hint = 'see config.example.yaml for an example';
    problems.push({ where: yaml.placeOf([]), message, hint, stops: 'daemon' });
  }
  return {};
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function reportUnknownKeys(
  yaml: YamlFile,
  map: Readonly<Record<string, unknown>>,
  known: string[],
  { problems, hiding }: Found,
): void {
  for (const [key, value] of Object.entries(map)) {
    if (known.includes(key)) continue;
    // It may be a misspelt `instruments` or `include`.
    const mayHide = (typeof value === 'object' && value !== null) || nearest(key, ['include']) !== undefined;
    (mayHide ? hiding : problems).push(unknownKey({ yaml, path: [], stops: 'nothing' }, key, known));
  }
}

function readParts(
  main: YamlFile,
  globs: string[] | undefined,
  { problems, hiding }: Found,
  draft: DraftFile | undefined,
): YamlFile[] {
  const parts: YamlFile[] = [];
  const unreadable = (folder: string, code: string): void => {
    const message = `include: the user ${userName()} cannot read the folder ${folder} (${code})`;
    const hint = isForbidden(code)
      ? `let this user read it, for example with: chmod o+rx ${folder}`
      : 'correct the glob, or remove it from include';
    hiding.push({ where: main.placeOf(['include']), message, hint, stops: 'daemon' });
  };
  const included = (globs ?? []).flatMap((glob) => expandInclude(glob, main.file, unreadable));
  for (const file of new Set([...included, ...(draft ? [draft.file] : [])])) {
    const text = file === draft?.file ? draft.text : undefined;
    if (text === undefined && !existsSync(file)) {
      const message = `include: the file ${file} does not exist`;
      const hint = 'create it, or remove it from include';
      hiding.push({ where: main.placeOf(['include']), message, hint, stops: 'nothing' });
      continue;
    }
    const part = readYaml(file, text);
    // A part that cannot be read stops its own instruments, not the daemon.
    const unread: Problem[] = [...part.problems];
    reportUnknownKeys(part, requireMap(part, unread), ['instruments'], { problems, hiding });
    hiding.push(...unread.map((problem): Problem => ({ ...problem, stops: 'nothing' })));
    parts.push(part);
  }
  return parts;
}

/** An instrument as it is in the YAML. */
interface Entry {
  readonly yaml: YamlFile;
  readonly name: string;
  readonly value: unknown;
}

function readEntries(yaml: YamlFile, hiding: Problem[]): Entry[] {
  const listed = isMap(yaml.value) ? (yaml.value['instruments'] ?? {}) : {};
  if (isMap(listed)) return Object.entries(listed).map(([name, value]) => ({ yaml, name, value }));
  const message = 'instruments: expected a map of instruments by name';
  const hint = 'write instruments: { balance: { watch: /srv/instruments/balance } }';
  hiding.push({ where: yaml.placeOf(['instruments']), message, hint, stops: 'nothing' });
  return [];
}

/** `config`: absent if the entry has a mistake. `instrument`: absent if its name has one, too. */
interface CheckedEntry extends Entry {
  readonly config?: InstrumentConfig | undefined;
  readonly instrument?: Instrument;
}

function checkEntries(entries: readonly Entry[], problems: Problem[], own: readonly string[]): CheckedEntry[] {
  const definedIn = new Map<string, YamlFile>();
  return entries.map((entry) => {
    const { yaml, name, value } = entry;
    const context: CheckContext = { yaml, path: ['instruments', name], stops: { instrument: name } };
    const wrongName = checkName(name, context, definedIn);
    const { value: config, problems: mistakes } = checkValue(instrumentSchema, value, context);
    problems.push(...wrongName, ...mistakes);
    if (!config || wrongName.length > 0) return { ...entry, config };
    return { ...entry, config, instrument: toInstrument(name, config, value as WrittenInstrument, yaml, own) };
  });
}

const { watch, files, ignore, ready, run } = instrumentSchema.shape;
// Even if `run` is wrong, other instruments do not get these files.
const claimSchema = z.object({ watch, files, ignore, ready, run: run.catch('file') });

function readClaim({ name, value, yaml, config, instrument }: CheckedEntry): Claim[] {
  if (instrument) return [instrument];
  const data = config ?? claimSchema.safeParse(value).data;
  return data ? [{ ...data, name, watch: resolve(dirname(yaml.file), data.watch) }] : [];
}

function checkName(name: string, { yaml, path, stops }: CheckContext, definedIn: Map<string, YamlFile>): Problem[] {
  const first = definedIn.get(name)?.placeOfKey(path);
  if (first) {
    const message = `the instrument ${JSON.stringify(name)} is already defined at ${first.file}:${first.line}`;
    return [{ where: yaml.placeOfKey(path), message, hint: 'rename one of them', stops: 'nothing' }];
  }
  definedIn.set(name, yaml);
  if (INSTRUMENT_NAME.test(name)) return [];
  const message = `${JSON.stringify(name)} is not a valid name for an instrument`;
  return [{ where: yaml.placeOfKey(path), message, hint: NAME_HINT, stops }];
}

type WrittenInstrument = z.input<typeof instrumentSchema>;

/** What must never be filed, wherever a link to it is. */
function ownFiles(settings: Settings, key: SecretSource | undefined, files: readonly YamlFile[]): string[] {
  const { journal, status, fleet } = settings;
  const secrets = [key, fleet?.passwordFrom, ...(status === false ? [] : [status.token, status.readToken])];
  return [
    ...secrets.flatMap((source) => (source && secretFile(source)) ?? []),
    ...['', '-wal', '-shm', '.lock', '.seen', '.live', '.login'].map((suffix) => journal + suffix),
    ...files.map(({ file }) => file),
  ];
}

const STALE_DONE_FILE_MS = 5000;

function toInstrument(
  name: string,
  config: InstrumentConfig,
  written: WrittenInstrument,
  yaml: YamlFile,
  own: readonly string[],
): Instrument {
  const folder = dirname(yaml.file);
  const watch = resolve(folder, config.watch);
  const links = config.links.map((link) => (link === 'hard' ? link : resolve(folder, link)));
  const { source, ready } = config;
  return {
    ...config,
    name,
    mapping: fingerprint(written),
    layout: hash([written.parse]),
    written,
    watch,
    access: { folder: watch, links, own },
    // The done-file stays when its file is moved: about the next file of that name, it says nothing.
    ready: source === 'keep' || ready.doneFile === undefined ? ready : { quiet: STALE_DONE_FILE_MS, ...ready },
    source: typeof source === 'string' ? source : { move: resolve(folder, source.move) },
    tests: config.tests.map((test) => ({ ...test, file: resolve(folder, test.file) })),
    placeOf: (path) => yaml.placeOf(['instruments', name, ...path]),
  };
}

/** A hash of the YAML, not of the validated values, which may contain functions. */
function fingerprint({ parse, experiment, comments, links, unread }: WrittenInstrument): string {
  const further = [...(links === undefined ? [] : [links]), ...(unread === undefined ? [] : [{ unread }])];
  return hash([parse, experiment, comments, ...further]);
}

const hash = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);

type Unreadable = (folder: string, code: string) => void;

/** The files that match an `include` glob, relative to the including file, sorted by name. */
function expandInclude(glob: string, from: string, unreadable: Unreadable): string[] {
  const absolute = resolve(dirname(from), glob);
  const { base, isGlob } = picomatch.scan(absolute);
  if (!isGlob) return [absolute];
  const matches = picomatch(absolute);
  // Folders in which no file can match are not read: they may be private.
  const below = absolute.slice(base.length).replace(/^\//, '');
  return filesBelow(base, globDepth(below) + 1, unreadable)
    .filter((file) => matches(file))
    .sort();
}

/** Whether a configuration would include this file. */
export function isIncluded(file: string, config: string): boolean {
  const { value } = readYaml(config);
  const { data } = z.object({ include: configSchema.shape.include }).safeParse(value);
  return (data?.include ?? []).some((glob) => picomatch.isMatch(file, resolve(dirname(config), glob)));
}

function filesBelow(folder: string, depth: number, unreadable: Unreadable): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (code !== 'ENOENT') unreadable(folder, code);
    return [];
  }
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return depth > 1 ? filesBelow(path, depth - 1, unreadable) : [];
    return entry.isFile() || entry.isSymbolicLink() ? [path] : [];
  });
}

const { changed, duplicates, comments } = instrumentSchema.shape;
const DEFAULTS = {
  changed: changed.parse(undefined),
  duplicates: duplicates.parse(undefined),
  comments: comments.parse(undefined),
};
const listedSchema = z
  .object({
    changed: changed.catch(DEFAULTS.changed),
    duplicates: duplicates.catch(DEFAULTS.duplicates),
    comments: comments.catch(DEFAULTS.comments),
  })
  .catch(DEFAULTS);

/** An instrument with or without mistakes: what `recover` needs to recognise its runs. */
export type ListedInstrument = z.output<typeof listedSchema> & { readonly name: string };

function readListed({ name, value, config }: CheckedEntry): ListedInstrument {
  const { changed, duplicates, comments } = config ?? listedSchema.parse(value);
  return { name, changed, duplicates, comments };
}

/** One of which nothing but the name is known. */
export const listInstrument = (name: string): ListedInstrument => ({ name, ...DEFAULTS });

/** With a mistake in `journal` or `role`, it is not known whether this machine only delivers. */
const mayOnlyDeliver = ({ settings: { fleet }, invalidSettings }: LoadedConfig): boolean =>
  fleet?.role === 'deliver' || invalidSettings.has('journal') || invalidSettings.has('role');

/**
 * Without an instrument there is nothing to do, except for a machine that only delivers. Usually its key is misspelt, which is
 * then one of the problems.
 */
export function missingInstruments(config: LoadedConfig): Problem[] {
  if (config.listed.length > 0 || config.incompleteBecause.length > 0 || mayOnlyDeliver(config)) return [];
  const hint =
    'add one to instruments, or check the globs of include. `labfeed learn FILE` suggests one for a sample file';
  return [{ where: config.placeOf(['instruments']), message: 'there is no instrument', hint, stops: 'daemon' }];
}

/** Rejects a configuration with which the daemon would do nothing. */
export function requireInstruments(config: LoadedConfig): void {
  if (config.listed.length === 0 && !mayOnlyDeliver(config))
    throw new ConfigError([...config.problems, ...missingInstruments(config)]);
}

const SYSTEM_FOLDER = '/etc/labfeed';
const STATE_FOLDER = '/var/lib/labfeed';

/** The configuration of the service. */
export const SYSTEM_CONFIG = `${SYSTEM_FOLDER}/config.yaml`;

const PLACES = ['labfeed.yaml', SYSTEM_CONFIG];

/** The configuration that commands use without `--config`. */
export const findExistingConfig = (): string | undefined =>
  PLACES.map((place) => resolve(place)).find((place) => existsSync(place));

class NoConfigError extends LabfeedError {
  override readonly exitStatus = EXIT.config;
}

/** The configuration to use: the named one, else the first that exists. */
export function findConfig(named: string | undefined): string {
  if (named !== undefined) return resolve(named);
  const found = findExistingConfig();
  if (found !== undefined) return found;
  throw new NoConfigError(`no configuration found: neither ./${PLACES[0]} nor ${PLACES[1]} exists`, {
    hint: 'create one with `labfeed setup`, specify a file with --config FILE, or try `labfeed demo`, which needs none',
  });
}

/**
 * The place depends on the configuration file alone, so that the service and all commands use the same journal, whichever
 * user runs them: the state folder of the service for files in /etc/labfeed, else beside the file.
 */
export function defaultJournal(config: string): string {
  const file = existsSync(config) ? realpathSync(config) : config;
  const { dir, name } = parse(file);
  if (dir !== SYSTEM_FOLDER) return join(dir, `${name}.journal`, 'journal.db');
  return join(STATE_FOLDER, name === 'config' ? '' : name, 'journal.db');
}
