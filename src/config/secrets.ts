import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { ConfigError, type Place, type Problem, systemCode } from '../errors.js';
import { ARROW, text } from './grammar.js';

/** The configuration never contains a secret, only its location. */
export const secret = (what: string) =>
  z
    .strictObject(
      {
        file: text('the path of a file').optional().describe(`A file that contains the ${what} and nothing else.`),
        env: text('the name of an environment variable')
          .optional()
          .describe(`The name of an environment variable that contains the ${what}.`),
        credential: text('the name of a systemd credential')
          .optional()
          .describe(`The name of a systemd credential that contains the ${what}.`),
      },
      {
        error: ({ code, input }) =>
          code === 'invalid_type'
            ? `${input === undefined ? `expected the ${what}` : `the ${what} itself must not be in the configuration`}${ARROW}write { file: PATH }, { env: NAME } or { credential: NAME }`
            : undefined,
      },
    )
    .refine((from) => Object.values(from).filter((part) => part !== undefined).length === 1, {
      error: 'expected exactly one of file, env and credential',
    })
    .meta({ minProperties: 1, maxProperties: 1 })
    .describe(`Where the ${what} is: in a file, an environment variable or a systemd credential.`);

export type SecretSource = z.output<ReturnType<typeof secret>>;

/** A relative path is relative to the folder of the configuration. */
export const resolveSecret = (source: SecretSource, folder: string): SecretSource =>
  source.file === undefined ? source : { file: resolve(folder, source.file) };

/** The file that contains the secret. systemd puts credentials in a folder and passes its path in the environment. */
export function secretFile(source: SecretSource, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const folder = env['CREDENTIALS_DIRECTORY'];
  if (source.credential === undefined || folder === undefined) return source.file;
  return join(folder, source.credential);
}

/** The API key, which can be replaced at run time. */
export interface Key {
  current(): string;
  /** Reads it again. If that fails, the previous key stays in use. */
  refresh(): void;
}

/** `conceal` is called with every key before it is used. */
export function holdKey(read: () => string, conceal: (key: string) => void): Key {
  let key = read();
  conceal(key);
  return {
    current: () => key,
    refresh() {
      try {
        key = read();
        conceal(key);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
      }
    },
  };
}

/** Reads the API key. No message contains it. */
export const readKey = (source: SecretSource, where: Place, env: NodeJS.ProcessEnv = process.env): string =>
  readSecret('API key', source, where, env);

/** Shorter tokens could be guessed. */
const MIN_TOKEN_LENGTH = 16;

/** Reads the token of the status page. */
export function readToken(source: SecretSource, where: Place, env: NodeJS.ProcessEnv = process.env): string {
  const token = readSecret('token', source, where, env);
  if (token.length >= MIN_TOKEN_LENGTH) return token;
  const message = `the status page token is shorter than ${MIN_TOKEN_LENGTH} characters`;
  throw new ConfigError([{ where, message, hint: 'create one with openssl rand -hex 32', stops: 'daemon' }]);
}

export function readSecret(what: string, source: SecretSource, where: Place, env: NodeJS.ProcessEnv): string {
  const refuse = (message: string, hint: string): never => {
    throw new ConfigError([{ where, message, hint, stops: 'daemon' } satisfies Problem]);
  };
  if (source.env !== undefined) {
    const value = env[source.env]?.trim();
    return value || refuse(`the environment variable ${source.env} is not set`, `set it to the ${what}`);
  }
  const path =
    secretFile(source, env) ??
    refuse(
      `only the service can read the systemd credential ${source.credential}`,
      `start the service (it needs LoadCredential=${source.credential}:FILE). While it is stopped: systemd-run --pipe --wait --uid labfeed -p LoadCredential=${source.credential}:/etc/labfeed/${source.credential} labfeed COMMAND --config /etc/labfeed/config.yaml`,
    );
  let content = '';
  try {
    content = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT')
      refuse(`cannot read the ${what}: ${path} does not exist`, `save the ${what} in that file, with mode 0600`);
    refuse(
      `cannot read the ${what} from ${path}: ${code === 'EACCES' ? 'permission denied' : (code ?? error)}`,
      'run labfeed as the owner of this file, or make it readable by this user',
    );
  }
  if (content === '') refuse(`the file ${path} is empty`, `write the ${what} to it`);
  if (!/^[\x21-\x7e]+$/.test(content))
    refuse(
      `the file ${path} contains more than the ${what}`,
      `it must contain the ${what} on one line and nothing else`,
    );
  return content;
}
