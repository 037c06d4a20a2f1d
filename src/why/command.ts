import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.js';
import {
  type ConfigOption,
  configFrom,
  configOption,
  daemonState,
  requireJournal,
  withExamples,
} from '../commands/options.js';
import { formatTable, terminalWidth } from '../commands/terminal.js';
import { EXIT } from '../errors.js';
import { journalExists } from '../journal/database.js';
import { openReader } from '../journal/reader.js';
import { indent, terminalLine, terminalText } from '../text.js';
import type { Explanation, Finding } from './evidence.js';
import { findFile, gather } from './gather.js';
import { conclude } from './why.js';

interface WhyOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addWhy(command: Command): void {
  withExamples(command, ['labfeed why /srv/instruments/nanodrop/run-17.tsv', 'labfeed why run-17'])
    .argument('<path>', 'Path of a file, or a part of it; the file may be gone', parseText)
    .addOption(configOption())
    .option('--json', 'Print the answers and the evidence as JSON')
    .action(why);
}

function parseText(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Expected a path or a part of one.');
  return text;
}

async function why(asked: string, { json, ...options }: WhyOptions): Promise<void> {
  const config = configFrom(options);
  const journal = requireJournal(config);
  const now = systemClock.now();
  const reader = journalExists(journal) ? openReader(journal) : undefined;
  try {
    const { running, live } = reader ? daemonState(journal, now) : { running: false, live: undefined };
    const told = running ? live : undefined;
    const found = await findFile(asked, { claims: config.claims, reader, live: told, folder: process.cwd() });
    const witnesses = { config, reader, running, live: told, now };
    const evidence = await oneByOne(found.paths, (path) => gather(path, witnesses));
    const answers = evidence.map((one) => ({ ...conclude(one), evidence: one }));
    if (json) console.log(JSON.stringify({ asked, ...found, answers }, null, 2));
    else console.log(await asText(asked, answers, found.more));
    for (const folder of found.unsearched)
      process.stderr.write(`the folder ${folder} could not be searched to its end\n`);
    if (answers.every(({ outcome }) => outcome === 'unknown')) process.exitCode = EXIT.failed;
  } finally {
    await reader?.close();
  }
}

async function oneByOne<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await act(item));
  return results;
}

async function asText(asked: string, answers: readonly Explanation[], more: boolean): Promise<string> {
  const told = ({ text, hint }: Finding): string => terminalText(`${text}${hint ? `\n  → ${hint}` : ''}`);
  const [first] = answers;
  if (first === undefined)
    return `nothing is known of ${terminalLine(asked)}: neither a folder nor the journal has a file with that in its path`;
  if (answers.length === 1) {
    const rest = first.findings.map((finding) => indent(told(finding), '    ').replace(/^ {4}/, '  - '));
    return [terminalLine(first.path), indent(told(first.answer)), ...rest].join('\n');
  }
  const table = formatTable(
    [
      { title: 'state', text: ({ outcome }) => outcome },
      { title: 'run', text: ({ run }) => (run === undefined ? '' : String(run)), align: 'right' },
      { title: 'file', text: ({ path }) => path },
      { title: 'why', text: ({ answer }) => answer.text, flexible: true },
    ],
    answers,
    terminalWidth(),
  );
  const count = more ? `more than ${answers.length}` : String(answers.length);
  return `${table}\n${count} files hold that in their path; name one of them to see all that is known of it`;
}
