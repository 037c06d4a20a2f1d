import { type Command, InvalidArgumentError } from 'commander';
import {
  type JsonOption,
  parseNumbers,
  usableConfigFrom,
  withExamples,
  withJson,
  yesOption,
} from '../commands/options.js';
import { type Column, confirm, formatTable, readSecret, terminalWidth } from '../commands/terminal.js';
import type { UsableConfig } from '../config/load.js';
import { readKey } from '../config/secrets.js';
import { LabfeedError, NotebookError, UsageError } from '../errors.js';
import type { KeyRecord } from '../notebook/responses.js';
import {
  canWrite,
  findRecord,
  type KeyFile,
  keyName,
  NO_ROTATION,
  openKeyApis,
  openKeyFile,
  openRotation,
  type RotateDeps,
  type Rotated,
  readRotation,
  resolveLinks,
  rotate,
} from './rotate.js';

interface CreateOptions extends JsonOption {
  readonly readOnly?: boolean;
}

interface DeleteOptions extends JsonOption {
  readonly yes?: boolean;
}

const EXAMPLES = {
  list: 'labfeed keys list',
  create: 'labfeed keys create "plate reader PC"',
  set: 'labfeed keys set < new-key.txt',
  delete: 'labfeed keys delete 7',
  rotate: 'labfeed keys rotate',
};

const ROTATE_NOTE = `A running daemon switches to the new key. If the command is interrupted, run
it again.`;

export function addKeys(keys: Command): void {
  withExamples(keys, Object.values(EXAMPLES));
  const add = (name: keyof typeof EXAMPLES, description: string, note?: string): Command =>
    withJson(keys.command(name).description(description), [EXAMPLES[name]], note);
  add('list', 'List the keys of the account, and show which one labfeed uses').action(listKeys);
  add('create', 'Create a key and print it; the notebook never shows it again')
    .argument('<name>', 'Name of the key in the notebook', parseName)
    .option('--read-only', 'Create a read-only key')
    .action(createKey);
  add('set', 'Read a key from standard input, test it, and save it where the configuration reads it').action(setKey);
  add('delete', 'Delete keys of the account')
    .argument('<key...>', 'Key numbers, as shown by `labfeed keys list`', parseNumbers)
    .addOption(yesOption())
    .action(deleteKeys);
  add(
    'rotate',
    'Create a new key, test it, save it where the configuration reads it, and delete the old one',
    ROTATE_NOTE,
  ).action(rotateKey);
}

/** Otherwise the notebook would choose a name by which nobody recognises the key. */
function parseName(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Expected a name.');
  return text;
}

type ShownKey = ReturnType<typeof toShown>;

/** Only these fields: others may hold a hash of the key. Fields that the notebook does not return are undefined. */
const toShown = (record: KeyRecord, own: KeyRecord | undefined) => ({
  id: record.id,
  name: record.name,
  canWrite: canWrite(record),
  created: timeOf(record['created_at']),
  lastUsed: timeOf(record['last_used_at']),
  inUse: own && record === own,
});

const timeOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;

const COLUMNS: readonly Column<ShownKey>[] = [
  { title: 'key', text: ({ id }) => String(id ?? '?'), align: 'right' },
  { title: 'name', text: ({ name }) => name ?? '', flexible: true },
  { title: 'access', text: (key) => (key.canWrite === undefined ? '' : key.canWrite ? 'read, write' : 'read') },
  { title: 'created', text: ({ created }) => toMinute(created) },
  { title: 'last used', text: ({ lastUsed }) => toMinute(lastUsed) },
  { title: 'used by', text: ({ inUse }) => (inUse ? 'labfeed' : '') },
];

/** Without seconds, to leave room for the names. */
const toMinute = (time = ''): string => time.replace(/^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d).*$/, '$1 $2');

