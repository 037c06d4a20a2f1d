import { resolve } from 'node:path';
import { z } from 'zod';

/** A program and its arguments. */
export type Words = readonly [string, ...string[]];

/** Whom to tell of alarms, beside log, page and metrics. */
export interface AlarmChannels {
  readonly webhook?: string | undefined;
  readonly command?: Words | undefined;
}

const COMMAND = 'expected a program and its arguments, such as /usr/local/bin/page-me --to "lab it"';

export const alarmsSchema = z
  .strictObject({
    webhook: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://chat.example.org/hook' })
      .refine(
        (url) => !URL.canParse(url) || !(new URL(url).username || new URL(url).password),
        'an address with a name or password in it is refused',
      )
      .optional()
      .describe('An address that gets a POST with JSON for each alarm, and again when it is over.'),
    command: z
      .string({ error: COMMAND })
      .transform((text, context): Words => {
        const [program, ...rest] = wordsOf(text) ?? [];
        if (program) return [program, ...rest];
        context.addIssue({ code: 'custom', message: COMMAND });
        return z.NEVER;
      })
      .optional()
      .describe(
        'A program that is started for each alarm, and again when it is over. Without a shell; LABFEED_ALARM_STATE, _KIND, _INSTRUMENT, _TEXT and _SINCE are in its environment.',
      ),
  })
  .describe('Whom to tell of alarms, beside log, page and metrics.');

const WORD = /(?:[^\s"']+|"[^"]*"|'[^']*')+/g;

/** Cuts at blanks, but not within quotes; undefined where a quote is not closed. */
function wordsOf(text: string): string[] | undefined {
  if (text.replaceAll(WORD, '').trim() !== '') return undefined;
  return (text.match(WORD) ?? []).map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}

/** A program without a slash in its name is looked for where programs are. */
export function resolveCommand(alarms: AlarmChannels, folder: string): AlarmChannels {
  const [program, ...rest] = alarms.command ?? [];
  return program?.includes('/') ? { ...alarms, command: [resolve(folder, program), ...rest] } : alarms;
}
