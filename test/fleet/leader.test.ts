import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { UsableConfig } from '../../src/config/load.js';
import { notebookSchema } from '../../src/config/settings.js';
import { NotebookError } from '../../src/errors.js';
import { Postgres } from '../../src/fleet/database.js';
import { startLeading } from '../../src/fleet/leader.js';
import { takeLease } from '../../src/fleet/lease.js';
import { forward } from '../../src/fleet/member.js';
import { join } from '../../src/fleet/membership.js';
import { follow, openWorkingCopy } from '../../src/fleet/working-copy.js';
import { forwardingOutbox } from '../../src/journal/forwards.js';
import type { Spool } from '../../src/spool.js';
import { fakeNotebook, intercept } from '../support/fake-notebook.js';
import { useCluster } from '../support/leading-fleet.js';
import { memoryJournal } from '../support/memory-journal.js';
import { memberOf, noPostgres } from '../support/postgres.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';

const newSchema = useCluster();

/** Loses the answer to its first removal of operations that were received. */
class LosingPostgres extends Postgres {
  hasLost = false;

  override async run(text: string, values?: readonly unknown[]): Promise<number> {
    const count = await super.run(text, values);
    if (this.hasLost || !text.startsWith('DELETE FROM labfeed.operations')) return count;
    this.hasLost = true;
    throw new Error('connection reset');
  }
}

const shared = { clock: systemClock, log: silentLog() };

/** A leader that may create no keys, and knows no instrument yet. */
async function startLeader(postgres: Postgres, id: string, clock = systemClock) {
  vi.stubEnv('KEY', 'key');
  onTestFinished(() => void vi.unstubAllEnvs());
  const lease = await takeLease(postgres, 1000, { ...shared, lost: () => undefined });
  if (!lease) throw new Error('somebody else leads');
  const copy = openWorkingCopy(':memory:');
  await follow(copy, postgres);
  const notebook = { ...fakeNotebook({ dialect: 'elabftw' }), close: async () => undefined };
  const createKey = async (): Promise<never> => {
    throw new NotebookError('auth', 'forbidden', { status: 403 });
  };
  const config = {
    notebook: notebookSchema.parse({ url: 'https://eln.example.org', key: { env: 'KEY' }, rate: '100/s' }),
    settings: { journal: '' },
    invalidSettings: new Set(['keep']),
    placeOf: () => undefined,
  } as unknown as UsableConfig;
  let isSending = false;
  const leader = startLeading({
    ...{ ...shared, clock, config, lease, copy, path: ':memory:', postgres, id },
    observer: { filed: () => undefined, failed: () => undefined } as never,
    ...{ onResponse: () => undefined, conceal: () => undefined, isSecretIn: () => false, over: () => undefined },
    outside: {
      openNotebook: () => ({ ...notebook, createKey }) as never,
      connect: (_, __, schedule) => {
        isSending = true;
        return intercept(notebook, ({ carryOut, isWrite }) => schedule(carryOut, isWrite)) as never;
      },
      random: Math.random,
    },
  });
  onTestFinished(() => leader.stop(false));
  const begins = () => vi.waitFor(() => expect(isSending).toBe(true), 20_000);
  return { leader, notebook, begins, isSending: () => isSending };
}

const SPOOL = {
  open: async () => ({ createReadStream: () => [Buffer.from('run')], close: async () => undefined }),
  remove: async () => undefined,
} as unknown as Spool;

test.skipIf(noPostgres)(
  'raw files of a new instrument are attached also if an answer of the database is lost while its first run is received',
  async () => {
    const { url, postgres, id } = await newSchema();
    const losing = new LosingPostgres(memberOf(url), () => undefined);
    onTestFinished(() => losing.close());
    const { leader, notebook, begins } = await startLeader(losing, id);
    await begins();
    const journal = memoryJournal(systemClock);
    const { member } = await join(journal, memberOf(url), id, postgres);
    const file = { name: 'run.csv', path: '/data/run.csv', sha256: sha256('run'), size: 3 };
    const outbox = forwardingOutbox(journal.store, journal.outbox);
    await outbox.add(newRun('run', { attachments: [file] }), { draft: someDraft('run') });
    await forward({ journal, postgres, member: () => member, spool: SPOOL });
    leader.wake();
    const uploaded = () => [...notebook.experiments.values()].flatMap(({ uploads }) => [...(uploads?.values() ?? [])]);
    await vi.waitFor(() => expect(uploaded()).toMatchObject([{ real_name: 'run.csv' }]), 20_000);
    expect(losing.hasLost).toBe(true);
  },
);

/** A clock on which long waits end when the test says so. */
function clockWithLongWaits() {
  let endThem = (): void => undefined;
  const end = new Promise<void>((resolve) => {
    endThem = resolve;
  });
  const waits: number[] = [];
  const sleep: typeof systemClock.sleep = async (ms, signal) => {
    if (ms < 100_000) return systemClock.sleep(ms, signal);
    waits.push(ms);
    await end;
  };
  return { clock: { ...systemClock, sleep }, waits, endThem: () => endThem() };
}

test.skipIf(noPostgres)(
  'nothing is sent for the grace period after a leader that did not stop and has a key that cannot be deleted',
  async () => {
    const { postgres, id } = await newSchema();
    const predecessor = await takeLease(postgres, 7, { ...shared, lost: () => undefined });
    await predecessor?.recordSender('https://eln.example.org', undefined);
    onTestFinished(() => predecessor?.release(false));
    await postgres.run("UPDATE labfeed.fleet SET until = '-infinity'");
    const { clock, waits, endThem } = clockWithLongWaits();
    const { begins, isSending } = await startLeader(postgres, id, clock);
    await vi.waitFor(() => expect(waits).toEqual([145_000]), 20_000);
    expect(isSending()).toBe(false);
    endThem();
    await begins();
  },
);
