import { z } from 'zod';
import { type Address, addressHint, isLoopback, isName, readAddress } from './address.js';
import { secret } from './secret.js';

const USUAL = '127.0.0.1:7780';
const EXPECTED = `expected an address such as ${USUAL}`;

const address = z
  .string({ error: EXPECTED })
  .transform((text, ctx): Address => {
    const read = readAddress(text);
    if (read) return read;
    ctx.addIssue({ code: 'custom', message: EXPECTED, params: { hint: addressHint(text) } });
    return z.NEVER;
  })
  .describe('Address and port, such as 127.0.0.1:7780 or [::1]:7780.');

const NEEDS_TOKEN = 'other machines can reach this address: it needs a token';
const HOW_TO_TOKEN =
  'status: { address: …, token: { file: PATH } }, with a token of your own in that file (openssl rand -hex 32)';

/** The page shows what is filed, and takes decisions: beyond this machine, only for those who know the token. */
const guarded = z
  .strictObject({
    address: address.prefault(USUAL),
    token: secret(
      'token',
      'Where the token is that people log in to the page with: in a file, an environment variable or a systemd credential.',
    ).optional(),
    names: z
      .array(z.string().refine(isName, 'expected a name such as labfeed.example.org, without a port'))
      .default([])
      .describe('Names under which people open the page, beside its address and localhost.'),
  })
  .check(({ value, issues }) => {
    if (value.token || isLoopback(value.address)) return;
    issues.push({
      code: 'custom',
      input: value,
      path: ['address'],
      message: NEEDS_TOKEN,
      params: { hint: HOW_TO_TOKEN },
    });
  });

const alone = address.transform((read, ctx) => {
  if (!isLoopback(read))
    ctx.addIssue({ code: 'custom', message: NEEDS_TOKEN, params: { hint: HOW_TO_TOKEN } });
  return { address: read, names: [] as string[], token: undefined };
});

export const statusSchema = z
  .union([z.literal(false), alone, guarded], { error: `${EXPECTED}, or false` })
  .prefault(USUAL)
  .describe(
    'Where the status page listens, or false. An address that other machines can reach needs a token.',
  );

/** Where the page is, and who may see it. */
export type StatusConfig = Exclude<z.output<typeof statusSchema>, false>;
