import { constants, statSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { configFrom, type JsonOption, withJson } from '../commands/options.js';
import { testSummary } from '../commands/try.js';
import type { FleetConfig } from '../config/fleet.js';
import { type Instrument, type LoadedConfig, missingInstruments, type UsableConfig } from '../config/load.js';
import { readKey, readToken } from '../config/secrets.js';
import { isLoopback } from '../config/settings.js';
import { keyOf, openNotebook } from '../connection.js';
import { Directory, type ListNamed } from '../deliver/context.js';
import { ConfigError, EXIT, formatPlace, LabfeedError, NotebookError, type Problem } from '../errors.js';
import type { Postgres } from '../fleet/database.js';
import { inspectJournal } from '../journal/maintenance.js';
import { canWrite, findRecord } from '../keys/rotate.js';
import { readLive } from '../live.js';
import { checkMapping } from '../map/draft.js';
import { runGoldenTests, type TestResult } from '../mapping/tests.js';
import { differentNotebooks } from '../members.js';
import { dialectOf } from '../model.js';
import type { KeyRecord } from '../notebook/responses.js';
import { joinWords, plural } from '../text.js';
import {
  checkFolders,
  type Finding,
  mergeOverlaps,
  NOT_ALL_COMPARED,
  overlapFinding,
  possibleOverlaps,
} from './folders.js';
import { checkService, readUnit, runsConfig } from './service.js';

interface CheckOptions extends JsonOption {
  readonly offline?: boolean;
}

export function addCheck(command: Command): void {
  withJson(command, ['labfeed check --config /etc/labfeed/config.yaml'])
    .option('--offline', 'Check only the configuration and its tests, not the folders, journal, key or server')
    .action(check);
}

async function check(options: CheckOptions): Promise<void> {
  const config = configFrom(options);
  const mistakes = new Map(config.instruments.map((instrument) => [instrument, checkMapping(instrument)]));
  const problems = [...config.problems, ...missingInstruments(config), ...[...mistakes.values()].flat()];
  const usable = config.instruments.filter((instrument) => mistakes.get(instrument)?.length === 0);
  const findings = await gatherFindings(config, usable, options.offline ?? false);
  if (options.json) console.log(JSON.stringify(asJson(config.file, problems, findings), null, 2));
  else console.log(asText(config.file, findings).join('\n'));
  if (problems.length > 0) {
    if (!options.json) throw new ConfigError(problems);
    process.exitCode = EXIT.config;
  } else if (findings.some(({ level }) => level === 'wrong')) {
    process.exitCode = EXIT.failed;
  }
}

async function gatherFindings(
  config: LoadedConfig,
  usable: readonly Instrument[],
  offline: boolean,
): Promise<Finding[]> {
  const live = config.invalidSettings.has('journal') ? undefined : readLive(config.settings.journal);
  const folders = offline ? { findings: [], overlaps: [], listed: [] } : await checkFolders(config, live?.instruments);
  const possible = possibleOverlaps(config.claims);
  const overlaps = mergeOverlaps(folders.overlaps, possible.overlaps);
  const findings = [
    ...checkTransport(config),
    ...checkInstruments(config),
    ...overlaps.map(overlapFinding),
    ...(possible.isComplete ? [] : [NOT_ALL_COMPARED]),
    ...(await checkTests(usable)),
    ...folders.findings,
  ];
  if (offline) return findings;
  const unit = readUnit();
  return [
    ...findings,
    // With a mistake in `journal`, the default path would be the wrong journal.
    ...(config.invalidSettings.has('journal') ? [] : [await checkJournal(config.settings.journal)]),
    ...(runsConfig(unit, config.file) ? checkService(config, unit, folders.listed) : []),
    ...checkToken(config),
    ...(await checkFleet(config)),
    ...(isWatcher(config) ? [] : await checkNotebook(config)),
  ];
}

/** The key must not cross the network in clear text, or reach a server that only claims to be the notebook. */
export function checkTransport(
  { notebook }: Pick<LoadedConfig, 'notebook'>,
  env: NodeJS.ProcessEnv = process.env,
): Finding[] {
  const findings: Finding[] = [];
  const url = notebook && new URL(notebook.url);
  if (url?.protocol === 'http:' && !isLoopback({ host: url.hostname.replace(/^\[|\]$/g, '') }))
    findings.push({
      level: 'note',
      text: `${notebook?.url} is not encrypted: everybody on the network can read the API key`,
      hint: 'use https:// in `notebook.url`',
    });
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0')
    findings.push({
      level: 'note',
      text: 'NODE_TLS_REJECT_UNAUTHORIZED=0 is set. labfeed verifies the certificate of the notebook anyway',
      hint: 'remove it. For a private certificate authority, set `notebook.ca`',
    });
  return findings;
}

const LABELS: Record<Finding['level'], string> = { good: 'ok     ', note: 'note   ', wrong: 'error  ' };

function asText(file: string, findings: readonly Finding[]): string[] {
  return [
    `configuration ${file}`,
    ...findings.map(({ level, text, hint }) => `${LABELS[level]}${text}${hint ? `\n         → ${hint}` : ''}`),
  ];
}

function asJson(file: string, problems: readonly Problem[], findings: readonly Finding[]) {
  const placed = ({ where, message, hint }: Problem) => ({ at: formatPlace(where), message, hint });
  const ok = problems.length === 0 && findings.every(({ level }) => level !== 'wrong');
  const warnings = findings
    .filter(({ level }) => level === 'note')
    .map(({ text, hint }) => ({ message: text, ...(hint !== undefined && { hint }) }));
  return { ok, file, problems: problems.map(placed), warnings, findings };
}

function checkInstruments(config: LoadedConfig): Finding[] {
  const unmapped = config.instruments.filter(({ parse }) => parse === undefined).map(({ name }) => name);
  if (unmapped.length === 0) return [];
  return [
    {
      level: 'note',
      text: `${joinWords(unmapped.length > 10 ? [...unmapped.slice(0, 9), plural(unmapped.length - 9, 'other instrument')] : unmapped)} ${unmapped.length === 1 ? 'has' : 'have'} no \`parse\`: labfeed detects the format of each file, and a later version may detect it differently`,
      hint: 'to pin the format, add the `parse` section that `labfeed learn FILE…` prints',
    },
  ];
}

async function checkTests(instruments: readonly Instrument[]): Promise<Finding[]> {
  const tested = instruments.filter(({ tests }) => tests.length > 0);
  const results = await runGoldenTests(tested, { clock: systemClock });
  const byInstrument = new Map<string, TestResult[]>(tested.map(({ name }) => [name, []]));
  for (const result of results) byInstrument.get(result.instrument)?.push(result);
  return tested.flatMap(({ name }) => {
    const own = byInstrument.get(name) ?? [];
    const problems = own.flatMap((result) => result.problems);
    const summary: Finding = { level: problems.length > 0 ? 'wrong' : 'good', text: testSummary(name, own) };
    return [summary, ...problems.map(problemFinding)];
  });
}

const problemFinding = ({ where, message, hint }: Problem): Finding => ({
  level: 'wrong',
  text: `${formatPlace(where)}: ${message}`,
  hint,
});

async function checkJournal(path: string): Promise<Finding> {
  const inspection = inspectJournal(path);
  switch (inspection.state) {
    case 'good':
      return { level: 'good', text: `journal ${path}: ${plural(inspection.runs, 'run')}` };
    case 'absent':
      return checkMissingJournal(path);
    case 'newer':
      return {
        level: 'wrong',
        text: `journal ${path} was written by a newer version of labfeed (schema ${inspection.version})`,
        hint: 'update labfeed, or choose another journal',
      };
    case 'unreadable':
      return { level: 'wrong', text: inspection.message, hint: inspection.hint };
  }
}

/** A missing journal is created at the first start if the nearest existing folder above it is writable. */
async function checkMissingJournal(path: string): Promise<Finding> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    // The slash makes a file in the place of a folder fail with ENOTDIR.
    const state = await access(`${folder}/`, constants.W_OK).then(
      () => 'writable',
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (state === 'writable')
      return { level: 'good', text: `journal ${path} will be created when the daemon first starts` };
    if (state !== 'ENOENT' || folder === dirname(folder))
      return {
        level: 'wrong',
        text: `cannot create the journal ${path}: ${folder} is not writable (${state})`,
        hint: 'give this user write permission there, or choose another location with `journal: PATH`',
      };
  }
}

