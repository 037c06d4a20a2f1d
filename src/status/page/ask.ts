import type {
  ApiError,
  DecisionAnswer,
  DecisionRequest,
  Job,
  JobDetail,
  PageState,
  Preview,
} from '../api.js';

/** The server did not do what was asked; the message is for people. */
export class AskError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface JobQuery {
  readonly state?: string | undefined;
  readonly instrument?: string | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

export interface HowToRead {
  readonly instrument: string | undefined;
  readonly learn: boolean;
  readonly signal: AbortSignal;
}

/** What this page asks of its server. */
export interface Ask {
  state(): Promise<PageState>;
  jobs(query: JobQuery): Promise<readonly Job[]>;
  job(id: number): Promise<JobDetail>;
  decide(request: DecisionRequest): Promise<DecisionAnswer>;
  /** Without an instrument: the one whose globs fit the name, else what `learn` makes of it. */
  preview(file: File, how: HowToRead): Promise<Preview>;
  /** After a restart of the server the page's token is another one. */
  renew(): Promise<void>;
}

/** A page of another site cannot read this, so that it cannot ask in this one's name. */
const tokenOf = (page: Document): HTMLMetaElement | null => page.querySelector('meta[name="labfeed-token"]');

export function createAsk(onLoggedOut: () => void): Ask {
  async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await fetch(path, { ...init, cache: 'no-store' }).catch(() => {
      throw new AskError(0, 'labfeed does not answer. Is it running?');
    });
    if (response.status === 401) onLoggedOut();
    const answer: unknown = await response.json().catch(() => undefined);
    if (!response.ok) {
      const told = (answer as ApiError | undefined)?.error;
      throw new AskError(response.status, told ?? `labfeed answered ${response.status}`);
    }
    return answer as T;
  }
  const post = <T>(path: string, body: BodyInit, type: string, signal?: AbortSignal): Promise<T> =>
    request(path, {
      ...(signal && { signal }),
      method: 'POST',
      body,
      headers: { 'content-type': type, 'x-labfeed-token': tokenOf(document)?.content ?? '' },
    });

  return {
    state: () => request('/api/state'),
    jobs: (query) => request<{ jobs: Job[] }>(`/api/jobs?${toQuery({ ...query })}`).then(({ jobs }) => jobs),
    job: (id) => request(`/api/jobs/${id}`),
    decide: (asked) => post('/api/decide', JSON.stringify(asked), 'application/json'),
    preview: (file, { instrument, learn, signal }) =>
      post(
        `/api/preview?${toQuery({ name: file.name, modified: file.lastModified, instrument, learn: learn ? '1' : undefined })}`,
        file,
        'application/octet-stream',
        signal,
      ),
    async renew() {
      const page = await fetch('/', { cache: 'no-store' }).then((response) => response.text());
      const fresh = tokenOf(new DOMParser().parseFromString(page, 'text/html'));
      if (fresh) tokenOf(document)?.replaceWith(fresh);
    },
  };
}

const toQuery = (fields: Readonly<Record<string, string | number | undefined>>): URLSearchParams =>
  new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
