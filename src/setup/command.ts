import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import type { z } from 'zod';
import { checkServer, checkTransport } from '../check/check.js';
import { editUnit, readUnit, runsConfig, type Unit, useProxyOf, whyRefused } from '../check/service.js';
import { systemClock } from '../clock.js';
import { withExamples } from '../commands/options.js';
import { trialAsText } from '../commands/try.js';
import { findExistingConfig, isIncluded, loadConfig, SYSTEM_CONFIG } from '../config/load.js';
import { INSTRUMENT_NAME, instrumentSchema, NAME_HINT } from '../config/schema.js';
import { readKey, resolveSecret, secret } from '../config/secrets.js';
import { checkAuthority, type NotebookConfig, notebookSchema } from '../config/settings.js';
import { openNotebook } from '../connection.js';
import { ConfigError, LabfeedError, NotebookError, type Place, systemCode, UsageError } from '../errors.js';
import { learn, suggestFiles, suggestName, toComment, toInstrument } from '../learn/learn.js';
import { tryFile } from '../mapping/mapping.js';
import { openSample } from '../mapping/sample.js';
import type { IdentifiedFile } from '../model.js';
import { indent, terminalLine } from '../text.js';
import { createMatcher, pathInside } from '../watch/match.js';
import { createFiles, type NewFile, requireWritable } from './create.js';
import { type Answers, answersFrom, askPerson, readYes, StoppedError } from './questions.js';

const ANSWERS = ['server', 'ca', 'key', 'folder', 'sample', 'name', 'start'];

const NOTE = `The answers in the file: server, ca (the certificate of a private authority), key
({ file: PATH } or { env: NAME }), folder, sample (a path, or none), name, and start
(true or false). What is absent gets its default. Relative paths are relative to
the file.`;

export function addSetup(command: Command): void {
  withExamples(command, ['labfeed setup', 'labfeed setup --config lab.yaml --answers answers.yaml'], NOTE)
    .option(
      '--config <file>',
      'Configuration file to write (default: ./labfeed.yaml, or /etc/labfeed/config.yaml for root)',
    )
    .option('--answers <file>', 'Take the answers from a YAML file')
    .action(setup);
}

async function setup(options: { readonly config?: string; readonly answers?: string }): Promise<void> {
  const chosen = chooseConfig(options.config, process.geteuid?.() === 0, readUnit);
  const answers = options.answers === undefined ? askHere() : answersFrom(options.answers, ANSWERS);
  const print = (text: string): void => console.log(text);
  await setUp({ ...chosen, answers, print, systemctl }).finally(answers.close);
}

/** The configuration to write or to extend, and the unit of the service that uses it. Only root can set up a service. */
export function chooseConfig(
  named: string | undefined,
  isRoot: boolean,
  unit: () => Unit,
): Pick<SetupDeps, 'file' | 'unit' | 'other'> {
  const inFolder = findExistingConfig();
  const file = resolve(named ?? (isRoot ? SYSTEM_CONFIG : (inFolder ?? 'labfeed.yaml')));
  return {
    file,
    ...(isRoot && runsConfig(unit(), file) && { unit }),
    ...(named === undefined && inFolder !== undefined && inFolder !== file && { other: inFolder }),
  };
}

function askHere(): Answers {
  if (process.stdin.isTTY && process.stdout.isTTY) return askPerson({ input: process.stdin, output: process.stdout });
  throw new UsageError('setup asks questions, and there is no terminal to ask them', {
    hint: 'write the answers to a YAML file: labfeed setup --answers FILE. See labfeed setup --help',
  });
}

function systemctl(...args: readonly string[]): Error | undefined {
  const { status, stderr, error } = spawnSync('systemctl', args, { encoding: 'utf8' });
  return status === 0 ? undefined : (error ?? new Error(stderr.trim()));
}

