import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { Dialect } from '../../src/model.js';
import type { Answer } from '../support/answer.js';
import { caller, madeIn, type SandboxClient, sandboxClient } from './client.js';

/** The sentence of a refusal, or a part of the JSON of the answer. A regular expression stands for a text. */
type Expected = string | RegExp | object | undefined;

interface Details {
  /** Sent besides the key and, with a body, the content type; undefined removes one. */
  readonly send?: Readonly<Record<string, string | undefined>>;
  /** `reader`: a key that may only read. */
  readonly as?: 'reader';
  /** Headers of the answer. */
  readonly headers?: Readonly<Record<string, unknown>>;
  /** The whole body of the answer. */
  readonly text?: string;
  /** A request after this one, with the JSON it gets. */
  readonly after?: readonly [request: string, json: unknown];
}

/** A request as `METHOD path body`, and the answer of the real server. Paths begin after `/api/v2`. */
export type Pair = readonly [request: string, status: number, expected?: Expected, details?: Details];

/** Tests a table of pairs, each on a new notebook. `source`: where the expectations come from. */
export function testPairs(dialect: Dialect, source: string, pairs: readonly Pair[]): void {
  for (const [request, status, expected, details = {}] of pairs) {
    test(`${request} gets ${status} (${source})`, async () => {
      const { url, key, reader } = await preparedNotebook(dialect);
      const answer = await send(caller(url, details.as === 'reader' ? reader : key), request, details.send);
      expect({ status: answer.status, text: answer.text }).toMatchObject({ status });
      if (typeof expected === 'string') expect(messageOf(answer)).toBe(expected);
      else if (expected instanceof RegExp) expect(messageOf(answer)).toMatch(expected);
      else if (expected !== undefined) expect(answer.json).toMatchObject(matchers(expected));
      expect(answer.headers).toMatchObject(matchers(details.headers ?? {}));
      if (details.text !== undefined) expect(answer.text).toBe(details.text);
      if (!details.after) return;
      const [next, json] = details.after;
      expect((await send(caller(url, key), next)).json).toMatchObject(matchers(json));
    });
  }
}

/** With matchers instead of regular expressions. */
function matchers(expected: unknown): object {
  const replace = (value: unknown): unknown => {
    if (value instanceof RegExp) return expect.stringMatching(value);
    if (Array.isArray(value)) return value.map(replace);
    if (typeof value !== 'object' || value === null || 'asymmetricMatch' in value) return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, replace(part)]));
  };
  return replace(expected) as object;
}

const messageOf = ({ json, text }: Answer): string =>
  (json as { message?: string } | undefined)?.message ?? `not a refusal: ${text}`;

function send(call: SandboxClient['call'], request: string, headers: Details['send'] = {}): Promise<Answer> {
  const [, method, path, raw] = /^(\S+) (\S+)(?: (.*))?$/s.exec(request) ?? [];
  const hasBody = method === 'POST' || method === 'PATCH';
  const types = hasBody ? { 'content-type': 'application/json' } : {};
  return call(`/api/v2${path}`, { method: method ?? 'GET', ...(raw && { raw }), headers: { ...types, ...headers } });
}

const NOON = Date.UTC(2026, 2, 4, 12);

/**
 * Experiments: 1 is ours, with two tags and a comment; 2 is deleted, 3 archived, 4 locked by an administrator, 5 locked
 * by us; 6 and 7 are a colleague's, 7 is private; 8 is ours and open in the colleague's editor.
 */
async function preparedNotebook(dialect: Dialect): Promise<SandboxClient & { readonly reader: string }> {
  const client = await sandboxClient({ dialect, clock: { ...systemClock, now: () => NOON } });
  const { call, control } = client;
  const key = await call('/api/v2/apikeys', { method: 'POST', body: { name: 'reader', canwrite: 0 } });
  const [owner, colleague] = [control.as('owner'), control.as('colleague')];
  const metadata = '{"extra_fields": {"pH": {"type": "number", "value": "7.1"}}}';
  owner.create({ title: 'mine', date: '2026-03-01', body: '<p>text</p>', tags: ['pH', 'Buffer'], metadata });
  owner.comment(1, 'first');
  for (const title of ['deleted', 'archived', 'locked', 'locked by me']) owner.create({ title });
  for (const title of ['theirs', 'hidden']) colleague.create({ title });
  owner.create({ title: 'open' });
  if (dialect === 'elabftw') {
    owner.delete(2);
    owner.archive(3);
    control.as('administrator').lock(4);
    owner.lock(5);
    colleague.hide(7);
    colleague.open(8);
  }
  return { ...client, reader: madeIn(key) };
}
