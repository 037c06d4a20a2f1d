import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/**
 * The daemon of a service runs commands for people who may not read its journal and its key. There are two sockets, and
 * the permissions of the files decide who may use which: members of the group may read; the service's user and root may
 * decide.
 */
export type Permission = 'read' | 'decide';

/** What the client sends first, as one line. Standard input follows. */
export const requestSchema = z.object({
  /** The command and its arguments, without `--config`. */
  args: z.array(z.string().max(10_000)).min(1).max(1000),
  debug: z.boolean(),
  /** The width of the terminal, if there is one. */
  columns: z.number().optional(),
});

export type CommandRequest = z.output<typeof requestSchema>;

export const MAX_REQUEST_BYTES = 1_000_000;

/** Parts of the answer: a byte with the kind, four bytes with the length, and the content. */
export const PARTS = { stdout: 1, stderr: 2, exit: 3 } as const;

export const HEADER_BYTES = 5;

export function encodePart(kind: number, content: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(kind, 0);
  header.writeUInt32BE(content.length, 1);
  return Buffer.concat([header, content]);
}

/** `runtimeFolder`: RUNTIME_DIRECTORY of the service. */
export function socketOf(config: string, permission: Permission, runtimeFolder = '/run/labfeed'): string {
  const file = existsSync(config) ? realpathSync(config) : config;
  const name = createHash('sha256').update(file).digest('hex').slice(0, 16);
  return join(runtimeFolder, `${name}.${permission}`);
}

/** Commands that change nothing, unless they have one of these options. */
const READING: ReadonlyMap<string, readonly string[]> = new Map([
  ['status', ['--login']],
  ['jobs', []],
  ['show', []],
  ['why', []],
  ['check', []],
  ['audit', ['--repair']],
]);

const DECIDING = new Set(['retry', 'refile', 'adopt', 'ignore', 'erase', 'backfill', 'comments', 'keys']);

/** What a command needs; undefined if the daemon does not run it. */
export function permissionFor([command = '', ...args]: readonly string[]): Permission | undefined {
  const changing = READING.get(command);
  if (!changing) return DECIDING.has(command) ? 'decide' : undefined;
  return args.some((arg) => changing.some((option) => arg.startsWith(option))) ? 'decide' : 'read';
}
