import iconv from 'iconv-lite';
import { z } from 'zod';
import {
  ARROW,
  areaOf,
  dateFormats,
  fromFact,
  groups,
  line,
  listOf,
  name,
  regexMistake,
  regexSource,
  size,
  split,
  text,
  wait,
  where,
} from './grammar.js';

/** The keys of `parse`: how a file is read. */

const COLUMN = 'the name of a column, the number of a cell, or a path';
/** A /regex/ gives all columns whose names match what only the long form says: unit, type, format. */
const columnKey = z.string().superRefine((written, { addIssue }) => {
  const mistake = regexMistake(written);
  if (mistake !== undefined) addIssue(mistake);
});
const isPattern = (key: string): boolean => regexSource(key) !== undefined;
const columnsSchema = z.union(
  [
    z.array(text('the name of a column, or _ to drop it')).min(1),
    z
      .record(columnKey, where(z.union([z.int().min(0), name()], { error: `expected ${COLUMN}` }), COLUMN))
      .refine(
        (columns) =>
          Object.entries(columns).every(([key, spec]) => !isPattern(key) || (!spec.from && spec.start === undefined)),
        'a /regex/ of columns can have only a unit, type and format',
      ),
  ],
  { error: `expected columns${ARROW}write a map of your names, { weight: Weight (mg) }, or a list of names` },
);

const CONDITION = 'text, a number, /regex/ or any';
const condition = z.union([text(CONDITION), z.number(), z.boolean()], { error: `expected ${CONDITION}` });

/** Which part of the file a table or finder reads. */
const placeKeys = {
  sheet: z
    .union([z.int().min(1), text('a sheet')], { error: 'expected the name of a sheet, or its number, counted from 1' })
    .optional()
    .describe('The sheet of a workbook, by name or by number, counted from 1. Default: the first.'),
  area: text('a cell range such as B5:F')
    .refine((written) => areaOf(written) !== undefined, 'expected a cell range such as B5:F or B5:F20')
    .optional()
    .describe('A cell range in spreadsheet notation: B5:F20, or B5:F down to the end. Default: everything.'),
  delimiter: split().optional().describe('How these lines are split into cells. Default: like the rest of the file.'),
};

const ROWS = '/regex/ with named groups, a record type, or a path';

export const tableSchema = z
  .strictObject({
    after: line().optional().describe('The table starts below the first line that matches. Default: at the top.'),
    every: line()
      .optional()
      .describe(
        'Each line that matches starts a block of the table. Its named groups become columns. In a list, each pattern starts blocks within those of the patterns before it.',
      ),
    until: line().prefault('blank').describe('The first line after the table.'),
    header: line()
      .prefault('first')
      .describe(
        'The line with the column names: first (the first that is not blank), none, or a line. A /regex/ with a group "name" finds lines with one name each and its "unit", one with a group "names" the line with all of them.',
      ),
    headerRows: z
      .int()
      .min(1)
      .max(9)
      .default(1)
      .describe('How many lines the column names take. The lines are joined from top to bottom.'),
    units: z
      .union(
        [
          z.enum(['inHeader', 'slash', 'nextRow', 'firstRow', 'none']),
          z.strictObject({
            column: listOf(name(), 'the name of a column, or a list of names').describe(
              'The columns with the units. A name that occurs several times is that of all of these columns.',
            ),
          }),
        ],
        {
          error: 'expected inHeader, slash, nextRow, firstRow, none, or { column: the column with the units }',
        },
      )
      .default('inHeader')
      .describe(
        'Where the units are: inHeader "Weight (mg)", slash "freq/Hz", nextRow below the names, firstRow of the headerRows, { column: Unit }, or none.',
      ),
    rows: z
      .union([groups(), text(ROWS).refine((written) => regexSource(written) === undefined)], {
        error: `expected ${ROWS}`,
      })
      .optional()
      .describe(
        'What the rows are: lines that match /regex/ (its groups are the columns), records of a type, or a path. Default: every line.',
      ),
    columns: columnsSchema
      .optional()
      .describe(
        'A map renames, types or adds columns and keeps the rest. A /regex/ in it gives all columns that match a unit or type. A list names exactly the columns to keep (_ drops one).',
      ),
    skip: line().optional().describe('Lines that are not rows: MEAN, "/^-+$/".'),
    where: z
      .record(z.string(), listOf(condition, CONDITION))
      .optional()
      .describe('Which rows to keep, by column: { Excluded: 0, Type: /^S/, Area: any }. Default: all.'),
    fill: listOf(text('a column'), 'a column, or a list of them')
      .optional()
      .describe('Columns in which an empty cell takes the value above it.'),
    grid: z
      .union([z.literal(true), z.array(text('a label')).min(1)], {
        error: 'expected true, or a list of labels such as [Ch1, Ch2]',
      })
      .optional()
      .describe(
        'A plate with numbers across and letters down, read as one row per well: true, or the labels of the measurements in order.',
      ),
    unpivot: groups()
      .optional()
      .describe(
        'A /regex/ on column names. Matching columns become rows, its groups become columns, and the cell becomes "value".',
      ),
    count: z
      .union([z.int().min(0), name()], { error: 'expected a number of rows, or the fact that contains it' })
      .optional()
      .describe('How many rows there must be: a number, or the fact that contains it.'),
    ...placeKeys,
  })
  .describe('A table: where it starts and ends, and what its columns are.');

