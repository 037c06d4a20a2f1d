import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { parseJson } from '../text.js';

const CLI = fileURLToPath(new URL('../cli.js', import.meta.url));

const MODES: Readonly<Record<Permission, number>> = { read: 0o660, decide: 0o600 };

/** Commands that run at the same time; more are refused. Each is a process of about 60 MB. */
const MAX_COMMANDS = 8;
/** For each of the two sockets; more are closed at once. */
const MAX_CONNECTIONS = 32;

/**
 * Runs commands for people who may not read the journal or the key of the service, as child processes with its user and
 * its restrictions. Without a runtime folder of systemd, it does nothing: then commands use the journal themselves.
 */
export function createCommandServer(config: string, log: Log, env = process.env) {
  const folder = env['RUNTIME_DIRECTORY']?.split(':')[0];
  const servers: Server[] = [];
  const children = new Set<ChildProcess>();
  const answer = (socket: Socket, permission: Permission): void => {
    readRequest(socket)
      .then((request) => {
        const needed = permissionFor(request.args);
        // Another configuration would be read with the permissions of the service.
        if (needed === undefined || request.args.some((arg) => arg.startsWith('--config')))
          return refuse(socket, `this command does not work through the service`);
        if (needed === 'decide' && permission === 'read') return refuse(socket, NOT_PERMITTED);
        if (children.size >= MAX_COMMANDS) return refuse(socket, 'too many commands run at the moment; try again');
        const child = startCommand(request, config, env);
        children.add(child);
        child.once('exit', () => children.delete(child));
        return relay(child, socket);
      })
      .catch((error: unknown) => refuse(socket, `the request cannot be read: ${error}`));
  };
  return {
    start(): void {
      if (!folder) return;
      for (const permission of ['read', 'decide'] as const) {
        const path = socketOf(config, permission, folder);
        // Of a daemon that was killed: this one holds the journal, so no other runs.
        rmSync(path, { force: true });
        const server = createServer({ allowHalfOpen: true }, (socket) => answer(socket, permission));
        server.maxConnections = MAX_CONNECTIONS;
        server.on('error', (error) =>
          log.error({ socket: path, reason: error.message }, 'commands cannot reach the daemon'),
        );
        server.listen(path, () => chmodSync(path, MODES[permission]));
        servers.push(server);
      }
    },
    stop(): void {
      for (const server of servers) server.close();
      for (const child of children) child.kill();
    },
  };
}

const NOT_PERMITTED = `only root and the service's user may do this\n  → sudo labfeed …`;

/** How long a client may take to send its request, or to close the connection after the answer. */
const CLIENT_MS = 5000;
const LATE = `the client sent no complete request within ${CLIENT_MS / 1000} seconds`;

/** The first line. What follows is standard input. */
function readRequest(socket: Socket): Promise<CommandRequest> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => reject(new Error(LATE)), CLIENT_MS);
    socket.once('close', () => clearTimeout(deadline));
    let text = Buffer.alloc(0);
    const read = (): void => {
      for (let part: Buffer | null = socket.read(); part !== null; part = socket.read()) {
        text = Buffer.concat([text, part]);
        const end = text.indexOf('\n');
        if (end < 0 && text.length < MAX_REQUEST_BYTES) continue;
        clearTimeout(deadline);
        socket.off('readable', read);
        if (end >= 0 && end + 1 < text.length) socket.unshift(text.subarray(end + 1));
        const parsed = requestSchema.safeParse(parseJson(text.subarray(0, Math.max(end, 0)).toString()));
        if (parsed.success) resolve(parsed.data);
        else reject(new Error('it is not from labfeed'));
        return;
      }
    };
    socket.on('readable', read);
    socket.on('error', reject);
    socket.once('end', () => reject(new Error('it is incomplete')));
  });
}

function startCommand({ args, debug, columns }: CommandRequest, config: string, env: NodeJS.ProcessEnv): ChildProcess {
  // After a subcommand: each has its own options.
  const words = args[1] !== undefined && HAS_SUBCOMMANDS.has(args[0] ?? '') ? 2 : 1;
  const given = [...args.slice(0, words), '--config', config, ...args.slice(words)];
  return spawn(process.execPath, [CLI, ...(debug ? ['--debug'] : []), ...given], {
    env: { ...env, LABFEED_THROUGH_DAEMON: String(columns ?? 0), NOTIFY_SOCKET: '', JOURNAL_STREAM: '' },
    stdio: 'pipe',
  });
}

const HAS_SUBCOMMANDS = new Set(['keys', 'comments']);

/** How long a client may leave the output of its command unread. */
const MAX_UNREAD_MS = 60_000;

/** Connects a command with its client. The command waits while the client does not read. */
export function relay(child: ChildProcess, socket: Socket, maxUnreadMs = MAX_UNREAD_MS): void {
  socket.on('error', () => child.kill());
  socket.on('close', () => child.kill());
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) return;
  // A command that does not read its input may end first.
  stdin.on('error', () => undefined);
  socket.pipe(stdin);
  let unread: NodeJS.Timeout | undefined;
  socket.on('close', () => clearTimeout(unread));
  socket.on('drain', () => {
    clearTimeout(unread);
    for (const stream of [stdout, stderr]) stream.resume();
  });
  const forward = (kind: number) => (content: Buffer) => {
    if (socket.write(encodePart(kind, content))) return;
    for (const stream of [stdout, stderr]) stream.pause();
    clearTimeout(unread);
    unread = setTimeout(() => socket.destroy(), maxUnreadMs);
  };
  stdout.on('data', forward(PARTS.stdout));
  stderr.on('data', forward(PARTS.stderr));
  child.on('error', (error) => refuse(socket, `the command cannot be started (${systemCode(error)})`));
  child.on('close', (status) => end(socket, status ?? 1));
}

function refuse(socket: Socket, message: string): void {
  socket.write(encodePart(PARTS.stderr, Buffer.from(`labfeed: ${message}\n`)));
  end(socket, 1);
}

/** The client closes the connection when it has the status. Until then, its input is discarded. */
function end(socket: Socket, status: number): void {
  socket.end(encodePart(PARTS.exit, Buffer.of(status)));
  socket.resume();
  const deadline = setTimeout(() => socket.destroy(), CLIENT_MS);
  socket.once('close', () => clearTimeout(deadline));
}

/**
 * The daemon of a service runs commands for people who may not read its journal and its key. There are two sockets, and
 * the permissions of the files decide who may use which: members of the group may read; the service's user and root may
 * decide.
 */
export type Permission = 'read' | 'decide';

/** What the client sends first, as one line. Standard input follows. */
const requestSchema = z.object({
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

function encodePart(kind: number, content: Buffer): Buffer {
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
