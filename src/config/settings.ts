import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { type Place, type Problem, systemCode } from '../errors.js';
import { ARROW, mapError, rate, text, wait } from './grammar.js';
import { resolveSecret, secret } from './secrets.js';

/** The settings of the whole daemon that have a notation of their own: notebook, status page, alarms. */

const httpUrl = (example: string) =>
  z
    .url({ protocol: /^https?$/, error: `expected a URL${ARROW}write it with https://, such as ${example}` })
    .refine(
      (url) => !URL.canParse(url) || !(new URL(url).username || new URL(url).password),
      `a user name or password in the URL is not allowed${ARROW}remove it`,
    )
    .meta({ pattern: '^https?://[^/?#@\\s]+([/?#]|$)' });

export const notebookSchema = z
  .strictObject(
    {
      url: httpUrl('https://eln.example.org')
        .transform((url) => url.replace(/\/+$/, '').replace(/\/api\/v2$/, ''))
        .describe('The base URL of the notebook. /api/v2 is appended.'),
      key: secret('API key'),
      dialect: z
        .enum(['auto', 'v2', 'elabftw'])
        .default('auto')
        .describe(
          'Which API the server has. auto: detect it; v2: the REST API v2 exactly as specified; elabftw: eLabFTW.',
        ),
      concurrency: z
        .int()
        .min(1)
        .max(64)
        .default(4)
        .describe('The maximum number of requests in flight, apart from those that have had no answer for 5 s.'),
      rate: rate().prefault('10/s').describe('The maximum request rate. labfeed slows down if the server asks for it.'),
      timeout: wait().prefault('30s').describe('The timeout for one request.'),
      ca: text('the path of a file')
        .optional()
        .describe(
          'A PEM file with the certificate of a private authority that signed the certificate of the server. Public authorities are not trusted then.',
        ),
      commentField: text('the name of a field')
        .default('comment')
        .describe('The name of the text field in the body of a comment request.'),
    },
    { error: mapError('notebook: { url: https://eln.example.org, key: { file: /etc/labfeed/api-key } }') },
  )
  .describe('The notebook in which runs are filed.');

/** Relative paths are relative to the folder of the configuration. */
export const resolveNotebook = (notebook: NotebookConfig, folder: string): NotebookConfig => ({
  ...notebook,
  key: resolveSecret(notebook.key, folder),
  ...(notebook.ca !== undefined && { ca: resolve(folder, notebook.ca) }),
});

/** The file must have a certificate: otherwise no server would be trusted. */
export function checkAuthority(file: string, where: Place): Problem[] {
  const problem = (message: string, hint: string): Problem[] => [{ where, message, hint, stops: 'daemon' }];
  try {
    new X509Certificate(readFileSync(file));
    return [];
  } catch (error) {
    const code = systemCode(error) ?? '';
    return /^E[A-Z]+$/.test(code)
      ? problem(`notebook.ca: cannot read ${file} (${code})`, 'name a file that labfeed can read')
      : problem(`notebook.ca: ${file} has no certificate`, 'it must be a PEM file: -----BEGIN CERTIFICATE-----');
  }
}

/** Where a server listens. */
interface Address {
  /** A host name or an IP address, without brackets. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** A host name or an IPv4 address; `1.2.3.400` is neither. */
const isHost = (host: string): boolean => isIPv4(host) || (HOST_NAME.test(host) && !/^[\d.]+$/.test(host));

/** `127.0.0.1:7780`, `[::1]:7780` or `localhost:7780`. */
export function readAddress(written: string): Address | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(written) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) return undefined;
  const isValid = bracketed === undefined ? isHost(host) : isIPv6(bracketed);
  return isValid ? { host: host.toLowerCase(), port } : undefined;
}

/** What to write instead of an invalid address. */
function addressHint(written: string): string {
  if (/^:\d+$/.test(written)) return `write the host before the port: 127.0.0.1${written}`;
  if (/^https?:/i.test(written)) return 'write it without http:// or a path';
  if (isIPv6(written.replace(/:\d+$/, '')) || isIPv6(written)) return 'write an IPv6 address in brackets: [::1]:7780';
  if (!written.includes(':')) return `write the port after the host: ${isHost(written) ? written : '127.0.0.1'}:7780`;
  return `write host and port, such as ${DEFAULT_ADDRESS}`;
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: Pick<Address, 'host'>): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  // An address can be written in many ways; URL normalises it.
  if (isIPv6(host)) return /^\[::(1\]|ffff:7f[0-9a-f]{2}:)/.test(new URL(`http://[${host}]`).hostname);
  return host === 'localhost';
}

const DEFAULT_ADDRESS = '127.0.0.1:7780';
const EXPECTED_ADDRESS = `expected an address such as ${DEFAULT_ADDRESS}`;