export interface SetupDeps {
  /** The configuration. */
  readonly file: string;
  /** If it is the one of the installed service, and this user is root. Read for each answer: people may change it. */
  readonly unit?: () => Unit;
  /** The configuration that commands use in this folder instead. */
  readonly other?: string;
  readonly answers: Answers;
  print(text: string): void;
  /** Returns why it failed. */
  systemctl(...args: readonly string[]): Error | undefined;
}

/** Asks everything, then writes everything at once. Whatever stops it before has changed nothing. */
export async function setUp(deps: SetupDeps): Promise<void> {
  const { file, other, print } = deps;
  if (other !== undefined)
    print(
      `note: in this folder, the other commands use ${other}\n  → for ${file}, run them with --config ${file}, or from another folder\n`,
    );
  const exists = lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  const { name, files } = exists ? await planInstrument(deps) : await planConfig(deps);
  createFiles(files, (draft) => requireValid(draft, name, exists));
  print(`\nwritten: ${files.map(({ path }) => path).join(', ')}`);
  await offerStart(deps, exists);
}

/** What will be written. */
interface Plan {
  readonly name: string;
  /** The last one has the instrument. */
  readonly files: readonly NewFile[];
}

async function planConfig(deps: SetupDeps): Promise<Plan> {
  const { file, unit, print } = deps;
  requireWritable(dirname(file));
  print(`This creates the configuration ${file}.\n${ASSURANCE}`);
  const notebook = await askServer(deps);
  const keyFile = join(dirname(file), 'api-key');
  const key = await askKey(deps, notebook, keyFile);
  const toText = ({ name, written, doubts }: Described): string =>
    withComments(doubts, {
      notebook: {
        url: notebook.url,
        ...(notebook.ca !== undefined && { ca: notebook.ca }),
        key: unit ? { credential: 'api-key' } : { file: 'api-key' },
      },
      include: 'instruments.d/*.yaml',
      instruments: { [name]: written },
    });
  const described = await askInstrument(deps, [], file, toText, async ({ name, written }) => {
    const instruments = [toInstrument(name, written)];
    return checkServer({ notebook, instruments, placeOf: () => ({ file }) }, held(key));
  });
  const config = { path: file, text: toText(described), mode: 0o644 };
  const files = existingKey(keyFile) === key ? [] : [{ path: keyFile, text: `${key}\n`, mode: 0o600 }];
  return { name: described.name, files: [...files, config] };
}

const ASSURANCE = 'Nothing is changed before the last answer; Ctrl-C stops. Enter takes the default.';

/** Adds an instrument to a configuration that includes other files. */
async function planInstrument(deps: SetupDeps): Promise<Plan> {
  const { file, print } = deps;
  const config = loadConfig(file);
  if (config.problems.length > 0) throw new ConfigError(config.problems);
  const folder = join(dirname(file), 'instruments.d');
  if (!isIncluded(join(folder, 'name.yaml'), file))
    throw new LabfeedError(`${file} already exists, and setup does not change it`, {
      hint: 'to add instruments with setup, add the line include: instruments.d/*.yaml to it. For another configuration, use --config FILE',
    });
  requireWritable(folder);
  print(`${file} already exists and stays as it is. This adds an instrument, in ${folder}.\n${ASSURANCE}`);
  const taken = [
    ...config.listed.map(({ name }) => name),
    ...(existsSync(folder) ? readdirSync(folder).map((name) => basename(name, '.yaml')) : []),
  ];
  const toText = ({ name, written, doubts }: Described): string =>
    withComments(doubts, { instruments: { [name]: written } });
  const described = await askInstrument(deps, taken, folder, toText);
  const path = join(folder, `${described.name}.yaml`);
  return { name: described.name, files: [{ path, text: toText(described), mode: 0o644 }] };
}

const withComments = (doubts: readonly string[], content: object): string =>
  `${['Written by labfeed setup. After a change, run: labfeed check', ...doubts.map((doubt) => `Unsure: ${doubt}`)].map(toComment).join('')}${stringify(content, { lineWidth: 0 })}`;

