import { z } from 'zod';
import { expectSchema } from './expectations.js';
import { fleetSchema, isPostgres, refusePostgres, roleSchema } from './fleet.js';
import { ARROW, duration, listOf, mapError, positiveDuration, size, text } from './grammar.js';
import { alarmsSchema, notebookSchema, statusSchema } from './settings.js';
import { type ParseOptions, parseSchema } from './vocabulary.js';

/**
 * The configuration: the one source of its types, defaults, messages and JSON Schema. Editors and the reference in
 * docs/ show the descriptions.
 */

const readySchema = z
  .strictObject(
    {
      quiet: duration()
        .optional()
        .describe('The quiet period: how long the size and modification time must stay unchanged.'),
      doneFile: text('a name such as "{name}.done"')
        .refine(
          (name) => /\{(name|stem)\}/.test(name),
          `the name of the done-file must contain {name} or {stem}${ARROW}write, for example, "{name}.done"`,
        )
        .meta({ pattern: '\\{(name|stem)\\}' })
        .optional()
        .describe('The file that the instrument writes next to a complete file: "{name}.done" or "{stem}.ok".'),
    },
    { error: mapError('ready: { quiet: 5s }') },
  )
  .describe('When a file is complete: after a quiet period, when a done-file exists, or both.');

const existingSchema = z.union(
  [
    z.enum(['ingest', 'skip']),
    z.strictObject({
      since: z.iso
        .date({ error: 'expected a date such as 2026-01-01' })
        .describe('Files modified before this date are skipped.'),
    }),
  ],
  { error: 'expected ingest, skip or { since: 2026-01-01 }' },
);

/** What a person decides about a backlog. */
export const backfillSchema = z.union([existingSchema, z.literal('undo')]);

const STEM = 'a name with one {stem} in it, such as "{stem}.csv"';

const partName = z
  .string({ error: `expected ${STEM}` })
  .refine((name) => name.split('{stem}').length === 2, `expected ${STEM}`)
  .refine(
    (name) => !/^\/|(^|\/)\.\.?(\/|$)/.test(name),
    'expected a file in the same folder as the others, or in a folder below it',
  )
  .meta({ pattern: '^(?!/)(?!(.*/)?\\.\\.?(/|$))(?!.*\\{stem\\}.*\\{stem\\}).*\\{stem\\}' });

const GROWING = 'expected growing, or { growing: { per: day, every: 10m } }';

const growingSchema = z
  .strictObject(
    {
      per: z
        .enum(['file', 'day'], { error: 'expected file or day' })
        .default('file')
        .describe('Of a growing file: one experiment for the file, or one for each day of its readings.'),
      every: duration()
        .prefault('10m')
        .refine((ms) => ms >= 1000 && ms <= 86_400_000, 'expected a duration from 1s to 24h')
        .describe('Of a growing file: how often its new lines are filed. They become comments, and the body follows.'),
    },
    { error: GROWING },
  )
  .transform(({ per, every }) => ({ per, everyMs: every }));

const runOptions = z
  .strictObject({
    folder: text('a glob such as "**/*.D"')
      .optional()
      .describe(
        'Which folders are runs: a glob, relative to the watched folder. All files in the folder belong to the run.',
      ),
    join: z
      .array(partName)
      .min(2, `expected at least two file names${ARROW}for one file, write run: file`)
      .refine((names) => new Set(names).size === names.length, 'a file name is listed twice')
      .meta({ uniqueItems: true })
      .optional()
      .describe('Files with the same {stem} are one run. The run is named after the first file.'),
    growing: growingSchema.optional().describe('A file that keeps growing, such as a log.'),
  })
  .refine((written) => Object.values(written).filter((value) => value !== undefined).length === 1, {
    error: 'expected either folder or join or growing',
  })
  .meta({ minProperties: 1, maxProperties: 1 });