async function listKeys({ json, ...options }: JsonOption): Promise<void> {
  const config = usableConfigFrom(options);
  const { records, own } = await withKeyApis(config, (as) => readKeys(config, as));
  const shown = records.map((record) => toShown(record, own));
  if (json) return console.log(JSON.stringify(shown, null, 2));
  console.log(formatTable(COLUMNS, shown, terminalWidth()));
  if (!own) console.log(UNKNOWN_OWN);
}

const UNKNOWN_OWN = 'the notebook does not show which of these keys labfeed uses';

async function createKey(name: string, { readOnly, json, ...options }: CreateOptions): Promise<void> {
  const config = usableConfigFrom(options);
  const key = await withKeyApis(config, (as) => as(currentKey(config)).createKey({ name, canwrite: readOnly ? 0 : 1 }));
  console.log(json ? JSON.stringify({ name, canWrite: !readOnly, key }) : key);
  if (!json) process.stderr.write('save this key now: the notebook never shows it again\n');
}

async function setKey({ json, ...options }: JsonOption): Promise<void> {
  const config = usableConfigFrom(options);
  const file = writableFile(config, 'set');
  const key = await readSecret('API key');
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new UsageError(key === '' ? 'standard input is empty' : 'standard input must contain one key on one line', {
      hint: 'for example: labfeed keys set < new-key.txt',
    });
  }
  const records = await withKeyApis(config, (as) => as(key).listKeys()).catch(
    onRejectedKey('nothing was saved; the old key stays in use'),
  );
  const record = findRecord(key, records);
  if (record && canWrite(record) === false) {
    throw new LabfeedError(`${describe(record)} is read-only, but labfeed needs write access`, {
      hint: 'nothing was saved. Create a key with write access',
    });
  }
  file.write(key);
  if (json) return console.log(JSON.stringify({ file: file.path, key: record?.id, name: record?.name }));
  const which = record ? describe(record) : 'the key';
  console.log(`${config.notebook.url} accepts ${which}; it was saved in ${file.path}`);
  console.log(WHEN_USED);
}

async function deleteKeys(ids: readonly number[], { yes, json, ...options }: DeleteOptions): Promise<void> {
  const config = usableConfigFrom(options);
  await withKeyApis(config, async (as) => {
    const { records, own, key } = await readKeys(config, as);
    const chosen = ids.map((id) => requireRecord(id, records));
    if (own && chosen.includes(own)) {
      throw new LabfeedError(`${describe(own)} is the key that labfeed uses`, {
        hint: 'replace it first: `labfeed keys rotate` or `labfeed keys set`',
      });
    }
    const question = `${own ? '' : `${UNKNOWN_OWN}\n`}Delete ${chosen.map(describe).join(', ')}?`;
    if (!(await confirm(question, yes))) return console.log('nothing was deleted');
    for (const { id } of chosen) if (id !== undefined) await as(key).deleteKey(id);
    if (json) console.log(JSON.stringify({ deleted: ids }));
    else for (const record of chosen) console.log(`${describe(record)} was deleted`);
    await as(key)
      .listKeys()
      .catch(
        onRejectedKey('labfeed used the deleted key. Create a new one in the notebook and run `labfeed keys set`'),
      );
  });
}

async function rotateKey({ json, ...options }: JsonOption): Promise<void> {
  const config = usableConfigFrom(options);
  const file = writableFile(config, 'rotate');
  const rotated = await rotateConfigured(config, file);
  if (json) console.log(JSON.stringify({ name: keyName(), file: file.path, ...rotated }, null, 2));
  else console.log(describeRotation(rotated, file.path).join('\n'));
  const [failed] = rotated.failed;
  if (failed === undefined) return;
  throw new LabfeedError(
    `the new key is in use, but ${listKeyNumbers(rotated.failed.map(({ id }) => id))} could not be deleted: ${failed.reason}`,
    { hint: 'the next `labfeed keys rotate` tries again; or run: labfeed keys delete NUMBER' },
  );
}