const address = z
  .string({ error: EXPECTED_ADDRESS })
  .transform((written, context): Address => {
    const read = readAddress(written);
    if (read) return read;
    context.addIssue({ code: 'custom', message: `expected an address${ARROW}${addressHint(written)}` });
    return z.NEVER;
  })
  .meta({ pattern: '^(\\[[^\\]]+\\]|[^:\\[\\]]+):\\d{1,5}$' })
  .describe('Host and port, such as 127.0.0.1:7780 or [::1]:7780.');

/** For the JSON Schema: addresses that only this machine can reach. `isLoopback` decides. */
const LOOPBACK = '^(127\\.[\\d.]+|\\[[:.\\da-fA-F]+\\]|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]):\\d{1,5}$';

const NEEDS_TOKEN = `other machines can reach this address, so it needs a token${ARROW}write status: { address: …, token: { file: PATH } } and create the token with openssl rand -hex 32`;

const READ_NEEDS_TOKEN = `it needs a token, too${ARROW}without a token, everybody who can reach the page may look at it. Write status: { token: …, readToken: … }`;

/** The page shows what is filed and accepts decisions, so other machines need a token. */
const statusMap = z
  .strictObject({
    address: address.prefault(DEFAULT_ADDRESS),
    token: secret('token')
      .optional()
      .describe('Where to find the token that people log in to the page with. It needs at least 16 characters.'),
    readToken: secret('token')
      .optional()
      .describe('Where to find a second token, for people who may look at the page but not decide.'),
    edit: z
      .boolean()
      .default(false)
      .describe(
        'Whether people who are logged in can add and change instruments on the page. With a token, they always can.',
      ),
    names: z
      .array(
        z
          .string()
          .refine(isHost, 'expected a host name such as labfeed.example.org, without a port')
          .meta({ pattern: '^[^:/\\s]+$' }),
      )
      .default([])
      .describe('Other host names that people use to open the page.'),
  })
  .check(({ value, issues }) => {
    if (value.readToken && !value.token)
      issues.push({ code: 'custom', input: value, path: ['readToken'], message: READ_NEEDS_TOKEN });
    if (value.token || isLoopback(value.address)) return;
    issues.push({ code: 'custom', input: value, path: ['address'], message: NEEDS_TOKEN });
  })
  .meta({
    if: { not: { required: ['token'] } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: { properties: { address: { pattern: LOOPBACK } } },
    dependentRequired: { readToken: ['token'] },
  });

const statusAddress = address
  .transform((read, context) => {
    if (!isLoopback(read)) context.addIssue({ code: 'custom', message: NEEDS_TOKEN });
    return { address: read, names: [] as string[], token: undefined, readToken: undefined, edit: false };
  })
  .meta({ allOf: [{ pattern: LOOPBACK }] });

export const statusSchema = z
  .union([z.literal(false), statusAddress, statusMap], { error: `${EXPECTED_ADDRESS}, or false` })
  .prefault(DEFAULT_ADDRESS)
  .describe('Where the status page listens. false: no page. An address that other machines can reach needs a token.');

/** A program and its arguments. */
export type CommandLine = readonly [string, ...string[]];

const COMMAND = 'expected a program and its arguments, such as /usr/local/bin/page-me --to "lab it"';

export const alarmsSchema = z
  .strictObject(
    {
      webhook: httpUrl('https://chat.example.org/hook')
        .optional()
        .describe('A URL that receives a POST with JSON when an alarm is raised and when it is cleared.'),
      command: z
        .string({ error: COMMAND })
        .transform((written, context): CommandLine => {
          const [program, ...rest] = wordsOf(written) ?? [];
          if (program) return [program, ...rest];
          context.addIssue({ code: 'custom', message: COMMAND });
          return z.NEVER;
        })
        .meta({ pattern: '\\S' })
        .optional()
        .describe(
          'A command that is run, without a shell, when an alarm is raised and when it is cleared. Its environment contains LABFEED_ALARM_STATE, _KIND, _INSTRUMENT, _TEXT and _SINCE.',
        ),
    },
    { error: mapError('alarms: { webhook: https://chat.example.org/hook }') },
  )
  .describe('Where alarms are sent, in addition to the log, the status page and the metrics.');

const WORD = /(?:[^\s"']+|"[^"]*"|'[^']*')+/g;

/** Splits at spaces outside quotes. Undefined if a quote is not closed. */
export function wordsOf(written: string): string[] | undefined {
  if (written.replaceAll(WORD, '').trim() !== '') return undefined;
  return (written.match(WORD) ?? []).map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}

/** A program without a slash in its name is found through PATH. */
export function resolveCommand(alarms: AlarmsConfig, folder: string): AlarmsConfig {
  const [program, ...rest] = alarms.command ?? [];
  return program?.includes('/') ? { ...alarms, command: [resolve(folder, program), ...rest] } : alarms;
}

export type NotebookConfig = z.output<typeof notebookSchema>;
type AlarmsConfig = z.output<typeof alarmsSchema>;
