import type { NotebookError } from '../../src/errors.js';
import type { Note } from '../../src/journal/journal.js';
import { originLine } from '../../src/markers.js';
import type { Dialect } from '../../src/model.js';
import type { NewAttachment } from '../../src/uploads.js';
import { type FakeNotebook, type FakeRequest, fakeNotebook, type NotebookKind } from '../support/fake-notebook.js';
import { type Random, seeded } from '../support/random.js';
import type { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { chooseEvents, type Events } from './events.js';
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
  /** How often each run was remapped, or its file changed; undefined in histories without either. */
  readonly remaps: Map<number, number> | undefined;
  /** Runs whose files have changed and were not read since; undefined in histories without versions. */
  readonly changedFiles: Set<number> | undefined;
  /** Whether the raw files of runs are attached. */
  readonly withFiles: boolean;
  readonly events: Events;
  readonly conditions: Set<Condition>;
  /** The PC whose journal this is. */
  readonly pc: Pc;
  /** When the last passing condition ends. */
  calmAt: number;
  /** The run that the server never accepts. */
  poisoned: number | undefined;
  /** Gives the server an older state. */
  restore: (() => void) | undefined;
  /** Whether it was given to it. */
  isRestored: boolean;
  /** Whether titles are dropped, and somebody else creates experiments with our account. The journal knows it. */
  isShared: boolean;
  /** Whether a sync of the journal may fail. */
  canFailSync: boolean;
  /** The last note in the file beside the journal. */
  note: Note | undefined;
  /** How many transactions the journal had before that note. */
  writtenBeforeNote: number;
  /** Whether the journal was removed or replaced by an older copy. */
  isLost: boolean;
  /** Whether the note beside it was left then. */
  hadNote: boolean;
}

/** A PC that runs labfeed. */
export interface Pc {
  /** Its runs are called so. */
  readonly runs: string;
  /** The id of its journal. */
  readonly journal: string;
  /** Its account in the notebook. */
  readonly userid: number;
}

const FIRST_PC: Pc = { runs: 'run', journal: '11111111', userid: 1 };

/** A state of the server in which it refuses certain requests. */
export interface Condition {
  /** How it answers this request instead of carrying it out; undefined if it is not concerned. */
  answer(request: FakeRequest): Refusal | undefined;
}

