import { systemCode } from '../errors.js';

const NO_ANSWER = new Set([
  ...['EIO', 'ESTALE', 'ENOTCONN', 'ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH', 'ENETDOWN', 'ENETUNREACH'],
  ...['ECONNABORTED', 'ECONNRESET', 'EREMOTEIO', 'ENODEV', 'ENXIO', 'ENOMEDIUM'],
]);

/** Why a folder or file could not be read, for people. */
export function reasonOf(error: unknown): string {
  const code = systemCode(error) ?? '';
  if (code === 'ENOENT') return 'it is not there';
  if (code === 'ENOTDIR') return 'it, or something above it, is a file and not a folder';
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it';
  if (NO_ANSWER.has(code)) return `the disk or share does not answer (${code})`;
  return error instanceof Error ? error.message : String(error);
}
