/** What a fleet costs the database: `npm run bench -- fleet [RUNS…]`. Needs PostgreSQL on this machine. */
import { systemClock } from '../../src/clock.js';
import type { Postgres } from '../../src/fleet/database.js';
import { takeLease } from '../../src/fleet/lease.js';
import { createMember } from '../../src/fleet/member.js';
import { receive } from '../../src/fleet/receive.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { follow, type LeadingJournal, lead, openWorkingCopy } from '../../src/fleet/working-copy.js';
import type { SentRun } from '../../src/journal/forwards.js';
import { createJournal } from '../../src/journal/journal.js';
import { createLog } from '../../src/log.js';
import { connectTo, noPostgres, startCluster } from '../support/postgres.js';

const sizes = process.argv.slice(2).map(Number);
const MEASURED = 100;
const { log } = createLog({ level: 'silent' });
let made = 0;

const body = `<p>${'A line of a body. '.repeat(40)}</p>`;
const comment = 'Sample\tWeight (mg)\nS1\t1.125\n'.repeat(10);

function operation(): string {
  made += 1;
  const sha256 = String(made).padStart(64, 'a');
  const run: SentRun = {
    instrument: `instrument ${made % 20}`,
    file: { path: `/data/${made}.csv`, size: 500, mtimeNs: '1', sha256 },
    ...{ copy: '', backlog: false, mapping: 'm', isSeparate: false },
  };
  const draft = { title: `run ${made}`, date: '2026-01-01', body, tags: ['a'], comments: [comment] };
  return JSON.stringify({ kind: 'add', own: made, run, reading: { draft } });
}

