import { hostname } from 'node:os';
import type { Notice } from '../model.js';

/** What a webhook gets. `text` alone says it all: chats show just that. */
export interface Message {
  readonly state: Notice['state'];
  readonly kind: Notice['kind'];
  readonly instrument: string | null;
  /** ISO 8601, as `at`. */
  readonly since: string;
  readonly at: string;
  readonly text: string;
  readonly host: string;
}

export const messageOf = (notice: Notice, host = hostname()): Message => ({
  state: notice.state,
  kind: notice.kind,
  instrument: notice.instrument ?? null,
  since: new Date(notice.since).toISOString(),
  at: new Date(notice.at).toISOString(),
  text: `labfeed on ${host}: ${notice.text}`,
  host,
});
