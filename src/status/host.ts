import { isIPv6 } from 'node:net';
import type { Place } from './deps.js';

/**
 * Whether a request was sent to us by a name that is ours. A page of another site can let its own name point to this
 * machine (DNS rebinding), and would then count as ours to the browser; what it cannot do is send another `Host`.
 * The port is left out of it: through a tunnel (`ssh -L 8080:localhost:7780`) it is another one, and proves nothing.
 */
export function createHostCheck({
  host,
  names,
}: Place): (header: string | undefined, localAddress: string | undefined) => boolean {
  const own = new Set(['localhost', ...[host, ...names].map(normal)]);
  return (header, localAddress) => {
    const called = nameIn(header);
    // The very address that the connection came in at: where all are listened on, any of them may be meant.
    return called !== undefined && (own.has(called) || called === normal(localAddress ?? ''));
  };
}

/** The name in a `Host` header, in its one spelling. */
function nameIn(header: string | undefined): string | undefined {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`))
    return undefined;
  return new URL(`http://${header}`).hostname;
}

/** As a URL has it: lower case, IPv6 in brackets and in its shortest form, IPv4 without its IPv6 clothes. */
function normal(host: string): string {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIPv6(plain) ? new URL(`http://[${plain}]`).hostname : plain.toLowerCase();
}
