import type { LimiterState, LiveAlarm, LiveInstrument } from '../../live.js';
import { alarmsElsewhere, differentNotebooks, type Place, placesElsewhere } from '../../members.js';
import {
  asSentence,
  capitalize,
  formatBytes,
  formatClock,
  formatCount,
  formatDay,
  formatDuration,
  joinWords,
  plural,
} from '../../text.js';
import { totalUploads } from '../../uploads.js';
import type { InstrumentSummary, PageState } from '../api.js';

/** What the page derives from the state: counts, and the sentences that describe them. No DOM is needed here. */

/** `ok`: nothing to do. `warning`: somebody should look soon. `error`: it does not work. */
export type Tone = 'ok' | 'warning' | 'error';

interface Problem {
  readonly tone: Tone;
  readonly text: string;
}

export interface Health {
  readonly tone: Tone;
  readonly sentence: string;
  readonly others: readonly string[];
}

/** Everything in one sentence; the worst problem comes first. */
export function healthOf(state: PageState, now: number): Health {
  const [worst, ...others] = [
    ...journalProblems(state),
    ...notebookProblems(state, now),
    ...configProblems(state),
    ...pendingDecisions(state),
    ...otherAlarms(state),
    ...awayMachines(state),
  ];
  if (!worst) return { tone: 'ok', sentence: describeNormal(state), others: [] };
  return { tone: worst.tone, sentence: worst.text, others: others.map(({ text }) => text) };
}

const error = (text: string): Problem => ({ tone: 'error', text });
const warning = (text: string): Problem => ({ tone: 'warning', text });

function describeNormal(state: PageState): string {
  const { done, inProgress, notReady } = totalsOf(state);
  const folders = state.live.instruments.length + placesElsewhere(state.live.fleet).length;
  if (folders === 0) return 'No instruments configured yet';
  if (done + inProgress === 0) return `All good: watching ${plural(folders, 'folder')}, no runs yet`;
  const waiting = inProgress + notReady;
  const rest = waiting === 0 ? 'none waiting' : `${formatCount(waiting)} ${isAway(state) ? 'waiting' : 'in progress'}`;
  return `All good: ${plural(done, 'run')} filed, ${rest}`;
}

function journalProblems({ live, overview }: PageState): Problem[] {
  const alarms = live.alarms.filter(({ kind }) => kind === 'journal');
  const current = overview.servers.filter(({ url }) => url === live.notebook.url);
  const halts = current.flatMap(({ halted }) => halted ?? []);
  return [
    ...alarms.map(({ text }) => error(capitalize(text))),
    ...halts.map((reason) => error(`Sending is halted until you run labfeed recover: ${reason}`)),
  ];
}

function notebookProblems(state: PageState, now: number): Problem[] {
  const { gate } = state.live.notebook;
  if (gate.kind !== 'down') return [];
  const { inProgress } = totalsOf(state);
  const runs = plural(inProgress, 'run is', 'runs are');
  const waiting = inProgress === 0 ? 'no runs are waiting' : `${runs} waiting, nothing is lost`;
  if (gate.failure === 'auth') return [error(`The notebook rejects the API key; ${waiting}`)];
  return [warning(`The notebook has been unavailable for ${outageOf(gate, now)}; ${waiting}`)];
}

function configProblems({ live: { instruments, problems, refused } }: PageState): Problem[] {
  const stopped = instruments.filter(({ line }) => line === 'stopped').map(({ name }) => name);
  if (stopped.length > 0) {
    const names = stopped.length > 3 ? plural(stopped.length, 'instrument') : joinWords(stopped);
    return [error(`${names} ${stopped.length === 1 ? 'is' : 'are'} stopped by a configuration error`)];
  }
  if (problems.length > 0) return [warning(`The configuration has ${plural(problems.length, 'error')}`)];
  if (!refused) return [];
  return [warning('The new configuration was rejected; the previous one stays in effect')];
}

function pendingDecisions(state: PageState): Problem[] {
  const { backlogs } = totalsOf(state);
  const runs = state.attentionCount;
  if (runs + backlogs === 0) return [];
  const parts = [...(runs > 0 ? [plural(runs, 'run')] : []), ...(backlogs > 0 ? [plural(backlogs, 'backlog')] : [])];
  return [warning(`${joinWords(parts)} ${runs + backlogs === 1 ? 'needs' : 'need'} a decision`)];
}

