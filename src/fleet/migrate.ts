import { rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { configFrom, type JsonOption, requireJournal, withJson } from '../commands/options.js';
import { createProgressLine, type ProgressLine } from '../commands/terminal.js';
import { type FleetConfig, isPostgres, refusePostgres } from '../config/fleet.js';
import type { LoadedConfig } from '../config/load.js';
import { ConfigError, EXIT, explain, LabfeedError, UsageError } from '../errors.js';
import { type Connection, journalExists } from '../journal/database.js';
import { fleetCopyOf, movedTo } from '../journal/fleet-view.js';
import { putForward, type WholeRun } from '../journal/forwards.js';
import { type Journal, openJournal } from '../journal/journal.js';
import { applyRequests } from '../journal/requests.js';
import { mergeFacts, putWholeRun, readFacts } from '../journal/whole-runs.js';
import { withJournalId } from '../markers.js';
import { STAND_IN } from '../model.js';
import { Spool, spoolOf } from '../spool.js';
import { machineId } from '../system/process.js';
import { plural } from '../text.js';
import { sourceProbe } from '../watch/identify.js';
import { readContent } from './contents.js';
import { adviseConnection, Postgres } from './database.js';
import { type Departed, readDepartures } from './imports.js';
import { leadForCommand } from './leader.js';
import { forward } from './member.js';
import { join, type Membership } from './membership.js';
import { prepareSchema } from './upgrade.js';
import { follow, openWorkingCopy } from './working-copy.js';

interface MigrateOptions extends JsonOption {
  readonly to: string;
}

export function addMigrate(command: Command): void {
  const examples = [
    'labfeed migrate --to postgres://labfeed@db.example.org/labfeed',
    'labfeed migrate --to /var/lib/labfeed/journal.db',
  ];
  withJson(command, examples, NOTE)
    .requiredOption('--to <journal>', 'The database of the fleet, or the journal of this machine')
    .action(migrate);
}

const NOTE = `Stop the daemon of this machine first. The configuration must be that of the fleet.
If the command is interrupted, run it again: it continues.`;

async function migrate({ to, json, ...options }: MigrateOptions): Promise<void> {
  const config = configFrom(options);
  const path = requireJournal(config);
  const fleet = requireFleet(config, to);
  if (!journalExists(path)) throw new LabfeedError(`there is no journal at ${path}: there is nothing to move`);
  const progress = createProgressLine();
  const journal = await openJournal(path, systemClock);
  const postgres = new Postgres(fleet, () => undefined);
  try {
    const deps = { journal, postgres, fleet, path, progress };
    const result = isPostgres(to) ? await moveIn(deps) : await moveOut(deps);
    progress.end();
    console.log(json ? JSON.stringify(result, null, 2) : result.text);
    if (result.failed > 0) process.exitCode = EXIT.failed;
  } catch (error) {
    throw error instanceof LabfeedError ? error : unreachable(error);
  } finally {
    progress.end();
    await postgres.close();
    await journal.close();
  }
}

export const unreachable = (cause: unknown): LabfeedError =>
  new LabfeedError(`cannot use the database of the fleet: ${explain(cause)}`, {
    hint: adviseConnection(cause) ?? 'run the command again: it continues where it stopped',
    cause,
  });

/** Either way, the settings of the fleet are needed: its address, the password, and the name of this machine. */
function requireFleet({ settings, problems }: LoadedConfig, to: string): FleetConfig {
  const { fleet, journal } = settings;
  const isIn = isPostgres(to);
  const refused = isIn ? refusePostgres(to) : undefined;
  if (refused !== undefined) throw new UsageError(`--to: ${refused}`);
  if (!fleet && problems.some(({ stops }) => stops === 'daemon')) throw new ConfigError(problems);
  if (!fleet && isIn) {
    const named = basename(journal) === 'journal.db' ? '' : `, after you have renamed ${journal} to journal.db`;
    throw new LabfeedError('the configuration is not that of the fleet yet', {
      hint: `write journal: ${to} and fleet: { state: ${dirname(journal)} }${named}, then run this command again`,
    });
  }
  if (!fleet) throw new LabfeedError(`this machine is not a member of a fleet: its journal is ${journal}`);
  if (isIn && to !== fleet.url)
    throw new UsageError(`--to is another database than \`journal\` in the configuration: ${fleet.url}`);
  if (!isIn && resolve(to) !== journal)
    throw new UsageError(`the journal of this machine is ${journal}`, {
      hint: `labfeed migrate --to ${journal}; afterwards, you can move the file while labfeed is stopped`,
    });
  return fleet;
}

interface MigrateDeps {
  readonly journal: Journal;
  readonly postgres: Postgres;
  readonly fleet: FleetConfig;
  /** Of the journal. */
  readonly path: string;
  readonly progress: ProgressLine;
}

/** What `--json` prints. */
interface Result {
  readonly runs: number;
  /** Runs that another machine has, too. */
  readonly shared: number;
  /** Runs that two machines have filed, each as another experiment. They are held. */
  readonly twice: readonly { readonly run: number; readonly reason: string }[];
  /** Runs that could not be moved. */
  readonly failed: number;
  readonly text: string;
}

/** From the first moment, the journal belongs to the fleet: a daemon that would deliver from it refuses to start. */
async function moveIn(deps: MigrateDeps): Promise<Result> {
  const { journal, postgres, fleet } = deps;
  // Made while no daemon ran, about the numbers that runs have in this journal.
  if (!movedTo(journal.store.db)) while ((await applyRequests(journal, sourceProbe)).length > 0);
  const membership = await introduce(deps, true);
  await handOver(deps, membership);
  const { member } = membership;
  const counts = await postgres.row<{ runs: number; shared: number }>(
    `SELECT count(*) AS runs, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM labfeed.origins AS other
       WHERE other.filed = origins.filed AND other.member <> $1)) AS shared FROM labfeed.origins WHERE member = $1`,
    [member],
  );
  const twice = await postgres.rows<{ run: number; reason: string }>(
    `SELECT filed AS run, reason FROM labfeed.origins JOIN labfeed.runs ON runs.id = filed AND parked = 'held'
       WHERE member = $1 AND EXISTS (SELECT 1 FROM labfeed.history WHERE run = filed AND event = 'filedTwice') ORDER BY 1`,
    [member],
  );
  const failures = await postgres.rows<{ reason: string }>('SELECT reason FROM labfeed.failures WHERE member = $1', [
    member,
  ]);
  const { runs = 0, shared = 0 } = counts ?? {};
  const text = [
    `${plural(runs, 'run')} of this machine ${runs === 1 ? 'is' : 'are'} in the fleet; another machine has ${shared} of them, too`,
    ...twice.map(({ run, reason }) => `run ${run} is held: ${reason}`),
    ...failures.map(({ reason }) => `a run could not be moved: ${reason}`),
    `start the daemon: its role is ${fleet.role}`,
  ].join('\n');
  return { runs, shared, twice, failed: failures.length, text };
}

/** The fleet lets go of the runs first, and only then are they this journal's. */
async function moveOut(deps: MigrateDeps): Promise<Result> {
  const { journal, postgres, fleet, path } = deps;
  const { db, commit } = journal.store;
  if (!movedTo(db)) {
    // Of an attempt that was interrupted at its end. Nobody lists that row any more, so an error does not matter.
    await forgetLeft(deps).catch(() => undefined);
    return { ...NOTHING, text: `the runs of ${path} are not in a fleet: set journal: ${path}` };
  }
  const membership = await introduce(deps, false);
  await handOver(deps, membership);
  await commit(() => putForward(db, { kind: 'leave' }));
  await handOver(deps, membership, true);
  const copy = openWorkingCopy(fleetCopyOf(path));
  try {
    await follow(copy, postgres);
    const from = copy.db;
    await fetchContents(from, deps, membership);
    // From now on, no machine lists this one, wherever the command ends. If it is to continue, it joins again first.
    await postgres.run(`UPDATE labfeed.members SET seen_at = ${LEFT} WHERE id = $1`, [membership.member]);
    let runs = 0;
    await commit(() => {
      runs = takeBack(db, from, membership, fleet.name);
    });
    await postgres.run('DELETE FROM labfeed.members WHERE id = $1', [membership.member]);
    return {
      ...NOTHING,
      runs,
      text: `${plural(runs, 'run')} taken back from the fleet\nset journal: ${path}, and start the daemon`,
    };
  } finally {
    copy.db.database.close();
    if (!movedTo(db)) for (const suffix of ['', '-wal', '-shm']) rmSync(fleetCopyOf(path) + suffix, { force: true });
  }
}

/** When a machine that leaves was last seen: too long ago to be listed. */
const LEFT = "'epoch'";

/** The journal has everything that was the fleet's, and no longer knows its number there. */
const forgetLeft = ({ postgres, fleet }: MigrateDeps): Promise<number> =>
  postgres.run(`DELETE FROM labfeed.members WHERE name = $1 AND instance LIKE '%@' || $2 AND seen_at = ${LEFT}`, [
    fleet.name,
    machineId(),
  ]);

const NOTHING: Result = { runs: 0, shared: 0, twice: [], failed: 0, text: '' };

async function introduce({ journal, postgres, fleet }: MigrateDeps, isMoving: boolean): Promise<Membership> {
  const { id } = await prepareSchema(postgres, fleet.role !== 'watch');
  return join(journal, fleet, id, postgres, isMoving);
}

/** Resolves when the fleet has applied everything that this machine handed over. */
async function handOver(deps: MigrateDeps, membership: Membership, isLeaving = false): Promise<void> {
  const { journal, postgres, path, progress } = deps;
  const { db } = journal.store;
  const { member } = membership;
  const command = { postgres, ...membership, path: fleetCopyOf(path) };
  const spool = new Spool(spoolOf(path));
  while (await forward({ journal, postgres, member: () => member, spool })) {
    const at = db.value<number>`SELECT count(*) FROM runs WHERE id <= (SELECT ifnull(importing, 0) FROM membership)`;
    progress.show(`handing over: ${plural(at ?? 0, 'run')}`);
  }
  const last = db.value<number>`SELECT seq FROM sqlite_sequence WHERE name = 'forwards'` ?? 0;
  let isAnnounced = false;
  for (;;) {
    const row = await postgres.row<{ number: number }>('SELECT number FROM labfeed.received WHERE member = $1', [
      member,
    ]);
    if ((row?.number ?? 0) >= last) return;
    if (await leadForCommand(command, async () => undefined, !isLeaving)) continue;
    if (!isAnnounced) progress.print('another machine delivers for the fleet: waiting until it has taken the runs');
    isAnnounced = true;
    await systemClock.sleep(POLL_MS);
  }
}

const POLL_MS = 500;

/** Raw files that were not attached yet are in the database. */
async function fetchContents(from: Connection, { postgres, path }: MigrateDeps, { member }: Membership): Promise<void> {
  const spool = new Spool(spoolOf(path));
  const wholes = from.values<string>`SELECT whole FROM departures WHERE member = ${member}`;
  for (const whole of wholes.map((json) => JSON.parse(json) as WholeRun)) {
    for (const { upload, refused, sha256, size } of whole.rows['attachments'] ?? []) {
      if (upload !== null || refused === 1) continue;
      const kept = await spool.open(String(sha256));
      await kept?.close();
      const place = kept ? undefined : await spool.admit(Number(size), Number.MAX_SAFE_INTEGER);
      if (!place) continue;
      const file = await open(place.path, 'w', 0o600);
      for await (const bytes of readContent(String(sha256), postgres)) await file.write(bytes);
      const { size: stored } = await file.stat();
      await file.close();
      await (stored === Number(size) ? spool.keep(place, String(sha256)) : spool.discard(place));
    }
  }
}

/** Within a commit. Returns how many there are. */
function takeBack(db: Connection, from: Connection, { member }: Membership, name: string): number {
  const id = db.value<string>`SELECT id FROM identity` ?? '';
  let count = 0;
  for (const whole of readDepartures(from, member, name)) {
    const own = whole.own > 0 ? whole.own : (db.value<number>`SELECT max(id) FROM runs` ?? 0) + 1;
    count += 1;
    if (whole.isShared) leaveToFleet(db, own);
    else takeOne(db, own, whole, id);
  }
  // Empty experiments stay with the fleet: two journals must not use the same one.
  const own = new Set(db.values<string>`SELECT DISTINCT instrument FROM runs`);
  const { servers, shapes } = readFacts(from);
  const known = shapes.filter(({ instrument }) => own.has(String(instrument)));
  for (const { instrument = '' } of known) db.run`DELETE FROM shapes WHERE instrument = ${instrument}`;
  const runs = new Map(
    from.rows<{ filed: number; run: number }>`
    SELECT filed, run FROM origins WHERE member = ${member}`.map(({ filed, run }) => [filed, run]),
  );
  const facts = servers.map((server) => ({ ...server, sweep: null, sweep_from: null, sweep_count: null }));
  mergeFacts(db, { servers: facts, spares: [], shapes: known }, (run) => runs.get(run));
  db.run`DELETE FROM forwards`;
  db.run`DELETE FROM forwarded`;
  db.run`DELETE FROM membership`;
  return count;
}

const NOT_HERE = 'another machine of the fleet has the same file, and the fleet files it';

function leaveToFleet(db: Connection, own: number): void {
  db.run`UPDATE runs SET parked = 'ignored', failure = NULL, reason = ${NOT_HERE} WHERE id = ${own} AND step <> 'done'`;
}

function takeOne(db: Connection, own: number, { run, rows, ...whole }: Departed, id: string): void {
  const before = db.row<{ sha256: string; reference: string }>`SELECT sha256, reference FROM runs WHERE id = ${own}`;
  // A file that was not read has another stand-in for its fingerprint in each journal.
  const unreadFile = before?.sha256.startsWith(STAND_IN) && String(run['sha256']).startsWith(STAND_IN) ? before : {};
  const drafts = (rows['drafts'] ?? []).map((row) =>
    run['step'] === 'pending' ? { ...row, body: withJournalId(String(row['body']), id) } : row,
  );
  // The history of the fleet has everything that happened.
  db.run`DELETE FROM history WHERE run = ${own}`;
  putWholeRun(db, own, { ...whole, run: { ...run, ...unreadFile }, rows: { ...rows, drafts } });
}