export interface Refusal {
  readonly error: NotebookError;
  /** The client waits in vain until its timeout. */
  readonly isSilent?: boolean;
  /** The server carries the request out nevertheless. */
  readonly isDone?: boolean;
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

/** Few ids below the first experiment, since each that is missing there costs a request when a creation without a floor is looked for. */
const LAST_ID = 5;

/** What a history contains besides its events. */
export interface Content {
  /** Users request remaps of done runs, and change comments. */
  readonly withRemaps?: boolean;
  /** Instead of that, files change, and their experiments are updated. */
  readonly withVersions?: boolean;
  /** Runs have raw files, which are attached. */
  readonly withFiles?: boolean;
  /** Only these events can happen. */
  readonly events?: readonly string[];
}

export function createWorld(
  seed: number,
  database: ReusableDatabase,
  trace: Trace,
  { withRemaps = false, withVersions = false, withFiles = false, events: allowed }: Content,
): World {
  const random = seeded(seed);
  const timeline = createTimeline(random);
  const chosen = KINDS[random.below(KINDS.length)] ?? KINDS[0];
  const kind = withFiles ? { dialect: 'elabftw' as const } : chosen;
  // What a lost journal and a restored server know of versions is tested elsewhere.
  const isExcluded = (name: string): boolean =>
    (withVersions && ['lost', 'restored', 'poison'].includes(name)) || allowed?.includes(name) === false;
  const events = new Map([...chooseEvents(seed)].filter(([name]) => !isExcluded(name)));
  return {
    random,
    timeline,
    database,
    notebook: fakeNotebook(kind, LAST_ID),
    kind,
    faults: { ofRequests: 0, ofWrites: 0 },
    network: { writes: 0 },
    remaps: withRemaps || withVersions ? new Map() : undefined,
    changedFiles: withVersions ? new Set() : undefined,
    withFiles,
    events,
    conditions: new Set(),
    pc: FIRST_PC,
    calmAt: 0,
    poisoned: undefined,
    restore: undefined,
    isRestored: false,
    isShared: kind.keepsTitle === false && events.has('shared'),
    canFailSync: false,
    note: undefined,
    writtenBeforeNote: 0,
    isLost: false,
    hadNote: true,
    trace: trace && ((line) => trace(`${Math.round(timeline.elapsedMs())} ${line}`)),
  };
}

/** Until its first creation was read back, nobody can tell our blank experiment from another person's. */
export const knowsTitles = ({ database }: World): boolean =>
  database.prepare('SELECT 1 FROM servers WHERE keeps_title IS NOT NULL').get() !== undefined;

const contents = new Map<string, string>();
export const contentOf = (hash: string): string => contents.get(hash) ?? '';

const made = new Map<string, ReturnType<typeof makeRun>>();

/** The n-th run of a PC and its draft. They are the same in every history, and hashes take time. */
export function runOf(n: number, version = 0, pc: Pc = FIRST_PC, isFile = false): ReturnType<typeof makeRun> {
  const shown = isFile ? version % VERSIONS : version;
  const title = titleOf(n, shown, pc);
  const key = isFile ? `${title} as a file` : title;
  const run = made.get(key) ?? makeRun(n, shown, pc, isFile);
  made.set(key, run);
  return run;
}

/** A file that has changed this often is as it was at first, and so is its draft. */
export const VERSIONS = 4;

/** `isFile`: versions have different content. */
function makeRun(n: number, version: number, pc: Pc, isFile: boolean) {
  const name = titleOf(n, 0, pc);
  const content = isFile ? titleOf(n, version, pc) : name;
  contents.set(sha256(content), content);
  const origin = originLine({ label: `balance ${name}.csv`, sha256: sha256(content), journal: pc.journal });
  const draft = { ...someDraft(name, commentsOf(n, version)), body: `<p>${name}</p><p>${origin}</p>` };
  const title = titleOf(n, version, pc);
  const again = {
    title,
    date: `2026-01-0${2 + (version % 2)}`,
    body: version % 3 === 0 ? draft.body : `<p>${title}</p><p>${origin}</p>`,
    tags: ['balance', `version ${version}`],
  };
  const run = newRun(content, { path: `/data/${name}.csv`, ...(isFile && { revises: { last: undefined } }) });
  return { run, draft: version === 0 ? draft : { ...draft, ...again } };
}

/** The raw file of a run. Its content is the run's name, and that of a version its title. */
export function rawFileOf(n: number, pc: Pc, version = 0, isFile = false): NewAttachment {
  const { file } = runOf(n, version, pc, isFile).run;
  return { name: `${titleOf(n, 0, pc)}.csv`, path: file.path, sha256: file.sha256, size: file.size };
}

const COMMON = 'settings of the instrument';
contents.set(sha256(COMMON), COMMON);

/** A second file, which every run of a fleet has: the database keeps its content until no run needs it any more. */
export const COMMON_FILE: NewAttachment = {
  name: 'settings.txt',
  path: '/data/settings.txt',
  sha256: sha256(COMMON),
  size: COMMON.length,
};

/** The fingerprint of the poisoned run, which tells it from runs of a second PC that `recover` took in; empty if there is none. */
export const poisonedFile = ({ poisoned, pc }: World): string =>
  poisoned === undefined ? '' : runOf(poisoned, 0, pc).run.file.sha256;

export const titleOf = (n: number, version: number, { runs }: Pc = FIRST_PC): string =>
  version === 0 ? `${runs} ${n}` : `${runs} ${n}, ${version}`;

/** Each version has more or fewer comments, and some with other texts. */
export const commentsOf = (n: number, version: number): string[] =>
  Array.from({ length: (n + version) % 3 }, (_, c) =>
    version === 0 || (c + version) % 3 === 0 ? `comment ${c}` : `comment ${c}, ${version}`,
  );
