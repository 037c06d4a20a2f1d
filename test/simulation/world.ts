import type { Dialect } from '../../src/model.js';
import { type FakeNotebook, fakeNotebook, type NotebookKind } from '../support/fake-notebook.js';
import { type Random, seeded } from '../support/random.js';
import type { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { createTimeline, type Timeline } from './timeline.js';

/** The state that outlives the processes of one history. */
export interface World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly database: ReusableDatabase;
  readonly notebook: FakeNotebook;
  readonly kind: KnownKind;
  readonly faults: Faults;
  /** How many write requests are in flight. */
  readonly network: { writes: number };
  readonly trace: Trace;
  /** How often each run was remapped; undefined in histories without remaps. */
  readonly remaps: Map<number, number> | undefined;
}

export type Trace = ((line: string) => void) | undefined;

type KnownKind = NotebookKind & { readonly dialect: Dialect };

const KINDS: readonly [KnownKind, ...KnownKind[]] = [
  { dialect: 'v2' },
  { dialect: 'elabftw' },
  { dialect: 'v2', keepsTitle: false },
];

export interface Faults {
  /** Share of the requests that fail. */
  ofRequests: number;
  /** Share of the journal's writes that fail. */
  ofWrites: number;
}

export function createWorld(seed: number, database: ReusableDatabase, trace: Trace, withRemaps: boolean): World {
  const random = seeded(seed);
  const timeline = createTimeline(random);
  const kind = KINDS[random.below(KINDS.length)] ?? KINDS[0];
  return {
    random,
    timeline,
    database,
    notebook: fakeNotebook(kind),
    kind,
    faults: { ofRequests: 0, ofWrites: 0 },
    network: { writes: 0 },
    remaps: withRemaps ? new Map() : undefined,
    trace: trace && ((line) => trace(`${Math.round(timeline.elapsedMs())} ${line}`)),
  };
}

/** The n-th run of a history and its draft. */
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

export const titleOf = (n: number, version: number): string => (version === 0 ? `run ${n}` : `run ${n}, ${version}`);

/** Each version has more or fewer comments, and some with other texts. */
export const commentsOf = (n: number, version: number): string[] =>
  Array.from({ length: (n + version) % 3 }, (_, c) =>
    version === 0 || (c + version) % 3 === 0 ? `comment ${c}` : `comment ${c}, ${version}`,
  );
