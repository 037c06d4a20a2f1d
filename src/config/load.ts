import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import picomatch from 'picomatch';
import { z } from 'zod';
import { type Place, type Problem, systemCode } from '../errors.js';
import { nearest } from '../text.js';
import { type CheckContext, checkValue, unknownKey } from './problems.js';
import {
  type CommentOptions,
  type Config,
  configSchema,
  INSTRUMENT_NAME,
  type InstrumentConfig,
  instrumentSchema,
  resolveCommand,
} from './schema.js';
import { resolveSecret } from './secrets.js';
import { type ConfigPath, readYaml, type YamlFile } from './yaml.js';

/** An instrument as it is used: with its name, its folder made absolute, and the way back to its lines. */
export interface Instrument extends InstrumentConfig {
  readonly name: string;
  /** Changes whenever the way in which files are read and mapped does. */
  readonly mapping: string;
  /** As it stands in the YAML. */
  readonly written: object;
  /** Where a part of this instrument's mapping stands, for errors that show only later. */
  placeOf(path: ConfigPath): Place;
}

/** What of an instrument says which files are its. */
export type Claim = Pick<Instrument, 'name' | 'watch' | 'files' | 'ignore' | 'ready' | 'run'>;

type Settings = Omit<Config, 'include' | 'instruments' | 'notebook'>;

/** What could be read of a configuration, and all that is wrong with it. */
export interface LoadedConfig {
  readonly file: string;
  readonly settings: Settings;
  /** Absent where it is missing or wrong; `problems` then says so. */
  readonly notebook?: Config['notebook'];
  /** Those without a mistake, in the order in which they claim files. */
  readonly instruments: readonly Instrument[];
  /** Which files belong to whom, in that order; also of instruments with a mistake elsewhere. */
  readonly claims: readonly Claim[];
  /** Every instrument that is written down, be it with mistakes. */
  readonly listed: readonly ListedInstrument[];
  readonly problems: readonly Problem[];
  /** Those of the problems behind which there may be instruments that are not listed. */
  readonly hiding: readonly Problem[];
  /** Settings that have a mistake, or could not be read at all. */
  readonly wrong: ReadonlySet<string>;
  /** Not mistakes, but not what somebody may expect either. */
  readonly warnings: readonly Problem[];
  placeOf(path: ConfigPath): Place;
}

/** A configuration with which the daemon can work. */
export type UsableConfig = LoadedConfig & Required<Pick<LoadedConfig, 'notebook'>>;

/** A mistake in one of these keeps the daemon from starting; any other only spoils what it concerns. */
const VITAL: ReadonlySet<string> = new Set(['notebook', 'journal', 'status']);

/** What is wrong, and what of it may keep instruments from being seen. */
interface Found {
  readonly problems: Problem[];
  readonly hiding: Problem[];
}

export function loadConfig(file: string): LoadedConfig {
  const main = readYaml(resolve(file));
  const hiding: Problem[] = [...main.problems];
  const problems: Problem[] = [];
  const wrong = new Set<string>();
  const top = requireMap(main, hiding);
  const isUnreadable = hiding.length > 0;
  const setting = <K extends keyof Config>(key: K): Config[K] | undefined => {
    const stops = VITAL.has(key) ? 'daemon' : 'nothing';
    const schema = configSchema.shape[key];
    const checked = checkValue(schema, top[key], { yaml: main, path: [key], stops });
    if (checked.problems.length > 0 || isUnreadable) wrong.add(key);
    // After a failure to read the file at all, a list of missing keys would only bury the reason.
    if (main.problems.length === 0) (key === 'include' ? hiding : problems).push(...checked.problems);
    return (checked.problems.length === 0 ? checked.value : schema.safeParse(undefined).data) as
      | Config[K]
      | undefined;
  };
  reportUnknownKeys(main, top, Object.keys(configSchema.shape), { problems, hiding });
  const notebook = setting('notebook');
  const settings = readSettings(setting, dirname(main.file));
  const parts = [main, ...readParts(main, setting('include'), { problems, hiding })];
  return {
    file: main.file,
    settings,
    ...(notebook ? { notebook: { ...notebook, key: resolveSecret(notebook.key, dirname(main.file)) } } : {}),
    ...readInstruments(parts, { problems, hiding }),
    listed: listInstruments(parts),
    problems: [...hiding, ...problems],
    hiding,
    wrong,
    warnings: findUnheeded(parts),
    placeOf: main.placeOf,
  };
}

