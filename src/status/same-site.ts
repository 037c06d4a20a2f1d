import type { IncomingHttpHeaders } from 'node:http';

/** Whether the browser says that a page of ours sent this. `unsaid`: it says nothing either way. */
export function siteOf(headers: IncomingHttpHeaders): 'ours' | 'foreign' | 'unsaid' {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return 'foreign';
  // A form of a page that sends no referrer has the origin `null`.
  if (origin !== undefined && origin !== 'null') return hostOf(origin) === host ? 'ours' : 'foreign';
  return site === 'same-origin' ? 'ours' : 'unsaid';
}

/** Whatever the scheme: a proxy in front of us may speak https to the browser. */
const hostOf = (origin: string): string | undefined => /^https?:\/\/([^/]+)$/.exec(origin)?.[1];
