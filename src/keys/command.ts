import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.js';
import {
  type ConfigOption,
  configOption,
  loadNamed,
  readNumbers,
  requireVital,
} from '../commands/options.js';
import { asTable, type Column, confirm, outputWidth, readSecret } from '../commands/terminal.js';
import type { UsableConfig } from '../config/load.js';
import { readKey, type SecretSource } from '../config/secrets.js';
import { LabfeedError, NotebookError, UsageError } from '../errors.js';
import {
  canWrite,
  type KeyFile,
  type KeyRecord,
  NOTHING,
  openKeyFile,
  peekMemory,
  recordOf,
  targetOf,
} from './key-file.js';
import { type KeyRings, keyName, openRings, type Rotated, rotateKey as rotateConfigured } from './rotate.js';

export interface KeysOptions extends ConfigOption {
  readonly json?: boolean;
}

export interface CreateOptions extends KeysOptions {
  readonly readOnly?: boolean;
}

export interface DeleteKeysOptions extends KeysOptions {
  readonly yes?: boolean;
}

const EXAMPLES = `
Example:
  labfeed keys list
  labfeed keys set < new-key.txt
  labfeed keys rotate
  labfeed keys create "plate reader PC"
  labfeed keys delete 7`;

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('the API keys of the account, and the one that labfeed uses')
    .addHelpText('after', EXAMPLES);
  keys
    .command('list')
    .description("list the account's keys, and which of them labfeed uses")
    .addOption(configOption())
    .option('--json', 'print them as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys list')
    .action(listKeys);
  keys
    .command('create')
    .description('make a key and show it, this once; labfeed goes on with its own')
    .argument('<name>', 'what it is called in the notebook', readName)
    .addOption(configOption())
    .option('--read-only', 'a key that may only read')
    .option('--json', 'print it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys create "plate reader PC"')
    .action(createKey);
  keys
    .command('set')
    .description('take a key from standard input, prove it, and write it where the configuration reads it')
    .addOption(configOption())
    .option('--json', 'print what was done as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys set < new-key.txt')
    .action(setKey);
  keys
    .command('delete')
    .description('delete keys of the account; asks first')
    .argument('<key...>', 'their numbers, as list shows them', readNumbers)
    .addOption(configOption())
    .option('--yes', 'do not ask')
    .option('--json', 'print what was deleted as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys delete 7')
    .action(deleteKeys);
  keys
    .command('rotate')
    .description(
      'make a new key, prove it, write it where the configuration reads it, and delete the old one',
    )
    .addOption(configOption())
    .option('--json', 'print what was done as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed keys rotate\n\nThe daemon goes on with the new key by itself. Broken off, it is repaired by running it again.',
    )
    .action(rotateKey);
}

/** The notebook would make up a name, by which nobody knows the key again. */
function readName(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('expected a name.');
  return text;
}

/** A key as people see it. What the notebook does not tell is undefined. */
interface ShownKey {
  readonly id: number | undefined;
  readonly name: string | undefined;
  readonly canWrite: boolean | undefined;
  readonly created: string | undefined;
  readonly lastUsed: string | undefined;
  readonly inUse: boolean | undefined;
}

const COLUMNS: readonly Column<ShownKey>[] = [
  { title: 'key', text: ({ id }) => String(id ?? '?'), align: 'right' },
  { title: 'name', text: ({ name }) => name ?? '', flexible: true },
  { title: 'may', text: ({ canWrite }) => (canWrite === undefined ? '' : canWrite ? 'read, write' : 'read') },
  { title: 'made', text: ({ created }) => toMinute(created) },
  { title: 'last used', text: ({ lastUsed }) => toMinute(lastUsed) },
  { title: 'used by', text: ({ inUse }) => (inUse ? 'labfeed' : '') },
];

/** Seconds tell nobody more, and would take the room of the names. */
const toMinute = (time = ''): string => time.replace(/^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d).*$/, '$1 $2');