function readSettings(
  setting: <K extends keyof Config>(key: K) => Config[K] | undefined,
  folder: string,
): Settings {
  const journal = setting('journal');
  const alarms = setting('alarms');
  const status = setting('status') ?? false;
  const token = status !== false && status.token && resolveSecret(status.token, folder);
  return {
    status: token ? { ...status, token } : status,
    log: setting('log') ?? 'info',
    keep: setting('keep') ?? 0,
    ...(journal === undefined ? {} : { journal: resolve(folder, journal) }),
    ...(alarms === undefined ? {} : { alarms: resolveCommand(alarms, folder) }),
  };
}

function requireMap(yaml: YamlFile, problems: Problem[]): Record<string, unknown> {
  const { value } = yaml;
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  if (yaml.problems.length === 0) {
    const message =
      value === null || value === undefined ? 'the file is empty' : 'expected a map of settings';
    problems.push({ where: yaml.placeOf([]), message, hint: 'see config.example.yaml', stops: 'daemon' });
  }
  return {};
}

function reportUnknownKeys(
  yaml: YamlFile,
  map: Record<string, unknown>,
  known: string[],
  { problems, hiding }: Found,
): void {
  for (const [key, value] of Object.entries(map)) {
    const found = mayHideInstruments(key, value) ? hiding : problems;
    if (!known.includes(key)) found.push(unknownKey({ yaml, path: [], stops: 'nothing' }, key, known));
  }
}

function readParts(main: YamlFile, globs: string[] | undefined, { problems, hiding }: Found): YamlFile[] {
  const parts: YamlFile[] = [];
  for (const file of (globs ?? []).flatMap((glob) => expandInclude(glob, main.file))) {
    if (!existsSync(file)) {
      hiding.push({
        where: main.placeOf(['include']),
        message: `include: there is no file ${file}`,
        stops: 'nothing',
      });
      continue;
    }
    const part = readYaml(file);
    // A part that cannot be read takes its own instruments down, not the daemon.
    const unread: Problem[] = [...part.problems];
    reportUnknownKeys(part, requireMap(part, unread), ['instruments'], { problems, hiding });
    hiding.push(...unread.map((problem): Problem => ({ ...problem, stops: 'nothing' })));
    parts.push(part);
  }
  return parts;
}

function readInstruments(
  parts: readonly YamlFile[],
  { problems, hiding }: Found,
): Pick<LoadedConfig, 'instruments' | 'claims'> {
  const instruments = new Map<string, Instrument>();
  const claims: Claim[] = [];
  const firstPlaces = new Map<string, Place>();
  for (const yaml of parts) {
    const listed = (yaml.value as { instruments?: unknown } | null | undefined)?.instruments ?? {};
    if (typeof listed !== 'object' || Array.isArray(listed)) {
      hiding.push({
        where: yaml.placeOf(['instruments']),
        message: 'instruments: expected a map of instruments by name',
        stops: 'nothing',
      });
      continue;
    }
    for (const [name, value] of Object.entries(listed)) {
      const context = {
        yaml,
        path: ['instruments', name],
        stops: { instrument: name },
      } satisfies CheckContext;
      const wrongName = checkName(name, context, firstPlaces);
      const checked = checkValue(instrumentSchema, value, context);
      problems.push(...wrongName, ...checked.problems);
      claims.push(...readClaim(name, value, yaml));
      if (checked.value && wrongName.length === 0)
        instruments.set(name, toInstrument(name, checked.value, value as WrittenInstrument, yaml));
    }
  }
  return { instruments: [...instruments.values()], claims };
}

const { watch, files, ignore, ready, run } = instrumentSchema.shape;
// Should it be `run` that is wrong, its files are still not for others.
const claimSchema = z.object({ watch, files, ignore, ready, run: run.catch('file') });

