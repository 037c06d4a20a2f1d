import { isIPv4, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { expectSchema } from './expectations.js';
import { secret, text } from './secrets.js';
import { duration, rate, size, wait } from './units.js';
import { parseSchema } from './vocabulary.js';

/** Where a server listens. */
interface Address {
  /** A name or an IP address, without brackets. */
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
}

const NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** `127.0.0.1:7780`, `[::1]:7780`, `localhost:7780`; undefined where the text is none of these. */
export function readAddress(text: string): Address | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) return undefined;
  const isHost = bracketed === undefined ? isName(host) : isIPv6(bracketed);
  return isHost ? { host: host.toLowerCase(), port } : undefined;
}

/** A name as it stands in an address, or an IPv4 address; `1.2.3.400` is neither. */
const isName = (text: string): boolean => isIPv4(text) || (NAME.test(text) && !/^[\d.]+$/.test(text));

/** What is wrong with an address that cannot be read, where it is one of the usual mistakes. */
function addressHint(text: string): string | undefined {
  if (/^:\d+$/.test(text))
    return `write the address before the port: 127.0.0.1${text} for this machine alone, 0.0.0.0${text} for all (which needs a token)`;
  if (/^https?:/i.test(text)) return 'without http:// and without a path';
  if (isIPv6(text.replace(/:\d+$/, '')) || isIPv6(text))
    return 'an IPv6 address stands in brackets: [::1]:7780';
  if (!text.includes(':')) return `with the port behind it: ${isName(text) ? text : '127.0.0.1'}:7780`;
  return undefined;
}

/** Whether only programs on this machine can reach it. */
export function isLoopback({ host }: Pick<Address, 'host'>): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  // The same address can be written in many ways; a URL has it in its shortest.
  if (isIPv6(host)) return /^\[::(1\]|ffff:7f[0-9a-f]{2}:)/.test(new URL(`http://[${host}]`).hostname);
  return host === 'localhost';
}

const USUAL = '127.0.0.1:7780';
const EXPECTED_ADDRESS = `expected an address such as ${USUAL}`;

const address = z
  .string({ error: EXPECTED_ADDRESS })
  .transform((text, ctx): Address => {
    const read = readAddress(text);
    if (read) return read;
    ctx.addIssue({ code: 'custom', message: EXPECTED_ADDRESS, params: { hint: addressHint(text) } });
    return z.NEVER;
  })
  .describe('Address and port, such as 127.0.0.1:7780 or [::1]:7780.');

const NEEDS_TOKEN = 'other machines can reach this address: it needs a token';
const HOW_TO_TOKEN =
  'status: { address: …, token: { file: PATH } }, with a token of your own in that file (openssl rand -hex 32)';

/** The page shows what is filed, and takes decisions: beyond this machine, only for those who know the token. */
const guarded = z
  .strictObject({
    address: address.prefault(USUAL),
    token: secret(
      'token',
      'Where the token is that people log in to the page with: in a file, an environment variable or a systemd credential.',
    ).optional(),
    names: z
      .array(z.string().refine(isName, 'expected a name such as labfeed.example.org, without a port'))
      .default([])
      .describe('Names under which people open the page, beside its address and localhost.'),
  })
  .check(({ value, issues }) => {
    if (value.token || isLoopback(value.address)) return;
    issues.push({
      code: 'custom',
      input: value,
      path: ['address'],
      message: NEEDS_TOKEN,
      params: { hint: HOW_TO_TOKEN },
    });
  });

const alone = address.transform((read, ctx) => {
  if (!isLoopback(read))
    ctx.addIssue({ code: 'custom', message: NEEDS_TOKEN, params: { hint: HOW_TO_TOKEN } });
  return { address: read, names: [] as string[], token: undefined };
});

const statusSchema = z
  .union([z.literal(false), alone, guarded], { error: `${EXPECTED_ADDRESS}, or false` })
  .prefault(USUAL)
  .describe(
    'Where the status page listens, or false. An address that other machines can reach needs a token.',
  );

/** A program and its arguments. */
export type Words = readonly [string, ...string[]];

/** Whom to tell of alarms, beside log, page and metrics. */
interface AlarmChannels {
  readonly webhook?: string | undefined;
  readonly command?: Words | undefined;
}

const COMMAND = 'expected a program and its arguments, such as /usr/local/bin/page-me --to "lab it"';