export type TableOptions = z.output<typeof tableSchema>;

/** How facts are found in lines. */
const finderSchema = z
  .strictObject({
    separator: split()
      .optional()
      .describe(
        'What separates name and value: ":", " = ", tab. Also cell (cells alternate between name and value), nextLine (a line is a name, the next its value) and nextRow (the cells of a line are names, those of the next their values).',
      ),
    name: z
      .int()
      .min(1)
      .optional()
      .describe(
        'Which piece is the name, counted from 1. Default: the first. If it is another, the first is the value.',
      ),
    value: z
      .union([z.int().min(1), z.literal('each')], { error: 'expected the number of a piece, or each' })
      .optional()
      .describe(
        'Which piece is the value, counted from 1, or each: every piece is a value, and a unit belongs to the number before it. Default: everything after the first separator.',
      ),
    unit: z.int().min(1).optional().describe('Which piece is the unit, counted from 1. Default: none.'),
    in: z
      .enum(['lines', 'cells', 'name', 'path'])
      .default('lines')
      .describe('Where to search: in lines, in each cell, in the file name, or in the path.'),
    match: groups().optional().describe('A /regex/ whose named groups become facts, from the first line that matches.'),
    except: listOf(text('a name'), 'a name, or a list of them').optional().describe('Names that are no facts.'),
    line: line().optional().describe('Search only the first line that matches.'),
    every: line()
      .optional()
      .describe('Search only the lines that match. With nextLine and nextRow, these are the lines with names.'),
    cells: z
      .union([z.record(z.string(), z.int().min(1)), z.array(text('a name, or _ to skip a cell')).min(1)], {
        error: 'expected { plate: 2, mode: 5 }, or names in order such as [file, _, user]',
      })
      .optional()
      .describe('Facts by their position in the line: { plate: 2, mode: 5 } or [file, _, user].'),
    after: line().optional().describe('Search only below the first line that matches.'),
    until: line().optional().describe('Search only above the next line that matches.'),
    ...placeKeys,
  })
  .refine(({ separator, match, cells }) => [separator, match, cells].filter(Boolean).length === 1, {
    error: 'expected exactly one of separator, match and cells',
  })
  .refine((finder) => finder.in !== 'cells' || finder.separator, 'in: cells needs a separator')
  .refine(({ line: one, every }) => !one || !every, 'line and every cannot be combined')
  .refine(
    ({ name: piece, separator }) =>
      !piece || !(separator === undefined || /^(?:cell|nextLine|nextRow)$/.test(String(separator))),
    'name needs a separator that splits the line',
  );

export type Finder = z.output<typeof finderSchema>;

const succeeds = (attempt: () => unknown): boolean => {
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
    .describe('How dates are written: dd/MM/yyyy HH:mm:ss, or a list of such patterns, tried in order. Default: iso.'),
  zone: z
    .union(
      [
        text('a time zone').refine(
          (zone) => succeeds(() => new Intl.DateTimeFormat('en', { timeZone: zone })),
          'expected a time zone such as Europe/Zurich',
        ),
        fromFact(),
      ],
      { error: 'expected a time zone such as Europe/Zurich, or { from: a fact }' },
    )
    .optional()
    .describe("The instrument's time zone: Europe/Zurich, or { from: the fact that contains it }."),
  locale: text('a language')
    .refine((locale) => succeeds(() => new Intl.Locale(locale)), 'expected a language such as de')
    .optional()
    .describe('The language of month names: de, fr, ja. Default: en.'),
});

const limitsSchema = z
  .strictObject({
    bytes: z
      .union([z.int().positive(), size()], { error: 'expected a size such as 64MB' })
      .optional()
      .describe('The maximum size of a file, such as 200MB. Default: 1GB for lines, 32MB for other formats.'),
    rows: z.int().min(1).default(10_000_000).describe('The maximum number of rows in all tables together.'),
    columns: z.int().min(1).default(10_000).describe('The maximum number of columns in a table.'),
    nesting: z.int().min(1).default(100).describe('The maximum nesting depth of JSON and XML.'),
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
          error: 'expected a number of seconds, or a duration such as 2m',
        },
      )
      .optional()
      .describe('The maximum time to read a file: 60, or 2m. Default: 1m, and 1s more for each MB of the file.'),
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

