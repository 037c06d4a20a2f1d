import { mkdirSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { findConfig, type LoadedConfig, loadConfig, type UsableConfig } from '../config/load.js';
import { ConfigError, LabfeedError, systemCode, UsageError } from '../errors.js';
import type { Wanted } from '../fleet/older-runs.js';
import { isFree } from '../journal/database.js';
import { type JournalReader, openReader } from '../journal/reader.js';
import { type Live, readLive } from '../live.js';
import { indent, nearest } from '../text.js';

export interface ConfigOption {
  readonly config?: string;
}

export interface JsonOption extends ConfigOption {
  readonly json?: boolean;
}

/** A new one for every command: commander ties an option to the command that it is added to. */
export const configOption = (): Option =>
  new Option('--config <file>', 'Configuration file (default: ./labfeed.yaml, then /etc/labfeed/config.yaml)');

const jsonOption = (): Option => new Option('--json', 'Print the result as JSON');

export const yesOption = (): Option => new Option('--yes', 'Do not ask for confirmation');

/** Adds examples below the options in the help of a command. */
export function withExamples(command: Command, examples: readonly string[], note?: string): Command {
  const title = examples.length === 1 ? 'Example' : 'Examples';
  const text = `\n${title}:\n${indent(examples.join('\n'))}${note === undefined ? '' : `\n\n${note}`}`;
  return command.addHelpText('after', text);
}

/** Adds the options `--config` and `--json`, and examples. */
export const withJson = (command: Command, examples: readonly string[], note?: string): Command =>
  withExamples(command, examples, note).addOption(configOption()).addOption(jsonOption());

export const configFrom = ({ config }: ConfigOption): LoadedConfig => loadConfig(findConfig(config));

/** Rejects a configuration that the daemon cannot start with, listing all its mistakes. */
export function requireUsable(config: LoadedConfig): asserts config is UsableConfig {
  if (!config.notebook || config.problems.some(({ stops }) => stops === 'daemon'))
    throw new ConfigError(config.problems);
}

export function usableConfigFrom(options: ConfigOption): UsableConfig {
  const config = configFrom(options);
  requireUsable(config);
  return config;
}

/** Rejects a configuration with a mistake in `journal`: the default path may hold a different journal. */
export function requireJournal(config: LoadedConfig): string {
  if (config.invalidSettings.has('journal')) throw new ConfigError(config.problems);
  return config.settings.journal;
}

/** The number of a run, an experiment, a comment or a key. */
export function parseNumber(text: string): number {
  const number = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('Expected a whole number, 1 or greater.');
  return number;
}

/** Several numbers, without duplicates. */
export const parseNumbers = (text: string, before: readonly number[] = []): number[] => [
  ...new Set([...before, parseNumber(text)]),
];

/** Creates a folder named on the command line; `option` is the option that names it. */
export function createFolder(folder: string, option: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw new LabfeedError(`cannot create the folder ${folder} (${systemCode(cause) ?? cause})`, {
      cause,
      hint: `use ${option} to choose a folder that you can write to`,
    });
  }
}

export function portOption(defaultPort?: number): Option {
  const option = new Option('--port <port>', 'Port of the built-in notebook').argParser(parsePort);
  return defaultPort === undefined ? option : option.default(defaultPort);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('Expected a number from 0 to 65535.');
  return port;
}

interface OpenedJournal {
  readonly config: LoadedConfig;
  /** The journal's path. */
  readonly journal: string;
  readonly reader: JournalReader;
}

/** Opens the journal of the configuration for reading. */
export async function withReader<T>(options: ConfigOption, use: (opened: OpenedJournal) => Promise<T>): Promise<T> {
  const config = configFrom(options);
  const journal = requireJournal(config);
  const reader = openReader(journal);
  try {
    return await use({ config, journal, reader });
  } finally {
    await reader.close();
  }
}

/**
 * Runs that a machine that only watches for a fleet does not keep, from the database. Undefined if this is no such machine, or
 * if there are none. Close it.
 */
export async function olderRuns(
  { settings: { fleet } }: LoadedConfig,
  wanted: Wanted,
): Promise<JournalReader | undefined> {
  if (fleet?.role !== 'watch') return undefined;
  const { readOlder } = await import('../fleet/older-runs.js');
  return readOlder(fleet, wanted);
}

/** Rejects an instrument that neither the configuration nor the journal knows. */
export async function requireInstrument(
  name: string,
  { config, reader }: Pick<OpenedJournal, 'config' | 'reader'>,
): Promise<void> {
  const { instruments } = await reader.overview();
  const names = new Set([...config.listed, ...instruments].map((instrument) => instrument.name));
  if (names.has(name)) return;
  throw unknownInstrument(name, [...names]);
}

export function unknownInstrument(name: string, known: readonly string[], where = ''): UsageError {
  const guess = nearest(name, known);
  return new UsageError(`there is no instrument ${JSON.stringify(name)}${where}`, {
    hint: guess ? `did you mean ${guess}?` : `known instruments: ${known.join(', ') || 'none'}`,
  });
}

/** The daemon writes its status at least every ten seconds. */
const MAX_STATUS_AGE_MS = 30_000;

/** Whether the daemon runs, and the last status that it wrote, which is stale if it does not. */
export function daemonState(journal: string, now: number) {
  const live = readLive(journal);
  try {
    return { running: !isFree(journal), live };
  } catch (error) {
    // Users who may read the journal but not its lock rely on the age of the status.
    if (!(error instanceof LabfeedError)) throw error;
    return { running: live !== undefined && now - live.at < MAX_STATUS_AGE_MS, live };
  }
}

/** The status of the daemon, if it is running. */
export function runningLive(journal: string, now: number): Live | undefined {
  const { running, live } = daemonState(journal, now);
  return running ? live : undefined;
}
