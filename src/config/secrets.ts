import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { ConfigError, type Place, type Problem, systemCode } from '../errors.js';

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

/** The key as it is now. */
export interface Key {
  current(): string;
  /** Looks whether it was replaced meanwhile; what cannot be read leaves it as it was. */
  refresh(): void;
}

/** The key that the daemon uses. `conceal` hears of every key before it is used. */
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

/** Reads the API key from where the configuration says it is. The key itself is in no message. */
export const readKey = (source: SecretSource, where: Place, env: NodeJS.ProcessEnv = process.env): string =>
  readSecret('API key', source, where, env);

/** With fewer, somebody who tries one after the other might get in some day. */
const SHORTEST_TOKEN = 16;

/** Reads the token that the page asks for. */
export function readToken(source: SecretSource, where: Place, env: NodeJS.ProcessEnv = process.env): string {
  const token = readSecret('token', source, where, env);
  if (token.length >= SHORTEST_TOKEN) return token;
  const message = `the token for the page is shorter than ${SHORTEST_TOKEN} characters`;
  throw new ConfigError([{ where, message, hint: 'make one with: openssl rand -hex 32', stops: 'daemon' }]);
}

function readSecret(what: string, source: SecretSource, where: Place, env: NodeJS.ProcessEnv): string {
  const refuse = (message: string, hint: string): never => {
    throw new ConfigError([{ where, message, hint, stops: 'daemon' } satisfies Problem]);
  };
  if (source.env !== undefined) {
    const value = env[source.env]?.trim();
    return value || refuse(`the environment variable ${source.env} is not set`, `set it to the ${what}`);
  }
  const path =
    source.file ??
    credentialPath(source.credential ?? '', env) ??
    refuse(
      `there is no systemd credential ${source.credential}`,
      `add LoadCredential=${source.credential}:/path/of/the/file to the service`,
    );
  let text = '';
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    refuse(
      `the ${what} cannot be read from ${path} (${systemCode(error) ?? error})`,
      `write the ${what} into that file, readable by this user only (mode 0600)`,
    );
  }
  if (text === '') refuse(`the file ${path} is empty`, `write the ${what} into it`);
  if (!/^[\x21-\x7e]+$/.test(text))
    refuse(
      `the file ${path} holds more than the ${what}`,
      `it must hold the ${what} on one line, and nothing else`,
    );
  return text;
}

/** systemd puts credentials into a folder of the service and names that folder in the environment. */
function credentialPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const folder = env['CREDENTIALS_DIRECTORY'];
  return folder === undefined ? undefined : join(folder, name);
}

/** A text that is not empty. */
export const text = (what: string) => z.string({ error: `expected ${what}` }).min(1, `expected ${what}`);
