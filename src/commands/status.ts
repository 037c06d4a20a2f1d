import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import type { InstrumentSummary, Overview } from '../journal/reader.js';
import { describeProblem, type LimiterState, type Live } from '../live.js';
import { RUN_STATES, type RunState } from '../model.js';
import { formatShortTime, formatTime, plural, relativeTime, terminalLine, terminalText } from '../text.js';
import { type ConfigOption, configOption, daemonState, reading } from './options.js';
import { asTable, type Column, outputWidth } from './terminal.js';

interface StatusOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addStatus(program: Command): void {
  program
    .command('status')
    .description(
      'say whether the daemon runs and what it does: instruments, queue, notebook, what is wrong, what waits for a person',
    )
    .addOption(configOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed status')
    .action(status);
}

async function status({ json, ...options }: StatusOptions): Promise<void> {
  const now = systemClock.now();
  const state = await reading(options, async ({ config, journal, reader }) => ({
    at: now,
    journal,
    ...daemonState(journal, now),
    problems: config.problems.map(describeProblem),
    notebook: config.notebook?.url,
    /** Also those of which nothing has come yet. */
    listed: config.listed.map(({ name }) => name),
    overview: await reader.overview(),
  }));
  if (!json) return console.log(statusAsText(state, outputWidth()));
  const { listed, notebook, ...told } = state;
  console.log(JSON.stringify({ ...told, attention: needsPerson(state) }, null, 2));
}

export interface Status {
  readonly at: number;
  readonly journal: string;
  readonly running: boolean;
  /** What the daemon tells of itself; where none runs, what the last one told before it ended without a word. */
  readonly live: Live | undefined;
  /** What is wrong with the configuration as it stands now. */
  readonly problems: Live['problems'];
  /** The notebook of the configuration. */
  readonly notebook: string | undefined;
  readonly listed: readonly string[];
  readonly overview: Overview;
}

/** What waits for somebody, with the command that is the next step. */
interface Attention {
  readonly instrument: string | undefined;
  readonly text: string;
  readonly command: string;
}

export function statusAsText(status: Status, width: number): string {
  const { live, running, overview } = status;
  const known = running ? live : undefined;
  const rows = rowsOf(status);
  const attention = needsPerson(status).map(asLine);
  const alarms = (known?.alarms ?? []).map(({ since, text }) => `since ${formatTime(since)}: ${text}`);
  return [
    fact('daemon', daemon(status)),
    fact(
      'notebook',
      known ? `${known.notebook.url}: ${gate(known.notebook.gate, status.at)}` : notebook(status),
    ),
    fact('queue', queue(overview, status.at)),
    '',
    asTable(columns(rows, status.at), rows, width),
    ...section('waits for a person', attention),
    ...section('alarms', alarms),
    ...section(
      'mistakes in the configuration',
      mistakes(known ?? { problems: status.problems, refused: undefined }),
    ),
  ].join('\n');
}

const fact = (name: string, value: string): string => `${name.padEnd(10)}${terminalLine(value)}`;

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0
    ? []
    : ['', title, ...lines.map((line) => `  ${terminalText(line).replaceAll('\n', '\n    ')}`)];

function daemon({ running, live, at, journal }: Status): string {
  if (running && live)
    return `runs since ${formatTime(live.startedAt)} (pid ${live.pid}, version ${live.version}), seen ${relativeTime(live.at, at)}`;
  if (running) return `runs, or a command such as recover holds ${journal}; it tells nothing of itself`;
  const last = live ? `; the last one was seen ${relativeTime(live.at, at)}, and ended without a word` : '';
  return `does not run${last}. This is what the journal knows: ${journal}`;
}

function gate(state: LimiterState, now: number): string {
  switch (state.kind) {
    case 'open':
      return `takes requests, at most ${Number(state.perSecond.toFixed(1))}/s`;
    case 'slowed':
    case 'slow start':
      return `takes requests, at ${state.perSecond.toFixed(1)}/s for now (${state.kind})`;
    case 'held':
      return `waits, next request ${relativeTime(state.until, now)}: ${state.reason}`;
    case 'down':
      return `away since ${formatTime(state.since)}, next try ${relativeTime(state.probeAt, now)}: ${state.reason}`;
  }
}

const notebook = ({ notebook: url }: Status): string => url ?? 'none: the configuration has a mistake there';

function queue({ instruments }: Overview, now: number): string {
  const runs = instruments.reduce((sum, { runs: counts }) => sum + counts.queued + counts.sending, 0);
  const times = instruments.flatMap(({ oldestAt }) => (oldestAt === undefined ? [] : [oldestAt]));
  if (runs === 0) return 'empty';
  const oldest = times.length === 0 ? '' : `, the oldest since ${formatTime(Math.min(...times))}`;
  return `${plural(runs, 'run')}${oldest}${times.length === 0 ? '' : ` (${relativeTime(Math.min(...times), now)})`}`;
}

/** An instrument as a row. */
interface Row {
  readonly name: string;
  readonly runs: Readonly<Record<RunState, number>>;
  readonly lastAt: number | undefined;
  readonly folder: string;
}

const NONE = Object.fromEntries(RUN_STATES.map((state) => [state, 0])) as Record<RunState, number>;

function rowsOf({ overview, running, live, listed }: Status): Row[] {
  const lines = running ? (live?.instruments ?? []) : [];
  const names = new Set([
    ...listed,
    ...lines.map(({ name }) => name),
    ...overview.instruments.map(({ name }) => name),
  ]);
  return [...names].map((name) => {
    const known = overview.instruments.find((instrument) => instrument.name === name);
    const line = lines.find((instrument) => instrument.name === name);
    return {
      name,
      runs: { ...NONE, ...known?.runs, waiting: line?.waiting.files ?? 0 },
      lastAt: line?.lastFileAt ?? known?.last?.addedAt,
      folder: line ? folder(line) : listed.includes(name) ? '' : 'not in the configuration',
    };
  });
}

function folder({ line, folder: { state, reason }, watch }: Live['instruments'][number]): string {
  if (line === 'stopped') return 'stopped: a mistake in the configuration, or a failed test';
  if (state === 'present') return line === 'starting' ? `first scan of ${watch}` : watch;
  return `${watch} is ${state}${reason ? `: ${reason}` : ''}`;
}

/** States that no run is in take no room. */
function columns(rows: readonly Row[], now: number): Column<Row>[] {
  const states = RUN_STATES.filter((state) => state === 'done' || rows.some(({ runs }) => runs[state] > 0));
  return [
    { title: 'instrument', flexible: true, text: ({ name }) => name },
    ...states.map(
      (state): Column<Row> => ({ title: state, align: 'right', text: ({ runs }) => String(runs[state]) }),
    ),
    { title: 'last file', text: ({ lastAt }) => (lastAt === undefined ? '-' : formatShortTime(lastAt, now)) },
    ...(rows.some((row) => row.folder !== '') ? [FOLDER] : []),
  ];
}

const FOLDER: Column<Row> = { title: 'folder', flexible: true, text: (row) => row.folder };

export function needsPerson({ overview, notebook: url, running, problems }: Status): Attention[] {
  const halted = overview.servers.filter((server) => server.url === url && server.halted !== undefined);
  return [
    ...(running
      ? []
      : [
          {
            instrument: undefined,
            text: 'no daemon runs',
            command: `${problems.length > 0 ? 'labfeed check, then ' : ''}systemctl start labfeed, or labfeed run`,
          },
        ]),
    ...halted.map((server) => ({
      instrument: undefined,
      text: `nothing is sent: ${server.halted}`,
      command: 'labfeed recover',
    })),
    ...overview.instruments.flatMap(({ name, runs, asked }) => [
      ...(['quarantined', 'held'] as const)
        .filter((state) => runs[state] > 0)
        .map((state) => ({
          instrument: name,
          text: `${name}: ${plural(runs[state], 'run')} ${state}`,
          command: `labfeed jobs --state ${state} --instrument ${quoted(name)}`,
        })),
      ...oldFiles({ name, asked }),
    ]),
  ];
}

/** The one question that many old files raise, which is in no run. */
export const oldFiles = ({ name, asked }: Pick<InstrumentSummary, 'name' | 'asked'>): Attention[] =>
  asked === 0
    ? []
    : [
        {
          instrument: name,
          text: `${name}: ${plural(asked, 'old file')} ${asked === 1 ? 'waits' : 'wait'} for an answer`,
          command: `labfeed backfill ${quoted(name)}`,
        },
      ];

export const asLine = ({ text, command }: Attention): string => `${text} → ${command}`;

const quoted = (name: string): string => (name.includes(' ') ? `'${name}'` : name);

function mistakes({ problems, refused }: Pick<Live, 'problems' | 'refused'>): string[] {
  const tell = ({ at, message, hint }: Live['problems'][number]): string =>
    `${at}: ${message}${hint === undefined ? '' : `\n→ ${hint}`}`;
  return [
    ...problems.map(tell),
    ...(refused
      ? [`the reload of ${formatTime(refused.at)} was refused:`, ...refused.problems.map(tell)]
      : []),
  ];
}
