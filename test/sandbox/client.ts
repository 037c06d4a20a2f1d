import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, onTestFinished } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/server.js';
import { type Answer, answerOf } from '../support/answer.js';
import { type Control, createTestSandbox } from '../support/sandbox.js';

interface Sending {
  readonly method?: string;
  /** Sent as JSON. `raw` is sent as it is. */
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  /** Override the correct ones; undefined removes a header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

export type Call = (path: string, sending?: Sending) => Promise<Answer>;

/** Sends one request, correct unless `sending` says otherwise. */
export function caller(url: string, key?: string): Call {
  return async (path, { method = 'GET', body, raw, headers = {} } = {}) => {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const correct = {
      accept: 'application/json',
      authorization: key,
      'content-type': payload === undefined ? undefined : 'application/json',
      ...headers,
    };
    const sent = Object.entries(correct).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return answerOf(
      await request(new URL(path, url), {
        method: method as 'GET',
        headers: Object.fromEntries(sent),
        body: payload ?? null,
      }),
    );
  };
}

export interface SandboxClient {
  readonly url: string;
  readonly key: string;
  readonly call: Call;
  readonly control: Control;
}

/** A sandbox that is stopped when the test ends. */
export async function sandboxClient(options: Partial<SandboxOptions> = {}): Promise<SandboxClient> {
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

/** The last segment of `Location`, which is all that clients may rely on. */
export function madeIn({ headers }: Answer): string {
  return String(headers['location']).split('/').at(-1) ?? '';
}

/** Creates an experiment and returns its path. */
export async function newExperiment(call: Call, body?: object): Promise<string> {
  const answer = await call('/api/v2/experiments', { method: 'POST', body });
  return `/api/v2/experiments/${madeIn(answer)}`;
}

export const failure = (code: number, message: RegExp) => ({
  code,
  message: expect.stringMatching(message),
  description: expect.any(String),
});

export const EXPERIMENTS = '/api/v2/experiments';

export interface ElabftwClient extends SandboxClient {
  /** POST and PATCH always send a body, because eLabFTW requires its content type. */
  post(path: string, body?: unknown): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  /** Creates an experiment and returns its path. */
  make(body?: unknown): Promise<string>;
  /** The JSON that GET returns. */
  read(path: string): Promise<Record<string, unknown>>;
}

export async function elabftwClient(options: Partial<SandboxOptions> = {}): Promise<ElabftwClient> {
  const client = await sandboxClient({ dialect: 'elabftw', ...options });
  const { call } = client;
  const post = (path: string, body: unknown = {}) => call(path, { method: 'POST', body });
  return {
    ...client,
    post,
    patch: (path, body) => call(path, { method: 'PATCH', body }),
    make: async (body) => `${EXPERIMENTS}/${madeIn(await post(EXPERIMENTS, body))}`,
    read: async (path) => (await call(path)).json as Record<string, unknown>,
  };
}

/** An error of eLabFTW, whose code may differ from the status. */
export const failed = (status: number, code: number, message: RegExp | string) => ({
  status,
  json: { code, message: expect.stringMatching(message), description: expect.any(String) },
});
