import type { Database } from '../../src/journal/database.js';
import type { Dialect } from '../../src/model.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import {
  type SimulatedNotebook,
  type SimulationOptions,
  simulatedNotebook,
} from '../support/simulated-notebook.js';
import { type Random, seeded } from './random.js';
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

export function createWorld(seed: number, database: Database, trace: Trace): World {
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
    trace: trace && ((line) => trace(`${Math.round(timeline.elapsedMs())} ${line}`)),
  };
}

/** The n-th run of a history, as it enters the journal and as the notebook is to hold it. */
export function runOf(n: number) {
  const title = `run ${n}`;
  const comments = Array.from({ length: n % 3 }, (_, c) => `comment ${c}`);
  const body = `<p>${title}</p><p>labfeed balance ${title}.csv sha256:${sha256(title)}</p>`;
  return { run: newRun(title), draft: { ...someDraft(title, comments), body } };
}
