import { expect } from 'vitest';
import type { SandboxOptions } from '../../../src/sandbox/server.js';
import type { Answer } from '../../support/answer.js';
import { madeIn, type Playground, playground } from '../playground.js';

export const EXPERIMENTS = '/api/v2/experiments';

export interface Elabftw extends Playground {
  /** Every POST and PATCH carries a body: this server wants its type even where there is nothing to say. */
  post(path: string, body?: unknown): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  /** Makes an experiment and returns its path. */
  make(body?: unknown): Promise<string>;
  /** What GET gives, whatever it is. */
  read(path: string): Promise<Record<string, unknown>>;
}

export async function elabftw(options: Partial<SandboxOptions> = {}): Promise<Elabftw> {
  const field = await playground({ dialect: 'elabftw', ...options });
  const { call } = field;
  const post = (path: string, body: unknown = {}) => call(path, { method: 'POST', body });
  return {
    ...field,
    post,
    patch: (path, body) => call(path, { method: 'PATCH', body }),
    make: async (body) => `${EXPERIMENTS}/${madeIn(await post(EXPERIMENTS, body))}`,
    read: async (path) => (await call(path)).json as Record<string, unknown>,
  };
}

/** The body of an error, whose code need not be the status. */
export const failed = (status: number, code: number, message: RegExp | string) => ({
  status,
  json: { code, message: expect.stringMatching(message), description: expect.any(String) },
});
