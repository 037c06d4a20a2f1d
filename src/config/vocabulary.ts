import iconv from 'iconv-lite';
import { z } from 'zod';
import { dateFormats, fromFact, line, listOf, name, split, text, where } from './grammar.js';
import { size, wait } from './units.js';
import { finderSchema } from './vocabulary-meta.js';
import { type TableOptions, tableSchema } from './vocabulary-table.js';

/** The keys of `parse`: how a file is read. Descriptions end up in editors, before the eyes of a scientist. */

const works = (attempt: () => unknown): boolean => {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
};

const datesSchema = z.strictObject({
  format: dateFormats()
    .optional()
    .describe('How dates are written: dd/MM/yyyy HH:mm:ss, or a list of such patterns. Default: iso.'),
  zone: z
    .union(
      [
        text('a time zone').refine(
          (zone) => works(() => new Intl.DateTimeFormat('en', { timeZone: zone })),
          'expected a time zone such as Europe/Zurich',
        ),
        fromFact(),
      ],
      { error: 'expected a time zone such as Europe/Zurich, or { from: a fact }' },
    )
    .optional()
    .describe("The instrument's time zone: Europe/Zurich, or { from: the fact that names it }."),
  locale: text('a language')
    .refine((locale) => works(() => new Intl.Locale(locale)), 'expected a language such as de')
    .optional()
    .describe('The language of month names: de, fr, ja. Default: en.'),
});

const limitsSchema = z
  .strictObject({
    bytes: z
      .union([z.int().positive(), size()], { error: 'expected a size such as 64MB' })
      .optional()
      .describe(
        'The largest file that is read, such as 200MB. Default: 1GB of lines, 32MB of anything else.',
      ),
    rows: z.int().min(1).default(10_000_000).describe('The most rows, of all tables together.'),
    columns: z.int().min(1).default(10_000).describe('The most columns of one table.'),
    nesting: z.int().min(1).default(100).describe('How deep JSON and XML may be nested.'),
    seconds: z
      .union(
        [
          z
            .number()
            .positive()
            .max(24 * 86_400)
            .transform((seconds) => seconds * 1000),
          wait(),
        ],
        {
          error: 'expected seconds, or a duration such as 2m',
        },
      )
      .prefault(60)
      .describe('The longest that reading one file may take: 60, or 2m.'),
  })
  .transform(({ bytes, rows, columns, nesting, seconds }) => ({
    maxBytes: bytes,
    maxRows: rows,
    maxColumns: columns,
    maxNesting: nesting,
    maxMs: seconds,
  }));

export const FORMATS = ['delimited', 'text', 'json', 'xml', 'xlsx', 'jcamp', 'records', 'none'] as const;
export type Format = (typeof FORMATS)[number];

/** What can be said of any file, be it the main one of a run or another. */
const fileSchema = z
  .strictObject({
    when: line()
      .optional()
      .describe(
        'Of several alternatives: this one is for files with such a line, beside its other patterns.',
      ),
    format: z
      .enum(['auto', ...FORMATS], { error: `expected auto, ${FORMATS.slice(0, -1).join(', ')} or none` })
      .default('auto')
      .describe(
        'What kind of file it is. auto: by its content and name. none: not read, only its name and path are.',
      ),
    encoding: text('the name of an encoding')
      .refine((encoding) => encoding === 'auto' || iconv.encodingExists(encoding), {
        error: 'expected auto or an encoding such as utf-8, utf-16le, windows-1252, shift_jis or cp437',
      })
      .default('auto')
      .describe('auto: by the byte order mark, else UTF-8 if it is that, else windows-1252. Or a name.'),
    delimiter: split()
      .optional()
      .describe(
        'Where lines are cut into cells: ",", ";", tab, spaces (two or more), whitespace, /regex/. Else found.',
      ),
    quote: z
      .union([z.literal('none'), text('one character').length(1, 'expected one character')], {
        error: 'expected one character, or none',
      })
      .default('"')
      .describe('Around cells that contain the delimiter; none where it is an ordinary character.'),
    comment: text('what such lines begin with')
      .optional()
      .describe('Lines that begin with it are never rows; meta and header read them without it.'),
    decimal: z
      .enum(['.', ','])
      .optional()
      .describe('The decimal mark. Where none is given, 1,234 is not guessed.'),
    thousands: z
      .enum(['.', ',', ' ', "'"])
      .optional()
      .describe('What groups the digits of large numbers. Without it, nothing does.'),
    dates: datesSchema.prefault({}).describe('How dates are read. Ambiguous ones are not guessed.'),
    missing: listOf(text('a text that means no value'), 'texts that mean no value')
      .default([])
      .describe('Texts that mean no value: ["N/A", "OVER", "<LOD"]. They are kept beside the empty value.'),
    limits: limitsSchema.prefault({}).describe('Beyond them a file is quarantined.'),
    meta: listOf(finderSchema, 'a finder such as { separator: ":" }, or a list of them')
      .default([])
      .describe('How facts are found in the lines that belong to no table.'),
    facts: z
      .record(z.string(), where(name(), 'a name in the file, a cell such as =C3, or a path'))
      .prefault({})
      .describe('Facts under your own names: { sample: Sample ID, date: [Date, Time] }.'),
    table: tableSchema.optional().describe('The one table of the file, called readings.'),
    tables: z
      .record(z.string(), tableSchema)
      .optional()
      .describe('Several tables, by your names. The first is readings in templates.'),
  })
  .refine(({ table, tables }) => !table || !tables, 'expected table or tables, not both')
  .refine(({ decimal, thousands }) => !decimal || decimal !== thousands, {
    error: 'decimal and thousands cannot be the same',
    path: ['thousands'],
  });

/** One table has a word of its own for who writes it, and none for who reads it. */
const withTables = <Written extends WithTables>({ table, tables, ...rest }: Written) => ({
  ...rest,
  tables: tables ?? (table ? { readings: table } : {}),
});

interface WithTables {
  table?: TableOptions | undefined;
  tables?: Record<string, TableOptions> | undefined;
}

const PARSE = 'how a file is read, such as { delimiter: ",", table: {} }, or a list of such alternatives';
const alternatives = <S extends z.ZodType>(reading: S) =>
  listOf(reading, PARSE).refine((listed) => listed.length > 0, `expected ${PARSE}`);

/** One way to read a file: all of `parse`, or one of several alternatives in it. */
export const readingSchema = fileSchema
  .safeExtend({
    main: text('a glob such as "*.csv"')
      .optional()
      .describe(
        'Of a run of several files: the one that is read, seen from its folder. Without it: the only one, or the first of join.',
      ),
    also: z
      .record(text('a name such as "{stem}.xml"'), alternatives(fileSchema.transform(withTables)))
      .optional()
      .describe(
        'Further files of the run, each with its own parse: { "{stem}.xml": { facts: … } }. Their facts and tables join.',
      ),
  })
  .transform(withTables);

/** How a file is read, with all defaults filled in. */
export type ParseOptions = z.output<typeof readingSchema>;
/** The same as a person writes it, and as measuring a file yields it. */
export type ParseMapping = z.input<typeof readingSchema>;

/** `parse` as it stands in a configuration: one way to read a file, or several to be tried in order. */
export const parseSchema = alternatives(readingSchema);

/** One way to read a file, as measuring it yields it, with all defaults filled in. */
export const withDefaults = (mapping: ParseMapping): ParseOptions => readingSchema.parse(mapping);

export type { Finder } from './vocabulary-meta.js';
export type { TableOptions } from './vocabulary-table.js';
export type Dates = z.output<typeof datesSchema>;
export type Limits = z.output<typeof limitsSchema>;
