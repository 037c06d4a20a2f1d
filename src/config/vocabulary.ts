import iconv from 'iconv-lite';
import { z } from 'zod';
import { dateFormats, fromFact, groups, line, listOf, name, split, text, where } from './grammar.js';
import { duration, size } from './units.js';

/** The keys of `parse`: how a file is read. Descriptions end up in editors, before the eyes of a scientist. */

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
    delimiter: split().optional().describe('Where these lines are cut, if not like the rest of the file.'),
  })
  .refine(({ separator, match, cells }) => [separator, match, cells].filter(Boolean).length === 1, {
    error: 'expected exactly one of separator, match and cells',
  })
  .refine((finder) => finder.in !== 'cells' || finder.separator, 'in: cells needs a separator');

const COLUMN = 'a column of the file by its name, or a cell of the row by its number';
const columnsSchema = z.union(
  [
    z.array(text('the name of a column, or _ to drop it')).min(1),
    z.record(z.string(), where(z.union([z.int().min(1), name()], { error: `expected ${COLUMN}` }), COLUMN)),
  ],
  { error: 'expected columns by your names, { weight: Weight (mg) }, or a list of names' },
);

const CONDITION = 'a text, a number, /regex/ or any';
const condition = z.union([text(CONDITION), z.number(), z.boolean()], { error: `expected ${CONDITION}` });

const tableSchema = z
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
      .enum(['inHeader', 'slash', 'nextRow', 'none'])
      .default('inHeader')
      .describe('Where units are: inHeader "Weight (mg)", slash "freq/Hz", nextRow below the names, none.'),
    rows: groups()
      .optional()
      .describe('/regex/: the lines that fit are the rows, its named groups the columns.'),
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
    count: z
      .union([z.int().min(0), name()], { error: 'expected a number of rows, or the fact that says it' })
      .optional()
      .describe('How many rows there must be: a number, or the fact that says it.'),
    delimiter: split().optional().describe('Where these lines are cut, if not like the rest of the file.'),
  })
  .describe('A table: where it begins and ends, and what its columns are.');

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
      .prefault('64MB')
      .describe('The largest file that is read, such as 64MB.'),
    rows: z.int().min(1).default(1_000_000).describe('The most rows, of all tables together.'),
    columns: z.int().min(1).default(10_000).describe('The most columns of one table.'),
    seconds: z
      .union(
        [
          z
            .number()
            .positive()
            .transform((seconds) => seconds * 1000),
          duration(),
        ],
        {
          error: 'expected seconds, or a duration such as 2m',
        },
      )
      .prefault(60)
      .describe('The longest that reading one file may take: 60, or 2m.'),
  })
  .transform(({ bytes, rows, columns, seconds }) => ({
    maxBytes: bytes,
    maxRows: rows,
    maxColumns: columns,
    maxMs: seconds,
  }));

const LATER_FORMATS = ['text', 'json', 'xml', 'xlsx', 'jcamp', 'records', 'none'];

/** The whole of `parse`. What the contract knows and this version does not read is refused, not half obeyed. */
export const parseSchema = z
  .strictObject({
    format: z
      .enum(['auto', 'delimited'], {
        error: ({ input }) =>
          LATER_FORMATS.includes(String(input))
            ? `${input} is not available in this version`
            : 'expected auto or delimited',
      })
      .default('auto')
      .describe('What kind of file it is. auto: by its content and name.'),
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
      .record(z.string(), where(name(), 'a name in the file, or a cell such as =C3'))
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
  })
  .transform(({ table, tables, ...rest }) => ({
    ...rest,
    tables: tables ?? (table ? { readings: table } : {}),
  }));

/** How a file is read, with all defaults filled in. */
export type ParseOptions = z.output<typeof parseSchema>;
/** The same as a person writes it, and as measuring a file yields it. */
export type ParseMapping = z.input<typeof parseSchema>;
export type Finder = z.output<typeof finderSchema>;
export type TableOptions = z.output<typeof tableSchema>;
export type Dates = z.output<typeof datesSchema>;
export type Limits = z.output<typeof limitsSchema>;