async function listKeys({ json, ...options }: KeysOptions): Promise<void> {
  const config = load(options);
  const { records, own } = await withRings(config, ({ as }) => look(config, as));
  const shown = records.map(
    (record): ShownKey => ({
      id: record.id,
      name: record.name,
      canWrite: canWrite(record),
      created: told(record, 'created_at'),
      lastUsed: told(record, 'last_used_at'),
      inUse: own && record === own,
    }),
  );
  if (json) return console.log(JSON.stringify(shown, null, 2));
  console.log(asTable(COLUMNS, shown, outputWidth()));
  if (!own) console.log('which of them labfeed uses, the notebook does not tell');
}

async function createKey(name: string, { readOnly, json, ...options }: CreateOptions): Promise<void> {
  const config = load(options);
  const key = await withRings(config, ({ as }) =>
    as(currentKey(config)).createKey({ name, canwrite: readOnly ? 0 : 1 }),
  );
  console.log(json ? JSON.stringify({ name, canWrite: !readOnly, key }) : key);
  if (!json) process.stderr.write('this key is shown only now; the notebook does not tell it again\n');
}

async function setKey({ json, ...options }: KeysOptions): Promise<void> {
  const config = load(options);
  const file = writableFile(config, 'set');
  const key = await readSecret('the API key');
  if (!/^[\x21-\x7e]+$/.test(key)) throw notAKey(key);
  const records = await withRings(config, ({ as }) => as(key).listKeys()).catch(explainRefusal);
  const record = recordOf(key, records);
  if (record && canWrite(record) === false) {
    throw new LabfeedError(`this key (${describe(record)}) may only read, and labfeed has to write`, {
      hint: 'nothing was written; make one that may write',
    });
  }
  file.write(key);
  if (json) return console.log(JSON.stringify({ file: file.path, key: record?.id, name: record?.name }));
  console.log(
    `${config.notebook.url} takes the key${record ? ` (${describe(record)})` : ''}; it is in ${file.path}`,
  );
  console.log(WHEN_TAKEN);
}

async function deleteKeys(
  ids: readonly number[],
  { yes, json, ...options }: DeleteKeysOptions,
): Promise<void> {
  const config = load(options);
  await withRings(config, async ({ as }) => {
    const { records, own, key } = await look(config, as);
    const doomed = ids.map((id) => found(id, records));
    if (own && doomed.includes(own)) {
      throw new LabfeedError(`${describe(own)} is the key that labfeed uses`, {
        hint: 'put another in its place first: `labfeed keys rotate`, or `labfeed keys set`',
      });
    }
    const doubt = own ? '' : '; which one labfeed uses, the notebook does not tell';
    const asked = `delete ${doomed.map(describe).join(', ')}${doubt}?`;
    if (!(await confirm(asked, yes))) return console.log('nothing was deleted');
    for (const { id } of doomed) if (id !== undefined) await as(key).deleteKey(id);
    if (json) console.log(JSON.stringify({ deleted: ids }));
    else for (const record of doomed) console.log(`${describe(record)} is deleted`);
    await as(key).listKeys().catch(explainOwnDeletion);
  });
}

async function rotateKey({ json, ...options }: KeysOptions): Promise<void> {
  const config = load(options);
  const file = writableFile(config, 'rotate');
  const signal = new AbortController().signal;
  const rotated = await rotateConfigured(config, file, { clock: systemClock, signal });
  if (json) console.log(JSON.stringify({ name: keyName(), file: file.path, ...rotated }, null, 2));
  else console.log(tellRotated(rotated, file.path).join('\n'));
  if (rotated.failed.length > 0) {
    throw new LabfeedError(
      `the new key is in use, but ${numbersOf(rotated.failed.map(({ id }) => id))} could not be deleted: ${rotated.failed[0]?.reason}`,
      { hint: 'the next `labfeed keys rotate` deletes it; or now: labfeed keys delete NUMBER' },
    );
  }
}

function tellRotated({ key, deleted, kept, others }: Rotated, file: string): string[] {
  const which = key === undefined ? '' : `, number ${key},`;
  return [
    `a new key ${keyName()}${which} was proved and is in ${file}`,
    ...(deleted.length > 0
      ? [`${numbersOf(deleted)} named ${keyName()} before ${deleted.length === 1 ? 'is' : 'are'} deleted`]
      : []),
    ...(kept === 'unknown' ? [UNKNOWN_OLD] : []),
    ...(typeof kept === 'object'
      ? [
          `the old one was left, since it is not named so: ${describe(kept)}. Once nothing else uses it: labfeed keys delete ${kept.id ?? 'NUMBER'}`,
        ]
      : []),
    ...(others.length > 0
      ? [
          `${numbersOf(others)} of the same name left alone: another labfeed on this machine may use ${others.length === 1 ? 'it' : 'them'}`,
        ]
      : []),
    WHEN_TAKEN,
  ];
}