/** Rejects what the daemon could not use. */
function requireValid(draft: string, name: string, isPart: boolean): void {
  const config = loadConfig(draft);
  const problems = isPart ? config.problems.filter(({ stops }) => stops !== 'daemon') : config.problems;
  if (problems.length > 0) throw new ConfigError(problems);
  if (config.instruments.every((instrument) => instrument.name !== name))
    throw new LabfeedError(`the instrument ${name} cannot be written to a configuration`);
}

const askServer = ({ answers, unit, print }: SetupDeps): Promise<NotebookConfig> =>
  answers.ask({
    key: 'server',
    text: 'The address of the notebook?',
    why: 'labfeed files runs there. The default is the built-in notebook, which `labfeed sandbox` starts.',
    preset: 'http://127.0.0.1:7781',
    async read(url) {
      const asked = parsed(notebookSchema, { url, key: { env: 'NONE' } });
      for (const name of unit ? useProxyOf(unit()) : [])
        print(
          `note: ${name} is set in this shell, but not for the service, so it is not used\n  → if the service needs it: ${editUnit(`Environment=${name}=…`)}`,
        );
      const notebook = await requireServer(asked).catch((error: unknown) => askAuthority(answers, unit, asked, error));
      for (const { text, hint } of checkTransport({ notebook })) print(`note: ${text}\n  → ${hint}`);
      return notebook;
    },
  });

/** A notebook rejects this key. Any other answer means that the address is wrong. */
async function requireServer(notebook: NotebookConfig): Promise<NotebookConfig> {
  const client = openNotebook({ notebook, placeOf: nowhere }, { key: held('labfeed-setup') });
  try {
    await client.listKeys();
  } catch (error) {
    if (!(error instanceof NotebookError) || error.failure !== 'auth') throw error;
  } finally {
    await client.close();
  }
  return notebook;
}

/** Asks for the certificate of an authority, if that is why the server cannot be used. */
async function askAuthority(
  { ask, folder }: Answers,
  unit: SetupDeps['unit'],
  notebook: NotebookConfig,
  error: unknown,
): Promise<NotebookConfig> {
  if (!(error instanceof NotebookError && error.hint?.includes('notebook.ca'))) throw error;
  const trusting = await ask({
    key: 'ca',
    text: `The file with the certificate of your authority? (${error.message})`,
    why: 'labfeed sends the key only to a server whose certificate it can verify. With none, you can enter another address.',
    preset: 'none',
    async read(answer) {
      if (answer === 'none') return undefined;
      const ca = resolve(folder, answer);
      const [problem] = checkAuthority(ca, { file: ca });
      if (problem) throw new LabfeedError(problem.message, { hint: problem.hint });
      requireReadable(unit, 'read', ca);
      return requireServer({ ...notebook, ca });
    },
  });
  if (!trusting) throw error;
  return trusting;
}

/** Rejects what the service could not read. */
function requireReadable(unit: SetupDeps['unit'], need: 'list' | 'read', path: string): void {
  const refusal = unit && whyRefused(unit(), need, path);
  if (refusal) throw new LabfeedError(refusal.text, { hint: refusal.hint });
}

const nowhere = (): Place => ({ file: '' });

const held = (key: string) => ({ current: () => key, refresh: () => undefined });

/** Validates with a schema of the configuration. */
function parsed<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const { data, error } = schema.safeParse(value);
  if (!error) return data as z.output<S>;
  const [message = '', hint] = error.issues[0]?.message.split(' → ') ?? [];
  throw new LabfeedError(message, { hint });
}

