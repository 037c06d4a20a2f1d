import { createHash } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { ListedInstrument } from '../config/load.js';
import type { Journal } from '../journal/journal.js';
import type { Live, LiveInstrument, LiveMember, MemberFolder } from '../live.js';
import type { Postgres } from './database.js';

interface ReportDeps {
  readonly journal: Pick<Journal, 'store' | 'intake'>;
  readonly postgres: Postgres;
  member(): number;
  readonly clock: Clock;
  /** How far the working copy has followed; undefined for a watcher. */
  followed(): number | undefined;
  live(): Live;
  /** Its address, on a machine that delivers or is ready to. */
  notebook(): string | undefined;
  /** The instruments of this machine, for `recover`. */
  listed(): readonly ListedInstrument[];
}

/**
 * For the other members: it runs, its clock, and what it does. The report of a machine on which nothing happens stays the
 * same, and is not sent again. The answer says what the database has, which may have been restored from a backup.
 */
export async function beat(deps: ReportDeps): Promise<void> {
  const { postgres, member, clock, followed } = deps;
  const report = JSON.stringify(await reportOf(deps));
  const values = [member(), followed() ?? null, clock.now()];
  const known = await postgres.row<{ hash: string | null }>(
    `UPDATE labfeed.members SET seen_at = clock_timestamp(), followed = $2,
       skew_ms = $3 - (extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE id = $1 RETURNING md5(live::text) AS hash`,
    values,
  );
  if (known?.hash === createHash('md5').update(report).digest('hex')) return;
  await postgres.run('UPDATE labfeed.members SET live = $2 WHERE id = $1', [member(), report]);
}

/** One entry for each instrument, none for files. Parts of it have the names that older versions use, which read it, too. */
async function reportOf({ journal, live, notebook, listed }: ReportDeps) {
  const { version, instruments, alarms } = live();
  const backlogs = await journal.intake.backlogs();
  const tallies = journal.store.db.rows<{ instrument: string; state: string; runs: number }>`
    SELECT instrument, state, runs FROM tallies WHERE runs > 0`;
  const count = (name: string, ...states: readonly string[]): number =>
    tallies
      .filter(({ instrument, state }) => instrument === name && states.includes(state))
      .reduce((sum, { runs }) => sum + runs, 0);
  return {
    version,
    notebook: notebook(),
    instruments: instruments.map(
      ({ name, watch, line, folder, lastFileAt, silenceMs, waiting, unreadable, stuck }) => ({
        ...{ name, watch, line, folder, lastFileAt, silenceMs },
        ...{
          waiting: { files: waiting.files },
          unreadable: { files: unreadable.files },
          stuck: { files: stuck.files },
        },
        asked: backlogs.get(name) ?? 0,
        // Its own journal learns of the end of each run, not of the steps before.
        runs: {
          queued: count(name, 'queued', 'sending'),
          quarantined: count(name, 'quarantined'),
          held: count(name, 'held'),
        },
      }),
    ),
    alarms: alarms.map(({ kind, instrument, text }) => ({ kind, instrument, text })),
    listed: listed(),
  };
}

/** A machine reports every ten seconds. */
const AWAY = "interval '1 minute'";

/** As machines report them, also those of older versions: these lack some of it. */
interface ReportedInstrument
  extends Pick<LiveInstrument, 'name' | 'watch' | 'line' | 'folder' | 'lastFileAt' | 'silenceMs'> {
  readonly waiting: { readonly files: number };
  readonly unreadable?: { readonly files: number };
  readonly stuck?: { readonly files: number };
  readonly asked?: number;
  readonly runs?: MemberFolder['runs'];
}

interface MemberRow extends Omit<LiveMember, 'seenAt' | 'folders' | 'alarms'> {
  readonly databaseNow: number;
  readonly seenAgoMs: number;
  readonly instruments: readonly ReportedInstrument[] | null;
  readonly alarms: LiveMember['alarms'] | null;
}

/**
 * Every machine with what it last reported. Each has its own clock, so times are converted to the clock of this one. One that
 * was installed again has another number, and is listed once, unless something of the former one waits.
 */
export async function listMembers(postgres: Postgres, clock: Clock): Promise<LiveMember[]> {
  const rows = await postgres.rows<MemberRow>(
    `SELECT name, role, version, (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint AS "seenAgoMs",
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "databaseNow",
       seen_at < clock_timestamp() - ${AWAY} AS "isAway", skew_ms AS "skewMs",
       coalesce(members.id = leader AND until > now(), false) AS leads, coalesce(waiting, 0) AS waiting,
       coalesce(failures, 0) AS failures, live->>'notebook' AS notebook, live->'instruments' AS instruments, live->'alarms' AS alarms
       FROM labfeed.fleet, labfeed.members
       LEFT JOIN (SELECT member, count(*) AS waiting FROM labfeed.operations GROUP BY 1) AS sent ON sent.member = members.id
       LEFT JOIN (SELECT member, count(*) AS failures FROM labfeed.failures GROUP BY 1) AS failed
       ON failed.member = members.id WHERE seen_at > now() - interval '30 days' ORDER BY name, seen_at`,
  );
  const now = clock.now();
  return rows
    .filter(({ name, waiting, failures }, n) => waiting + failures > 0 || rows[n + 1]?.name !== name)
    .map(({ seenAgoMs, databaseNow, instruments, alarms, ...member }) => {
      const aheadMs = member.skewMs - (now - databaseNow);
      return {
        ...member,
        seenAt: now - seenAgoMs,
        folders: (instruments ?? []).map((instrument) => toFolder(instrument, aheadMs)),
        alarms: (alarms ?? []).map(({ kind, instrument, text }) => ({ kind, instrument, text })),
      };
    });
}

const toFolder = (reported: ReportedInstrument, aheadMs: number): MemberFolder => ({
  instrument: reported.name,
  watch: reported.watch,
  state: reported.line === 'stopped' ? 'stopped' : reported.folder.state,
  reason: reported.folder.reason,
  lastFileAt: reported.lastFileAt === undefined ? null : reported.lastFileAt - aheadMs,
  silenceMs: reported.silenceMs ?? null,
  waiting: reported.waiting.files,
  unreadable: reported.unreadable?.files ?? null,
  stuck: reported.stuck?.files ?? null,
  asked: reported.asked ?? null,
  runs: reported.runs ?? null,
});
