import { notebookSchema } from '../../src/config/schema.js';
import { createDelivery, type Delivery } from '../../src/delivery.js';
import type { Database } from '../../src/journal/database.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import { createLog } from '../../src/log.js';
import type { Dialect } from '../../src/model.js';
import { nobody } from '../../src/observer.js';
import { newRun, someDraft } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';
import {
  type SimulatedNotebook,
  type SimulationOptions,
  simulatedNotebook,
} from '../support/simulated-notebook.js';
import { type Faults, faultyNotebook, TIMEOUT_MS } from './faulty-notebook.js';
import { type Random, seeded } from './random.js';
import { ReusableDatabase } from './reusable-database.js';
import { createTimeline, type Life, type Timeline } from './timeline.js';

const SERVER = 'https://eln.example.org';
const SETTINGS = notebookSchema.parse({
  url: SERVER,
  key: { env: 'KEY' },
  rate: '100/s',
  timeout: `${TIMEOUT_MS}ms`,
});
const LOG = process.env['LABFEED_TRACE'] ? createLog({ level: 'debug', pretty: false }).log : silentLog();
type Kind = SimulationOptions & { readonly dialect: Dialect };
const KINDS: readonly [Kind, ...Kind[]] = [
  { dialect: 'v2' },
  { dialect: 'elabftw' },
  { dialect: 'v2', keepsTitle: false },
];
const MOST_STEPS = 40_000;

interface World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly database: Database;
  readonly notebook: SimulatedNotebook;
  readonly faults: Faults;
  readonly kind: Kind;
  readonly seed: number;
}

/** What other people did, which must stay as they left it. */
interface People {
  /** Entries of their own, by id. */
  readonly own: Map<number, string>;
  /** Entries of ours that they changed. */
  readonly edited: Set<number>;
  /** Runs whose entry they deleted, by title. */
  readonly deleted: Set<string>;
}

/**
 * One history: the delivery core and the journal as they are, against a simulated notebook, under faults, crashes and
 * schedules that the seed chooses. Throws where a run is not filed exactly once, or somebody else's entry was touched.
 */
export function createSimulation(): { simulate(seed: number): Promise<void>; close(): void } {
  const database = new ReusableDatabase();
  return {
    simulate(seed) {
      database.empty();
      return simulate(seed, database);
    },
    close: () => database.close(),
  };
}

async function simulate(seed: number, database: Database): Promise<void> {
  const random = seeded(seed);
  const timeline = createTimeline(random);
  const kind = KINDS[random.below(KINDS.length)] ?? KINDS[0];
  const world: World = {
    random,
    timeline,
    database,
    notebook: simulatedNotebook(kind),
    faults: { rate: random.next() * 0.4 },
    kind,
    seed,
  };
  const people: People = { own: new Map(), edited: new Set(), deleted: new Set() };
  const runs = 1 + random.below(5);
  let daemon = startDaemon(world);
  const crashes = random.below(4);
  for (let n = 0; n < runs; n++) await daemon.add(n);
  for (let n = 0; n < crashes; n++) {
    for (let steps = random.below(60); steps > 0; steps--) await timeline.step();
    if (random.chance(0.3)) createByHand(world, people);
    daemon.life.kill();
    // A restart takes its time, and the server goes on meanwhile.
    for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
    if (random.chance(0.3)) {
      // Nobody can tell a change that comes between our look and our PATCH; so they work while nothing is under way.
      while (await timeline.step());
      changeOurs(world, people);
    }
    daemon = startDaemon(world);
  }
  await settle(world, daemon, runs);
  // What is left over of a first creation that was lost is used up by runs that come later.
  let all = runs;
  while (leftOver(database)) {
    await daemon.add(all);
    all += 1;
    await settle(world, daemon, all);
  }
  examine(world, people, all);
}

const leftOver = (database: Database): boolean =>
  database.prepare('SELECT 1 FROM spares UNION SELECT 1 FROM servers WHERE sweep IS NOT NULL').get() !==
  undefined;

interface SimulatedDaemon {
  readonly life: Life;
  readonly journal: Journal;
  readonly delivery: Delivery;
  add(n: number): Promise<void>;
}

