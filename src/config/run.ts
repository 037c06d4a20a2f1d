import { z } from 'zod';

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

export const runSchema = z
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
export interface FolderRun {
  readonly folder: string;
}

/** Files of one stem. */
export interface JoinedRun {
  readonly join: readonly string[];
}

export type RunKind = 'file' | FolderRun | JoinedRun;
