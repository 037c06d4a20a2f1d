import { constants, statSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { type ConfigOption, configOption, loadNamed } from '../commands/options.js';
import { testSummary } from '../commands/try.js';
import type { LoadedConfig } from '../config/load.js';
import { journalOf } from '../config/locations.js';
import type { NotebookConfig } from '../config/schema.js';
import { readKey, readToken } from '../config/secrets.js';
import { ConfigError, EXIT, explainProblem, formatPlace, LabfeedError, type Problem } from '../errors.js';
import { inspectJournal } from '../journal/maintenance.js';
import { checkMapping } from '../mapping/mapping.js';
import { runGoldenTests } from '../mapping/tests.js';
import { createNotebook } from '../notebook/client.js';
import { examineFolders, type Finding, mergeOverlaps, overlapFinding, possibleOverlaps } from './folders.js';

interface CheckOptions extends ConfigOption {
  readonly offline?: boolean;
  readonly json?: boolean;
}

export function addCheck(program: Command): void {
  program
    .command('check')
    .description(
      'name every mistake in the configuration, run its tests, then try folders, journal, key and server',
    )
    .addOption(configOption())
    .option('--offline', 'only the configuration and its tests: try no folder, journal, key or server')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', '\nExample:\n  labfeed check --config /etc/labfeed/config.yaml')
    .action(check);
}

async function check(options: CheckOptions): Promise<void> {
  const config = loadNamed(options);
  const problems = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  const folders = options.offline ? { findings: [], overlaps: [] } : await examineFolders(config);
  const overlaps = mergeOverlaps(folders.overlaps, possibleOverlaps(config.claims));
  const findings: Finding[] = [
    ...examineMappings(config),
    ...overlaps.map(overlapFinding),
    ...(await examineTests(config)),
    ...folders.findings,
  ];
  if (!options.offline)
    findings.push(
      // Where the configuration does not say which journal it is, the usual one says nothing.
      ...(config.wrong.has('journal') ? [] : [await examineJournal(config)]),
      ...examineStatus(config),
      ...(await examineNotebook(config)),
    );
  if (options.json)
    console.log(JSON.stringify(asJson(config.file, problems, config.warnings, findings), null, 2));
  else console.log(asText(config.file, config.warnings, findings).join('\n'));
  if (problems.length > 0) {
    if (!options.json) throw new ConfigError(problems);
    process.exitCode = EXIT.config;
  } else if (findings.some(({ level }) => level === 'wrong')) {
    process.exitCode = EXIT.failed;
  }
}

const SIGNS: Record<Finding['level'], string> = { good: 'ok     ', note: 'note   ', wrong: 'WRONG  ' };

function asText(file: string, warnings: readonly Problem[], findings: readonly Finding[]): string[] {
  return [
    `configuration ${file}`,
    ...warnings.map((warning) => `${SIGNS.note}${explainProblem(warning)}`),
    ...findings.map(({ level, text, hint }) => `${SIGNS[level]}${text}${hint ? `\n         → ${hint}` : ''}`),
  ];
}

function asJson(
  file: string,
  problems: readonly Problem[],
  warnings: readonly Problem[],
  findings: readonly Finding[],
) {
  const placed = ({ where, message, hint }: Problem) => ({ at: formatPlace(where), message, hint });
  const ok = problems.length === 0 && findings.every(({ level }) => level !== 'wrong');
  return { ok, file, problems: problems.map(placed), warnings: warnings.map(placed), findings };
}

/** What is not wrong with the mappings, but worth knowing. */
function examineMappings(config: LoadedConfig): Finding[] {
  if (config.listed.length === 0 && config.problems.length === 0)
    return [
      {
        level: 'note',
        text: 'there is no instrument: nothing is watched',
        hint: 'write one under `instruments`, or see which files the globs of `include` fit',
      },
    ];
  return config.instruments
    .filter(({ parse }) => parse === undefined)
    .map(({ name }) => ({
      level: 'note',
      text: `${name} has no parse: its files are measured anew each time, and an upgrade may read them differently`,
      hint: '`labfeed learn FILE…` prints a parse section that pins how they are read',
    }));
}

/** What the mappings' own tests say. */
async function examineTests(config: LoadedConfig): Promise<Finding[]> {
  const usable = config.instruments.filter((instrument) => checkMapping(instrument).length === 0);
  const results = await runGoldenTests(usable, { clock: systemClock });
  return usable.flatMap(({ name }) => {
    const own = results.filter(({ instrument }) => instrument === name);
    if (own.length === 0) return [];
    const problems = own.flatMap((result) => result.problems);
    const summed: Finding = { level: problems.length > 0 ? 'wrong' : 'good', text: testSummary(name, own) };
    return [summed, ...problems.map(asFinding)];
  });
}

const asFinding = ({ where, message, hint }: Problem): Finding => ({
  level: 'wrong',
  text: `${formatPlace(where)}: ${message}`,
  ...(hint === undefined ? {} : { hint }),
});

async function examineJournal(config: LoadedConfig): Promise<Finding> {
  const path = journalOf(config);
  const inspection = inspectJournal(path);
  switch (inspection.state) {
    case 'good':
      return { level: 'good', text: `journal ${path}: ${inspection.runs} runs` };
    case 'absent':
      return absentJournal(path);
    case 'newer':
      return {
        level: 'wrong',
        text: `journal ${path} was written by a newer labfeed (version ${inspection.version})`,
        hint: 'update labfeed, or use another journal',
      };
    case 'unreadable':
      return {
        level: 'wrong',
        text: `journal ${path} cannot be read: ${inspection.reason}`,
        hint: 'check its permissions; if it is damaged, restore a backup',
      };
  }
}

/** A journal that is not there yet is made at the first start, where the nearest folder above it can be written. */
async function absentJournal(path: string): Promise<Finding> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    // The slash lets a file in the place of a folder be seen as one.
    const state = await access(`${folder}/`, constants.W_OK).then(
      () => 'writable',
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (state === 'writable')
      return { level: 'good', text: `journal ${path} will be made at the first start` };
    if (state !== 'ENOENT' || folder === dirname(folder)) {
      const hint = 'let this user write there, or name another place with journal: PATH';
      return {
        level: 'wrong',
        text: `journal ${path} cannot be made: ${folder} cannot be written (${state})`,
        hint,
      };
    }
  }
}