/** From the members' operations to the end of their delivery, without the notebook. */
async function file(count: number, members: readonly number[], journal: LeadingJournal, postgres: Postgres) {
  for (let n = 0; n < count; n++)
    await postgres.run('INSERT INTO labfeed.operations (member, number, operation) VALUES ($1, $2, $3)', [
      ...[members[n % members.length], made + 1, operation()],
    ]);
  while ((await receive(journal, postgres, log)) > 0);
  for (;;) {
    const runs = await journal.outbox.claim(Date.now(), 4);
    if (runs.length === 0) return;
    await Promise.all(runs.map((run) => deliver(run, journal)));
  }
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

/** Tables of a filed run, with the column that names it. */
const PARTS = [
  ['runs', 'id'],
  ['drafts', 'run'],
  ['comments', 'run'],
  ['paths', 'run'],
] as const;

/** A statement may take 20 s. */
const FILLED_AT_A_TIME = 10_000;

/** More filed runs, as copies of the first one, by the database alone: to file a million takes hours. */
const fill = (from: number, upTo: number, postgres: Postgres): Promise<void> =>
  postgres.transaction(async (client) => {
    await client.query("SELECT set_config('labfeed.seq', (SELECT seq + 1 FROM labfeed.fleet)::text, true)");
    for (const [table, id] of PARTS)
      await client.query(
        `INSERT INTO labfeed.${table} SELECT (jsonb_populate_record(model, jsonb_build_object('${id}', added, 'reference', 'r' || added,
           'sha256', lpad(added::text, 64, 'b'), 'experiment', added, 'path', 'pc1:/data/' || added))).*
           FROM labfeed.${table} AS model, generate_series($1::bigint, $2) AS added WHERE ${id} = 1`,
        [from, upTo],
      );
    // Copies load everything again.
    await client.query('DELETE FROM labfeed.changes');
    await client.query('UPDATE labfeed.fleet SET seq = seq + 1');
  });

const memberIds = async (count: number, postgres: Postgres): Promise<number[]> => {
  const rows = await postgres.rows<{ id: number }>(
    `INSERT INTO labfeed.members (instance, name, role, version, seen_at)
       SELECT gen_random_uuid(), 'pc' || n, 'watch', '1', now() FROM generate_series(1, $1) AS n RETURNING id`,
    [count],
  );
  return rows.map(({ id }) => id);
};

/** How long the server has executed statements since the last reset. The wait for the disk at a commit is not in it. */
const serverMs = async (postgres: Postgres): Promise<number> =>
  (await postgres.row<{ ms: number }>('SELECT sum(total_exec_time) AS ms FROM pg_stat_statements'))?.ms ?? 0;

const resetServerMs = (postgres: Postgres): Promise<unknown> => postgres.rows('SELECT pg_stat_statements_reset()');

async function measureFiling(size: number, count: number, journal: LeadingJournal, postgres: Postgres): Promise<void> {
  const members = await memberIds(count, postgres);
  const before = { ...journal.shipments };
  await resetServerMs(postgres);
  const began = performance.now();
  await file(MEASURED, members, journal, postgres);
  const took = performance.now() - began;
  const server = (await serverMs(postgres)) / MEASURED;
  const each = (key: keyof typeof before): number => (journal.shipments[key] - before[key]) / MEASURED;
  console.log(
    `${size} runs, ${count} watchers: ${((MEASURED / took) * 1000).toFixed(0)} runs/s; a run takes ${server.toFixed(2)} ms ` +
      `of the server, ${each('count').toFixed(1)} shipments, ${(each('bytes') / 1000).toFixed(1)} KB, ` +
      `and the leader waits ${each('ms').toFixed(1)} ms for them`,
  );
}

const IDLE_S = 20;

/** What watchers cost that have nothing to hand over. */
async function measureIdle(count: number, postgres: Postgres): Promise<void> {
  const ids = await memberIds(count, postgres);
  await resetServerMs(postgres);
  const members = ids.map((member) => {
    const journal = createJournal({
      database: openWorkingCopy(':memory:').database,
      clock: systemClock,
      release: () => undefined,
    });
    const settings = {
      postgres,
      member: () => member,
      name: `pc${member}`,
      clock: systemClock,
      log,
      listEveryMs: 60_000,
    };
    return createMember({
      ...{ journal, ...settings, spool: {} as never, live: () => ({}) as never },
      rescan: () => undefined,
      followed: () => undefined,
      rejoin: async () => undefined as never,
      listed: () => [],
    });
  });
  await new Promise((resolve) => setTimeout(resolve, IDLE_S * 1000));
  await Promise.all(members.map((member) => member.stop()));
  const ms = (await serverMs(postgres)) / IDLE_S;
  console.log(`${count} idle watchers: ${ms.toFixed(1)} ms of the server a second`);
}

async function measure(): Promise<void> {
  const cluster = await startCluster();
  try {
    const postgres = connectTo(await cluster.createDatabase());
    await postgres.run('CREATE EXTENSION pg_stat_statements');
    const { id } = await prepareSchema(postgres, true);
    let filled = 0;
    for (const size of sizes.length > 0 ? sizes : [1000, 100_000, 1_000_000]) {
      for (let from = filled; filled > 0 && from < size; from += FILLED_AT_A_TIME)
        await fill(10_000_000 + from, 10_000_000 + Math.min(size, from + FILLED_AT_A_TIME) - 1, postgres);
      const loading = performance.now();
      const copy = openWorkingCopy(':memory:');
      await follow(copy, postgres);
      const taking = performance.now();
      const lease = await takeLease(postgres, 1, { clock: systemClock, log, lost: () => undefined });
      await follow(copy, postgres);
      const deps = { copy, postgres, id, epoch: lease?.epoch ?? 0, clock: systemClock, log };
      const journal = lead({ ...deps, fenced: () => undefined });
      console.log(
        `${size} runs: loaded in ${((taking - loading) / 1000).toFixed(1)} s; ` +
          `with a copy that follows, the lease is taken in ${(performance.now() - taking).toFixed(0)} ms`,
      );
      if (filled === 0) await file(MEASURED, await memberIds(1, postgres), journal, postgres);
      for (const count of [1, 4, 16, 200]) await measureFiling(size, count, journal, postgres);
      filled = size;
      await journal.close();
      await lease?.release(true);
    }
    await measureIdle(200, postgres);
    await postgres.close();
  } finally {
    await cluster.remove();
  }
}

if (noPostgres) process.exitCode = 1;
else await measure();
