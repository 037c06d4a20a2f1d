/**
 * What a fleet costs its database and its members: `npm run bench -- fleet [RUNS…]`. `--million` adds a fleet that has filed a
 * million runs, `--statements` lists what the time of the server is spent on, and `--load` measures only the first start of
 * members. Needs PostgreSQL on this machine.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { systemClock } from '../../src/clock.js';
import type { Postgres } from '../../src/fleet/database.js';
import { takeLease } from '../../src/fleet/lease.js';
import { createMember, followStates, forward } from '../../src/fleet/member.js';
import { join } from '../../src/fleet/membership.js';
import { receive } from '../../src/fleet/receive.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { follow, type LeadingJournal, lead, openWorkingCopy } from '../../src/fleet/working-copy.js';
import { migrate } from '../../src/journal/database.js';
import { forwardingOutbox } from '../../src/journal/forwards.js';
import { createJournal } from '../../src/journal/journal.js';
import { createLog } from '../../src/log.js';
import { connectTo, memberOf, noPostgres, startCluster } from '../support/postgres.js';

const options = process.argv.slice(2);
const isDetailed = options.includes('--statements');
const named = options.filter((option) => !option.startsWith('--')).map(Number);
const sizes = [...(named.length > 0 ? named : [1000, 10_000, 100_000])];
if (options.includes('--million')) sizes.push(1_000_000);
const isLoadOnly = options.includes('--load');
const WATCHERS = 200;
const MEASURED = 200;
const { log } = createLog({ level: 'silent' });
let made = 0;

const body = `<p>${'A line of a body. '.repeat(40)}</p>`;
const comment = 'Sample\tWeight (mg)\nS1\t1.125\n'.repeat(10);

/** A lab PC with its own journal, without folders. */
async function createWatcher(n: number, url: string, fleet: string, postgres: Postgres) {
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  const journal = createJournal({ database, clock: systemClock, release: () => undefined });
  const name = `pc${n}`;
  const { member } = await join(journal, memberOf(url, name, 'watch'), fleet, postgres);
  const outbox = forwardingOutbox(journal.store, journal.outbox);
  const shared = { journal, postgres, name, member: () => member, spool: {} as never };
  const around = { rescan: () => undefined, rejoin: async () => undefined };
  return {
    async add(): Promise<void> {
      made += 1;
      const path = `/data/${made}.csv`;
      const file = { path, location: path, size: 500, mtimeNs: 1n, inode: 1n, sha256: String(made).padStart(64, 'a') };
      const draft = { title: `run ${made}`, date: '2026-01-01', body, tags: ['a'], comments: [comment] };
      const instrument = `instrument ${made % 20}`;
      await outbox.add({ instrument, file, copy: '', backlog: false, mapping: 'm' }, { draft });
    },
    async forward(): Promise<void> {
      while (await forward(shared));
    },
    follow: () => followStates({ ...shared, ...around }),
    /** Does what it does while nothing happens. */
    idle: () =>
      createMember({
        ...{ ...shared, ...around, clock: systemClock, log, listEveryMs: 60_000 },
        notebook: () => undefined,
        live: () =>
          ({
            version: '1',
            alarms: [],
            instruments: ['balance', 'hplc'].map((instrument) => ({
              name: instrument,
              watch: `/srv/${instrument}`,
              line: 'watching',
              folder: { state: 'present' },
              scannedAt: Date.now(),
              files: 3,
              unmatched: { files: 0 },
              waiting: {
                files: 1,
                first: [{ path: '/srv/balance/new.csv', since: 1, reason: 'unchanged for 2 s of 5 s' }],
                unreadable: 0,
              },
              unreadable: { files: 0, first: [] },
              stuck: { files: 0, first: [] },
              lastFileAt: 5,
            })),
          }) as never,
        followed: () => undefined,
        listed: () => [],
      }),
  };
}

type Watcher = Awaited<ReturnType<typeof createWatcher>>;

/** From the watchers to the end of delivery and back, without the notebook. */
async function file(watchers: readonly Watcher[], journal: LeadingJournal, postgres: Postgres): Promise<void> {
  for (let n = 0; n < MEASURED; n++) await watchers[n % watchers.length]?.add();
  for (const watcher of watchers) await watcher.forward();
  while ((await receive(journal, postgres, log)) > 0);
  for (;;) {
    const runs = await journal.outbox.claim(Date.now(), 4);
    if (runs.length === 0) break;
    await Promise.all(runs.map((run) => deliver(run, journal)));
  }
  for (const watcher of watchers) await watcher.follow();
}

/** The records that delivery makes for a run with one comment. */
async function deliver(run: number, { outbox }: LeadingJournal): Promise<void> {
  await outbox.record(run, { kind: 'intended', server: 'https://eln', floor: run, at: 1 });
  await outbox.apply(run, { kind: 'created', experiment: run, found: false });
  await outbox.apply(run, { kind: 'described' });
  await outbox.record(run, { kind: 'commentIntended', n: 1, at: 1 });
  await outbox.apply(run, { kind: 'commented', n: 1, comment: run, found: false }, { kind: 'finished' });
  await outbox.release(run);
}

