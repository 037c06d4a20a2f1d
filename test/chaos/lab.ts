import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Job } from '../../src/journal/jobs.js';
import { openReader } from '../../src/journal/reader.js';
import { readLive } from '../../src/live.js';
import type { Dialect } from '../../src/model.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { type Ended, labfeed } from '../support/labfeed.js';
import type { Random } from '../support/random.js';
import { type Control, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/** One notebook, two PCs with an instrument of the same name, and other people. */
export interface Lab {
  readonly dialect: Dialect;
  readonly random: Random;
  readonly control: Control;
  readonly pcs: readonly [Pc, Pc];
  people: People;
  /** What happened so far, for the report of a failure. */
  readonly story: string[];
  /** An older state of the notebook that can be put back. */
  saved: { readonly people: People } | undefined;
  /** Runs whose experiments people changed or deleted before the server or a journal was restored: all is allowed but filing them twice. */
  readonly disputed: Set<string>;
  /** Whether session keys are created and deleted. */
  readonly isFleet?: boolean;
  /** Experiments that `recover` listed as without comments. */
  readonly withoutComments: Set<number>;
  save(): Promise<void>;
  restore(): Promise<void>;
}

/** What people did in the notebook. */
interface People {
  /** Their own experiments, with their titles. */
  readonly created: Map<number, string>;
  /** Those of them that the server fails to show, and those that only their owner may read. */
  readonly unreadable: Set<number>;
  readonly hidden: Set<number>;
  /** Our experiments that they edited, and the titles of all that they edited or deleted. */
  readonly edited: Map<number, string>;
  readonly deleted: Set<string>;
}

const copyOf = (people: People): People => structuredClone(people);

/** A PC with its own journal. Its runs are named after it. */
export class Pc {
  readonly name: string;
  readonly site: Site;
  /** Titles of its runs: all but those of `poisoned`, whose PATCH always fails. */
  readonly titles: string[] = [];
  readonly poisoned: string[] = [];
  /** The files that have changed, by title, with the fingerprint of their content. */
  readonly revised = new Map<string, string>();
  daemon: DaemonProcess | undefined;

  constructor(name: string, site: Site) {
    this.name = name;
    this.site = site;
  }

  start(): DaemonProcess {
    this.daemon ??= startDaemon(this.site.config, {
      NODE_OPTIONS: `--import=${JUMPING_CLOCK}`,
      LABFEED_TEST_CLOCK: join(this.site.folder, 'clock'),
    });
    return this.daemon;
  }

  async kill(): Promise<void> {
    await this.daemon?.kill();
    this.daemon = undefined;
  }

  async stop(): Promise<void> {
    const daemon = this.daemon;
    this.daemon = undefined;
    if (daemon && (await daemon.stop()) !== 0) throw new Error(`the daemon did not stop cleanly:\n${daemon.output()}`);
  }

  setClock(offsetMs: number): void {
    writeFileSync(join(this.site.folder, 'clock'), String(offsetMs));
  }

  drop(): void {
    this.#write(`${this.name}${this.titles.length}`, this.titles.length, this.titles);
  }

  /** A file whose PATCH the server never accepts. */
  dropPoisoned(kind: string): void {
    this.#write(`bad-${kind}-${this.name}`, 50_000 + this.poisoned.length, this.poisoned);
  }

  /** Changes one of its files from this one on, or changes it back. */
  revise(from: number, random: Random): void {
    const n = from + random.below(this.titles.length - from);
    if (this.titles[n] === undefined) return;
    const content = this.#content(random.chance(0.3) ? n : 1_000_000 + this.#revisions++);
    this.site.drop(`${this.name}${n}.csv`, content);
    this.revised.set(titleOf(`${this.name}${n}`), createHash('sha256').update(content).digest('hex'));
  }

  #revisions = 0;

  // Different on each PC: the same content would be the same run.
  #content = (n: number): string => weighing(this.name === 'one' ? n : 2_000_000 + n);

  #write(stem: string, n: number, titles: string[]): void {
    this.site.drop(`${stem}.csv`, this.#content(n));
    titles.push(titleOf(stem));
  }

  async command(...args: string[]): Promise<Ended> {
    return labfeed([...args, '--config', this.site.config]);
  }

  async json<T>(...args: string[]): Promise<T> {
    const { status, stdout, stderr } = await this.command(...args, '--json');
    if (!stdout.startsWith('{') && !stdout.startsWith('[')) throw new Error(`${args[0]}: status ${status}\n${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** As `labfeed jobs` reads them, but in this process: so many commands would take the processor from the daemons. */
  async #runs(): Promise<readonly Job[]> {
    if (!existsSync(this.site.journal)) return [];
    const reader = openReader(this.site.journal);
    try {
      return await reader.jobs({ limit: 5000 });
    } finally {
      reader.close();
    }
  }

  /** All its runs, one per line. */
  async listing(): Promise<string[]> {
    const jobs = await this.#runs();
    const line = ({ id, path, state, experiment, reason }: Job) =>
      `${this.name}: run ${id} ${basename(path)} ${state} ${experiment ?? ''} ${reason?.split('\n', 1)[0] ?? ''}`;
    return jobs.toSorted((a, b) => a.id - b.id).map(line);
  }

  /** Its runs by title. A recovered run has no draft, but its file has the name. */
  async jobs(): Promise<Map<string, Job>> {
    const jobs = await this.#runs();
    // A run that was filed again is listed twice; the later one counts.
    const ascending = jobs.toSorted((a, b) => a.id - b.id);
    return new Map(ascending.map((job) => [titleOf(basename(job.path, '.csv')), job]));
  }

  async backUp(): Promise<void> {
    const backup = `${this.site.journal}.backup`;
    rmSync(backup, { force: true });
    expect(await this.command('backup', backup)).toMatchObject({ status: 0, stderr: '' });
  }

  /** The daemon must not run. The note beside the journal stays, as it does when a disk is repaired or a backup put back. */
  loseJournal(): void {
    for (const end of ['', '-wal', '-shm', '.lock']) rmSync(`${this.site.journal}${end}`, { force: true });
  }

  restoreJournal(): void {
    this.loseJournal();
    copyFileSync(`${this.site.journal}.backup`, this.site.journal);
  }
}

const titleOf = (stem: string): string => `${stem} (balance)`;

const JUMPING_CLOCK = fileURLToPath(new URL('../support/jumping-clock.mjs', import.meta.url));

/** A restore takes longer than labfeed needs to notice that the server is down, if it runs. */
async function meetOutage(pc: Pc): Promise<void> {
  if (!pc.daemon) return;
  pc.drop();
  const isDown = (): boolean => readLive(pc.site.journal)?.notebook.gate.kind === 'down';
  await until(`${pc.name} notices that the server is down`, isDown, 120_000);
}

export async function openLab(dialect: Dialect, random: Random): Promise<Lab> {
  const folder = tempFolder();
  const data = join(folder, 'notebook.db');
  const sandbox = await runSandbox(data, 0, dialect);
  const makePc = (name: string): Pc => {
    mkdirSync(join(folder, name));
    // On a slow machine the first scan may never finish between kills. That must not hold the backlog.
    const instruments =
      '  balance: { watch: data/balance, ready: { quiet: 150ms }, existing: ingest, changed: revise }';
    return new Pc(
      name,
      makeSite(join(folder, name), { url: sandbox.url, key: sandbox.key, timeout: '300ms', instruments }),
    );
  };
  async function whileDown(act: () => void | Promise<void>): Promise<void> {
    await sandbox.stop();
    await act();
    await sandbox.start();
  }
  const lab: Lab = {
    dialect,
    random,
    control: sandbox.control,
    pcs: [makePc('one'), makePc('two')],
    people: { created: new Map(), unreadable: new Set(), hidden: new Set(), edited: new Map(), deleted: new Set() },
    story: [],
    saved: undefined,
    disputed: new Set(),
    withoutComments: new Set(),
    async save() {
      await whileDown(() => copyFileSync(data, `${data}.saved`));
      lab.saved = { people: copyOf(lab.people) };
    },
    async restore() {
      if (!lab.saved) throw new Error('nothing was saved');
      for (const title of [...lab.people.deleted, ...lab.people.edited.values()]) lab.disputed.add(title);
      await whileDown(async () => {
        await Promise.all(lab.pcs.map(meetOutage));
        copyFileSync(`${data}.saved`, data);
      });
      lab.people = copyOf(lab.saved.people);
    },
  };
  return lab;
}