const alarmsSchema = z
  .strictObject({
    webhook: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://chat.example.org/hook' })
      .refine(
        (url) => !URL.canParse(url) || !(new URL(url).username || new URL(url).password),
        'an address with a name or password in it is refused',
      )
      .optional()
      .describe('An address that gets a POST with JSON for each alarm, and again when it is over.'),
    command: z
      .string({ error: COMMAND })
      .transform((text, context): Words => {
        const [program, ...rest] = wordsOf(text) ?? [];
        if (program) return [program, ...rest];
        context.addIssue({ code: 'custom', message: COMMAND });
        return z.NEVER;
      })
      .optional()
      .describe(
        'A program that is started for each alarm, and again when it is over. Without a shell; LABFEED_ALARM_STATE, _KIND, _INSTRUMENT, _TEXT and _SINCE are in its environment.',
      ),
  })
  .describe('Whom to tell of alarms, beside log, page and metrics.');

const WORD = /(?:[^\s"']+|"[^"]*"|'[^']*')+/g;

/** Cuts at blanks, but not within quotes; undefined where a quote is not closed. */
function wordsOf(text: string): string[] | undefined {
  if (text.replaceAll(WORD, '').trim() !== '') return undefined;
  return (text.match(WORD) ?? []).map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}

/** A program without a slash in its name is looked for where programs are. */
export function resolveCommand(alarms: AlarmChannels, folder: string): AlarmChannels {
  const [program, ...rest] = alarms.command ?? [];
  return program?.includes('/') ? { ...alarms, command: [resolve(folder, program), ...rest] } : alarms;
}

/** From 1 for Monday to 7 for Sunday. */
export type Weekday = 1 | 2 | 3 | 4 | 5 | 6 | 7;

/** When to tell that nothing comes. */
export interface Silence {
  readonly afterMs: number;
  /** Only time on these days counts. */
  readonly days: ReadonlySet<Weekday>;
}

const NAMES: readonly string[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const ALL: readonly Weekday[] = [1, 2, 3, 4, 5, 6, 7];
const EXPECTED_DAYS = 'expected days such as mon-fri, or mon,wed,fri';

const days = z
  .string({ error: EXPECTED_DAYS })
  .transform((text, context): ReadonlySet<Weekday> => {
    const chosen = text.split(',').flatMap((part) => {
      const span = spanOf(part.trim());
      if (span.length === 0)
        context.addIssue({ code: 'custom', message: `${EXPECTED_DAYS}, found "${part}"` });
      return span;
    });
    return new Set(chosen);
  })
  .describe('Only time on these days counts, as this machine’s clock has them: mon-fri, or mon,wed,fri.');

/** `mon-fri`, `sat-mon`, `wed`; nothing where it is not written so. */
function spanOf(text: string): readonly Weekday[] {
  const [first, last = first, more] = text.split('-').map((name) => NAMES.indexOf(name));
  if (first === undefined || last === undefined || first < 0 || last < 0 || more !== undefined) return [];
  const length = ((last - first + 7) % 7) + 1;
  return [...ALL, ...ALL].slice(first, first + length);
}

const after = () => duration().refine((ms) => ms > 0, 'expected more than nothing');

const silenceSchema = z
  .union(
    [
      after().transform((afterMs): Silence => ({ afterMs, days: new Set(ALL) })),
      z
        .strictObject({ after: after().describe('How long.'), days: days.optional() })
        .transform((written): Silence => ({ afterMs: written.after, days: written.days ?? new Set(ALL) })),
    ],
    { error: 'expected a duration such as 24h, or { after: 24h, days: mon-fri }' },
  )
  .describe('Raise an alarm when nothing has come for this long: 24h, or { after: 24h, days: mon-fri }.');

/** What one run of an instrument is made of, as it stands in a configuration. */

const RUN = 'file, folder, { folder: "**/*.D" } or { join: ["{stem}.csv", "{stem}.xml"] }';
const STEM = 'a name with one {stem} in it, such as "{stem}.csv"';

const partName = z
  .string({ error: `expected ${STEM}` })
  .refine((name) => name.split('{stem}').length === 2, `expected ${STEM}`)
  .refine(
    (name) => !/^\/|(^|\/)\.\.?(\/|$)/.test(name),
    'expected a name beside the others, or in a folder beside them',
  );

const several = z
  .strictObject({
    folder: z
      .string({ error: 'expected a glob such as "**/*.D"' })
      .min(1, 'expected a glob such as "**/*.D"')
      .optional()
      .describe('Which folders are runs, seen from the watched one; all that lies in one belongs to it.'),
    join: z
      .array(partName)
      .min(2, 'expected the names of at least two files: one alone is run: file')
      .refine((names) => new Set(names).size === names.length, 'expected each name once')
      .optional()
      .describe(
        'Files of one stem, beside each other, are one run; the first is the one that it is known by.',
      ),
  })
  .refine(({ folder, join }) => (folder === undefined) !== (join === undefined), {
    error: 'expected folder or join',
  });

const runSchema = z
  .union([z.literal('file'), z.literal('folder').transform((): FolderRun => ({ folder: '*' })), several], {
    error: ({ input }) =>
      input === 'growing' ? '"run: growing" is not available in this version' : `expected ${RUN}`,
  })
  .transform((written): RunKind => {
    if (written === 'file') return written;
    const { folder, join } = written as Partial<FolderRun & JoinedRun>;
    return join ? { join } : { folder: folder ?? '*' };
  });

/** Each outermost folder that fits the glob. */
interface FolderRun {
  readonly folder: string;
}

/** Files of one stem. */
interface JoinedRun {
  readonly join: readonly string[];
}

export type RunKind = 'file' | FolderRun | JoinedRun;

/**
 * The configuration: the one source of its types, defaults, messages and JSON Schema.
 * Descriptions end up in editors, so they speak to the person who writes the YAML.
 */

const oneOrMore = (what: string) =>
  z.union([text(what).transform((one) => [one]), z.array(text(what)).min(1)], {
    error: `expected ${what}, or a list of them`,
  });

/** A value that the contract knows and this version does not carry out: refused, rather than half obeyed. */
const notYet = (value: string) => `${value} is not available in this version`;

const key = secret(
  'key',
  'Where the API key is: in a file, an environment variable or a systemd credential. Never the key itself.',
);

export const notebookSchema = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://eln.example.org' })
      .refine(
        (url) => !URL.canParse(url) || !(new URL(url).username || new URL(url).password),
        'an address with a name or password in it is refused',
      )
      .transform((url) => url.replace(/\/+$/, '').replace(/\/api\/v2$/, ''))
      .describe('Base address of the notebook; /api/v2 is added.'),
    key,
    dialect: z
      .enum(['auto', 'v2', 'elabftw'])
      .default('auto')
      .describe('auto finds out; v2 keeps to the contract to the letter; elabftw is eLabFTW.'),
    concurrency: z
      .int()
      .min(1)
      .max(64)
      .default(4)
      .describe('Requests under way at once, for the whole daemon.'),
    rate: rate()
      .prefault('10/s')
      .describe('The most that is ever sent; slower by itself when the server asks.'),
    timeout: wait().prefault('30s').describe('How long one request may take.'),
    commentField: text('the name of a field')
      .default('comment')
      .describe("The name of the text in a comment's body."),
  })
  .describe('The notebook that runs are filed in.');

const readySchema = z
  .strictObject({
    quiet: duration().optional().describe('Size and modification time must have held still for this long.'),
    doneFile: text('a name such as "{name}.done"')
      .refine(
        (name) => /\{(name|stem)\}/.test(name),
        'expected {name} or {stem} in the name of the done-file',
      )
      .optional()
      .describe('The file is complete once this one is beside it: "{name}.done" or "{stem}.ok".'),
  })
  .describe('When a file is complete: quiet for a while, or a done-file beside it, or both.');

export const existingSchema = z.union(
  [
    z.enum(['ingest', 'skip']),
    z.strictObject({ since: z.iso.date({ error: 'expected a date such as 2026-01-01' }) }),
  ],
  { error: 'expected ingest, skip or { since: 2026-01-01 }' },
);

const experimentSchema = z
  .strictObject({
    title: text('a template').optional(),
    date: text('a template').optional(),
    body: text('a template').optional(),
    tags: z.array(text('a template')).optional(),
  })
  .describe(
    'What the experiment is made of: Liquid templates over meta, readings, columns, tables, file, instrument, now.',
  );

const commentsSchema = z
  .strictObject({
    readings: z
      .enum(['table', 'each', 'summary', 'none'])
      .default('table')
      .describe('How readings become comments.'),
    text: text('a template')
      .optional()
      .describe('A Liquid template of your own; it takes the place of readings.'),
    maxBytes: size()
      .prefault('60KB')
      .refine((bytes) => bytes >= 1024 && bytes <= 65_535, 'expected between 1KB and 65535B')
      .describe('The most that one comment holds; longer ones are split between rows.'),
    maxComments: z
      .int()
      .min(1)
      .max(100)
      .default(5)
      .describe('Beyond it: one summary that names the raw file.'),
  })
  .describe('The comments that carry the readings.');

export const instrumentSchema = z
  .strictObject({
    watch: text('the folder that the instrument writes to').describe(
      'The folder that the instrument writes to.',
    ),
    files: oneOrMore('a glob such as "**/*.csv"')
      .prefault('**/*')
      .describe('Which files are runs, seen from the folder.'),
    ignore: oneOrMore('a glob such as "**/~*"')
      .prefault(['**/.*', '**/~*', '**/*.tmp', '**/*.part'])
      .describe('Which files are never runs.'),
    ready: readySchema.prefault({ quiet: '5s' }),
    poll: z
      .union([z.enum(['auto', 'never']), duration()], {
        error: 'expected auto, never or a duration such as 10s',
      })
      .default('auto')
      .describe('How often the folder is listed without being told to: network shares send no events.'),
    existing: existingSchema
      .optional()
      .describe(
        'Files that are there at the first scan. Not written, and more than 50 are found: they are held as one question.',
      ),
    run: runSchema
      .prefault('file')
      .describe(
        'What one run is: a file; a folder right under the watched one, with all that lies in it; folders by a glob; or files of one stem.',
      ),
    changed: z
      .enum(['new', 'ignore'], { error: notYet('anything but "new" and "ignore"') })
      .default('new')
      .describe('The same path with other bytes.'),
    duplicates: z.enum(['skip', 'ingest']).default('skip').describe('The same bytes under another path.'),
    parse: parseSchema.optional().describe('How the file is read. Without it, the file is measured.'),
    experiment: experimentSchema.prefault({}),
    comments: commentsSchema.prefault({}),
    attach: z
      .enum(['auto', 'never'])
      .default('auto')
      .describe('The raw file, where the server takes uploads.'),
    source: z
      .literal('keep', { error: notYet('anything but "source: keep"') })
      .default('keep')
      .describe('What happens to the file when all is confirmed.'),
    silence: silenceSchema.optional(),
    drift: z
      .enum(['warn', 'hold', 'off'])
      .default('warn')
      .describe(
        'A column gone or a unit changed since the last run: it is told, or the run is held until `retry` accepts it.',
      ),
    tests: z
      .array(
        z.strictObject({
          file: text('a sample file').describe(
            'A file of this instrument, seen from this configuration file.',
          ),
          expect: expectSchema,
        }),
      )
      .default([])
      .describe('Golden tests of this mapping: run by check, by try --test, and at each start.'),
  })
  .refine(({ run, parse }) => run !== 'file' || !parse?.some(({ main, also }) => main ?? also), {
    error: 'main and also are for runs of several files: say `run: folder` or `run: { join: […] }`',
    path: ['parse'],
  })
  .describe('One instrument. Only watch is required.');

/** Blanks and letters of any script, so that a lab can use its own names; nothing that is special elsewhere. */
export const INSTRUMENT_NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,63}$/u;