function readClaim(name: string, value: unknown, yaml: YamlFile): Claim[] {
  const { success, data } = claimSchema.safeParse(value);
  return success ? [{ ...data, name, watch: resolve(dirname(yaml.file), data.watch) }] : [];
}

function checkName(
  name: string,
  { yaml, path, stops }: CheckContext,
  firstPlaces: Map<string, Place>,
): Problem[] {
  const where = yaml.placeOfKey(path);
  const first = firstPlaces.get(name);
  if (first) {
    const message = `there is already an instrument ${JSON.stringify(name)}, at ${first.file}:${first.line}`;
    return [{ where, message, hint: 'give one of them another name', stops: 'nothing' }];
  }
  firstPlaces.set(name, where);
  if (INSTRUMENT_NAME.test(name)) return [];
  const hint = 'use letters, digits, blanks, dots, dashes and underscores, at most 64';
  return [{ where, message: `${JSON.stringify(name)} cannot be the name of an instrument`, hint, stops }];
}

type WrittenInstrument = z.input<typeof instrumentSchema>;

function toInstrument(
  name: string,
  config: InstrumentConfig,
  written: WrittenInstrument,
  yaml: YamlFile,
): Instrument {
  const folder = dirname(yaml.file);
  return {
    ...config,
    name,
    mapping: fingerprint(written),
    written,
    watch: resolve(folder, config.watch),
    tests: config.tests.map((test) => ({ ...test, file: resolve(folder, test.file) })),
    placeOf: (path) => yaml.placeOf(['instruments', name, ...path]),
  };
}

/** Of what was written rather than of what was made of it: compiled expressions do not show what they are. */
function fingerprint({ parse, experiment, comments }: WrittenInstrument): string {
  return createHash('sha256')
    .update(JSON.stringify([parse, experiment, comments]))
    .digest('hex')
    .slice(0, 16);
}

/** The files that an `include` glob names, seen from the file it stands in, in the order of their names. */
function expandInclude(glob: string, from: string): string[] {
  const absolute = resolve(dirname(from), glob);
  const { base, isGlob } = picomatch.scan(absolute);
  if (!isGlob) return [absolute];
  const matches = picomatch(absolute);
  return filesBelow(base)
    .filter((file) => matches(file))
    .sort();
}

function filesBelow(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** An instrument that is written down, be it with mistakes: what has to be known of it to know its runs again. */
export interface ListedInstrument extends Pick<InstrumentConfig, 'duplicates'> {
  readonly name: string;
  readonly comments: Pick<CommentOptions, 'readings' | 'text'>;
}

const { duplicates, comments } = instrumentSchema.shape;

function listInstruments(parts: readonly YamlFile[]): ListedInstrument[] {
  return parts.flatMap(({ value }) =>
    Object.entries(asMap(asMap(value)['instruments'])).map(([name, instrument]) => {
      const written = asMap(instrument);
      return {
        name,
        duplicates: duplicates.safeParse(written['duplicates']).data ?? duplicates.parse(undefined),
        comments: comments.safeParse(written['comments']).data ?? comments.parse(undefined),
      };
    }),
  );
}

/** Whether instruments may stand behind a key that is not known: `instrumnets: { … }`, `includ: more.yaml`. */
const mayHideInstruments = (key: string, value: unknown): boolean =>
  (typeof value === 'object' && value !== null) || nearest(key, ['include']) !== undefined;

const asMap = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};

/** Warns of a key that somebody wrote and that has no effect yet, rather than let them trust in it. */
function findUnheeded(parts: readonly YamlFile[]): Problem[] {
  return parts.flatMap((yaml) =>
    Object.entries(asMap(asMap(yaml.value)['instruments']))
      .filter(([, instrument]) => (asMap(instrument)['attach'] ?? 'never') !== 'never')
      .map(([name]) => ({
        where: yaml.placeOfKey(['instruments', name, 'attach']),
        message: 'attach has no effect in this version: the raw file is not attached',
        stops: 'nothing',
      })),
  );
}