const runSchema = z
  .union([z.literal('file'), z.literal('folder'), z.literal('growing'), runOptions], {
    error:
      'expected file, folder, growing, { folder: "**/*.D" }, { join: ["{stem}.csv", "{stem}.xml"] } or { growing: { per: day, every: 10m } }',
  })
  .transform((written): 'file' | { folder: string } | { join: string[] } | { growing: Growing } => {
    if (written === 'file') return written;
    if (written === 'growing') return { growing: growingSchema.parse({}) };
    const { folder = '*', join, growing }: z.output<typeof runOptions> = written === 'folder' ? {} : written;
    return growing ? { growing } : join ? { join } : { folder };
  });

/** `per`: what is one experiment. `everyMs`: how often new lines are filed. */
export type Growing = z.output<typeof growingSchema>;

/** A file, each outermost folder that matches the glob, files with the same stem, or files that keep growing. */
export type RunKind = z.output<typeof runSchema>;

const PLOT = 'expected auto, never, or { x: Wavelength, y: [Absorbance], kind: line }';

const plotSchema = z.union(
  [
    z.enum(['auto', 'never']),
    z.strictObject(
      {
        x: text('the name of a column').describe('The column of the x axis; for a heat map, the column of the wells.'),
        y: listOf(text('the name of a column'), 'the name of a column, or a list of names').describe(
          'The columns to plot: a name or a list.',
        ),
        kind: z
          .enum(['line', 'points', 'bar', 'heatmap'])
          .optional()
          .describe('How to draw it. Default: chosen by the values of x.'),
      },
      { error: PLOT },
    ),
  ],
  { error: PLOT },
);

const FIELD_TYPES = ['text', 'number', 'date', 'time', 'datetime-local', 'url', 'email'] as const;
const FIELD = 'expected a template, or { value: "{{ meta.pH }}", type: number, unit: pH }';

const fieldSchema = z
  .union(
    [
      text('a template'),
      z.strictObject(
        {
          value: text('a template').describe('The value. A field without a value is left out.'),
          type: z.enum(FIELD_TYPES).default('text').describe('How eLabFTW shows and checks it.'),
          unit: text('a unit').optional().describe('The unit of a number.'),
        },
        { error: FIELD },
      ),
    ],
    { error: FIELD },
  )
  .transform((written) => (typeof written === 'string' ? { value: written, type: 'text' as const } : written));

const nameOrId = (what: string) =>
  z.union([text(`the name or the id of ${what}`), z.int().positive()], {
    error: `expected the name or the id of ${what}`,
  });

/** From everybody to the owner alone. eLabFTW's own names. */
const PERMISSIONS = ['public', 'organization', 'team', 'user', 'useronly'] as const;

const experimentSchema = z
  .strictObject(
    {
      title: text('a template').optional().describe('The title. Default: the file name and the instrument.'),
      date: text('a template')
        .optional()
        .describe('The date. Default: the fact "date", else the day on which the file was modified.'),
      body: text('a template')
        .optional()
        .describe('The body, as HTML with escaped values. Default: facts and readings as tables.'),
      tags: z.array(text('a template')).optional().describe('The tags. Default: the name of the instrument.'),
      plot: plotSchema
        .optional()
        .describe(
          'The plot of the readings, shown in the body on eLabFTW: auto (chosen by the columns), never, or its columns and kind. Default: auto.',
        ),
      fields: z
        .record(text('the name of a field'), fieldSchema, {
          error: mapError('fields: { Sample: "{{ meta.Sample }}" }'),
        })
        .optional()
        .describe('eLabFTW: its extra fields, by name. A template, or keys below.'),
      category: nameOrId('a category').optional().describe('eLabFTW: the category, by name or id.'),
      status: nameOrId('a status').optional().describe('eLabFTW: the status, by name or id.'),
      template: nameOrId('a template').optional().describe('eLabFTW: the template to create the experiment from.'),
      link: nameOrId('a resource').optional().describe('eLabFTW: a resource to link to, such as the instrument.'),
      canread: z.enum(PERMISSIONS).optional().describe('eLabFTW: who may read the experiment.'),
      canwrite: z.enum(PERMISSIONS).optional().describe('eLabFTW: who may change the experiment.'),
    },
    { error: mapError('experiment: { title: "…", tags: [ … ] }') },
  )
  .describe('The experiment: Liquid templates that can use meta, readings, columns, tables, file, instrument and now.');