/** Rotates the key of the configuration. */
export async function rotateConfigured(config: UsableConfig, file: KeyFile): Promise<Rotated> {
  const current = currentKey(config);
  const rotation = openRotation(file.path, config.notebook.url);
  try {
    return await withKeyApis(config, (as) => rotate({ name: keyName(), current, as, rotation, write: file.write }));
  } finally {
    rotation.close();
  }
}

function describeRotation({ key, deleted, kept, others }: Rotated, file: string): string[] {
  const lines = [`new key ${key === undefined ? '' : `${key} `}"${keyName()}" was tested and saved in ${file}`];
  if (deleted.length > 0) lines.push(`old ${listKeyNumbers(deleted)} ${deleted.length === 1 ? 'was' : 'were'} deleted`);
  if (kept === 'unknown')
    lines.push('the old key was kept: the notebook does not show which one it is. See `labfeed keys list`');
  else if (kept !== undefined)
    lines.push(
      `${describe(kept)} was kept, because labfeed did not create it. To delete it: labfeed keys delete ${kept.id ?? 'NUMBER'}`,
    );
  if (others.length > 0)
    lines.push(
      `${listKeyNumbers(others)} with the same name ${others.length === 1 ? 'was' : 'were'} kept: another labfeed on this machine may use ${others.length === 1 ? 'it' : 'them'}`,
    );
  return [...lines, WHEN_USED];
}

const WHEN_USED = 'a running daemon uses the new key as soon as the notebook rejects the old one, or after a reload';

const listKeyNumbers = (ids: readonly number[]): string => `${ids.length === 1 ? 'key' : 'keys'} ${ids.join(', ')}`;

const describe = ({ id, name }: Pick<KeyRecord, 'id' | 'name'>): string =>
  `key ${id ?? 'without a number'}${name === undefined ? '' : ` "${name}"`}`;

const currentKey = (config: UsableConfig): string => readKey(config.notebook.key, config.placeOf(['notebook', 'key']));

async function withKeyApis<T>(config: UsableConfig, use: (as: RotateDeps['as']) => Promise<T>): Promise<T> {
  const { as, close } = openKeyApis(config);
  return use(as).finally(close);
}

/** The keys of the account, and the one in use, if it can be identified. */
async function readKeys(config: UsableConfig, as: RotateDeps['as']) {
  const key = currentKey(config);
  const records = await as(key).listKeys();
  const { file } = config.notebook.key;
  const rotation = file === undefined ? NO_ROTATION : readRotation(resolveLinks(file), config.notebook.url);
  return { key, records, own: findRecord(key, records, rotation) };
}

/** Only a file can be written: the environment of the service can only be changed by its administrator. */
function writableFile({ notebook }: UsableConfig, action: 'set' | 'rotate'): KeyFile {
  const { file, env, credential } = notebook.key;
  if (file !== undefined) return openKeyFile(file);
  const [source, change] =
    env === undefined
      ? [`the systemd credential ${credential}`, `write it to the file named in LoadCredential=${credential}:…`]
      : [`the environment variable ${env}`, `set ${env} to it where the daemon is started`];
  const [create, remove] =
    action === 'set'
      ? ['', '']
      : [
          `create a key with \`labfeed keys create ${keyName()}\`, `,
          ', then delete the old key with `labfeed keys delete NUMBER`',
        ];
  throw new LabfeedError(`the key comes from ${source}, which this command cannot change`, {
    hint: `${create}${change}, and restart the daemon${remove}`,
  });
}

/** Replaces the hint if the key was rejected. */
const onRejectedKey =
  (hint: string) =>
  (error: unknown): never => {
    if (!(error instanceof NotebookError) || error.failure !== 'auth') throw error;
    throw new LabfeedError(error.message, { hint, cause: error });
  };

function requireRecord(id: number, records: readonly KeyRecord[]): KeyRecord {
  const record = records.find((one) => one.id === id);
  if (record) return record;
  throw new LabfeedError(`the account has no key ${id}`, { hint: 'to list the keys: labfeed keys list' });
}
