import { describe, expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { watchArrivals } from '../support/arrivals.js';
import { weighing } from '../support/daemon-process.js';
import { makeFleet } from '../support/fleet-site.js';
import { noPostgres } from '../support/postgres.js';
import { seeded } from '../support/random.js';
import { DIALECTS } from '../support/sandbox.js';
import { until } from '../support/until.js';
import { type FleetLab, type FleetPc, openFleetLab } from './fleet-lab.js';
import type { Lab } from './lab.js';
import { lastRequests, verify } from './verify.js';

/** LABFEED_SEED=n repeats the random choices, but not the timing of the machine. */
const SEED = Number(process.env['LABFEED_SEED'] ?? Date.now() % 1_000_000);

/** How many things go wrong: about one every four seconds. */
const ROUNDS = Number(process.env['LABFEED_ROUNDS'] ?? 6);

const seconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count * 1000));

/** Later, while other things happen. */
function after(lab: FleetLab, count: number, act: () => unknown): void {
  lab.pending.push(seconds(count).then(act));
}

const anyOf = ({ pcs, random }: FleetLab): FleetPc => pcs[random.below(pcs.length)] as FleetPc;

/** What can happen to a fleet. Each ends by itself. */
const EVENTS: Readonly<Record<string, (lab: FleetLab) => Promise<string> | string>> = {
  async killLeader(lab) {
    const pc = await lab.leader();
    await pc.kill();
    after(lab, lab.random.below(20), () => pc.start());
    return pc.name;
  },
  async killAny(lab) {
    const pc = anyOf(lab);
    await pc.kill();
    after(lab, lab.random.below(5), () => pc.start());
    return pc.name;
  },
  /** Beyond the lease, so that another member leads when it wakes up. */
  async pauseLeader(lab) {
    const pc = await lab.leader();
    const { daemon } = pc;
    daemon?.child.kill('SIGSTOP');
    after(lab, 17 + lab.random.below(8), () => daemon?.child.kill('SIGCONT'));
    return pc.name;
  },
  cutFromDatabase: (lab) => cut(lab, 'database'),
  cutFromNotebook: (lab) => cut(lab, 'notebook'),
  async restartDatabase(lab) {
    await lab.restartDatabase(lab.random.below(4000));
    return '';
  },
  async failOver(lab) {
    await lab.failOver();
    return '';
  },
  async restartNotebook({ site, random }) {
    await site.notebook.stop();
    await seconds(random.below(4));
    await site.notebook.start();
    return '';
  },
  loseAnswer({ site, random }) {
    const faults = ['cutBefore', 'cutAfter', { cutThen: { ms: random.below(500) } }] as const;
    const fault = faults[random.below(faults.length)] ?? 'cutAfter';
    site.notebook.control.plan(fault, { when: ({ method }) => method !== 'GET', skip: random.below(3) });
    return '';
  },
};

async function cut(lab: FleetLab, from: 'database' | 'notebook'): Promise<string> {
  const { random } = lab;
  const pc = random.chance(0.7) ? await lab.leader() : anyOf(lab);
  const how = random.chance(0.5) ? 'drop' : 'reset';
  pc.links[from].cut(how);
  after(lab, 2 + random.below(20), () => pc.links[from].heal());
  return `${pc.name}, ${how}`;
}

/** More than two grace periods of eLabFTW, on a busy machine. */
const SETTLED_WITHIN_MS = 400_000;

