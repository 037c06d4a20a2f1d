import type { LiveAlarm } from '../../live.js';
import type { PageState } from '../api.js';
import { count, duration, listed, plural } from './words.js';

/** How much it matters: nothing to do, a person should look soon, or it does not work. */
export type Tone = 'well' | 'look' | 'broken';

export interface Health {
  readonly tone: Tone;
  /** The one sentence that is read from two metres. */
  readonly sentence: string;
  /** What else is wrong. */
  readonly also: readonly string[];
}

interface Finding {
  readonly tone: Exclude<Tone, 'well'>;
  readonly text: string;
}

/** All of it in one sentence; the worst comes first. */
export function healthOf(state: PageState, now: number): Health {
  const [worst, ...others] = [
    ...journalFindings(state),
    ...notebookFindings(state, now),
    ...configFindings(state),
    ...peopleFindings(state),
    ...alarmFindings(state),
  ];
  if (worst) return { tone: worst.tone, sentence: worst.text, also: others.map(({ text }) => text) };
  return { tone: 'well', sentence: allIsWell(state), also: [] };
}

export interface Totals {
  readonly done: number;
  /** Runs that are on their way to the notebook. */
  readonly onTheWay: number;
  /** Files that are not still yet. */
  readonly notStill: number;
  /** Instruments with a question about old files. */
  readonly questions: number;
  /** When the run was added that has waited longest. */
  readonly oldestAt: number | undefined;
}

export function totalsOf({ overview, live }: PageState): Totals {
  const sum = (of: (n: (typeof overview.instruments)[number]) => number): number =>
    overview.instruments.reduce((all, instrument) => all + of(instrument), 0);
  const oldest = overview.instruments.flatMap(({ oldestAt }) => oldestAt ?? []);
  return {
    done: sum(({ runs }) => runs.done),
    onTheWay: sum(({ runs }) => runs.queued + runs.sending),
    notStill: live.instruments.reduce((all, { waiting }) => all + waiting.files, 0),
    questions: overview.instruments.filter(({ asked }) => asked > 0).length,
    oldestAt: oldest.length === 0 ? undefined : Math.min(...oldest),
  };
}

function allIsWell(state: PageState): string {
  const { done, onTheWay, notStill } = totalsOf(state);
  const folders = plural(state.live.instruments.length, 'folder');
  if (state.live.instruments.length === 0) return 'Ready, but no instrument is configured yet';
  if (done + onTheWay === 0) return `All is well: watching ${folders}, no runs yet`;
  const waiting = onTheWay + notStill === 0 ? 'none waiting' : `${count(onTheWay + notStill)} on the way`;
  return `All is well: ${plural(done, 'run')} filed, ${waiting}`;
}

function journalFindings({ live, overview }: PageState): Finding[] {
  const alarms = live.alarms.filter(({ kind }) => kind === 'journal');
  return [
    ...alarms.map(({ text }): Finding => ({ tone: 'broken', text })),
    ...overview.servers.flatMap(({ halted }): Finding[] =>
      halted === undefined
        ? []
        : [{ tone: 'broken', text: `Nothing is sent until labfeed recover was run: ${halted}` }],
    ),
  ];
}

function notebookFindings(state: PageState, now: number): Finding[] {
  const { gate } = state.live.notebook;
  if (gate.kind !== 'down') return [];
  const { onTheWay } = totalsOf(state);
  const waiting =
    onTheWay === 0 ? 'no run waits' : `${plural(onTheWay, 'run waits', 'runs wait')}, nothing is lost`;
  if (gate.failure === 'auth') return [{ tone: 'broken', text: `The notebook refuses the key; ${waiting}` }];
  return [{ tone: 'look', text: `The notebook has been away for ${duration(now - gate.since)}; ${waiting}` }];
}

function configFindings({ live }: PageState): Finding[] {
  const stopped = live.instruments.filter(({ line }) => line === 'stopped').map(({ name }) => name);
  const mistakes = live.problems.length;
  if (stopped.length > 0) {
    const who = stopped.length > 3 ? plural(stopped.length, 'instrument') : listed(stopped);
    const text = `${who} ${stopped.length === 1 ? 'is' : 'are'} stopped by a mistake in the configuration`;
    return [{ tone: 'broken', text }];
  }
  if (mistakes > 0) return [{ tone: 'look', text: `The configuration has ${plural(mistakes, 'mistake')}` }];
  return live.refused
    ? [{ tone: 'look', text: 'The new configuration was refused; the old one goes on' }]
    : [];
}

function peopleFindings(state: PageState): Finding[] {
  const { questions } = totalsOf(state);
  const runs = state.attentionCount;
  if (runs + questions === 0) return [];
  const parts = [
    ...(runs > 0 ? [plural(runs, 'run')] : []),
    ...(questions > 0 ? [plural(questions, 'question about old files', 'questions about old files')] : []),
  ];
  return [{ tone: 'look', text: `${listed(parts)} ${runs + questions === 1 ? 'needs' : 'need'} you` }];
}

/** What is told elsewhere on the page: by the gate, by the list of runs, by the configuration's mistakes. */
const TOLD: ReadonlySet<LiveAlarm['kind']> = new Set([
  'journal',
  'outage',
  'auth',
  'configuration',
  'quarantine',
  'held',
]);

function alarmFindings({ live }: PageState): Finding[] {
  return live.alarms
    .filter(({ kind }) => !TOLD.has(kind))
    .map(({ kind, text }) => ({ tone: kind === 'folder' ? 'broken' : 'look', text }));
}