async function examineNotebook({ notebook: config, placeOf }: LoadedConfig): Promise<Finding[]> {
  if (!config) return [];
  let key: string;
  try {
    key = readKey(config.key, placeOf(['notebook', 'key']));
  } catch (error) {
    return unreadableSecret(error);
  }
  return [...openKeyFile(config.key.file), await tryNotebook(config, key)];
}

/** Its group may read it: that is how root hands a file to a service. */
function openKeyFile(path: string | undefined): Finding[] {
  if (path === undefined || (statSync(path).mode & 0o007) === 0) return [];
  const hint = `keep it from the other users of this machine: chmod 600 ${path}`;
  return [{ level: 'note', text: `everybody here can read the API key in ${path}`, hint }];
}

async function tryNotebook(config: NotebookConfig, key: string): Promise<Finding> {
  const notebook = createNotebook({
    url: config.url,
    key: () => key,
    timeoutMs: config.timeout,
    connections: 1,
    commentField: config.commentField,
  });
  try {
    return {
      level: 'good',
      text: `${config.url} answers and takes the key (${whose(await notebook.listKeys())})`,
    };
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    return { level: 'wrong', text: error.message, ...(error.hint ? { hint: error.hint } : {}) };
  } finally {
    await notebook.close();
  }
}

/** Whether the page's token is there. Its port is not tried: a daemon that runs uses it. */
function examineStatus({ settings: { status }, placeOf }: LoadedConfig): Finding[] {
  if (status === false || !status.token) return [];
  try {
    readToken(status.token, placeOf(['status', 'token']));
    return [];
  } catch (error) {
    return unreadableSecret(error);
  }
}

function unreadableSecret(error: unknown): Finding[] {
  if (!(error instanceof ConfigError)) throw error;
  return error.problems.map(({ where, message, hint }) => ({
    level: 'wrong',
    text: `${formatPlace(where)}: ${message}`,
    ...(hint ? { hint } : {}),
  }));
}

/** The contract has no way to ask for the user; the names of the account's keys are what people know it by. */
function whose(keys: readonly Readonly<Record<string, unknown>>[]): string {
  const names = keys.map((key) => key['name']).filter((name) => typeof name === 'string');
  const team = keys.map((key) => key['team_name']).find((name) => typeof name === 'string');
  return `its account has ${keys.length === 1 ? 'one key' : `${keys.length} keys`}: ${names.join(', ')}${team ? `; team ${team}` : ''}`;
}