const UNKNOWN_OLD =
  "the old one was left: the notebook does not tell which of the account's keys it is. See labfeed keys list";

const WHEN_TAKEN = 'a running daemon takes it as soon as the old one is refused, or at a reload (SIGHUP)';

const numbersOf = (ids: readonly number[]): string =>
  `${ids.length === 1 ? 'key' : 'keys'} ${ids.join(', ')}`;

const describe = ({ id, name }: Pick<KeyRecord, 'id' | 'name'>): string =>
  `key ${id ?? 'without a number'}${name === undefined ? '' : ` "${name}"`}`;

function load(options: ConfigOption): UsableConfig {
  const config = loadNamed(options);
  requireVital(config);
  return config;
}

const currentKey = (config: UsableConfig): string =>
  readKey(config.notebook.key, config.placeOf(['notebook', 'key']));

async function withRings<T>(config: UsableConfig, act: (rings: KeyRings) => Promise<T>): Promise<T> {
  const rings = openRings(config, { clock: systemClock, signal: new AbortController().signal });
  try {
    return await act(rings);
  } finally {
    await rings.close();
  }
}

/** The account's keys, and which of them is in use, where that can be told. */
async function look(config: UsableConfig, as: KeyRings['as']) {
  const key = currentKey(config);
  const records = await as(key).listKeys();
  const { file } = config.notebook.key;
  const remembered = file === undefined ? NOTHING : peekMemory(targetOf(file), config.notebook.url);
  return { key, records, own: recordOf(key, records, remembered) };
}

function writableFile({ notebook }: UsableConfig, what: 'set' | 'rotate'): KeyFile {
  if (notebook.key.file !== undefined) return openKeyFile(notebook.key.file);
  throw instead(notebook.key, what);
}

/** What only the service's surroundings can change is left to who can change them. */
function instead({ env, credential }: SecretSource, what: 'set' | 'rotate'): LabfeedError {
  const place =
    env === undefined ? `the systemd credential ${credential}` : `the environment variable ${env}`;
  const where =
    env === undefined
      ? `write it into the file that LoadCredential=${credential}:… of the service names`
      : `set ${env} to it where the daemon is started`;
  const make = what === 'rotate' ? `labfeed keys create ${keyName()} shows a new key: ` : '';
  const end =
    what === 'rotate' ? ', then delete the old key: labfeed keys list, labfeed keys delete NUMBER' : '';
  return new LabfeedError(`the key comes from ${place}, which a command cannot change for the daemon`, {
    hint: `${make}${where}, and restart the daemon${end}`,
  });
}

function notAKey(text: string): UsageError {
  return new UsageError(
    text === '' ? 'no key came on standard input' : 'what came on standard input is not one key on one line',
    { hint: 'for example: labfeed keys set < new-key.txt' },
  );
}

function explainRefusal(error: unknown): never {
  if (!(error instanceof NotebookError) || error.failure !== 'auth') throw error;
  throw new LabfeedError(`the notebook refuses this key: ${error.message}`, {
    hint: 'nothing was written; the old key stays',
    cause: error,
  });
}

function explainOwnDeletion(error: unknown): never {
  if (!(error instanceof NotebookError) || error.failure !== 'auth') throw error;
  throw new LabfeedError('that was the key that labfeed uses: the notebook refuses it now', {
    hint: 'make one in the notebook, and `labfeed keys set` it',
    cause: error,
  });
}

function found(id: number, records: readonly KeyRecord[]): KeyRecord {
  const record = records.find((one) => one.id === id);
  if (record) return record;
  throw new LabfeedError(`the account has no key ${id}`, { hint: 'labfeed keys list' });
}

/** A server's word on one key; what is a hash is never asked for. */
function told(record: KeyRecord, field: 'created_at' | 'last_used_at'): string | undefined {
  const value = record[field];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
