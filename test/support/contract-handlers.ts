import { type HttpHandler, HttpResponse, http } from 'msw';

/** The contract's operations, under its own names; those on experiments have none there. */
export type Operation =
  | 'postExperiments'
  | 'readExperiment'
  | 'patchExperiment'
  | 'readEntityComments'
  | 'readEntityComment'
  | 'postEntityComments'
  | 'patchEntityComment'
  | 'deleteEntityComment'
  | 'getApikeys'
  | 'postApikeys'
  | 'deleteApikey';

export interface Asked {
  readonly request: Request;
  readonly params: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export type Reply = (asked: Asked) => Response | Promise<Response>;

const API = '*/api/v2';
const ENTITY = `${API}/:entity_type/:id`;

/** An error as eLabFTW words it. */
export const refusal =
  (status: number, message = `refused with ${status}`, description = '', code = status): Reply =>
  () =>
    HttpResponse.json({ code, message, description }, { status });

/** 201 with this Location, or with none. The body is what eLabFTW sends: nothing, as HTML. */
export const created =
  (location?: string): Reply =>
  () =>
    new HttpResponse('', {
      status: 201,
      headers: { 'Content-Type': 'text/html', ...(location === undefined ? {} : { Location: location }) },
    });

export const page =
  (status: number, title: string, headers: Record<string, string> = {}): Reply =>
  () =>
    HttpResponse.html(`<!doctype html><html><head><title>${title}</title></head></html>`, {
      status,
      headers,
    });

const json =
  (record: (params: Asked['params']) => object): Reply =>
  ({ params }) =>
    HttpResponse.json(record(params));

const done: Reply = () => new HttpResponse(null, { status: 204 });

/** What a server answers that does all that it is asked. */
const SUCCESS: Readonly<Record<Operation, Reply>> = {
  postExperiments: created('https://eln.example.org/api/v2/experiments/42'),
  readExperiment: json(({ id }) => ({
    id: Number(id),
    title: 'A run',
    date: '2026-01-31',
    body: '',
    tags: null,
  })),
  patchExperiment: json(({ id }) => ({ id: Number(id), title: 'A run' })),
  readEntityComments: json(({ id }) => [
    { id: 5, item_id: Number(id), comment: 'five' },
    { id: 6, item_id: Number(id), comment: 'six' },
  ]),
  readEntityComment: json(({ subid }) => ({ id: Number(subid), comment: 'five' })),
  postEntityComments: created('https://eln.example.org/api/v2/experiments/7/comments/12'),
  patchEntityComment: json(({ subid }) => ({ id: Number(subid), comment: 'changed' })),
  deleteEntityComment: done,
  getApikeys: json(() => [{ id: 3, name: 'labfeed', can_write: 1, hash: '$2y$10$a-hash-that-nobody-sees' }]),
  postApikeys: created('https://eln.example.org/api/v2/apikeys/9-cleartext'),
  deleteApikey: done,
};

/** Every endpoint of the contract. Each does as asked, unless a reply of its own is given. */
export function contractHandlers(replies: Partial<Record<Operation, Reply>> = {}): HttpHandler[] {
  const on =
    (operation: Operation) =>
    (asked: Asked): Response | Promise<Response> =>
      broken(asked.request) ?? (replies[operation] ?? SUCCESS[operation])(asked);
  return [
    http.get(`${API}/apikeys`, on('getApikeys')),
    http.post(`${API}/apikeys`, on('postApikeys')),
    http.delete(`${API}/apikeys/:id`, on('deleteApikey')),
    http.post(`${API}/experiments`, on('postExperiments')),
    http.get(`${API}/experiments/:id`, on('readExperiment')),
    http.patch(`${API}/experiments/:id`, on('patchExperiment')),
    http.get(`${ENTITY}/comments`, on('readEntityComments')),
    http.post(`${ENTITY}/comments`, on('postEntityComments')),
    http.get(`${ENTITY}/comments/:subid`, on('readEntityComment')),
    http.patch(`${ENTITY}/comments/:subid`, on('patchEntityComment')),
    http.delete(`${ENTITY}/comments/:subid`, on('deleteEntityComment')),
  ];
}

/** The general conventions, which bind every request. 418: no test expects it. */
function broken({ method, headers }: Request): Response | undefined {
  const writes = method === 'POST' || method === 'PATCH';
  const kept =
    headers.has('authorization') &&
    headers.get('accept') === 'application/json' &&
    headers.get('content-type') === (writes ? 'application/json' : null);
  return kept ? undefined : HttpResponse.text('against the conventions', { status: 418 });
}
