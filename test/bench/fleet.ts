/** What a fleet costs the database: `npm run bench -- fleet [RUNS…]`. Needs PostgreSQL on this machine. */
import { systemClock } from '../../src/clock.js';
import type { Postgres } from '../../src/fleet/database.js';
import { takeLease } from '../../src/fleet/lease.js';
import { receive } from '../../src/fleet/receive.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { follow, type LeadingJournal, lead, openWorkingCopy } from '../../src/fleet/working-copy.js';
import type { SentRun } from '../../src/journal/forwards.js';
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

async function fill(upTo: number, { store, outbox }: LeadingJournal): Promise<void> {
  const count = () => store.db.value<number>`SELECT count(*) FROM runs` ?? 0;
  for (let n = count(); n < upTo; n++) {
    const { run, reading } = JSON.parse(operation());
    void outbox.add({ ...run, file: { ...run.file, location: '', inode: 0n, mtimeNs: 1n } }, reading);
    if (n % 500 === 0) await store.commit(() => undefined);
  }
  await store.commit(
    () => store.db.run`UPDATE runs SET step = 'done', server = 's', experiment = id WHERE step <> 'done'`,
  );
}

const memberIds = async (count: number, postgres: Postgres): Promise<number[]> => {
  const rows = await postgres.rows<{ id: number }>(
    `INSERT INTO labfeed.members (instance, name, role, version, seen_at)
       SELECT gen_random_uuid(), 'pc' || n, 'watch', '1', now() FROM generate_series(1, $1) AS n RETURNING id`,
    [count],
  );
  return rows.map(({ id }) => id);
};

async function measure(): Promise<void> {
  const cluster = await startCluster();
  try {
    const postgres = connectTo(await cluster.createDatabase());
    const { id } = await prepareSchema(postgres, true);
    const lease = await takeLease(postgres, 1, { clock: systemClock, log, lost: () => undefined });
    const copy = openWorkingCopy(':memory:');
    await follow(copy, postgres);
    const deps = { copy, postgres, id, epoch: lease?.epoch ?? 0, clock: systemClock, log };
    const journal = lead({ ...deps, fenced: () => undefined });
    for (const size of sizes.length > 0 ? sizes : [1000, 10_000, 100_000]) {
      await fill(size, journal);
      for (const count of [1, 16, 200]) {
        const members = await memberIds(count, postgres);
        const before = { ...journal.shipments };
        const began = performance.now();
        await file(MEASURED, members, journal, postgres);
        const took = performance.now() - began;
        const { shipments } = journal;
        const each = (key: keyof typeof before): number => (shipments[key] - before[key]) / MEASURED;
        console.log(
          `${size} runs, ${count} watchers: ${((MEASURED / took) * 1000).toFixed(0)} runs/s, ` +
            `${each('count').toFixed(1)} shipments, ${(each('bytes') / 1000).toFixed(1)} KB and ${each('ms').toFixed(1)} ms of the database a run`,
        );
      }
      const began = performance.now();
      await follow(openWorkingCopy(':memory:'), postgres);
      console.log(
        `${size} runs: a new standby has loaded them after ${((performance.now() - began) / 1000).toFixed(1)} s`,
      );
    }
    await lease?.release(true);
    await postgres.close();
  } finally {
    await cluster.remove();
  }
}

if (noPostgres) process.exitCode = 1;
else await measure();
