import type { Command } from 'commander';
import { type ConfigOption, configOption, loadNamed } from '../commands/options.js';
import { ConfigError, EXIT, explainProblem, formatPlace, type Problem } from '../errors.js';
import { checkMapping } from '../mapping/mapping.js';
import {
  examineJournal,
  examineMappings,
  examineNotebook,
  examineStatus,
  examineTests,
  type Finding,
} from './findings.js';
import { examineFolders, mergeOverlaps, overlapFinding, possibleOverlaps } from './folders.js';

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
