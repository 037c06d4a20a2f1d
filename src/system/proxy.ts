import { LabfeedError } from '../errors.js';

/**
 * The proxy for an address, by the usual environment variables: HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY names the host.
 * Undefined: connect directly, which this machine itself always is.
 */
export function proxyFor({ protocol, hostname, port }: URL, env: NodeJS.ProcessEnv = process.env): URL | undefined {
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const written = variable(name, env);
  if (written === '' || LOCAL.test(hostname)) return undefined;
  const isExempt = variable('NO_PROXY', env)
    .split(/[\s,]+/)
    .some((entry) => entry === '*' || covers(entry, hostname, port || (protocol === 'https:' ? '443' : '80')));
  if (isExempt) return undefined;
  const proxy = URL.canParse(written) ? new URL(written) : undefined;
  if (proxy && /^https?:$/.test(proxy.protocol)) return proxy;
  // The value is not shown: it may contain a password.
  throw new LabfeedError(`the environment variable ${name} is not the URL of a proxy`, {
    hint: 'write it as http://proxy.example.org:3128, or remove it',
  });
}

const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Both spellings are in use. */
const variable = (name: string, env: NodeJS.ProcessEnv): string => (env[name.toLowerCase()] || env[name] || '').trim();

/** `example.org`, `.example.org` and `*.example.org` cover all hosts of the domain; `example.org:8443` only one port. */
function covers(entry: string, hostname: string, port: string): boolean {
  const [, name = '', ownPort] = /^(?:\*?\.)?(.+?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
  if (name === '' || (ownPort !== undefined && ownPort !== port)) return false;
  return hostname === name || hostname.endsWith(`.${name}`);
}