const commentsSchema = z
  .strictObject(
    {
      readings: z
        .enum(['auto', 'table', 'lines', 'each', 'summary', 'none'])
        .default('auto')
        .describe(
          'How readings become comments: as aligned tables, one line each, one comment each, as a summary, or not at all. auto: lines, which read well in every font, or one summary of more than 200 lines if the raw file is attached.',
        ),
      text: text('a template').optional().describe('A Liquid template for the comment, used instead of readings.'),
      maxBytes: size()
        .prefault('60KB')
        .refine((bytes) => bytes >= 1024 && bytes <= 65_535, 'expected a size from 1KB to 65535B')
        .describe('The maximum size of a comment. Longer ones are split between rows.'),
      maxComments: z
        .int()
        .min(1)
        .max(100)
        .default(5)
        .describe('The maximum number of comments. If there would be more, one summary names the raw file.'),
    },
    { error: mapError('comments: { readings: lines }') },
  )
  .describe('The comments with the readings.');

const DAY_NAMES: readonly string[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
/** As luxon numbers them: from 1 for Monday to 7 for Sunday. */
const ALL_DAYS: readonly number[] = [1, 2, 3, 4, 5, 6, 7];
const EXPECTED_DAYS = 'expected days such as mon-fri or mon,wed,fri';

const DAY = `(${DAY_NAMES.join('|')})`;
const RANGE = `\\s*${DAY}(-${DAY})?\\s*`;

const days = z
  .string({ error: EXPECTED_DAYS })
  .meta({ pattern: `^${RANGE}(,${RANGE})*$` })
  .transform((written, context): ReadonlySet<number> => {
    const chosen = written.split(',').flatMap((part) => {
      const range = dayRange(part.trim());
      if (range.length === 0) context.addIssue({ code: 'custom', message: `${EXPECTED_DAYS}, found "${part}"` });
      return range;
    });
    return new Set(chosen);
  });

/** `mon-fri`, `sat-mon` or `wed`. Empty if it is none of these. */
function dayRange(written: string): readonly number[] {
  const [first, last = first, more] = written.split('-').map((name) => DAY_NAMES.indexOf(name));
  if (first === undefined || last === undefined || first < 0 || last < 0 || more !== undefined) return [];
  const length = ((last - first + 7) % 7) + 1;
  return [...ALL_DAYS, ...ALL_DAYS].slice(first, first + length);
}

const silenceSchema = z
  .union(
    [
      positiveDuration().transform((after) => ({ after, days: undefined })),
      z.strictObject({
        after: positiveDuration().describe('The time without a new file after which the alarm is raised.'),
        days: days.optional().describe('Only time on these days counts: mon-fri, or mon,wed,fri. Default: all days.'),
      }),
    ],
    { error: 'expected a duration such as 24h, or { after: 24h, days: mon-fri }' },
  )
  .transform(({ after, days = new Set(ALL_DAYS) }) => ({ afterMs: after, days }));
export type Silence = z.output<typeof silenceSchema>;

const testSchema = z.strictObject({
  file: text('a sample file').describe('A sample file, relative to this configuration file.'),
  expect: expectSchema,
});

const globs = (example: string, atLeast = 1) =>
  listOf(text(`a glob such as ${example}`), `a glob such as ${example}, or a list of globs`, atLeast);

/** The settings of a file that keeps growing; undefined for other runs. */
export const growingOf = (run: RunKind): Growing | undefined =>
  typeof run === 'object' && 'growing' in run ? run.growing : undefined;

const isGrowing = (run: RunKind): boolean => growingOf(run) !== undefined;
const hasSeveralFiles = (run: RunKind): boolean => run !== 'file' && !isGrowing(run);
const LINE_FORMATS: ReadonlySet<string> = new Set(['auto', 'delimited', 'text']);

/** With these, a row depends on rows far above it, which are not read again. */
const needsRowsAbove = (parse: readonly ParseOptions[] = []): boolean =>
  parse
    .flatMap(({ tables }) => Object.values(tables))
    .some(
      ({ fill, every, grid, count, columns = {} }) =>
        [fill, every, grid, count].some((value) => value !== undefined) ||
        Object.values(columns).some((column) => typeof column === 'object' && column !== null && 'start' in column),
    );

export const instrumentSchema = z
  .strictObject(
    {
      watch: z
        .string({
          error: `expected a folder${ARROW}write the folder that the instrument writes to, such as watch: /srv/instruments/balance`,
        })
        .min(1, 'expected the folder that the instrument writes to')
        .describe('The folder that the instrument writes to. Folders below it are watched too.'),
      files: globs('"**/*.csv"')
        .prefault('**/*')
        .describe('Which files are runs: one glob or a list, relative to the folder.'),
      ignore: globs('"**/~*"', 0)
        .prefault(['**/.*', '**/~*', '**/*.tmp', '**/*.part'])
        .describe('Which files are ignored: one glob or a list, relative to the folder.'),
      ready: readySchema.prefault({ quiet: '5s' }),
      poll: z
        .union([z.enum(['auto', 'never']), duration()], {
          error: 'expected auto, never or a duration such as 10s',
        })
        .prefault('auto')
        .describe(
          'How often the folder is scanned. auto: more often on network shares and other folders that report no file events.',
        ),
      links: z
        .union([z.literal('refuse').transform((): string[] => []), z.array(text('a folder')).min(1)], {
          error: 'expected refuse, or a list of folders that links may lead to',
        })
        .prefault('refuse')
        .describe(
          'Links that leave the watched folder: refuse, or a list of folders that they may lead to. Add hard to the list to accept files of other users that have several names (hard links).',
        ),
      existing: existingSchema
        .optional()
        .describe(
          'What to do with files that exist at the first scan. If absent and there are more than 50, they need a decision.',
        ),
      run: runSchema
        .prefault('file')
        .describe(
          'What counts as a run: a file, each folder in the watched folder, folders that match a glob, files with the same stem, or a file that keeps growing, such as a log.',
        ),
      changed: z
        .enum(['new', 'revise', 'ignore'])
        .default('new')
        .describe(
          'What to do if a filed path has new content: file a new run, update the experiment of the path unless somebody edited it, or ignore it.',
        ),
      duplicates: z
        .enum(['skip', 'ingest'])
        .default('skip')
        .describe('What to do with the same content under another path: skip it, or file it again.'),
      parse: parseSchema
        .optional()
        .describe('How files are read. If absent, labfeed detects the layout of each file, as `learn` does.'),
      experiment: experimentSchema.prefault({}),
      comments: commentsSchema.prefault({}),
      attach: z
        .enum(['auto', 'never'])
        .default('auto')
        .describe(
          'Whether to attach the raw file to the experiment. auto: if the notebook is eLabFTW. More than 20 files are attached as one archive.',
        ),
      source: z
        .union(
          [
            z.enum(['keep', 'delete']),
            z.strictObject({
              move: z.string().min(1).describe('The folder that filed files are moved to, with their subfolders.'),
            }),
          ],
          {
            error: `expected keep, delete or { move: FOLDER }${ARROW}for example source: { move: /srv/filed }`,
          },
        )
        .default('keep')
        .describe(
          'What happens to a filed file to which nothing was written for 10 minutes: it stays, is deleted, or is moved to a folder that is not watched. It is deleted only if the attached file or every reading in it was read back from the notebook, and moved only if that or all that was filed was read back.',
        ),
      silence: silenceSchema
        .optional()
        .describe(
          'Raise an alarm if no file arrives for this long: 24h, or { after: 24h, days: mon-fri }. Default: never.',
        ),
      drift: z
        .enum(['warn', 'hold', 'off'])
        .default('warn')
        .describe(
          'If columns or units differ from the previous run: warn, hold the run until `retry` accepts it, or do nothing.',
        ),
      unread: z
        .enum(['quarantine', 'warn'])
        .optional()
        .describe(
          'If many lines that look like readings are in no table: quarantine the run, or warn. Default: quarantine without `parse`, otherwise warn. `learn` writes quarantine.',
        ),
      tests: z
        .array(testSchema)
        .default([])
        .describe('Tests for this mapping, run by `check`, by `try --test` and at each start.'),
    },
    { error: mapError('the instrument as { watch: FOLDER }') },
  )
  .refine(({ run, parse }) => hasSeveralFiles(run) || !parse?.some(({ main, also }) => main ?? also), {
    error: `the keys main and also are only for runs of several files${ARROW}write run: folder or run: { join: […] }`,
    path: ['parse'],
  })
  .refine(({ run, parse }) => !isGrowing(run) || !parse?.some(({ format }) => !LINE_FORMATS.has(format)), {
    error: `only files of lines can be followed while they grow${ARROW}use format: delimited or text, or run: file`,
    path: ['parse'],
  })
  .refine(({ run, parse }) => !isGrowing(run) || !needsRowsAbove(parse), {
    error: `fill, every, grid, count and computed columns (start, step) need the whole file, but a growing file is read line by line${ARROW}remove them, or write run: file`,
    path: ['parse'],
  })
  .refine(({ run, source }) => !isGrowing(run) || source === 'keep', {
    error: `a file that keeps growing is neither moved nor deleted${ARROW}write source: keep, or run: file`,
    path: ['source'],
  })
  .refine(({ run, ready }) => !isGrowing(run) || ready.doneFile === undefined, {
    error: `a growing file has no done-file${ARROW}remove doneFile, or write run: file`,
    path: ['ready'],
  })
  .describe('An instrument. Only watch is required.');

/** Letters of any script, so that a lab can use its own names; no characters that are special elsewhere. */
export const INSTRUMENT_NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,63}$/u;
export const NAME_HINT = 'use at most 64 letters, digits, spaces, dots, dashes and underscores';

