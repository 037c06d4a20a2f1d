import { readFileSync } from 'node:fs';
import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/**
 * What a running daemon knows beyond the journal: its folders, its files that are not still yet, its gate, its alarms.
 * It leaves this beside the journal (`JOURNAL.live`) for the commands, and shows it on the page.
 */
export interface Live {
  /** When this was true. */
  readonly at: number;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: number;
  /** The configuration's file. */
  readonly config: string;
  /** What is wrong with the configuration, for people: with file, line and what to do. */
  readonly problems: readonly ConfigProblem[];
  /** A reload that was refused since the last that was taken. */
  readonly refused: { readonly at: number; readonly problems: readonly ConfigProblem[] } | undefined;
  readonly notebook: {
    readonly url: string;
    readonly gate: LiveGate;
    readonly requests: readonly RequestCount[];
  };
  readonly instruments: readonly LiveInstrument[];
  readonly alarms: readonly LiveAlarm[];
}

export interface ConfigProblem {
  /** `file:line:column`. */
  readonly at: string;
  readonly message: string;
  readonly hint: string | undefined;
  /** The instrument that it stops. */
  readonly instrument: string | undefined;
}

/** Why requests leave, or why they wait. Slowed: by what the server was seen to take. Slow start: after an outage. */
export type LiveGate =
  | { readonly kind: 'open' | 'slowed' | 'slow start'; readonly perSecond: number }
  | { readonly kind: 'held'; readonly until: number; readonly reason: string }
  | {
      readonly kind: 'down';
      readonly since: number;
      readonly probeAt: number;
      readonly failure: string;
      readonly reason: string;
    };

/** How many requests were answered so; `status` is a number, or `none` where no answer came. */
export interface RequestCount {
  readonly method: string;
  readonly status: string;
  readonly count: number;
}

export interface LiveInstrument {
  readonly name: string;
  readonly watch: string;
  /** `stopped`: a mistake in the configuration, or a failed test. `starting`: the first scan goes on. */
  readonly line: 'starting' | 'watching' | 'stopped';
  readonly folder: {
    readonly state: 'present' | 'missing' | 'unreadable' | 'unknown';
    readonly reason?: string | undefined;
  };
  /** When the last complete listing ended, and how many files of this instrument it found. */
  readonly scannedAt: number | undefined;
  readonly files: number;
  /** Files that no glob of this instrument fits, as the last listing found them. */
  readonly unmatched: { readonly files: number; readonly example: string | undefined };
  /** Files that are not still yet; the first ones by name. */
  readonly waiting: { readonly files: number; readonly first: readonly WaitingFile[] };
  /** When a file last came: one that became a run, or was seen for the first time. */
  readonly lastFileAt: number | undefined;
}

export interface WaitingFile {
  readonly path: string;
  readonly since: number;
  /** What it waits for, in words: `unchanged for 2 s of 5 s`, `waiting for done-file run-17.done`. */
  readonly reason: string;
}

/** Every kind of trouble that a person should know of. */
export const ALARM_KINDS = [
  'silence',
  'unmatched',
  'folder',
  'quarantine',
  'held',
  'auth',
  'outage',
  'configuration',
  'journal',
] as const;

/** A trouble that a person should know of. */
export interface LiveAlarm {
  readonly kind: (typeof ALARM_KINDS)[number];
  readonly instrument: string | undefined;
  readonly since: number;
  /** For people, in one or two sentences. */
  readonly text: string;
}

/** JSON has no `undefined`: what is not there was left out. */
const maybe = <T extends z.ZodType>(schema: T) => schema.optional().transform((value) => value);

const problemSchema = z.object({
  at: z.string(),
  message: z.string(),
  hint: maybe(z.string()),
  instrument: maybe(z.string()),
});

const gateSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['open', 'slowed', 'slow start']), perSecond: z.number() }),
  z.object({ kind: z.literal('held'), until: z.number(), reason: z.string() }),
  z.object({
    kind: z.literal('down'),
    since: z.number(),
    probeAt: z.number(),
    failure: z.string(),
    reason: z.string(),
  }),
]);

const instrumentSchema = z.object({
  name: z.string(),
  watch: z.string(),
  line: z.enum(['starting', 'watching', 'stopped']),
  folder: z.object({
    state: z.enum(['present', 'missing', 'unreadable', 'unknown']),
    reason: z.string().optional(),
  }),
  scannedAt: maybe(z.number()),
  files: z.number(),
  unmatched: z.object({ files: z.number(), example: maybe(z.string()) }),
  waiting: z.object({
    files: z.number(),
    first: z.array(z.object({ path: z.string(), since: z.number(), reason: z.string() })),
  }),
  lastFileAt: maybe(z.number()),
});

const alarmSchema = z.object({
  kind: z.enum(ALARM_KINDS),
  instrument: maybe(z.string()),
  since: z.number(),
  text: z.string(),
});

/** What a daemon leaves beside its journal, as it stands in the file. */
const liveSchema: z.ZodType<Live> = z.object({
  at: z.number(),
  pid: z.number(),
  version: z.string(),
  startedAt: z.number(),
  config: z.string(),
  problems: z.array(problemSchema),
  refused: maybe(z.object({ at: z.number(), problems: z.array(problemSchema) })),
  notebook: z.object({
    url: z.string(),
    gate: gateSchema,
    requests: z.array(z.object({ method: z.string(), status: z.string(), count: z.number() })),
  }),
  instruments: z.array(instrumentSchema),
  alarms: z.array(alarmSchema),
});

export const liveFileOf = (journalPath: string): string => `${journalPath}.live`;

/**
 * What the daemon of this journal last told of itself. Undefined where there is nothing, or where a daemon of another
 * version wrote what this one does not understand. Whether that daemon still runs, only the journal's lock says.
 */
export function readLive(journalPath: string): Live | undefined {
  try {
    return liveSchema.parse(JSON.parse(readFileSync(liveFileOf(journalPath), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Whoever reads it finds the last one or this one, never half of it; and only who may read the journal can. */
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