/** Whether the page's tokens can be read. The port is not tested: a running daemon uses it. */
function checkToken({ settings: { status }, placeOf }: LoadedConfig): Finding[] {
  if (status === false) return [];
  return (['token', 'readToken'] as const).flatMap((name) => {
    const source = status[name];
    return source ? secretProblems(() => readToken(source, placeOf(['status', name]))) : [];
  });
}

/** Problems with reading a secret; none if it can be read. */
function secretProblems(read: () => void): Finding[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(problemFinding);
  }
}

/** A watcher of a fleet sends nothing to the notebook. */
const isWatcher = ({ settings: { fleet } }: LoadedConfig): boolean => fleet?.role === 'watch';

async function checkNotebook({ notebook, placeOf, instruments }: LoadedConfig): Promise<Finding[]> {
  if (!notebook) return [];
  const problems = secretProblems(() => readKey(notebook.key, placeOf(['notebook', 'key'])));
  if (problems.length > 0) return problems;
  return [...checkKeyFile(notebook.key.file), ...(await checkServer({ notebook, placeOf, instruments }))];
}

/** The group may read the key file: this is how root gives it to a service. */
function checkKeyFile(path: string | undefined): Finding[] {
  if (path === undefined || (statSync(path).mode & 0o007) === 0) return [];
  const text = `every user of this machine can read the API key in ${path}`;
  return [{ level: 'note', text, hint: `restrict it: chmod 600 ${path}` }];
}

