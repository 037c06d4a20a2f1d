import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { EXIT, LabfeedError } from '../errors.js';

const PLACES = ['labfeed.yaml', '/etc/labfeed/config.yaml'];

class NoConfigError extends LabfeedError {
  override readonly exitStatus = EXIT.config;
}

/** The configuration to use: the one that was named, else the first of the usual places. */
export function findConfig(named: string | undefined): string {
  if (named !== undefined) return resolve(named);
  const found = PLACES.map((place) => resolve(place)).find((place) => existsSync(place));
  if (found !== undefined) return found;
  throw new NoConfigError(`there is no configuration: neither ./${PLACES[0]} nor ${PLACES[1]} exists`, {
    hint: 'name one with --config FILE, or try `labfeed demo`, which needs none',
  });
}

/** Where the journal is unless the configuration says otherwise: the service's state folder, else the user's. */
export function defaultJournal(env: NodeJS.ProcessEnv = process.env): string {
  // systemd separates several state folders with a colon; the first is ours.
  const service = env['STATE_DIRECTORY']?.split(':')[0];
  if (service) return join(service, 'journal.db');
  return join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'labfeed', 'journal.db');
}

/** Where the journal of this configuration is. */
export const journalOf = ({
  settings,
}: {
  readonly settings: { readonly journal?: string | undefined };
}): string => settings.journal ?? defaultJournal();
