import { readFileSync } from 'node:fs';
import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { ALARM_KINDS, type Live } from './live.js';

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
export const liveSchema: z.ZodType<Live> = z.object({
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