/** What differs between two filed runs, by table. Fingerprints and references are random, as those of real runs. */
const FILLED: Readonly<Record<string, string>> = {
  runs: `'id', nr, 'instrument', 'instrument ' || nr % 20, 'reference', left(sha, 20), 'sha256', sha, 'experiment', nr,
    'path', 'pc' || nr % ${WATCHERS} || ':/data/' || nr || '.csv', 'added_at', model.added_at - (2000000 - nr) * 30000`,
  drafts: "'run', nr",
  comments: "'run', nr, 'comment', nr",
  history: `'run', nr, 'id', nr * 10 + array_position(
    '{read,intended,created,described,commentIntended,commented,finished}'::text[], model.event)`,
  // Every second run is one of the first watcher.
  origins: `'run', nr, 'filed', nr, 'member', CASE nr % 2 WHEN 0 THEN model.member ELSE 1 + nr % ${WATCHERS} END`,
};

/** A statement may take 20 s. */
const FILLED_AT_A_TIME = 20_000;

/** More filed runs, as copies of run 1, by the database alone: to file a million takes hours. */
const fill = (count: number, postgres: Postgres): Promise<void> =>
  postgres.transaction(async (client) => {
    const last = await client.query<{ id: number }>('SELECT max(id) AS id FROM labfeed.runs');
    const from = (last.rows[0]?.id ?? 0) + 1;
    const upTo = from + count - 1;
    // Members have followed these.
    await client.query("SELECT set_config('labfeed.seq', '0', true)");
    for (const [table, cells] of Object.entries(FILLED))
      await client.query(
        `INSERT INTO labfeed.${table} SELECT filled.* FROM labfeed.${table} AS model, LATERAL
           (SELECT nr, encode(sha256(nr::text::bytea), 'hex') AS sha FROM generate_series($1::bigint, $2) AS nr) AS numbers,
           LATERAL jsonb_populate_record(model, jsonb_build_object(${cells})) AS filled
           WHERE model.${{ runs: 'id', origins: 'filed' }[table] ?? 'run'} = 1`,
        [from, upTo],
      );
    await client.query(
      `INSERT INTO labfeed.hours SELECT instrument, added_at / 3600000, count(*) FROM labfeed.runs WHERE id BETWEEN $1 AND $2
         GROUP BY 1, 2 ON CONFLICT (instrument, hour) DO UPDATE SET runs = hours.runs + excluded.runs`,
      [from, upTo],
    );
    await client.query("UPDATE labfeed.tallies SET runs = runs + ($2::bigint - $1 + 1) / 20 WHERE state = 'done'", [
      from,
      upTo,
    ]);
    // Copies load everything again.
    await client.query('DELETE FROM labfeed.changes');
    await client.query('UPDATE labfeed.fleet SET seq = seq + 1');
  });

/** How long the server has executed statements since the last reset. The wait for the disk at a commit is not in it. */
const serverMs = async (postgres: Postgres): Promise<number> =>
  (await postgres.row<{ ms: number }>('SELECT sum(total_exec_time) AS ms FROM pg_stat_statements WHERE toplevel'))
    ?.ms ?? 0;

const resetServerMs = (postgres: Postgres): Promise<unknown> => postgres.rows('SELECT pg_stat_statements_reset()');

async function listStatements(postgres: Postgres): Promise<void> {
  const rows = await postgres.rows<Record<'calls' | 'ms' | 'read' | 'query', unknown> & { toplevel: boolean }>(
    `SELECT toplevel, calls, round(total_exec_time::numeric, 1) AS ms, shared_blks_read AS read,
       left(regexp_replace(query, '\\s+', ' ', 'g'), 110) AS query FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 30`,
  );
  for (const { toplevel, calls, ms, read, query } of rows)
    console.log(`  ${toplevel ? '' : '  '}${ms} ms, ${calls} calls, ${read} blocks read: ${query}`);
}

async function measureFiling(size: number, watchers: readonly Watcher[], journal: LeadingJournal, postgres: Postgres) {
  // What other measurements have left for the server to do later.
  await postgres.rows('CHECKPOINT');
  const before = { ...journal.shipments };
  await resetServerMs(postgres);
  const began = performance.now();
  await file(watchers, journal, postgres);
  const took = performance.now() - began;
  const server = (await serverMs(postgres)) / MEASURED;
  if (isDetailed) await listStatements(postgres);
  const each = (key: keyof typeof before): number => (journal.shipments[key] - before[key]) / MEASURED;
  console.log(
    `${size} runs, ${watchers.length} watchers: ${((MEASURED / took) * 1000).toFixed(0)} runs/s; a run takes ${server.toFixed(2)} ms ` +
      `of the server, ${each('count').toFixed(1)} shipments, ${(each('bytes') / 1000).toFixed(1)} KB, ` +
      `and the leader waits ${each('ms').toFixed(1)} ms for them`,
  );
}

