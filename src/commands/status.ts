import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import type { LoadedConfig } from '../config/load.js';
import { LabfeedError } from '../errors.js';
import { describeFollowed } from '../growth.js';
import type { InstrumentSummary, Overview } from '../journal/reader.js';
import { describeProblem, type LimiterState, type Live, type LiveMember } from '../live.js';
import {
  describeClock,
  describeFolder,
  describeOlder,
  describeQueue,
  describeSeen,
  differentNotebooks,
  leaderOf,
  type Place,
  placesElsewhere,
} from '../members.js';
import { RUN_STATES, type RunState } from '../model.js';
import { loginLink, pageUrl, readLoginSecret } from '../status/auth.js';
import {
  formatBytes,
  formatDuration,
  formatShortTime,
  formatTime,
  plural,
  relativeTime,
  shellWord,
  terminalLine,
  terminalText,
} from '../text.js';
import { totalUploads, uploadObstacle } from '../uploads.js';
import {
  type ConfigOption,
  configFrom,
  daemonState,
  type JsonOption,
  requireJournal,
  runningLive,
  withJson,
  withReader,
} from './options.js';
import { type Column, formatTable, terminalWidth } from './terminal.js';

export function addStatus(command: Command): void {
  withJson(command, ['labfeed status', 'labfeed status --login'])
    .option('--login', 'Print a link that opens the status page and allows decisions there, once, within 5 minutes')
    .action(status);
}

async function status({ json, login, ...options }: JsonOption & { readonly login?: boolean }): Promise<void> {
  if (login) {
    const config = configFrom(options);
    const link = pageLink(config, runningLive(requireJournal(config), systemClock.now())?.page);
    return console.log(json ? JSON.stringify({ link }) : link);
  }
  const state = await readStatus(options, systemClock.now());
  if (!json) return console.log(statusAsText(state, terminalWidth()));
  const { listed, usable, notebook, isWatcher, ...shown } = state;
  console.log(JSON.stringify({ ...shown, attention: needsAttention(state) }, null, 2));
}

/** A link that logs a browser in to the status page, which the daemon serves at this address. */
export function pageLink(config: LoadedConfig, served: string | undefined): string {
  const { status } = config.settings;
  if (status === false || config.invalidSettings.has('status'))
    throw new LabfeedError('there is no status page', { hint: 'set `status: 127.0.0.1:7780` in the configuration' });
  const secret = readLoginSecret(requireJournal(config));
  if (served === undefined && status.address.port === 0)
    throw new LabfeedError('the daemon does not serve a page now, so its port is not known', { hint: 'start it' });
  const page = served ?? pageUrl({ ...status.address, names: status.names });
  return loginLink(page, secret, systemClock.now());
}

/** Problems, notebook and instruments of the configuration as it is now, which the daemon may not have loaded. */
const readStatus = (options: ConfigOption, now: number) =>
  withReader(options, async ({ config, journal, reader }) => ({
    at: now,
    journal,
    ...daemonState(journal, now),
    problems: config.problems.map(describeProblem),
    notebook: config.notebook?.url,
    isWatcher: config.settings.fleet?.role === 'watch',
    listed: config.listed.map(({ name }) => name),
    usable: config.instruments.map(({ name }) => name),
    overview: await reader.overview(),
  }));

export type Status = Awaited<ReturnType<typeof readStatus>>;

/** Something that waits for a person, with the command to run next. */
interface Attention {
  readonly instrument: string | undefined;
  readonly text: string;
  readonly command: string;
}

export function statusAsText(status: Status, width: number): string {
  const { at, running, overview, problems } = status;
  const live = running ? status.live : undefined;
  const rows = instrumentRows(status);
  return [
    fact('daemon', daemon(status)),
    fact(
      'notebook',
      live ? (throughFleet(live) ?? `${live.notebook.url}: ${limiter(live.notebook.gate, at)}`) : notebook(status),
    ),
    fact('queue', queue(overview, at)),
    ...uploads(status).map((text) => fact('uploads', text)),
    ...spares(status).map((text) => fact('spares', text)),
    '',
    formatTable(columns(rows, at), rows, width),
    ...section(
      'growing files',
      overview.growing.map((file) => `${file.path}: ${describeFollowed(file)}`),
    ),
    ...section('needs attention', needsAttention(status).map(attentionLine)),
    ...section(
      'alarms',
      (live?.alarms ?? []).filter(isNew).map(({ since, text }) => `since ${formatTime(since)}: ${text}`),
    ),
    ...section('fleet', live?.fleet ? fleetLines(live.fleet, at) : []),
    ...section('configuration errors', mistakes(live ?? { problems, refused: undefined })),
  ].join('\n');
}