function startDaemon({ timeline, random, database, notebook, faults, kind }: World): SimulatedDaemon {
  const life = timeline.process();
  const journal = createJournal({
    database,
    clock: life.clock,
    release: () => undefined,
    schedule: (flush) => life.at(0, flush),
  });
  const delivery = createDelivery({
    notebook: {
      ...SETTINGS,
      concurrency: 1 + random.below(4),
      dialect: random.chance(0.5) ? 'auto' : kind.dialect,
    },
    instruments: ['balance'],
    journal,
    connect: (admit) => faultyNotebook(notebook, admit, timeline, life, random, faults),
    clock: life.clock,
    log: LOG,
    observer: nobody,
    random: random.next,
  });
  if (process.env['LABFEED_TRACE']) console.log(Math.round(timeline.now()), 'process starts');
  delivery.start();
  return {
    life,
    journal,
    delivery,
    async add(n) {
      const added = journal.runs.add(
        newRun(`run ${n}`),
        someDraft(
          `run ${n}`,
          Array.from({ length: n % 3 }, (_, c) => `comment ${c}`),
        ),
      );
      while (!(await Promise.race([added.then(() => true), timeline.step().then(() => false)])));
      delivery.ring();
    },
  };
}

/** Somebody else works in the same notebook. */
function createByHand({ notebook, random }: World, people: People): void {
  const title = random.chance(0.5) ? 'Untitled' : 'their work';
  people.own.set(notebook.someoneCreates(title, 2), title);
}

/** Somebody edits or deletes an entry that labfeed knows to be its own. */
function changeOurs({ notebook, database, random }: World, people: People): void {
  const rows = database
    .prepare('SELECT experiment, title FROM runs JOIN drafts ON run = id WHERE experiment IS NOT NULL')
    .all() as { experiment: number; title: string }[];
  const chosen = rows[random.below(rows.length)];
  const entry = chosen && notebook.experiments.get(chosen.experiment);
  if (!chosen || !entry) return;
  if (random.chance(0.5)) {
    Object.assign(entry, { title: 'edited by hand', body: 'mine' });
    people.edited.add(chosen.experiment);
  } else {
    notebook.experiments.delete(chosen.experiment);
    people.edited.delete(chosen.experiment);
    people.deleted.add(chosen.title);
  }
}

/** The faults end, and time passes until nothing is left to do. */
async function settle(
  { timeline, faults, seed }: World,
  { journal, delivery }: SimulatedDaemon,
  runs: number,
): Promise<void> {
  faults.rate = 0;
  delivery.ring();
  for (let step = 0; step < MOST_STEPS; step++) {
    // Counting costs more than a step.
    const counts = step % 8 === 0 ? await journal.runs.count() : {};
    if ((counts['done'] ?? 0) + (counts['held'] ?? 0) + (counts['quarantined'] ?? 0) >= runs) return;
    if (!(await timeline.step())) break;
  }
  throw new Error(`seed ${seed}: not all runs came to an end: ${JSON.stringify(await journal.runs.count())}`);
}

function examine({ notebook, database, seed }: World, people: People, runs: number): void {
  const fail = (what: string): never => {
    const held = database.prepare('SELECT id, reason FROM runs WHERE resting IS NOT NULL').all();
    throw new Error(
      `seed ${seed}: ${what}\n${JSON.stringify([...notebook.experiments].map(([id, { title, comments }]) => [id, title, comments.size]))}\n${JSON.stringify(held)}`,
    );
  };
  for (const [id, title] of people.own) {
    const now = notebook.experiments.get(id);
    if (now?.title !== title || now.comments.size > 0 || now.body !== '')
      fail(`somebody else's entry ${id} was touched`);
  }
  for (const id of people.edited) {
    const now = notebook.experiments.get(id);
    if (now?.title !== 'edited by hand' || now.body !== 'mine')
      fail(`what somebody changed by hand in ${id} was overwritten`);
  }
  const ours = [...notebook.experiments]
    .filter(([id]) => !people.own.has(id))
    .map(([, experiment]) => experiment);
  const changed = new Set([...people.edited].map((id) => titleOf(database, id)));
  for (let n = 0; n < runs; n++) {
    if (changed.has(`run ${n}`)) continue;
    if (people.deleted.has(`run ${n}`)) {
      if (ours.some(({ title }) => title === `run ${n}`))
        fail(`run ${n} was made again although somebody deleted it`);
      continue;
    }
    const filed = ours.filter(({ title }) => title === `run ${n}`);
    if (filed.length !== 1) fail(`run ${n} is filed ${filed.length} times`);
    const texts = [...(filed[0]?.comments.values() ?? [])].map((text) => text.split('\n')[0]);
    const wanted = Array.from({ length: n % 3 }, (_, c) => `comment ${c}`);
    if (JSON.stringify(texts) !== JSON.stringify(wanted))
      fail(`run ${n} has the comments ${JSON.stringify(texts)}`);
    if (!filed[0]?.tags.includes('balance')) fail(`run ${n} lacks its tags`);
  }
  if (ours.length !== runs - people.deleted.size) fail(`${ours.length} experiments for ${runs} runs`);
}

const titleOf = (database: Database, experiment: number): string =>
  (
    database
      .prepare('SELECT title FROM runs JOIN drafts ON run = id WHERE experiment = ?')
      .get(experiment) as { title: string }
  ).title;
