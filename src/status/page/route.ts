/** What the page shows, as given by the part of the address after `#`. */
export type Route =
  | { readonly view: 'overview' }
  | {
      readonly view: 'runs';
      readonly state: string | undefined;
      readonly instrument: string | undefined;
      /** Words to search for. */
      readonly search: string | undefined;
      /** Only runs with a smaller id. */
      readonly before: number | undefined;
    }
  | { readonly view: 'run'; readonly id: number }
  | { readonly view: 'try' };

export type RunsRoute = Extract<Route, { view: 'runs' }>;

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const run = /^\/runs\/(\d+)$/.exec(path)?.[1];
  if (run !== undefined) return { view: 'run', id: Number(run) };
  if (path === '/try') return { view: 'try' };
  if (path !== '/runs') return { view: 'overview' };
  const fields = new URLSearchParams(query);
  const before = Number(fields.get('before'));
  return {
    view: 'runs',
    state: fields.get('state') || undefined,
    instrument: fields.get('instrument') || undefined,
    search: fields.get('search')?.trim() || undefined,
    before: Number.isInteger(before) && before > 0 ? before : undefined,
  };
}

export const runHref = (id: number): string => `#/runs/${id}`;

export function runsHref(fields: Partial<Omit<RunsRoute, 'view'>>): string {
  const query = new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]) => (value ? [[name, String(value)]] : [])),
  );
  return query.size === 0 ? '#/runs' : `#/runs?${query}`;
}
