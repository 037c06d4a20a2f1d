import type { PageState } from '../api.js';

export type Connection = 'connecting' | 'live' | 'lost';

export interface FeedDeps {
  show(state: PageState): void;
  connection(now: Connection): void;
  /** The server answered, but not with events: it may want a token. */
  refused(): void;
}

/** How long until a connection that was refused is tried again. */
const AGAIN_MS = 3000;

/** The state as it changes. The browser connects again by itself, except where it was refused: then this does. */
export function startFeed({ show, connection, refused }: FeedDeps): void {
  function start(): void {
    const source = new EventSource('/api/events');
    source.addEventListener('open', () => connection('live'));
    source.addEventListener('state', ({ data }: MessageEvent<string>) => {
      connection('live');
      show(JSON.parse(data) as PageState);
    });
    source.addEventListener('error', () => {
      connection('lost');
      if (source.readyState !== EventSource.CLOSED) return;
      refused();
      setTimeout(start, AGAIN_MS);
    });
  }

  connection('connecting');
  start();
}
