import { resolve } from 'node:path';
import { z } from 'zod';
import { text } from './text.js';

/** A secret stands in no configuration: only where it is. */
export const secret = (what: string, described: string) =>
  z
    .strictObject(
      {
        file: text(`the path of a file that holds the ${what}`).optional(),
        env: text('the name of an environment variable').optional(),
        credential: text('the name of a systemd credential').optional(),
      },
      {
        error: (issue) =>
          issue.code === 'invalid_type'
            ? `expected where the ${what} is, not the ${what} itself: { file: PATH }, { env: NAME } or { credential: NAME }`
            : undefined,
      },
    )
    .refine((from) => Object.values(from).filter((part) => part !== undefined).length === 1, {
      error: 'expected exactly one of file, env and credential',
    })
    .describe(described);

export type SecretSource = z.output<ReturnType<typeof secret>>;

/** A file is looked for from the folder of the configuration. */
export const resolveSecret = (source: SecretSource, folder: string): SecretSource =>
  source.file === undefined ? source : { file: resolve(folder, source.file) };
