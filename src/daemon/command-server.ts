import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { parseJson } from '../text.js';
import {
  type CommandRequest,
  encodePart,
  MAX_REQUEST_BYTES,
  PARTS,
  type Permission,
  permissionFor,
  requestSchema,
  socketOf,
} from './socket.js';

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