/** `key`: instead of the configured one. */
export async function checkServer(
  config: Pick<UsableConfig, 'notebook' | 'placeOf' | 'instruments'>,
  key = keyOf(config),
): Promise<Finding[]> {
  const { url } = config.notebook;
  const notebook = openNotebook(config, { key });
  try {
    const keys = await notebook.listKeys();
    const accepted: Finding = { level: 'good', text: `${url} accepts the key; ${describeAccount(keys)}` };
    const { dialect } = config.notebook;
    const isElabftw = (dialect === 'auto' ? dialectOf(keys) : dialect) === 'elabftw';
    const names = isElabftw ? await checkNames(config.instruments, notebook) : [];
    const templates = isElabftw ? await checkTemplate(config.instruments, notebook) : [];
    return [accepted, ...checkWritable(findRecord(key.current(), keys)), ...names, ...templates];
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    const text = error.message.includes(url) ? error.message : `${url}: ${error.message}`;
    return [{ level: 'wrong', text, hint: error.hint }];
  } finally {
    await notebook.close();
  }
}

/** eLabFTW shows which keys may write. */
function checkWritable(own: KeyRecord | undefined): Finding[] {
  if (!own || canWrite(own) !== false) return [];
  const text = `the API key ${own.name === undefined ? '' : `${JSON.stringify(own.name)} `}may only read, so nothing can be filed`;
  return [{ level: 'wrong', text, hint: 'create a key with write access in eLabFTW' }];
}

/** Whether eLabFTW has what the instruments name: categories, statuses, templates and resources. */
async function checkNames(
  instruments: readonly Instrument[],
  { listNamed }: { listNamed: ListNamed },
): Promise<Finding[]> {
  const directory = new Directory();
  const findings: Finding[] = [];
  for (const { name, experiment } of instruments) {
    for (const kind of ['category', 'status', 'template', 'link'] as const) {
      const wanted = experiment[kind];
      if (wanted === undefined) continue;
      try {
        await directory.idOf(kind, wanted, listNamed, systemClock.monotonic());
      } catch (error) {
        if (!(error instanceof NotebookError) || error.failure !== 'request') throw error;
        findings.push({ level: 'wrong', text: `${name}: ${error.message}`, hint: error.hint });
      }
    }
  }
  return findings;
}

