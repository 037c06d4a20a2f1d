import type {
  ApiError,
  DecisionAnswer,
  DecisionRequest,
  InstrumentFile,
  JobDetail,
  JobsAnswer,
  PageState,
  Preview,
} from '../api.js';
import type { Schema } from './completion.js';

/** The server refused or did not respond. The message is for people. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(path, { ...init, cache: 'no-store' }).catch(() => {
    throw new RequestError(0, 'labfeed does not respond. Check that it is running.');
  });
  // The server then shows its login form.
  if (response.status === 401) location.reload();
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok) return answer as T;
  const reason = (answer as ApiError | undefined)?.error;
  throw new RequestError(response.status, reason ?? `labfeed responded with status ${response.status}`);
}

/** Other sites cannot read this token, so they cannot send requests on behalf of this page. */
const tokenIn = (page: Document): HTMLMetaElement | null => page.querySelector('meta[name="labfeed-token"]');

/** What the server lets this browser do. */
export const role = document.querySelector<HTMLMetaElement>('meta[name="labfeed-role"]')?.content ?? 'read';

const post = <T>(path: string, body: BodyInit, type: string, signal: AbortSignal | null = null): Promise<T> =>
  request(path, {
    signal,
    method: 'POST',
    body,
    headers: { 'content-type': type, 'x-labfeed-token': tokenIn(document)?.content ?? '' },
  });

type Fields = Readonly<Record<string, string | number | undefined>>;

const query = (fields: Fields): URLSearchParams =>
  new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );

export const fetchJobs = (fields: Fields): Promise<JobsAnswer> => request(`/api/jobs?${query(fields)}`);

export const fetchJob = (id: number): Promise<JobDetail> => request(`/api/jobs/${id}`);

export const postDecision = (decision: DecisionRequest): Promise<DecisionAnswer> =>
  post('/api/decide', JSON.stringify(decision), 'application/json');

/** Sends a file, with a mapping in front of it if there is one. */
function postSample<T>(path: string, file: File, mapping: string, fields: Fields, signal?: AbortSignal): Promise<T> {
  const body = new Blob([mapping, file]);
  const all = { name: file.name, modified: file.lastModified, mapping: body.size - file.size || undefined, ...fields };
  return post(`${path}?${query(all)}`, body, 'application/octet-stream', signal ?? null);
}

/**
 * `mapping`: YAML with the instrument to read it with. Without one, `fields` has the `instrument` or `learn: 1`; else the
 * server decides by the name of the file.
 */
export const postPreview = (file: File, mapping: string, fields: Fields, signal: AbortSignal): Promise<Preview> =>
  postSample('/api/preview', file, mapping, fields, signal);

/** Saves an instrument. `replaces`: the hash of the file as it was opened. */
export const postInstrument = (file: File, mapping: string, replaces: string | undefined): Promise<DecisionAnswer> =>
  postSample('/api/instrument', file, mapping, { replaces });

export const fetchInstrument = (name: string): Promise<InstrumentFile> => request(`/api/instrument?${query({ name })}`);

export const fetchSchema = (): Promise<Schema> => request('/api/schema');

export type Connection = 'connecting' | 'live' | 'lost';

const RECONNECT_MS = 3000;

/** Receives the state whenever it changes, for as long as the page is open. */
export function subscribe(onState: (state: PageState) => void, onConnection: (connection: Connection) => void): void {
  let startedAt: number | undefined;

  function receive(state: PageState): void {
    if (startedAt !== undefined && startedAt !== state.live.startedAt) void renewToken();
    startedAt = state.live.startedAt;
    onState(state);
  }

  function connect(): void {
    const source = new EventSource('/api/events');
    source.addEventListener('open', () => onConnection('live'));
    source.addEventListener('state', ({ data }: MessageEvent<string>) => {
      onConnection('live');
      receive(JSON.parse(data) as PageState);
    });
    source.addEventListener('error', () => {
      onConnection('lost');
      // The browser reconnects by itself unless the server responded with an error, which may mean that it wants a token.
      if (source.readyState !== EventSource.CLOSED) return;
      request('/api/state').catch(() => undefined);
      setTimeout(connect, RECONNECT_MS);
    });
  }

  connect();
}

/** A restarted server has a new token. */
async function renewToken(): Promise<void> {
  const page = await fetch('/', { cache: 'no-store' }).then((response) => response.text());
  const fresh = tokenIn(new DOMParser().parseFromString(page, 'text/html'));
  if (fresh) tokenIn(document)?.replaceWith(fresh);
}
