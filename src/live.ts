import { readFileSync } from 'node:fs';
import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { formatPlace, type Problem } from './errors.js';

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

type Status<Schema extends z.ZodType> = DeepReadonly<z.output<Schema>>;

/** A key that JSON leaves out if it is undefined, but that the type requires. */
const maybe = <T extends z.ZodType>(schema: T) => schema.optional().transform((value) => value);

const problemSchema = z.object({
  /** `file:line:column`. */
  at: z.string(),
  message: z.string(),
  hint: maybe(z.string()),
  /** The instrument that the mistake stops. */
  instrument: maybe(z.string()),
});

/** A mistake in the configuration, as it is shown to people. */
export type ConfigProblem = Status<typeof problemSchema>;

export const describeProblem = ({ where, message, hint, stops }: Problem): ConfigProblem => ({
  at: formatPlace(where),
  message,
  hint,
  instrument: typeof stops === 'object' ? stops.instrument : undefined,
});

/** `slowed`: to the learned limit. `slow start`: after an outage. */
const limiterSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['open', 'slowed', 'slow start']), perSecond: z.number() }),
  z.object({ kind: z.literal('held'), until: z.number(), reason: z.string() }),
  z.object({
    kind: z.literal('down'),
    since: z.number(),
    probeAt: z.number(),
    failure: z.string(),
    reason: z.string(),
  }),
  /** Until somebody runs `labfeed recover`. */
  z.object({ kind: z.literal('halted'), reason: z.string() }),
]);

/** Whether requests are being sent, and if not, why. */
export type LimiterState = Status<typeof limiterSchema>;

/** The number of requests with this status; `none` if there was no answer. */
const requestCountSchema = z.object({ method: z.string(), status: z.string(), count: z.number() });

export type RequestCount = Status<typeof requestCountSchema>;

/** A file that is not settled yet. `reason` is in words: `unchanged for 2 s of 5 s`, `waiting for done-file run-17.done`. */
const waitingFileSchema = z.object({ path: z.string(), since: z.number(), reason: z.string() });

export type WaitingFile = Status<typeof waitingFileSchema>;

const filesSchema = z.object({ files: z.number(), first: z.array(waitingFileSchema) }).default({ files: 0, first: [] });

const instrumentSchema = z.object({
  name: z.string(),
  watch: z.string(),
  /** `stopped`: by a mistake in the configuration or a failed test. `starting`: during the first scan. */
  line: z.enum(['starting', 'watching', 'stopped']),
  folder: z.object({
    state: z.enum(['present', 'missing', 'unreadable', 'unknown']),
    reason: z.string().optional(),
  }),
  /** The end of the last complete scan, and the number of files of this instrument in it. */
  scannedAt: maybe(z.number()),
  files: z.number(),
  /** Files in the last scan that no glob of this instrument matches. */
  unmatched: z.object({ files: z.number(), example: maybe(z.string()) }),
  /** Files that are not in the journal yet; `first` holds the first ones by name. */
  waiting: z.object({
    files: z.number(),
    first: z.array(waitingFileSchema),
    /** How many of them cannot be read. */
    unreadable: z.number().default(0),
  }),
  /** Files and subfolders that exist but cannot be read, since `since`: somebody must change that. */
  unreadable: filesSchema,
  /** Files that have been waiting for more than a day: they keep changing, or a file that they need is missing. */
  stuck: filesSchema,
  /** When a file last became a run or was seen for the first time. */
  lastFileAt: maybe(z.number()),
  /** After how long without a file an alarm is raised. */
  silenceMs: z.number().optional(),
  /** How often the folder is scanned, and why events are not enough, if so. `everyMs` is null for never. */
  polling: maybe(z.object({ everyMs: z.number().nullable(), because: maybe(z.string()) })),
});

export type LiveInstrument = Status<typeof instrumentSchema>;

export const ALARM_KINDS = [
  'silence',
  'unmatched',
  'unreadable',
  'stuck',
  'folder',
  'quarantine',
  'held',
  'auth',
  'outage',
  'overdue',
  'source',
  'configuration',
  'journal',
  'spool',
  'operation',
] as const;

const alarmSchema = z.object({
  kind: z.enum(ALARM_KINDS),
  instrument: maybe(z.string()),
  since: z.number(),
  /** One or two sentences. */
  text: z.string(),
});

/** A condition that people are notified about. */
export type LiveAlarm = Status<typeof alarmSchema>;

