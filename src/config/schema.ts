import { z } from 'zod';
import { alarmsSchema } from './alarms.js';
import { expectSchema } from './expectations.js';
import { runSchema } from './run.js';
import { secret } from './secret.js';
import { silenceSchema } from './silence.js';
import { statusSchema } from './status.js';
import { text } from './text.js';
import { duration, rate, size, wait } from './units.js';
import { parseSchema } from './vocabulary.js';

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

export const experimentSchema = z
  .strictObject({
    title: text('a template').optional(),
    date: text('a template').optional(),
    body: text('a template').optional(),
    tags: z.array(text('a template')).optional(),
  })
  .describe(
    'What the experiment is made of: Liquid templates over meta, readings, columns, tables, file, instrument, now.',
  );

export const commentsSchema = z
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
