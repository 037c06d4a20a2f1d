import { z } from 'zod';
import { areaOf, groups, line, listOf, name, regexSource, split, text, where } from './grammar.js';

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
export const placeKeys = {
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
