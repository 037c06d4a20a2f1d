import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { type DaemonProcess, type Site, startDaemon } from './daemon-process.js';
import type { Network } from './network.js';
import { type Cluster, startCluster } from './postgres.js';
import { createTestSandbox, type TestSandbox } from './sandbox.js';
import { tempFolder } from './temp-folder.js';
import { until, WAIT_MS } from './until.js';

interface MemberOptions {
  readonly role?: 'all' | 'watch' | 'deliver';
  readonly instruments?: string;
  /** More configuration lines, each with its line break. */
  readonly settings?: string;
  readonly rate?: string;
}

export interface Member extends Site {
  readonly name: string;
  /** In a network namespace, if one is given. */
  start(env?: NodeJS.ProcessEnv, namespace?: string): DaemonProcess;
  /** A configuration for the same folders and journal, without the fleet. */
  readonly alone: string;
}

export interface FleetSite {
  readonly folder: string;
  readonly url: string;
  readonly cluster: Cluster;
  readonly notebook: TestSandbox;
  /** The port of the notebook. */
  readonly port: number;
  member(name: string, options?: MemberOptions): Member;
}

const titles = ({ notebook }: FleetSite): string[] =>
  notebook.control
    .experiments()
    .filter(({ state }) => state === 'normal')
    .map(({ title }) => title);

/** How many experiments there are. */
export const countExperiments = (fleet: FleetSite): number => titles(fleet).length;

/** Resolves when this many experiments are complete, and fails if there are more a little later. */
export async function expectFiled(fleet: FleetSite, count: number, withinMs = 2 * WAIT_MS): Promise<void> {
  const complete = () =>
    fleet.notebook.control
      .experiments()
      .filter(({ title, comments }) => !title.startsWith('labfeed ') && comments.length > 0);
  await until(`${count} experiments are filed`, () => complete().length >= count, withinMs);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(titles(fleet)).toHaveLength(count);
  expect(complete()).toHaveLength(count);
  for (const { comments } of complete()) expect(comments).toHaveLength(1);
}

const BALANCE = '  balance: { watch: data/balance, ready: { quiet: 150ms }, experiment: { plot: never } }';

/** A database, a notebook, and members that run as processes. `network`: where the servers can be reached from namespaces. */
export async function makeFleet(
  dialect: Dialect = 'v2',
  timeout = dialect === 'elabftw' ? '20s' : '3s',
  network?: Network['addresses'],
): Promise<FleetSite> {
  const folder = tempFolder();
  const cluster = await startCluster(network?.database);
  onTestFinished(() => cluster.remove());
  const url = await cluster.createDatabase();
  const host = network?.notebook ?? '127.0.0.1';
  const notebook = createTestSandbox({ file: join(folder, 'notebook.db'), host, port: 0, dialect });
  const { url: origin, key } = await notebook.start();
  onTestFinished(() => notebook.stop());
  const address = origin.replace(host, '127.0.0.1');
  return {
    folder,
    url,
    cluster,
    notebook,
    port: Number(new URL(address).port),
    member(name, { role = 'all', instruments = BALANCE, settings = '', rate = '2000/s' } = {}) {
      const own = join(folder, name);
      const config = join(own, 'labfeed.yaml');
      mkdirSync(join(own, 'data', 'balance'), { recursive: true });
      writeFileSync(join(own, 'api-key'), `${key}\n`, { mode: 0o600 });
      const server = `notebook:\n  url: "${address}"\n  key: { file: api-key }\n  rate: ${rate}\n  timeout: ${timeout}\n`;
      const lines = [
        ...(role === 'watch' ? [] : [server]),
        `journal: ${url}\nrole: ${role}\nfleet: { name: ${name}, state: state }\nstatus: false\n${settings}`,
        ...(role === 'deliver' ? [] : [`instruments:\n${instruments}\n`]),
      ];
      writeFileSync(config, lines.join(''));
      const alone = join(own, 'alone.yaml');
      writeFileSync(
        alone,
        `${server}journal: state/journal.db\nstatus: false\n${settings}instruments:\n${instruments}\n`,
      );
      return {
        name,
        folder: own,
        config,
        alone,
        journal: join(own, 'state', 'journal.db'),
        drop(file, content, instrument = 'balance') {
          mkdirSync(join(own, 'data', instrument), { recursive: true });
          writeFileSync(join(own, 'data', instrument, file), content);
        },
        start: (env, namespace) => startDaemon(config, env, { namespace }),
      };
    },
  };
}

/** An instrument that appends lines to one file. */
export const growingLogger = (watch = 'data/logger', every = '1s'): string => `
  logger:
    watch: ${watch}
    run: { growing: { per: file, every: ${every} } }
    ready: { quiet: 100ms }
    poll: 300ms
    existing: ingest
    parse: { delimiter: ',', dates: { format: 'yyyy-MM-dd HH:mm:ss' }, table: {} }
    experiment: { title: "{{ file.stem }}", plot: never }`;