/** Alarms that another sentence already covers. */
const COVERED = ['journal', 'outage', 'auth', 'configuration', 'quarantine', 'held'];

const otherAlarms = ({ live }: PageState): Problem[] => [
  ...live.alarms
    .filter(({ kind }) => !COVERED.includes(kind))
    .map(({ kind, text }) => (kind === 'folder' ? error(text) : warning(text))),
  ...alarmsElsewhere(live.fleet, live.alarms).map(warning),
  ...differentAddresses(live),
];

function differentAddresses({ fleet }: PageState['live']): Problem[] {
  const different = differentNotebooks(fleet?.members ?? []);
  return different ? [warning(`${different.text}; ${different.hint}`)] : [];
}

const MAX_NAMED = 5;

/** PCs are switched off at night, which raises no alarm. But nobody knows how their folders are. */
function awayMachines({ live: { fleet } }: PageState): Problem[] {
  const members = fleet?.members ?? [];
  const away = members.filter(({ isAway }) => isAway).map(({ name }) => name);
  if (away.length === 0) return [];
  const names = away.length > MAX_NAMED ? '' : `: ${joinWords(away)}`;
  return [
    warning(`${away.length} of ${plural(members.length, 'machine')} ${away.length === 1 ? 'is' : 'are'} away${names}`),
  ];
}

/** Whether the notebook is not available, or nothing may be sent to it. */
export const isAway = ({ live: { notebook } }: PageState): boolean =>
  ['down', 'held', 'halted'].includes(notebook.gate.kind);

/** `oldestAt`: when the run that has waited longest was added. `backlogs`: how many instruments need a decision. */
export function totalsOf({ overview: { instruments }, live }: PageState) {
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
  const oldest = instruments.flatMap(({ oldestAt }) => oldestAt ?? []);
  const elsewhere = placesElsewhere(live.fleet);
  return {
    done: sum(instruments.map(({ runs }) => runs.done)),
    inProgress: sum(instruments.map(({ runs }) => runs.queued + runs.sending)),
    notReady: sum([
      ...live.instruments.map(({ waiting }) => waiting.files - waiting.unreadable),
      ...elsewhere.map(({ folder }) => folder.waiting),
    ]),
    backlogs: [...instruments, ...elsewhere.map(({ folder }) => folder)].filter(({ asked }) => (asked ?? 0) > 0).length,
    oldestAt: oldest.length === 0 ? undefined : Math.min(...oldest),
  };
}

/** The raw files that wait to be attached; undefined if there are none. */
export function describeUploads({ overview, live }: PageState, now: number): string | undefined {
  const total = totalUploads(overview.uploads);
  if (!total) return undefined;
  const limit = live.spool
    ? `, copies take ${formatBytes(live.spool.bytes)} of ${formatBytes(live.spool.maxBytes)}`
    : '';
  return `${formatCount(total.files)}, the oldest for ${formatDuration(Math.max(1000, now - total.since))}${limit}`;
}

/** Whether requests are sent, and if not, why and until when: a headline and an explanation. */
export function describeNotebook(gate: LimiterState, now: number): readonly [headline: string, detail: string] {
  switch (gate.kind) {
    case 'open':
      return ['The notebook is available.', 'Runs are filed as soon as their files are complete.'];
    case 'slowed':
      return [
        'The notebook is available, at a reduced rate.',
        `The server asked for fewer requests. labfeed now sends ${rateOf(gate.perSecond)}.`,
      ];
    case 'slow start':
      return [
        'The notebook is available again.',
        `Sending speeds up gradually. labfeed now sends ${rateOf(gate.perSecond)}.`,
      ];
    case 'held':
      return [`The notebook asked for a pause until ${formatClock(gate.until, now)}.`, asSentence(gate.reason)];
    case 'down':
      return gate.failure === 'auth' ? describeRejectedKey(gate) : describeOutage(gate, now);
    case 'halted':
      return ['Nothing is sent to the notebook.', 'New files are still read and queued. Run labfeed recover.'];
  }
}

type Down = Extract<LimiterState, { kind: 'down' }>;

const describeRejectedKey = ({ reason }: Down) =>
  [
    'The notebook rejects the API key.',
    `${asSentence(reason)} New files are still read and queued. A new key in the same place is used automatically.`,
  ] as const;

function describeOutage(gate: Down, now: number) {
  const next = gate.probeAt > now ? `Next attempt at ${formatClock(gate.probeAt, now)}.` : 'Trying again now.';
  return [
    `The notebook has been unavailable for ${outageOf(gate, now)}.`,
    `${asSentence(gate.reason)} ${next} New files are still read and queued.`,
  ] as const;
}