export const configSchema = z
  .strictObject({
    include: oneOrMore('a glob such as instruments.d/*.yaml')
      .optional()
      .describe('More files with instruments.'),
    notebook: notebookSchema,
    journal: text('the path of the journal')
      .optional()
      .describe('Default: the state folder of the service, else of the user.'),
    status: statusSchema,
    log: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
      .default('info')
      .describe('How much is logged.'),
    alarms: alarmsSchema.optional(),
    keep: duration().prefault('1y').describe('How long the history of finished runs is kept.'),
    instruments: z.record(z.string(), instrumentSchema).prefault({}).describe('The instruments, by name.'),
  })
  .describe('The configuration of labfeed.');

export type NotebookConfig = z.output<typeof notebookSchema>;
export type Ready = z.output<typeof readySchema>;
export type Existing = z.output<typeof existingSchema>;
export type ExperimentTemplates = z.output<typeof experimentSchema>;
export type CommentOptions = z.output<typeof commentsSchema>;
export type InstrumentConfig = z.output<typeof instrumentSchema>;
export type Config = z.output<typeof configSchema>;

/** Of the files that were there before, those modified before this instant (in nanoseconds) are passed over. */
export function skipBeforeNs(existing: Existing): bigint {
  if (existing === 'ingest') return 0n;
  if (existing === 'skip') return 2n ** 62n;
  return BigInt(new Date(`${existing.since}T00:00:00`).getTime()) * 1_000_000n;
}
