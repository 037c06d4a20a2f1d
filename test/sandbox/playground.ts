import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, onTestFinished } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/server.js';
import { type Answer, answerOf } from '../support/answer.js';
import { type Control, createTestSandbox } from '../support/sandbox.js';

export interface Sending {
  readonly method?: string;
  /** Sent as JSON; `raw` goes as it is. */
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  /** Added to the right ones; undefined leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

export type Call = (path: string, sending?: Sending) => Promise<Answer>;

/** One request over a real socket, as a correct client sends it unless told otherwise. */
export function caller(url: string, key?: string): Call {
  return async (path, { method = 'GET', body, raw, headers = {} } = {}) => {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const right = {
      accept: 'application/json',
      authorization: key,
      'content-type': payload === undefined ? undefined : 'application/json',
      ...headers,
    };
    const sent = Object.entries(right).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return answerOf(
      await request(new URL(path, url), {
        method: method as 'GET',
        headers: Object.fromEntries(sent),
        body: payload ?? null,
      }),
    );
  };
}

export interface Playground {
  readonly url: string;
  readonly key: string;
  readonly call: Call;
  readonly control: Control;
}

/** A notebook of the test's own, gone when the test ends. */
export async function playground(options: Partial<SandboxOptions> = {}): Promise<Playground> {
  const sandbox = createTestSandbox({ file: ':memory:', port: 0, ...options });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  return { url, key, call: caller(url, key), control: sandbox.control };
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'labfeed-sandbox-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** The last segment of `Location`: what clients may rely on. */
export function madeIn({ headers }: Answer): string {
  return String(headers['location']).split('/').at(-1) ?? '';
}

/** Makes an experiment and returns its path within the API. */
export async function newExperiment(call: Call, body?: object): Promise<string> {
  const answer = await call('/api/v2/experiments', { method: 'POST', body });
  return `/api/v2/experiments/${madeIn(answer)}`;
}

export const failure = (code: number, message: RegExp) => ({
  code,
  message: expect.stringMatching(message),
  description: expect.any(String),
});