function askKey({ answers, print }: SetupDeps, notebook: NotebookConfig, file: string): Promise<string> {
  const existing = existingKey(file);
  return answers.ask({
    key: 'key',
    text: 'The API key?',
    why: `labfeed works in the notebook as the user of this key, which needs write access. It is saved in ${file}, readable only by its owner.`,
    ...(existing && { preset: existing, presetShown: `the key in ${file}` }),
    secret: (written, where) => readKey(resolveSecret(parsed(secret('API key'), written), answers.folder), where),
    async read(key) {
      if (!/^[\x21-\x7e]+$/.test(key)) throw new LabfeedError('a key has no spaces and no special letters');
      if (existing !== undefined && existing !== key)
        throw new LabfeedError(`${file} already contains another key, and setup does not overwrite it`, {
          hint: 'use that key, or delete the file if nobody needs it',
        });
      const findings = await checkServer({ notebook, instruments: [], placeOf: nowhere }, held(key));
      const wrong = findings.find(({ level }) => level === 'wrong');
      if (wrong) throw new LabfeedError(wrong.text, { hint: wrong.hint });
      for (const { text } of findings) print(text);
      return key;
    },
  });
}

/** An empty file holds a key that is refused. */
function existingKey(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new LabfeedError(`cannot read ${file} (${systemCode(error) ?? error})`, {
      hint: 'run this command as its owner, or use --config FILE in another folder',
    });
  }
}

/** What is known about the instrument. */
interface Described {
  readonly name: string;
  /** As in the configuration. */
  readonly written: z.input<typeof instrumentSchema>;
  readonly doubts: readonly string[];
  readonly sample?: IdentifiedFile;
}

/** Asks until the person agrees with what would be written to `target`. */
async function askInstrument(
  { answers, unit, print }: SetupDeps,
  taken: readonly string[],
  target: string,
  toText: (described: Described) => string,
  check?: (described: Described) => ReturnType<typeof checkServer>,
): Promise<Described> {
  const folder = await askFolder(answers, unit);
  for (;;) {
    const learned = await askSample(answers, unit, folder);
    const name = await askName(answers, suggestName(folder, [learned.sample?.path ?? folder]), taken);
    const described = { ...learned, name };
    if (described.sample) print(`\nThis sample would be filed as follows:\n${await preview(described)}`);
    for (const doubt of described.doubts) print(`unsure: ${terminalLine(doubt)}`);
    for (const { level, text, hint } of (await check?.(described)) ?? [])
      if (level === 'wrong') print(`note: ${text}${hint ? `\n  → ${hint}` : ''}`);
    print(`\n${toText(described)}`);
    const isAgreed = await answers.ask({
      key: 'write',
      text: `Write this to ${target}?`,
      why: 'This is the last step. With no, you can choose another sample file.',
      preset: 'yes',
      read: readYes,
    });
    if (isAgreed) return described;
  }
}

const askFolder = ({ ask, folder }: Answers, unit: SetupDeps['unit']): Promise<string> =>
  ask({
    key: 'folder',
    text: 'The folder that the instrument writes to?',
    why: 'labfeed watches it and files every run that appears in it.',
    preset: existsSync(INSTRUMENTS) ? INSTRUMENTS : folder,
    read(answer) {
      const path = resolve(folder, answer.replace(/^~(?=\/|$)/, homedir()));
      try {
        readdirSync(path);
      } catch (error) {
        const code = systemCode(error) ?? '';
        const reasons: Record<string, string> = { ENOENT: 'does not exist', ENOTDIR: 'is not a folder' };
        throw new LabfeedError(`${path} ${reasons[code] ?? `cannot be read (${code})`}`, {
          hint: 'name an existing folder that this user can read',
        });
      }
      requireReadable(unit, 'list', path);
      return path;
    },
  });

const INSTRUMENTS = '/srv/instruments';

