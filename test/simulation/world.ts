import type { Database } from '../../src/journal/database.js';
import type { Dialect } from '../../src/model.js';
import { type Random, seeded } from '../support/random.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import {
  type SimulatedNotebook,
  type SimulationOptions,
  simulatedNotebook,
} from '../support/simulated-notebook.js';
import { createTimeline, type Timeline } from './timeline.js';

/** What outlives the processes of one history. */
export interface World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly database: Database;
  readonly notebook: SimulatedNotebook;
  readonly kind: NotebookKind;
  readonly faults: Faults;
  /** How many requests that write are under way. */
  readonly wire: { writing: number };
  readonly trace: Trace;
  /** How often the file of each run was to be read otherwise, in histories in which people have runs redone. */
  readonly redone: Map<number, number> | undefined;
}

export type Trace = ((line: string) => void) | undefined;

type NotebookKind = SimulationOptions & { readonly dialect: Dialect };

const KINDS: readonly [NotebookKind, ...NotebookKind[]] = [
  { dialect: 'v2' },
  { dialect: 'elabftw' },
  { dialect: 'v2', keepsTitle: false },
];

export interface Faults {
  /** Share of the requests that meet one. */
  ofRequests: number;
  /** Share of the journal's writes that fail. */
  ofWrites: number;
}

export function createWorld(seed: number, database: Database, trace: Trace, redoes: boolean): World {
  const random = seeded(seed);
  const timeline = createTimeline(random);
  const kind = KINDS[random.below(KINDS.length)] ?? KINDS[0];
  return {
    random,
    timeline,
    database,
    notebook: simulatedNotebook(kind),
    kind,
    faults: { ofRequests: 0, ofWrites: 0 },
    wire: { writing: 0 },
    redone: redoes ? new Map() : undefined,
    trace: trace && ((line) => trace(`${Math.round(timeline.elapsedMs())} ${line}`)),
  };
}

/** The n-th run of a history, as it enters the journal and as the notebook is to hold it. */
export function runOf(n: number, version = 0) {
  const name = `run ${n}`;
  const origin = `<p>labfeed balance ${name}.csv sha256:${sha256(name)}</p>`;
  const draft = { ...someDraft(name, commentsOf(n, version)), body: `<p>${name}</p>${origin}` };
  const again = {
    title: titleOf(n, version),
    date: `2026-01-0${2 + (version % 2)}`,
    body: version % 3 === 0 ? draft.body : `<p>${titleOf(n, version)}</p>${origin}`,
    tags: ['balance', `version ${version}`],
  };
  return { run: newRun(name), draft: version === 0 ? draft : { ...draft, ...again } };
}

export const titleOf = (n: number, version: number): string =>
  version === 0 ? `run ${n}` : `run ${n}, ${version}`;

/** Under another reading there are more or fewer of them, and some read otherwise. */
export const commentsOf = (n: number, version: number): string[] =>
  Array.from({ length: (n + version) % 3 }, (_, c) =>
    version === 0 || (c + version) % 3 === 0 ? `comment ${c}` : `comment ${c}, ${version}`,
  );
