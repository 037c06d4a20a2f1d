import { z } from 'zod';
import { groups, line, split, text } from './grammar.js';
import { placeKeys } from './vocabulary-table.js';

/** The keys of a finder: how facts are found in lines. */
export const finderSchema = z
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