const outageOf = ({ since }: Down, now: number): string => formatDuration(Math.max(1000, now - since));

export function rateOf(perSecond: number): string {
  if (perSecond < 1) return `one request every ${formatDuration(1000 / perSecond)}`;
  const rounded = perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond);
  return `${rounded} ${rounded === 1 ? 'request' : 'requests'} per second`;
}

/** An instrument as the daemon and the journal know it; one of them may not know it. */
export interface InstrumentView {
  readonly name: string;
  readonly live: LiveInstrument | undefined;
  readonly summary: InstrumentSummary | undefined;
  readonly alarms: readonly LiveAlarm[];
  /** The same instrument on other machines of the fleet. */
  readonly places: readonly Place[];
}

/** Alarms that are not repeated on the instrument's card. */
const NOT_ON_CARD = ['quarantine', 'held', 'configuration'];

/** In the order of the configuration; those of other machines and those that only the journal knows come last. */
export function instrumentsOf({ live, overview }: PageState): InstrumentView[] {
  const elsewhere = placesElsewhere(live.fleet);
  const others = elsewhere.map(({ folder }) => folder.instrument).sort();
  const names = new Set([
    ...live.instruments.map(({ name }) => name),
    ...others,
    ...overview.instruments.map(({ name }) => name),
  ]);
  return [...names].map((name) => ({
    name,
    live: live.instruments.find((instrument) => instrument.name === name),
    summary: overview.instruments.find((instrument) => instrument.name === name),
    alarms: live.alarms.filter(({ instrument, kind }) => instrument === name && !NOT_ON_CARD.includes(kind)),
    places: elsewhere.filter(({ folder }) => folder.instrument === name),
  }));
}

/** How an instrument is: on this machine, and on the others that have it. A machine that is away counts as unknown. */
export function conditionOf({ live, places }: Pick<InstrumentView, 'live' | 'places'>): { tone: Tone; text: string } {
  const own = live && ownCondition(live);
  if (own && (own.tone !== 'ok' || places.length === 0)) return own;
  if (!own && places.length === 0) return { tone: 'warning', text: 'no longer configured' };
  const bad = places.find(
    ({ member, folder }) => !member.isAway && folder.state !== 'present' && folder.state !== 'unknown',
  );
  if (bad) {
    const what = bad.folder.state === 'stopped' ? 'stopped' : `folder ${bad.folder.state}`;
    return { tone: 'error', text: `${what} on ${bad.member.name}` };
  }
  const [total, away] = [places.length + (own ? 1 : 0), places.filter(({ member }) => member.isAway).length];
  if (away === total) return { tone: 'warning', text: away === 1 ? 'its machine is away' : 'its machines are away' };
  if (away > 0) return { tone: 'warning', text: `watching on ${total - away} of ${total} machines` };
  return own && total === 1 ? own : { tone: 'ok', text: total === 1 ? 'watching' : `watching on ${total} machines` };
}

function ownCondition(live: LiveInstrument): { tone: Tone; text: string } {
  if (live.line === 'stopped') return { tone: 'error', text: 'stopped' };
  if (live.folder.state === 'missing') return { tone: 'error', text: 'folder missing' };
  if (live.folder.state === 'unreadable') return { tone: 'error', text: 'folder unreadable' };
  return { tone: 'ok', text: live.line === 'starting' ? 'starting…' : 'watching' };
}

/** The last part of a path; paths may come from Windows. */
export const fileName = (path: string): string => path.split(/[\\/]/).at(-1) || path;

export const PLOT_DAYS = 30;

/** Runs per local day, ending today. Hours are counted since 1970; those without runs are absent. */
export function runsByDay(hours: InstrumentSummary['hours'], now: number) {
  const sums = new Map<string, number>();
  for (const { hour, runs } of hours) {
    const day = formatDay(hour * 3_600_000);
    sums.set(day, (sums.get(day) ?? 0) + runs);
  }
  const today = new Date(now);
  return Array.from({ length: PLOT_DAYS }, (_, index) => {
    const date = today.getDate() - (PLOT_DAYS - 1 - index);
    // Noon is on the right day even when the clocks change.
    const day = formatDay(new Date(today.getFullYear(), today.getMonth(), date, 12).getTime());
    return { day, runs: sums.get(day) ?? 0 };
  });
}