export const configSchema = z
  .strictObject({
    include: globs('instruments.d/*.yaml')
      .optional()
      .describe('Other files with instruments: one glob or a list, relative to this file.'),
    notebook: notebookSchema,
    journal: text('a path')
      .check(({ value, issues }) => {
        const message = isPostgres(value) ? refusePostgres(value) : undefined;
        if (message !== undefined) issues.push({ code: 'custom', input: value, message });
      })
      .optional()
      .describe(
        'The journal file, on a local disk. Default: /var/lib/labfeed/journal.db for /etc/labfeed/config.yaml, else labfeed.journal/journal.db beside labfeed.yaml. Or postgres://… for a fleet of several machines.',
      ),
    role: roleSchema,
    fleet: fleetSchema,
    spool: size()
      .prefault('10GB')
      .describe(
        'How much disk space copies of raw files may take beside the journal until they are attached. What does not fit is attached from its folder, if it is still there.',
      ),
    status: statusSchema,
    log: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info').describe('The log level.'),
    alarms: alarmsSchema.optional(),
    keep: duration()
      .prefault('1y')
      .describe('How long the history of finished runs is kept. Fingerprints are kept forever.'),
    instruments: z
      .record(z.string().meta({ pattern: INSTRUMENT_NAME.source }), instrumentSchema)
      .prefault({})
      .describe('The instruments, by name. If several match a file, it belongs to the first.'),
  })
  .describe('The configuration of labfeed.');

export type Ready = z.output<typeof readySchema>;
export type Existing = z.output<typeof existingSchema>;
export type Backfill = z.output<typeof backfillSchema>;
export type PlotOption = z.output<typeof plotSchema>;
export type ExperimentTemplates = z.output<typeof experimentSchema>;
export type CommentOptions = z.output<typeof commentsSchema>;
export type InstrumentConfig = z.output<typeof instrumentSchema>;
export type Config = z.output<typeof configSchema>;

/** Existing files modified before this time, in nanoseconds, are skipped. */
export function skipBeforeNs(existing: Existing): bigint {
  if (existing === 'ingest') return 0n;
  if (existing === 'skip') return 2n ** 62n;
  return BigInt(new Date(`${existing.since}T00:00:00`).getTime()) * 1_000_000n;
}