/** Whether nothing else in the text says it. A halt is among what needs attention, with the command that ends it. */
const isNew = ({ kind, instrument }: Live['alarms'][number]): boolean => kind !== 'held' || instrument !== undefined;

const fact = (name: string, value: string): string => `${name.padEnd(10)}${terminalLine(value)}`;

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${terminalText(line).replaceAll('\n', '\n    ')}`)];

/** Who delivers, unless this machine does. */
function throughFleet({ fleet }: Live): string | undefined {
  if (!fleet) return undefined;
  const leader = leaderOf(fleet);
  if (leader === fleet.name) return undefined;
  if (fleet.trouble !== undefined) return 'who delivers is not known: the database of the fleet is away';
  if (leader === undefined) return 'who delivers is not known yet';
  return leader === null ? 'no machine of the fleet delivers at present' : `${leader} delivers for the fleet`;
}

function fleetLines({ name, trouble, kept, listedAt = 0, members }: NonNullable<Live['fleet']>, at: number): string[] {
  if (trouble === undefined) return members.map((member) => memberLines(member, at));
  const known = members.length === 0 ? '' : `; the machines below are those of ${formatTime(listedAt)}`;
  return [
    `${name}: the database is away (${trouble}); ${plural(kept, 'operation')} kept here${known}`,
    ...members.map((member) => memberLines(member, at)),
  ];
}

/** A machine, and below it what it watches and its alarms. */
function memberLines(member: LiveMember, at: number): string {
  const { name, leads, role, version, isAway, folders, alarms } = member;
  const facts = [
    `${name}: ${leads ? 'delivers' : role}, version ${version}, ${describeSeen(member, at)}, ${describeClock(member)}`,
    ...describeQueue(member),
    ...describeOlder(member),
  ];
  const more = [
    ...folders.map((folder) => `${folder.instrument}: ${describeFolder({ member, folder }, at)}`),
    ...alarms.map(({ text }) => `alarm: ${text}`),
  ];
  const last = isAway && more.length > 0 ? '; it last reported:' : '';
  return [`${facts.join(', ')}${last}`, ...more].join('\n');
}

function daemon({ running, live, at, journal }: Status): string {
  if (running && live)
    return `running since ${formatTime(live.startedAt)} (pid ${live.pid}, version ${live.version}), last report ${relativeTime(live.at, at)}`;
  if (running) return `starting, or a command such as recover is using ${journal}`;
  const crashed = live ? `; it stopped unexpectedly (last report ${relativeTime(live.at, at)})` : '';
  return `not running${crashed}. The information below is from the journal ${journal}`;
}

function limiter(state: LimiterState, now: number): string {
  switch (state.kind) {
    case 'open':
      return `accepts requests, at most ${Number(state.perSecond.toFixed(1))}/s`;
    case 'slowed':
    case 'slow start':
      return `accepts requests, now ${state.perSecond.toFixed(1)}/s (${state.kind})`;
    case 'held':
      return `paused, next request ${relativeTime(state.until, now)}: ${state.reason}`;
    case 'down':
      return `unavailable since ${formatTime(state.since)}, next attempt ${relativeTime(state.probeAt, now)}: ${state.reason}`;
    case 'halted':
      return 'halted, nothing is sent (see below)';
  }
}

const notebook = ({ notebook: url, isWatcher }: Status): string =>
  isWatcher ? 'another machine of the fleet delivers' : (url ?? 'unknown: the configuration has an error');

function queue({ instruments }: Overview, now: number): string {
  const runs = instruments.reduce((sum, { runs: counts }) => sum + counts.queued + counts.sending, 0);
  if (runs === 0) return 'empty';
  const oldest = Math.min(...instruments.map(({ oldestAt }) => oldestAt ?? Number.POSITIVE_INFINITY));
  const since = Number.isFinite(oldest) ? `, oldest from ${formatTime(oldest)} (${relativeTime(oldest, now)})` : '';
  return `${plural(runs, 'run')}${since}`;
}

function uploads({ overview, running, live, at }: Status): string[] {
  const total = totalUploads(overview.uploads);
  if (!total) return [];
  const { files, bytes, since } = total;
  const spool = running ? live?.spool : undefined;
  const copies = spool ? `; copies take ${formatBytes(spool.bytes)} of ${formatBytes(spool.maxBytes)}` : '';
  const oldest = `oldest from ${formatTime(since)} (${relativeTime(since, at)})`;
  return [`${plural(files, 'raw file')} (${formatBytes(bytes)}) to be attached, ${oldest}${copies}`];
}

/** Uploads that wait until the configuration is changed. */
const waitingUploads = ({ overview, notebook: url, usable }: Status): Attention[] =>
  overview.uploads.flatMap((waiting) => {
    const obstacle = uploadObstacle(waiting, { url, instruments: usable });
    if (!obstacle) return [];
    const { instrument, files } = waiting;
    const text = `${instrument}: ${plural(files, 'raw file waits', 'raw files wait')} to be attached: ${obstacle.text}`;
    return [{ instrument, text, command: obstacle.hint }];
  });

const MAX_LISTED = 20;

function spares({ overview, notebook: url }: Status): string[] {
  const ids = overview.servers.find((server) => server.url === url)?.spares ?? [];
  if (ids.length === 0) return [];
  const more = ids.length > MAX_LISTED ? ', …' : '';
  const listed = `${ids.slice(0, MAX_LISTED).join(', ')}${more}`;
  return [`${plural(ids.length, 'empty experiment')} created by labfeed, to be used by the next runs: ${listed}`];
}

const NO_RUNS = Object.fromEntries(RUN_STATES.map((state) => [state, 0])) as Record<RunState, number>;

/** The instruments of the configuration, of the daemon, of the other machines of its fleet, and of the journal. */
function instrumentRows({ overview, running, live, listed }: Status) {
  const elsewhere = placesElsewhere(running ? live?.fleet : undefined);
  const watched = new Map((running ? (live?.instruments ?? []) : []).map((one) => [one.name, one]));
  const recorded = new Map(overview.instruments.map((one) => [one.name, one]));
  const others = elsewhere.map((place) => place.folder.instrument).sort();
  return [...new Set([...listed, ...watched.keys(), ...recorded.keys(), ...others])].map((name) => {
    const [instrument, summary] = [watched.get(name), recorded.get(name)];
    const places = elsewhere.filter((place) => place.folder.instrument === name);
    const times = [instrument?.lastFileAt, ...places.map((place) => place.folder.lastFileAt)].filter(
      (at) => at != null,
    );
    const waiting = places.reduce((sum, place) => sum + place.folder.waiting, instrument?.waiting.files ?? 0);
    const own = instrument ? [folder(instrument)] : [];
    return {
      name,
      runs: { ...NO_RUNS, ...summary?.runs, waiting },
      lastAt: times.length === 0 ? summary?.last?.addedAt : Math.max(...times),
      folder:
        own.length + places.length === 0 && !listed.includes(name)
          ? 'not in the configuration'
          : [...own, ...machines(places)].join('; '),
    };
  });
}

function folder({ line, folder: { state, reason }, watch, polling }: Live['instruments'][number]): string {
  if (line === 'stopped') return 'stopped by a configuration error or a failed test';
  const { everyMs, because } = polling ?? {};
  const polled = because && everyMs ? ` (${because}: polled every ${formatDuration(everyMs)})` : '';
  if (state === 'present') return line === 'starting' ? `first scan of ${watch}` : `${watch}${polled}`;
  return `${watch} is ${state}${reason ? `: ${reason}` : ''}`;
}

/** The other machines that have an instrument. What each of them says is below the table. */
const machines = (places: readonly Place[]): string[] =>
  places.length === 0
    ? []
    : [`on ${places.map(({ member: { name, isAway } }) => (isAway ? `${name} (away)` : name)).join(', ')}`];

type InstrumentRow = ReturnType<typeof instrumentRows>[number];

/** Omits states without runs. */
function columns(rows: readonly InstrumentRow[], now: number): Column<InstrumentRow>[] {
  const states = RUN_STATES.filter((state) => state === 'done' || rows.some(({ runs }) => runs[state] > 0));
  const hasFolders = rows.some((row) => row.folder !== '');
  return [
    { title: 'instrument', flexible: true, text: ({ name }) => name },
    ...states.map((state) => ({
      title: state,
      align: 'right' as const,
      text: ({ runs }: InstrumentRow) => String(runs[state]),
    })),
    { title: 'last file', text: ({ lastAt }) => (lastAt === undefined ? '-' : formatShortTime(lastAt, now)) },
    ...(hasFolders ? [{ title: 'folder', flexible: true, text: (row: InstrumentRow) => row.folder }] : []),
  ];
}

export function needsAttention(status: Status): Attention[] {
  const { overview, notebook: url, running, live, problems } = status;
  const halted = overview.servers.filter((server) => server.url === url && server.halted !== undefined);
  const start = `${problems.length > 0 ? 'labfeed check, then ' : ''}systemctl start labfeed, or labfeed run`;
  return [
    ...(running ? [] : [{ instrument: undefined, text: 'the daemon is not running', command: start }]),
    ...halted.map((server) => ({
      instrument: undefined,
      text: `nothing is sent: ${server.halted}`,
      command: 'labfeed recover',
    })),
    ...(running ? (live?.instruments ?? []) : []).flatMap(fileAttention),
    ...overview.instruments.flatMap((instrument) => [...parkedAttention(instrument), ...backlogAttention(instrument)]),
    ...placesElsewhere(running ? live?.fleet : undefined).flatMap(placeAttention),
    ...notebookAttention(running ? live?.fleet : undefined),
    ...waitingUploads(status),
  ];
}

function notebookAttention(fleet: Live['fleet']): Attention[] {
  const different = differentNotebooks(fleet?.members ?? []);
  return different ? [{ instrument: undefined, text: different.text, command: different.hint }] : [];
}

/** What only the other machine can decide or explain. Its parked runs are those of the fleet. */
function placeAttention({
  member: { name, isAway },
  folder: { instrument, asked, unreadable, stuck },
}: Place): Attention[] {
  const where = `on ${name}${isAway ? ', which is away' : ''}`;
  const one = (count: number | null | undefined, text: string, command: string): Attention[] =>
    count ? [{ instrument, text: `${instrument}: ${text} ${where}`, command: `${command} (on ${name})` }] : [];
  return [
    ...one(
      asked,
      `a backlog of ${plural(asked ?? 0, 'file')} needs a decision`,
      `labfeed backfill ${shellWord(instrument)}`,
    ),
    ...one(
      unreadable,
      `${plural(unreadable ?? 0, 'file or folder', 'files or folders')} cannot be read`,
      'labfeed status',
    ),
    ...one(stuck, `${plural(stuck ?? 0, 'file has', 'files have')} been waiting for more than a day`, 'labfeed status'),
  ];
}

function fileAttention({ name, unreadable, stuck }: Live['instruments'][number]): Attention[] {
  const about = ({ first }: typeof stuck, what: string): Attention[] =>
    first.slice(0, 1).map(({ path }) => ({
      instrument: name,
      text: `${name}: ${what}, such as ${path}`,
      command: `labfeed why ${shellWord(path)}`,
    }));
  return [
    ...about(unreadable, `${plural(unreadable.files, 'file or folder', 'files or folders')} cannot be read`),
    ...about(stuck, `${plural(stuck.files, 'file has', 'files have')} been waiting for more than a day`),
  ];
}

const parkedAttention = ({ name, runs }: InstrumentSummary): Attention[] =>
  (['quarantined', 'held'] as const)
    .filter((state) => runs[state] > 0)
    .map((state) => ({
      instrument: name,
      text: `${name}: ${plural(runs[state], 'run')} ${state}`,
      command: `labfeed jobs --state ${state} --instrument ${shellWord(name)}`,
    }));

/** A backlog that waits for a decision; its files are not runs yet. */
export const backlogAttention = ({ name, asked }: Pick<InstrumentSummary, 'name' | 'asked'>): Attention[] =>
  asked === 0
    ? []
    : [
        {
          instrument: name,
          text: `${name}: a backlog of ${plural(asked, 'file')} needs a decision`,
          command: `labfeed backfill ${shellWord(name)}`,
        },
      ];

export const attentionLine = ({ text, command }: Attention): string => `${text} → ${command}`;

function mistakes({ problems, refused }: Pick<Live, 'problems' | 'refused'>): string[] {
  const describe = ({ at, message, hint }: Live['problems'][number]): string =>
    `${at}: ${message}${hint === undefined ? '' : `\n→ ${hint}`}`;
  return [
    ...problems.map(describe),
    ...(refused ? [`the reload at ${formatTime(refused.at)} was rejected:`, ...refused.problems.map(describe)] : []),
  ];
}