/** What a machine of the fleet says about one of its instruments. */
const folderSchema = z.object({
  instrument: z.string(),
  watch: z.string(),
  /** `stopped`: by a mistake in the configuration or a failed test. */
  state: z.string(),
  reason: maybe(z.string().nullable()),
  lastFileAt: maybe(z.number().nullable()),
  silenceMs: z.number().nullish(),
  /** Files that are not in its journal yet, those that cannot be read, and those that wait for more than a day. */
  waiting: z.number(),
  unreadable: z.number().nullish(),
  stuck: z.number().nullish(),
  /** Files of its backlog that wait for a decision. */
  asked: z.number().nullish(),
  /** Its runs that are not filed. An older version does not say. */
  runs: z.object({ queued: z.number(), quarantined: z.number(), held: z.number() }).nullish(),
});

export type MemberFolder = Status<typeof folderSchema>;

/** A machine of the fleet. */
const memberSchema = z.object({
  name: z.string(),
  role: z.string(),
  version: z.string(),
  /** By the clock of this machine. */
  seenAt: z.number(),
  /** It was not seen for a minute when the list was read: what it says is what it last said. */
  isAway: z.boolean().default(false),
  /** How far its clock is ahead of the database's. */
  skewMs: z.number(),
  /** Whether it delivers. */
  leads: z.boolean(),
  /** Operations that the leader has not applied yet, and those that it has set aside. */
  waiting: z.number(),
  failures: z.number(),
  /** The address of the notebook, from a machine that delivers or is ready to. An older version does not say. */
  notebook: z.string().nullish(),
  folders: z.array(folderSchema).default([]),
  alarms: z
    .array(z.object({ kind: z.string(), instrument: maybe(z.string().nullable()), text: z.string() }))
    .default([]),
});

export type LiveMember = Status<typeof memberSchema>;

const liveSchema = z.object({
  /** When this was written. */
  at: z.number(),
  pid: z.number(),
  version: z.string(),
  startedAt: z.number(),
  /** The configuration file. */
  config: z.string(),
  /** The address of the status page, if it is served. */
  page: maybe(z.string()),
  problems: z.array(problemSchema),
  /** A reload that was rejected after the last accepted one. */
  refused: maybe(z.object({ at: z.number(), problems: z.array(problemSchema) })),
  /** A machine that only watches needs no address of the notebook. */
  notebook: z.object({ url: maybe(z.string()), gate: limiterSchema, requests: z.array(requestCountSchema) }),
  /** Copies of raw files that wait to be attached: their size, and the limit. */
  spool: maybe(z.object({ bytes: z.number(), maxBytes: z.number() })),
  instruments: z.array(instrumentSchema),
  alarms: z.array(alarmSchema),
  /** Of a member of a fleet. `trouble`: why the database cannot be reached; `kept`: operations that wait for it here. */
  fleet: z
    .object({
      name: z.string(),
      /** Whether its role is to deliver, or to be ready to. */
      delivers: z.boolean().default(true),
      trouble: maybe(z.string()),
      kept: z.number(),
      /** When the list was read. */
      listedAt: z.number().optional(),
      members: z.array(memberSchema),
    })
    .optional(),
});

/**
 * What a running daemon knows beyond the journal: folders, files that are not settled, limiter, alarms.
 * The daemon writes it to `JOURNAL.live` for the commands, and shows it on the page.
 */
export type Live = Status<typeof liveSchema>;

export const liveFileOf = (journalPath: string): string => `${journalPath}.live`;

/**
 * The last status that a daemon wrote beside this journal; undefined if there is none, or if another version wrote it
 * and it cannot be parsed. It may be stale: only the journal's lock shows whether that daemon still runs.
 */
export function readLive(journalPath: string): Live | undefined {
  try {
    return liveSchema.parse(JSON.parse(readFileSync(liveFileOf(journalPath), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically. Only users who can read the journal can read it. */
export async function writeLive(journalPath: string, live: Live): Promise<void> {
  const path = liveFileOf(journalPath);
  const { mode } = await stat(journalPath);
  await writeFile(`${path}.new`, JSON.stringify(live), { mode: 0o600 });
  await chmod(`${path}.new`, mode & 0o666);
  await rename(`${path}.new`, path);
}

export async function removeLive(journalPath: string): Promise<void> {
  const path = liveFileOf(journalPath);
  await Promise.all([rm(path, { force: true }), rm(`${path}.new`, { force: true })]);
}