/** The keys for any file of a run. */
const fileSchema = z
  .strictObject({
    when: line()
      .optional()
      .describe('With several alternatives: use this one only for files that contain a line that matches.'),
    format: z
      .enum(['auto', ...FORMATS])
      .default('auto')
      .describe(
        'The format of the file. auto: by content and name. none: only the name and path are read, not the content.',
      ),
    encoding: text('the name of an encoding')
      .refine((encoding) => encoding === 'auto' || iconv.encodingExists(encoding), {
        error: `unknown encoding${ARROW}use auto, or a name such as utf-8, utf-16le, windows-1252, shift_jis or cp437`,
      })
      .default('auto')
      .describe('The encoding. auto: by the byte order mark, else UTF-8 if valid, else windows-1252.'),
    delimiter: split()
      .optional()
      .describe(
        'What separates cells: ",", ";", tab, spaces (two or more), whitespace, /regex/ or { at: [31, 66] }. Default: detected.',
      ),
    quote: z
      .union([z.literal('none'), text('one character').length(1, 'expected one character')], {
        error: 'expected one character, or none',
      })
      .default('"')
      .describe('The quote character around cells that contain the delimiter. none: no character is special.'),
    comment: text('the text that comment lines start with')
      .optional()
      .describe('The prefix of comment lines. They are not rows; meta and header read them without the prefix.'),
    decimal: z
      .enum(['.', ','])
      .optional()
      .describe('The decimal mark. If this is not set, an ambiguous number such as 1,234 quarantines the run.'),
    thousands: z.enum(['.', ',', ' ', "'"]).optional().describe('The thousands separator. Default: none.'),
    dates: datesSchema.prefault({}).describe('How dates are read. An ambiguous date quarantines the run.'),
    missing: listOf(text('text that means no value'), 'text that means no value, or a list of these')
      .default([])
      .describe('Text that means no value: ["N/A", "OVER", "<LOD"]. It is kept as text beside the empty value.'),
    limits: limitsSchema.prefault({}).describe('Limits. A file that exceeds one is quarantined.'),
    meta: listOf(finderSchema, 'a finder such as { separator: ":" }, or a list of these')
      .default([])
      .describe('How to find facts in the lines that belong to no table.'),
    facts: z
      .record(z.string(), where(name(), 'a name in the file, a cell such as =C3, or a path'))
      .prefault({})
      .describe('Facts under your own names: { sample: Sample ID, date: [Date, Time] }.'),
    table: tableSchema.optional().describe('The only table of the file, named readings.'),
    tables: z
      .record(z.string(), tableSchema)
      .optional()
      .describe('Several tables, by name. In templates, the first is called readings.'),
  })
  .refine(
    ({ table, tables }) => !table || !tables,
    `table and tables cannot be combined${ARROW}move the table into tables`,
  )
  .refine(({ decimal, thousands }) => !decimal || decimal !== thousands, {
    error: 'decimal and thousands cannot be the same',
    path: ['thousands'],
  });

/** `table: T` is short for `tables: { readings: T }`. */
const withTables = <W extends Pick<z.output<typeof fileSchema>, 'table' | 'tables'>>({
  table,
  tables,
  ...rest
}: W) => ({
  ...rest,
  tables: tables ?? (table ? { readings: table } : {}),
});

const PARSE = 'a map such as { delimiter: ",", table: {} }, or a list of alternatives';
const alternatives = <S extends z.ZodType>(reading: S) =>
  listOf(reading, PARSE).refine((listed) => listed.length > 0, `expected ${PARSE}`);

/** One way to read a file: all of `parse`, or one of its alternatives. */
export const readingSchema = fileSchema
  .safeExtend({
    main: text('a glob such as "*.csv"')
      .optional()
      .describe('In a run of several files: which file is read. Default: the only one, or the first of join.'),
    also: z
      .record(text('a name such as "{stem}.xml"'), alternatives(fileSchema.transform(withTables)))
      .optional()
      .describe(
        'Other files of the run, each with its own parse: { "{stem}.xml": { facts: … } }. Their facts and tables are added.',
      ),
  })
  .transform(withTables);

/** How a file is read, with all defaults filled in. */
export type ParseOptions = z.output<typeof readingSchema>;
/** The same as written in YAML. */
export type ParseMapping = z.input<typeof readingSchema>;

/** `parse` in a configuration: one way to read a file, or several, tried in order. */
export const parseSchema = alternatives(readingSchema);

export const withDefaults = (mapping: ParseMapping): ParseOptions => readingSchema.parse(mapping);

/** For a file without a mapping. */
export const NO_MAPPING: ParseOptions = withDefaults({});
