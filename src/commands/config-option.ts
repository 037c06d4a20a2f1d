import { Option } from 'commander';
import { type LoadedConfig, loadConfig } from '../config/load.js';
import { findConfig } from '../config/locations.js';
import { ConfigError } from '../errors.js';

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
