import type { LoadedConfig } from '../config/load.js';
import { journalOf } from '../config/locations.js';
import { UsageError } from '../errors.js';
import { type JournalReader, openReader } from '../journal/reader.js';
import { nearest } from '../text.js';
import { type ConfigOption, loadNamed, requireJournal } from './config-option.js';

export interface Reading {
  readonly config: LoadedConfig;
  readonly journal: string;
  readonly reader: JournalReader;
}

/** Opens the journal of the named configuration for a look, and closes it again. */
export function reading<T>(options: ConfigOption, look: (reading: Reading) => T): T {
  const config = loadNamed(options);
  requireJournal(config);
  const journal = journalOf(config);
  const reader = openReader(journal);
  try {
    return look({ config, journal, reader });
  } finally {
    reader.close();
  }
}

/** Refuses an instrument that neither the configuration nor the journal knows. */
export function requireInstrument(name: string | undefined, { config, reader }: Reading): void {
  if (name === undefined) return;
  const listed = config.listed.map((instrument) => instrument.name);
  if (listed.includes(name)) return;
  const names = new Set([...listed, ...reader.overview().instruments.map((instrument) => instrument.name)]);
  if (names.has(name)) return;
  const guess = nearest(name, names);
  throw new UsageError(`there is no instrument ${JSON.stringify(name)}`, {
    hint: guess ? `did you mean ${guess}?` : `there are: ${[...names].join(', ') || 'none'}`,
  });
}
