import { isIPv4, isIPv6 } from 'node:net';

/** Where a server listens. */
export interface Address {
  /** A name or an IP address, without brackets. */
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
}

const NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** `127.0.0.1:7780`, `[::1]:7780`, `localhost:7780`; undefined where the text is none of these. */
export function readAddress(text: string): Address | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) return undefined;
  const isHost = bracketed === undefined ? isName(host) : isIPv6(bracketed);
  return isHost ? { host: host.toLowerCase(), port } : undefined;
}

/** A name as it stands in an address, or an IPv4 address; `1.2.3.400` is neither. */
export const isName = (text: string): boolean => isIPv4(text) || (NAME.test(text) && !/^[\d.]+$/.test(text));

/** What is wrong with an address that cannot be read, where it is one of the usual mistakes. */
export function addressHint(text: string): string | undefined {
  if (/^:\d+$/.test(text))
    return `write the address before the port: 127.0.0.1${text} for this machine alone, 0.0.0.0${text} for all (which needs a token)`;
  if (/^https?:/i.test(text)) return 'without http:// and without a path';
  if (isIPv6(text.replace(/:\d+$/, '')) || isIPv6(text))
    return 'an IPv6 address stands in brackets: [::1]:7780';
  if (!text.includes(':')) return `with the port behind it: ${isName(text) ? text : '127.0.0.1'}:7780`;
  return undefined;
}

/** Whether only programs on this machine can reach it. */
export function isLoopback({ host }: Pick<Address, 'host'>): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  // The same address can be written in many ways; a URL has it in its shortest.
  if (isIPv6(host)) return /^\[::(1\]|ffff:7f[0-9a-f]{2}:)/.test(new URL(`http://[${host}]`).hostname);
  return host === 'localhost';
}