const askSample = (
  { ask, folder }: Answers,
  unit: SetupDeps['unit'],
  watch: string,
): Promise<Omit<Described, 'name'>> =>
  ask({
    key: 'sample',
    text: 'A sample file of the instrument?',
    why: 'labfeed learns from it how to read such files. With none, it detects the format of each file.',
    preset: newestFile(watch) ?? 'none',
    async read(answer) {
      if (answer === 'none') return { written: { watch }, doubts: [] };
      const path = [resolve(folder, answer), resolve(watch, answer)].find((one) => existsSync(one));
      const sample = await openSample(path ?? resolve(folder, answer));
      const { instrument, doubts } = await learn([sample], systemClock.now());
      const { parse, unread, experiment } = instrument;
      const isInside = pathInside(watch, sample.path) !== undefined;
      if (isInside) requireReadable(unit, 'read', sample.path);
      const files = suggestFiles(isInside ? watch : '/', [sample.path]);
      const learned = { written: { watch, files, parse, unread, experiment }, doubts, sample };
      // A sample that would be quarantined is a wrong answer.
      await preview({ name: 'instrument', ...learned });
      return learned;
    },
  });

/** Of the files directly in the folder. */
function newestFile(folder: string): string | undefined {
  const { files, ignore } = instrumentSchema.parse({ watch: folder });
  const matcher = createMatcher({ files, ignore });
  const found = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && matcher.takes(entry.name) && entry.name === terminalLine(entry.name))
    .map(({ name }) => ({ path: join(folder, name), at: statSync(join(folder, name)).mtimeMs }));
  return found.sort((a, b) => b.at - a.at)[0]?.path;
}

const MAX_PREVIEW_LINES = 30;

async function preview({ name, written, sample }: Described): Promise<string> {
  if (!sample) return '';
  const lines = trialAsText(await tryFile(toInstrument(name, written), sample, systemClock.now()), false).split('\n');
  const more = lines.length - MAX_PREVIEW_LINES;
  const shown = more > 0 ? [...lines.slice(0, MAX_PREVIEW_LINES), `… ${more} more lines`] : lines;
  return indent(shown.join('\n'));
}

const askName = ({ ask }: Answers, suggested: string, taken: readonly string[]): Promise<string> =>
  ask({
    key: 'name',
    text: 'The name of the instrument?',
    why: 'It appears in titles, tags and on the status page.',
    preset: [suggested, ...taken.map((_, n) => `${suggested.slice(0, 60)}-${n + 2}`)].find(
      (one) => !taken.includes(one),
    ),
    read(name) {
      if (taken.includes(name)) throw new LabfeedError(`there is already an instrument ${JSON.stringify(name)}`);
      if (INSTRUMENT_NAME.test(name)) return name;
      throw new LabfeedError(`${JSON.stringify(name)} is not a valid name`, { hint: NAME_HINT });
    },
  });

async function offerStart({ file, unit, answers, print, systemctl }: SetupDeps, exists: boolean): Promise<void> {
  if (!unit) {
    const option = basename(file) === 'labfeed.yaml' && dirname(file) === process.cwd() ? '' : ` --config ${file}`;
    return print(exists ? 'A running daemon takes it after a reload (SIGHUP).' : `Start it: labfeed run${option}`);
  }
  const isWanted = await answers
    .ask({
      key: 'start',
      text: exists ? 'Load the new instrument now?' : 'Start the service now?',
      why: 'It files the runs in the background, also after a reboot.',
      preset: 'yes',
      read: readYes,
    })
    .catch((error: unknown) => {
      if (error instanceof StoppedError) return false;
      throw error;
    });
  if (!isWanted) return print(`Later: systemctl enable labfeed && systemctl ${RESTART} labfeed`);
  // Attempts before it was configured count towards its limit.
  systemctl('reset-failed', 'labfeed.service');
  const failure = systemctl('enable', 'labfeed.service') ?? systemctl(RESTART, 'labfeed.service');
  if (failure)
    throw new LabfeedError(`the configuration was written, but the service did not start: ${failure.message}`, {
      hint: 'systemctl status labfeed shows the reason',
    });
  print('The service is running. labfeed status shows what it does.');
}

/** Starts the service, or lets it load its configuration again. */
const RESTART = 'reload-or-restart';
