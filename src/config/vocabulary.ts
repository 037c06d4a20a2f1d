import iconv from 'iconv-lite';
import { z } from 'zod';
import {
  areaOf,
  dateFormats,
  fromFact,
  groups,
  line,
  listOf,
  name,
  regexSource,
  split,
  text,
  where,
} from './grammar.js';
import { size, wait } from './units.js';

/** The keys of a table: where it begins and ends, and what its columns are. */

const COLUMN = 'a column of the file by its name, a cell of the row by its number, or a path';
const columnsSchema = z.union(
  [
    z.array(text('the name of a column, or _ to drop it')).min(1),
    z.record(z.string(), where(z.union([z.int().min(0), name()], { error: `expected ${COLUMN}` }), COLUMN)),
  ],
  { error: 'expected columns by your names, { weight: Weight (mg) }, or a list of names' },
);

const CONDITION = 'a text, a number, /regex/ or any';
const condition = z.union([text(CONDITION), z.number(), z.boolean()], { error: `expected ${CONDITION}` });

/** Where in a workbook, or in any lines of cells, something is looked for. */
const placeKeys = {
  sheet: z
    .union([z.int().min(1), text('a sheet')], { error: 'expected a sheet by its name, or its number from 1' })
    .optional()
    .describe('Of a workbook: the sheet, by name or by number from 1. Default: the first.'),
  area: text('a rectangle such as B5:F')
    .refine((written) => areaOf(written) !== undefined, 'expected a rectangle such as B5:F or B5:F20')
    .optional()
    .describe('A rectangle, as spreadsheets name it: B5:F20, or B5:F down to the end.'),
  delimiter: split().optional().describe('Where these lines are cut, if not like the rest of the file.'),
};

const ROWS = "'/regex/' with named groups, a record type, or a path";

export const tableSchema = z
  .strictObject({
    after: line().optional().describe('The table begins below the first such line. Default: at the top.'),
    every: line()
      .optional()
      .describe('Each such line begins a block of the table; its named groups become columns.'),
    until: line().prefault('blank').describe('The first line outside of the table. Default: blank.'),
    header: line()
      .prefault('first')
      .describe(
        'The line with the names: first (the first that is not blank, the default), none, or a line.',
      ),
    headerRows: z.int().min(1).max(9).default(1).describe('How many lines the names take, joined downwards.'),
    units: z
      .union([z.enum(['inHeader', 'slash', 'nextRow', 'none']), z.strictObject({ column: name() })], {
        error: 'expected inHeader, slash, nextRow, none, or { column: a column with units }',
      })
      .default('inHeader')
      .describe(
        'Where units are: inHeader "Weight (mg)", slash "freq/Hz", nextRow below the names, { column: Unit }, none.',
      ),
    rows: z
      .union([groups(), text(ROWS).refine((written) => regexSource(written) === undefined)], {
        error: `expected ${ROWS}`,
      })
      .optional()
      .describe(
        'Which are the rows: lines that fit /regex/ (its groups are the columns), records of a type, or a path.',
      ),
    columns: columnsSchema
      .optional()
      .describe(
        'A map renames, types or adds columns and keeps the rest; a list is exactly these (_ drops).',
      ),
    skip: line().optional().describe('Lines that are no rows: MEAN, "/^-+$/".'),
    where: z
      .record(z.string(), listOf(condition, CONDITION))
      .optional()
      .describe('Rows to keep, by column: { Excluded: 0, Type: /^S/, Area: any }.'),
    fill: listOf(text('a column'), 'a column, or a list of them')
      .optional()
      .describe('Columns in which an empty cell takes the one above.'),
    grid: z
      .union([z.literal(true), z.array(text('a label')).min(1)], {
        error: 'expected true, or labels in order such as [Ch1, Ch2]',
      })
      .optional()
      .describe(
        'A plate: numbers across, letters down. One row a well. true, or the labels of what was measured, in order.',
      ),
    unpivot: groups()
      .optional()
      .describe(
        '/regex/ on column names: columns that fit become rows, its groups columns, the cell "value".',
      ),
    count: z
      .union([z.int().min(0), name()], { error: 'expected a number of rows, or the fact that says it' })
      .optional()
      .describe('How many rows there must be: a number, or the fact that says it.'),
    ...placeKeys,
  })
  .describe('A table: where it begins and ends, and what its columns are.');

export type TableOptions = z.output<typeof tableSchema>;

/** The keys of a finder: how facts are found in lines. */
const finderSchema = z
  .strictObject({
    separator: split()
      .optional()
      .describe(
        'Between name and value: ":", " = ", tab. Also cell (cells alternate name, value) and nextLine.',
      ),
    value: z
      .int()
      .min(1)
      .optional()
      .describe('Which piece is the value, from 1. Default: all after the first.'),
    unit: z.int().min(1).optional().describe('Which piece is the unit, from 1.'),
    in: z
      .enum(['lines', 'cells', 'name', 'path'])
      .default('lines')
      .describe('Where to look: in lines, in each cell by itself, in the name of the file, in its path.'),
    match: groups()
      .optional()
      .describe('/regex/ whose named groups become facts, from the first line that fits.'),
    line: line().optional().describe('Only the first such line.'),
    cells: z
      .union([z.record(z.string(), z.int().min(1)), z.array(text('a name, or _ to pass over')).min(1)], {
        error: 'expected cells by name, { plate: 2, mode: 5 }, or names in order, [file, _, user]',
      })
      .optional()
      .describe('Facts by their place in the line: { plate: 2, mode: 5 } or [file, _, user].'),
    after: line().optional().describe('Only below the first such line.'),
    until: line().optional().describe('Only above the next such line.'),
    ...placeKeys,
  })
  .refine(({ separator, match, cells }) => [separator, match, cells].filter(Boolean).length === 1, {
    error: 'expected exactly one of separator, match and cells',
  })
  .refine((finder) => finder.in !== 'cells' || finder.separator, 'in: cells needs a separator');

export type Finder = z.output<typeof finderSchema>;

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

const FORMATS = ['delimited', 'text', 'json', 'xml', 'xlsx', 'jcamp', 'records', 'none'] as const;
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