interface Templates {
  readonly listNamed: ListNamed;
  forcesTemplate(): Promise<boolean>;
}

/** Instruments without a template, if the team requires one. Servers that do not tell are not asked further. */
async function checkTemplate(
  instruments: readonly Instrument[],
  { forcesTemplate, listNamed }: Templates,
): Promise<Finding[]> {
  const without = instruments.filter(({ experiment }) => experiment.template === undefined);
  const isForced = await forcesTemplate().catch((error: unknown) => {
    if (error instanceof NotebookError && !error.retryable) return false;
    throw error;
  });
  if (!isForced || without.length === 0) return [];
  const names = (await listNamed('template', '')).map(({ title }) => JSON.stringify(title));
  const hint =
    names.length === 0
      ? 'create a template in eLabFTW, and set `experiment: { template: NAME }` for the instrument'
      : `add \`experiment: { template: ${names[0]} }\` to the instrument; the templates are ${joinWords(names)}`;
  return without.map(({ name }) => ({
    level: 'wrong',
    text: `${name}: the team creates experiments from templates only, and \`experiment.template\` is not set`,
    hint,
  }));
}

/** The API cannot name the user. People recognise the account by the names of its keys. */
function describeAccount(keys: readonly KeyRecord[]): string {
  const names = keys.map((key) => key['name']).filter((name) => typeof name === 'string');
  const team = keys.map((key) => key['team_name']).find((name) => typeof name === 'string');
  return `the account has ${plural(keys.length, 'key')}: ${names.join(', ')}${team ? `; team ${team}` : ''}`;
}

/** Whether the database answers, and what it tells a machine that delivers about the notebook. */
async function checkFleet({ settings: { fleet }, notebook }: LoadedConfig): Promise<Finding[]> {
  if (!fleet) return [];
  const { tryDatabase } = await import('../fleet/database.js');
  const findings: Finding[] = [{ level: 'good', text: 'the database of the fleet answers' }];
  const problem = await tryDatabase(fleet, async (postgres) => {
    if (notebook && fleet.role !== 'watch') findings.push(...(await checkDeliverers(postgres, fleet, notebook.url)));
  });
  return problem ? [{ level: 'wrong', ...problem }] : findings;
}

/** What the machines that deliver have recorded. */
async function checkDeliverers(postgres: Postgres, { name }: FleetConfig, url: string): Promise<Finding[]> {
  const { listMembers } = await import('../fleet/report.js');
  try {
    const others = (await listMembers(postgres, systemClock)).filter((member) => member.name !== name);
    const different = differentNotebooks([{ name, isAway: false, notebook: url }, ...others]);
    const sender = await postgres.row<Sender>(
      `SELECT name, notebook, session_key IS NOT NULL AS "hasKey" FROM labfeed.fleet
         JOIN labfeed.members ON members.id = sender`,
    );
    return [
      ...(different ? [{ level: 'wrong' as const, text: different.text, hint: different.hint }] : []),
      sessionFinding(sender?.notebook === url ? sender : undefined),
    ];
  } catch (error) {
    // No machine has joined yet, or only an older version.
    if (['42P01', '42703'].includes(String((error as { code?: unknown }).code))) return [];
    throw error;
  }
}

interface Sender {
  readonly name: string;
  readonly notebook: string | null;
  readonly hasKey: boolean;
}

/**
 * By what the leader has found out: a key that was created to test this would stay in the notebook if the command were
 * interrupted.
 */
function sessionFinding(sender: Sender | undefined): Finding {
  if (!sender)
    return {
      level: 'note',
      text: 'whether the notebook gives session keys is known once a machine of the fleet delivers',
      hint: 'run `labfeed check` again then',
    };
  const { name, hasKey } = sender;
  if (hasKey)
    return {
      level: 'good',
      text: `the notebook gives session keys: ${name} sends with one, which a successor deletes`,
    };
  return {
    level: 'note',
    text: `the notebook gives no session keys that can be deleted, so a successor of ${name} waits for 15 s and the grace period before it sends; a leader that was paused for longer can leave an empty experiment or a second comment`,
    hint: 'use an API key whose account may manage its keys',
  };
}
