import { readFileSync } from 'node:fs';

/** Of the program that runs. */
export function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return (manifest as { version: string }).version;
}
