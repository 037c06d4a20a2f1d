import type { ServerResponse } from 'node:http';
import type { Log } from '../log.js';
import type { PageState } from './api.js';
import { Refusal } from './refusal.js';

/** Tells everybody who looks whenever something has changed: server-sent events. */
export interface Feed {
  /** The head of its answer is written already. */
  add(client: ServerResponse): void;
  /** Throws where there is no place for one more. */
  requirePlace(): void;
  stop(): void;
}

/** Each costs a socket; a browser that is left open for weeks is one. */
const MOST_CLIENTS = 50;
const EVERY_MS = 1000;
/** Proxies, and our own timeouts, take a connection for dead that is silent. */
const PING_EVERY = 15;
/** Who takes nothing any more is let go, rather than remembered for. */
const MOST_UNREAD = 4 * 1024 * 1024;

/** One timer for all, which runs only while somebody looks. */
export function createFeed(current: () => PageState, log: Log): Feed {
  const clients = new Set<ServerResponse>();
  let timer: NodeJS.Timeout | undefined;
  let told = '';
  let event = '';
  let silentFor = 0;

  function look(): boolean {
    const state = current();
    // What the clock alone changes is no news.
    const news = JSON.stringify({ ...state, at: 0, live: { ...state.live, at: 0 } });
    if (news === told) return false;
    told = news;
    event = `event: state\ndata: ${JSON.stringify(state)}\n\n`;
    return true;
  }

  function tell(text: string): void {
    for (const client of clients) {
      if (client.writableLength > MOST_UNREAD) client.destroy();
      else client.write(text);
    }
  }

  function tick(): void {
    silentFor += 1;
    const hasNews = lookSafely();
    if (!hasNews && silentFor < PING_EVERY) return;
    tell(hasNews ? event : ': ping\n\n');
    silentFor = 0;
  }

  /** A timer has no caller: what is thrown in it would end the daemon. */
  function lookSafely(): boolean {
    try {
      return look();
    } catch (error) {
      log.error({ err: error }, 'the state of the page could not be made');
      return false;
    }
  }

  function forget(client: ServerResponse): void {
    clients.delete(client);
    if (clients.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    told = '';
    event = '';
  }

  return {
    requirePlace() {
      if (clients.size >= MOST_CLIENTS)
        throw new Refusal(503, `${MOST_CLIENTS} are looking at this page already; close one of them`, 30);
    },
    add(client) {
      clients.add(client);
      client.on('close', () => forget(client));
      client.on('error', () => client.destroy());
      timer ??= setInterval(tick, EVERY_MS);
      // The others are told of news too: they were to hear it within the second anyway.
      if (lookSafely()) tell(event);
      else client.write(event);
    },
    stop() {
      for (const client of clients) client.end();
    },
  };
}