const IDLE_S = 20;

/** What watchers cost that have nothing to hand over. */
async function measureIdle(watchers: readonly Watcher[], postgres: Postgres): Promise<void> {
  await resetServerMs(postgres);
  const members = watchers.map((watcher) => watcher.idle());
  await new Promise((resolve) => setTimeout(resolve, IDLE_S * 1000));
  await Promise.all(members.map((member) => member.stop()));
  const ms = (await serverMs(postgres)) / IDLE_S;
  if (isDetailed) await listStatements(postgres);
  console.log(`${watchers.length} idle watchers: ${ms.toFixed(1)} ms of the server a second`);
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

/** The copy of a standby: loaded, opened again, and taken over with. */
async function takeOver(
  size: number,
  { folder, fleet, postgres }: { readonly folder: string; readonly fleet: string; readonly postgres: Postgres },
  work: (journal: LeadingJournal) => Promise<void>,
): Promise<void> {
  const path = joinPath(folder, `${size}.db`);
  let highest = 0;
  const watching = setInterval(() => {
    highest = Math.max(highest, process.memoryUsage().rss);
  }, 50);
  const before = process.memoryUsage().rss;
  const loading = performance.now();
  const first = openWorkingCopy(path);
  await follow(first, postgres);
  const loaded = performance.now();
  first.db.database.close();
  clearInterval(watching);
  const opening = performance.now();
  const copy = openWorkingCopy(path);
  await follow(copy, postgres);
  const taking = performance.now();
  const lease = await takeLease(postgres, 1, { clock: systemClock, log, lost: () => undefined });
  await follow(copy, postgres);
  const deps = { copy, postgres, id: fleet, epoch: lease?.epoch ?? 0, clock: systemClock, log };
  const journal = lead({ ...deps, fenced: () => undefined });
  const ready = performance.now();
  const database = await postgres.row<{ size: number }>(SIZE);
  if (size > 0)
    console.log(
      `${size} runs: a new member loads them in ${((loaded - loading) / 1000).toFixed(1)} s, with ${megabytes(highest - before)} more memory; ` +
        `it has ${megabytes(statSync(path).size)} on disk, the database ${megabytes(database?.size ?? 0)}; ` +
        `opened again in ${(taking - opening).toFixed(0)} ms; takes over in ${(ready - taking).toFixed(0)} ms`,
    );
  await work(journal);
  await journal.close();
  await lease?.release(true);
}

/** The copy of a machine that only watches, and has one in 200 of the runs. */
async function loadWatcher(size: number, folder: string, postgres: Postgres): Promise<void> {
  const path = joinPath(folder, `watcher-${size}.db`);
  const began = performance.now();
  const copy = openWorkingCopy(path, { member: 4, newest: 10_000 });
  await follow(copy, postgres);
  const took = performance.now() - began;
  const runs = copy.db.value<number>`SELECT count(*) FROM runs`;
  copy.db.database.close();
  console.log(
    `${size} runs: a new watcher loads ${runs} of them in ${(took / 1000).toFixed(1)} s; it has ${megabytes(statSync(path).size)} on disk`,
  );
}

const SIZE = 'SELECT pg_database_size(current_database()) AS size';

async function measure(folder: string): Promise<void> {
  const cluster = await startCluster();
  try {
    const url = await cluster.createDatabase();
    const postgres = connectTo(url);
    await postgres.run('CREATE EXTENSION pg_stat_statements');
    if (isDetailed) await postgres.run("ALTER ROLE labfeed SET pg_stat_statements.track = 'all'");
    const { id } = await prepareSchema(postgres, true);
    const deps = { folder, fleet: id, postgres };
    const watchers: Watcher[] = [];
    for (let n = 1; n <= WATCHERS; n++) watchers.push(await createWatcher(n, url, id, postgres));
    // The first runs are the model of those that fill the tables.
    await takeOver(0, deps, (journal) => file(watchers.slice(0, 1), journal, postgres));
    let filled = 0;
    for (const size of sizes) {
      for (; filled < size; filled = Math.min(size, filled + FILLED_AT_A_TIME))
        await fill(Math.min(FILLED_AT_A_TIME, size - filled), postgres);
      // As autovacuum does within minutes.
      await postgres.rows('VACUUM ANALYZE');
      await loadWatcher(size, folder, postgres);
      await takeOver(size, deps, async (journal) => {
        if (isLoadOnly) return;
        for (const count of [1, 4, 16, WATCHERS])
          await measureFiling(size, watchers.slice(0, count), journal, postgres);
      });
    }
    if (!isLoadOnly) await measureIdle(watchers, postgres);
    await postgres.close();
  } finally {
    await cluster.remove();
  }
}

const folder = mkdtempSync(joinPath(tmpdir(), 'labfeed-bench-'));
try {
  if (noPostgres) process.exitCode = 1;
  else await measure(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
