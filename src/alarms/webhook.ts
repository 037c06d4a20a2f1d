import { request } from 'undici';
import { LabfeedError } from '../errors.js';
import { messageOf } from './message.js';
import type { Tell } from './telling.js';

const TIMEOUT_MS = 10_000;

/** Posts notices as JSON. The address may hold a secret: only its host is ever in an error. */
export function createWebhook(url: string, timeoutMs = TIMEOUT_MS): Tell {
  const { host } = new URL(url);

  return async (notice, signal) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(messageOf(notice)),
      signal: AbortSignal.any([signal, limit]),
      // Nothing is kept open for the next alarm, which may be weeks away.
      reset: true,
    }).catch((error: unknown) => {
      const reason = limit.aborted ? `no answer within ${timeoutMs / 1000} s` : messageOfError(error);
      throw new LabfeedError(`the webhook at ${host} cannot be reached: ${reason}`);
    });
    // What it says does not matter, and how much must not either.
    await body.dump({ limit: 65_536, signal }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return;
    throw new LabfeedError(`the webhook at ${host} answered ${statusCode}`);
  };
}

const messageOfError = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
};
