import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Claim, type Instrument, isIncluded, loadConfig } from '../config/load.js';
import { INSTRUMENT_NAME, NAME_HINT } from '../config/schema.js';
import { readYaml } from '../config/yaml.js';
import { ConfigError, explain, explainProblem, LabfeedError, type Problem, systemCode } from '../errors.js';
import { checkMapping } from '../map/draft.js';
import type { TestResult } from '../mapping/tests.js';
import type { DecisionAnswer, InstrumentDraft, InstrumentFile, UploadedSample } from '../status/api.js';
import { syncFolder } from '../system/filesystem.js';
import { createMatcher, pathInside } from '../watch/match.js';

/** Instruments that people set up on the page: one file each, in `instruments.d` beside the configuration. */

interface SaveDeps {
  /** The configuration file. */
  readonly config: string;
  test(instrument: Instrument): Promise<readonly TestResult[]>;
  /** Resolves with what is wrong with the new configuration, in words. */
  reload(): Promise<string | undefined>;
}

const folderOf = (config: string): string => join(dirname(config), 'instruments.d');

const fileOf = (name: string, config: string): string => join(folderOf(config), `${name}.yaml`);

/** The mapping as it was edited on the page. Throws a LabfeedError with everything that is wrong with it. */
export function readDraft(text: string, config: string) {
  const yaml = readYaml(join(folderOf(config), 'draft.yaml'), text);
  if (yaml.problems.length > 0) throw new ConfigError(yaml.problems);
  const { instruments } = (yaml.value ?? {}) as { instruments?: unknown };
  const names = typeof instruments === 'object' && instruments !== null ? Object.keys(instruments) : [];
  const [name = ''] = names;
  if (names.length !== 1)
    throw new LabfeedError(`expected one instrument, found ${names.length}`, {
      hint: 'write instruments: and, below it, the name of the instrument and its keys',
    });
  // The name becomes the name of a file.
  if (!INSTRUMENT_NAME.test(name))
    throw new LabfeedError(`${JSON.stringify(name)} is not a valid name for an instrument`, { hint: NAME_HINT });
  const file = fileOf(name, config);
  const loaded = loadConfig(config, { file, text });
  const own = loaded.problems.filter(({ where }) => where.file === file);
  const instrument = loaded.instruments.find((one) => one.name === name && one.placeOf([]).file === file);
  const problems = [...own, ...(instrument ? [...checkMapping(instrument), ...checkTests(instrument, config)] : [])];
  if (problems.length > 0) throw new ConfigError(problems);
  if (!instrument) throw new LabfeedError(`the instrument ${name} is defined in another file`, { hint: 'rename it' });
  return { name, file, instrument, others: loaded.problems, claims: loaded.claims };
}

/**
 * What a test finds in a file is shown, so people on the page choose among the samples beside the mappings only. A run of
 * several files may have others than the sample. A sample must not become a part of the configuration.
 */
function checkTests({ name, run, tests, placeOf }: Instrument, config: string): Problem[] {
  const samples = join(folderOf(config), 'samples');
  const hasSeveral = typeof run === 'object' && !('growing' in run);
  return tests.flatMap(({ file }, n): Problem[] => {
    const problem = { where: placeOf(['tests', n, 'file']), stops: { instrument: name } };
    if (hasSeveral)
      return [{ ...problem, message: 'runs of several files cannot be tested here', hint: 'remove `tests`' }];
    if (pathInside(samples, file) !== undefined && !isIncluded(file, config)) return [];
    return [
      { ...problem, message: `the sample ${file} is not in ${samples}`, hint: `write file: samples/${name}/NAME` },
    ];
  });
}

