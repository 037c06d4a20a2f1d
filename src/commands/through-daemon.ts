import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { resolve } from 'node:path';
import { findConfig, loadConfig } from '../config/load.js';
import { type CommandRequest, HEADER_BYTES, PARTS, permissionFor, socketOf } from '../daemon/command-server.js';
import { LabfeedError, systemCode } from '../errors.js';

/**
 * Lets the daemon of the service run the command, if there is one that this user may reach. Resolves with the exit
 * status; undefined if the command has to be run here.
 */
export async function runThroughDaemon(argv: readonly string[], env = process.env): Promise<number | undefined> {
  const at = argv.findIndex((arg) => !arg.startsWith('-'));
  const { args, config: named } = splitConfig(argv.slice(Math.max(at, 0)));
  const needed = at < 0 ? undefined : permissionFor(args);
  const asksForHelp = args.some((arg) => arg === '--help' || arg === '-h');
  if (needed === undefined || asksForHelp) return undefined;
  const config = findConfig(named);
  // The service may not write key files. Only it can read credentials.
  if (args[0] === 'keys' && !usesCredential(config)) return undefined;
  const socket = await reach(config, env['RUNTIME_DIRECTORY']?.split(':')[0]);
  if (!socket) return undefined;
  const columns = process.stdout.isTTY ? process.stdout.columns : undefined;
  return converse(socket, { args: absolutePaths(args), debug: argv.includes('--debug'), columns });
}

/** Separates `--config FILE` from the other arguments. */
function splitConfig(argv: readonly string[]): { args: string[]; config: string | undefined } {
  const args: string[] = [];
  let config: string | undefined;
  for (let n = 0; n < argv.length; n++) {
    const arg = argv[n] ?? '';
    if (arg === '--config') config = argv[++n];
    else if (arg.startsWith('--config=')) config = arg.slice('--config='.length);
    else args.push(arg);
  }
  return { args, config };
}

/** The daemon has another working folder. */
const absolutePaths = (args: readonly string[]): string[] =>
  args.map((arg, n) => (args[0] === 'why' && n > 0 && existsSync(arg) ? resolve(arg) : arg));

function usesCredential(config: string): boolean {
  const { notebook } = loadConfig(config);
  return notebook !== undefined && 'credential' in notebook.key;
}

/** The socket with most permissions that this user may use. Undefined without a daemon, or without permission. */
async function reach(config: string, folder: string | undefined): Promise<Socket | undefined> {
  for (const permission of ['decide', 'read'] as const) {
    const socket = await tryConnect(socketOf(config, permission, folder));
    if (socket) return socket;
  }
  return undefined;
}

const tryConnect = (path: string): Promise<Socket | undefined> =>
  new Promise((settle, reject) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.once('connect', () => settle(socket.removeAllListeners('error')));
    socket.once('error', (error) => {
      if (/^(ENOENT|ECONNREFUSED|EACCES|EPERM|ENOTDIR)$/.test(systemCode(error) ?? '')) settle(undefined);
      else reject(new LabfeedError(`cannot reach the daemon: ${error.message}`, { cause: error }));
    });
  });

function converse(socket: Socket, request: CommandRequest): Promise<number> {
  return new Promise((settle, reject) => {
    const lost = (): void => reject(new LabfeedError('the daemon ended before the command did'));
    let rest = Buffer.alloc(0);
    socket.on('error', lost);
    socket.on('end', lost);
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= HEADER_BYTES && rest.length >= HEADER_BYTES + rest.readUInt32BE(1)) {
        const kind = rest.readUInt8(0);
        const end = HEADER_BYTES + rest.readUInt32BE(1);
        const content = rest.subarray(HEADER_BYTES, end);
        rest = rest.subarray(end);
        if (kind === PARTS.exit) {
          socket.destroy();
          process.stdin.destroy();
          return settle(content.readUInt8(0));
        }
        (kind === PARTS.stderr ? process.stderr : process.stdout).write(content);
      }
    });
    socket.write(`${JSON.stringify(request)}\n`);
    // Standard input, for commands that ask or read: it ends with the command.
    process.stdin.pipe(socket);
  });
}