async function survive(dialect: Dialect): Promise<void> {
  console.log(`chaos in a fleet on ${dialect}: LABFEED_SEED=${SEED} LABFEED_ROUNDS=${ROUNDS}`);
  const lab = await openFleetLab(dialect, seeded(SEED));
  const { random, pcs, story, site } = lab;
  try {
    for (const pc of pcs) pc.start();
    await until('a member delivers', () => pcs.some(({ daemon }) => hasLed(daemon?.output())), 180_000);
    let deck: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (let n = 1 + random.below(4); n > 0; n--) lab.drop();
      await seconds(random.next() * 2);
      if (deck.length === 0) deck = Object.keys(EVENTS);
      const [name = ''] = deck.splice(random.below(deck.length), 1);
      story.push(`${round}: ${name} ${await EVENTS[name]?.(lab)}`);
      await seconds(random.next() * 5);
    }
    await Promise.all(lab.pending);
    for (const pc of pcs) {
      pc.start();
      for (const link of Object.values(pc.links)) link.heal();
    }
    lab.drop();
    await settle(lab, dialect);
    await verify(asLab(lab, dialect));
    // One that was started a moment ago cannot stop cleanly yet.
    await Promise.all(pcs.map((pc) => pc.start().logged('ready', 180_000)));
    await Promise.all(pcs.map((pc) => pc.stop()));
  } catch (error) {
    const entries = site.notebook.control
      .experiments()
      .map(
        ({ id, title, comments, uploads }) => `${id} ${title}, ${comments.length} comments, ${uploads.length} files`,
      );
    const logs = pcs.map((pc) => `${pc.name}:\n${interesting(pc.output + (pc.daemon?.output() ?? ''))}`);
    console.log([...story, ...entries, ...lastRequests(site.notebook.control), ...logs].join('\n'));
    throw error;
  }
}

const hasLed = (output = ''): boolean => output.includes('delivering for the fleet');

const interesting = (output: string): string =>
  output
    .split('\n')
    .filter((line) => /"level":(40|50)|the fleet/.test(line))
    .slice(-25)
    .join('\n');

/** Until every run has its comment and, on eLabFTW, its file. */
const settle = ({ titles, site }: FleetLab, dialect: Dialect): Promise<void> =>
  until(
    'all runs are filed',
    async () => {
      await seconds(0.5);
      const complete = site.notebook.control
        .experiments()
        .filter(({ comments, uploads }) => comments.length > 0 && (dialect === 'v2' || uploads.length > 0));
      const filed = new Set(complete.map(({ title }) => title));
      return titles.every((title) => filed.has(title));
    },
    SETTLED_WITHIN_MS,
  );

/** As `verify` expects it: the runs of all, and no empty experiment is left. */
const asLab = ({ site, titles, story, random }: FleetLab, dialect: Dialect): Lab => {
  const people = { created: new Map(), unreadable: new Set<number>(), hidden: new Set<number>() };
  const all = { titles, poisoned: [], revised: new Map(), json: async () => ({ findings: [] }) };
  return {
    ...{ dialect, random, control: site.notebook.control, story, saved: undefined, isFleet: true },
    ...{ disputed: new Set<string>(), withoutComments: new Set<number>() },
    people: { ...people, edited: new Map(), deleted: new Set() },
    pcs: [all] as unknown as Lab['pcs'],
    save: async () => undefined,
    restore: async () => undefined,
  };
};

describe.skipIf(noPostgres)('a fleet', () => {
  for (const dialect of DIALECTS)
    test(`on ${dialect}, among ${ROUNDS} failures of members, database, network and notebook, each run is filed once`, async () => {
      await survive(dialect);
    }, 900_000);

  const CEILING = 10;
  for (const members of [1, 4, 16])
    test(`${members} members together keep a ceiling of ${CEILING} per second, also while another one takes over`, async () => {
      const fleet = await makeFleet('v2', '5s');
      const fullestSecond = watchArrivals(fleet.notebook.control);
      const options = { role: 'all' as const, rate: `${CEILING}/s` };
      const pcs = Array.from({ length: members }, (_, n) => fleet.member(`pc${n}`, options));
      const daemons = pcs.map((pc) => pc.start());
      onTestFinished(() => void daemons.map(({ child }) => child.kill('SIGKILL')));
      const runs = 40;
      for (let n = 0; n < runs; n++) pcs[n % members]?.drop(`r${n}.csv`, weighing(n));
      const filed = () => fleet.notebook.control.experiments().filter(({ comments }) => comments.length > 0).length;
      await until('a third is filed', () => filed() > runs / 3, 200_000);
      // The one that leads stops, and another one, or the same again, continues at once.
      const leader = daemons.findIndex(({ lines }) => lines.some(({ msg }) => msg === 'delivering for the fleet'));
      await daemons[leader]?.stop();
      daemons.push(...(pcs[leader] ? [pcs[leader].start()] : []));
      await until('all are filed', () => filed() === runs, 180_000);
      const fullest = fullestSecond();
      console.log(`${members} members, ceiling of ${CEILING}/s: at most ${fullest} in a second`);
      expect(fullest).toBeLessThanOrEqual(CEILING);
    });
});