/** Undefined if there is no such file. */
export function readInstrumentFile(name: string, config: string): InstrumentFile | undefined {
  if (!INSTRUMENT_NAME.test(name)) return undefined;
  try {
    const text = readFileSync(fileOf(name, config), 'utf8');
    return { text, hash: hashOf(text) };
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Writes the file of an instrument and reloads the configuration. Nothing is changed unless the new configuration has no
 * mistake and the tests pass. The file before is kept beside it, as `NAME.yaml.bak`.
 */
export async function saveInstrument(
  { text, replaces }: InstrumentDraft,
  sample: UploadedSample,
  { config, test, reload }: SaveDeps,
): Promise<DecisionAnswer> {
  let stored: string | undefined;
  try {
    const { name, file, instrument, others, claims } = readDraft(text, config);
    if (others.length > 0) throw new ConfigError(others);
    requireUsable(instrument, file, config);
    requireOwnFiles(instrument, sample.name, claims);
    stored = storeSample(instrument, sample);
    const failed = (await test(instrument)).flatMap(({ problems }) => problems);
    if (failed.length > 0) throw new ConfigError(failed);
    // Only now: the tests take their time.
    const before = readInstrumentFile(name, config);
    if (before?.hash !== replaces)
      throw new LabfeedError(`somebody else has changed ${file}`, { hint: 'copy your mapping, and open it again' });
    const isNew = before?.text !== text;
    if (isNew) replaceFile(file, text);
    const problem = await reload();
    if (problem !== undefined) {
      if (isNew && before) renameSync(backupOf(file), file);
      else if (isNew) rmSync(file);
      throw new LabfeedError(`not saved, because the configuration was rejected: ${problem}`);
    }
    stored = undefined;
    return { done: true, text: `${file} is saved, and ${name} is watched` };
  } catch (error) {
    if (stored !== undefined) rmSync(stored, { force: true });
    if (error instanceof ConfigError) return { done: false, text: error.problems.map(explainProblem).join('\n') };
    if (error instanceof LabfeedError) return { done: false, text: explain(error) };
    if (systemCode(error) === undefined) throw error;
    return { done: false, text: `cannot write ${folderOf(config)} (${systemCode(error)})\n  → ${NOT_WRITABLE}` };
  }
}

const NOT_WRITABLE =
  'let the user of labfeed write to this folder; for the service, add it to ReadWritePaths with systemctl edit labfeed';

function requireUsable({ watch }: Instrument, file: string, config: string): void {
  if (!isIncluded(file, config) || isIncluded(backupOf(file), config))
    throw new LabfeedError(`${config} does not include ${file}`, {
      hint: 'add the line include: instruments.d/*.yaml to it',
    });
  if (!existsSync(watch))
    throw new LabfeedError(`the folder ${watch} does not exist`, {
      hint: 'for watch, write the folder that the instrument writes to',
    });
}

/** Two instruments would file the same runs twice, or one of them none. */
function requireOwnFiles(instrument: Instrument, sample: string, claims: readonly Claim[]): void {
  const path = join(instrument.watch, sample);
  const other = claims.find(({ name, watch, files, ignore }) => {
    const inside = pathInside(watch, path);
    return name !== instrument.name && inside !== undefined && createMatcher({ files, ignore }).takes(inside);
  });
  if (other)
    throw new LabfeedError(`${other.name} already files files such as ${sample} in ${instrument.watch}`, {
      hint: 'change `watch` or `files`',
    });
}

const backupOf = (file: string): string => `${file}.bak`;

/** The sample of a new test is kept beside the mappings. Returns its path if it was written. */
function storeSample({ tests }: Instrument, { name, content }: UploadedSample): string | undefined {
  const path = tests.map(({ file }) => file).find((file) => basename(file) === name && !existsSync(file));
  if (path === undefined) return undefined;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { flag: 'wx', flush: true });
  return path;
}

/** Readers see the old file or the new one, never a part. */
function replaceFile(file: string, text: string): void {
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true });
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text, { flag: 'wx', mode: 0o644, flush: true });
  if (existsSync(file)) {
    rmSync(backupOf(file), { force: true });
    linkSync(file, backupOf(file));
  }
  renameSync(fresh, file);
  syncFolder(folder);
}
