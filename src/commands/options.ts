import { mkdirSync } from 'node:fs';
import { InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { type LoadedConfig, loadConfig } from '../config/load.js';
import { findConfig, journalOf } from '../config/locations.js';
import { ConfigError, LabfeedError, systemCode, UsageError } from '../errors.js';
import { isFree } from '../journal/database.js';
import { type JournalReader, openReader } from '../journal/reader.js';
import { type Live, readLive } from '../live.js';
import { nearest } from '../text.js';

export interface ConfigOption {
  readonly config?: string;
}

/** A new one for every command: commander ties an option to the command that it is added to. */
export const configOption = (): Option =>
  new Option('--config <file>', 'the configuration (default: ./labfeed.yaml, then /etc/labfeed/config.yaml)');

export const loadNamed = ({ config }: ConfigOption): LoadedConfig => loadConfig(findConfig(config));

/** Refuses a configuration that does not say where the journal is: the usual place might hold another one. */
export function requireJournal({ wrong, problems }: LoadedConfig): void {
  if (wrong.has('journal')) throw new ConfigError(problems);
}

/** Refuses a configuration with which the daemon cannot start at all, naming all that is wrong with it. */
export function requireVital(
  config: LoadedConfig,
): asserts config is LoadedConfig & Required<Pick<LoadedConfig, 'notebook'>> {
  if (!config.notebook || config.problems.some(({ stops }) => stops === 'daemon')) {
    throw new ConfigError(config.problems);
  }
}

/** A run or an experiment: a whole number from 1. */
export function readNumber(text: string): number {
  const number = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('expected a number from 1.');
  return number;
}

/** Several of them, each once. */
export const readNumbers = (text: string, before: readonly number[] = []): number[] => [
  ...new Set([...before, readNumber(text)]),
];

/** A day, as in the configuration. */
export function readDate(text: string): string {
  const { success, data } = z.iso.date().safeParse(text);
  if (!success) throw new InvalidArgumentError('expected a date such as 2026-01-01.');
  return data;
}

/** When that day begins here. */
export const startOf = (date: string): number => new Date(`${date}T00:00:00`).getTime();

export function portOption(preset?: number): Option {
  const option = new Option('--port <port>', 'the port of the built-in notebook').argParser(readPort);
  return preset === undefined ? option : option.default(preset);
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('expected a number from 0 to 65535.');
  return port;
}

/** Makes a folder that was named on the command line, and those above it; `option` says where it can be named. */
export function makeFolder(folder: string, option: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw new LabfeedError(`the folder ${folder} cannot be made (${systemCode(cause) ?? cause})`, {
      cause,
      hint: `name a place that this user may write to with ${option}`,
    });
  }
}

interface Reading {
  readonly config: LoadedConfig;
  readonly journal: string;
  readonly reader: JournalReader;
}

/** Opens the journal of the named configuration for a look, and closes it again. */
export async function reading<T>(options: ConfigOption, look: (reading: Reading) => Promise<T>): Promise<T> {
  const config = loadNamed(options);
  requireJournal(config);
  const journal = journalOf(config);
  const reader = openReader(journal);
  try {
    return await look({ config, journal, reader });
  } finally {
    await reader.close();
  }
}

/** Refuses an instrument that neither the configuration nor the journal knows. */
export async function requireInstrument(
  name: string | undefined,
  { config, reader }: Reading,
): Promise<void> {
  if (name === undefined) return;
  const listed = config.listed.map((instrument) => instrument.name);
  if (listed.includes(name)) return;
  const { instruments } = await reader.overview();
  const names = new Set([...listed, ...instruments.map((instrument) => instrument.name)]);
  if (names.has(name)) return;
  const guess = nearest(name, names);
  throw new UsageError(`there is no instrument ${JSON.stringify(name)}`, {
    hint: guess ? `did you mean ${guess}?` : `there are: ${[...names].join(', ') || 'none'}`,
  });
}

/** Whether a daemon runs, and what it tells of itself, or the last one told. */
interface DaemonState {
  readonly running: boolean;
  readonly live: Live | undefined;
}

/** The daemon tells of itself every ten seconds at least. */
const FRESH_MS = 30_000;

export function daemonState(journal: string, now: number): DaemonState {
  const live = readLive(journal);
  try {
    return { running: !isFree(journal), live };
  } catch (error) {
    // Who may read the journal but not touch its lock sees by its last words whether the daemon is there.
    if (!(error instanceof LabfeedError)) throw error;
    return { running: live !== undefined && now - live.at < FRESH_MS, live };
  }
}

/** What a daemon that runs tells of itself. */
export function runningLive(journal: string, now: number): Live | undefined {
  const { running, live } = daemonState(journal, now);
  return running ? live : undefined;
}
