import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fstatSync, readFileSync } from 'node:fs';
import { constants, userInfo } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { systemClock } from '../clock.js';
import { LabfeedError } from '../errors.js';

/** The version of labfeed. */
export function version(): string {
  known ??= JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return known.version;
}

let known: { readonly version: string } | undefined;

/** Empty where it is not known. */
export function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** Starts a process that works for this one, and does not keep it alive. `script` calls `endWithStarter`. */
export function startHelper(script: URL): ChildProcess {
  const started = fork(script, { cwd: '/', serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  started.unref();
  return started;
}

/** This process ends with the process or thread that started it, even if a call hangs. Signals do not end it earlier. */
export function endWithStarter(): void {
  // `process.exit` would wait for the calls that hang.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
}

/** The user that runs this process. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run labfeed as a user without a name.
    return String(process.geteuid?.() ?? 'that runs labfeed');
  }
}

/**
 * What V8 takes for speed that a daemon does not need, measured while it reads a file of 200 MB and files small ones:
 * - a small heap may grow to four times its live size before it is collected: 70 MB. Now to twice its size, which costs
 *   no time, and while a long file is read to one and a half times, which makes small files 8 % slower.
 * - the space for new objects grows to 32 MB.
 * - the HTTP parser of undici is compiled again with all optimizations, which takes 45 MB for a moment.
 * Starting a thread resets this, so it is called again then.
 */
export function keepHeapSmall(readsLongFile: boolean): void {
  setFlagsFromString(`--heap-growing-percent=${readsLongFile ? 50 : 100}`);
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
}

/**
 * A regular expression in a mapping, such as `(a+)+$`, can need 2ⁿ steps for n letters and block everything. With this
 * flag, V8 switches to a linear engine after 50,000 backtracks. Must be called before any expression is used. That
 * engine has no lookaround and no backreferences; `canExplode` refuses dangerous expressions that use them.
 */
export function limitBacktracking(): void {
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
}

/**
 * Without a listener, SIGUSR1 makes Node open its debugger on a local port, where every user of the machine could run
 * code in this process. `--disable-sigusr1` exists only in later versions of Node.
 */
export function ignoreDebuggerSignal(): void {
  process.on('SIGUSR1', () => undefined);
}

/**
 * The first of these signals aborts the returned one, so that the command can end cleanly. The second one ends the
 * process at once, which the journal survives.
 */
export function onStopRequest(names: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']): AbortSignal {
  const stop = new AbortController();
  for (const name of names) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(128 + constants.signals[name]);
      stop.abort();
    });
  }
  return stop.signal;
}

/** Resolves when a stop is requested. */
export async function stopRequested(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** Whether a descriptor (1 or 2) is the journal of systemd, which understands priorities. */
export function logsToJournal(descriptor: number, env = process.env): boolean {
  const stream = env['JOURNAL_STREAM'];
  if (!stream) return false;
  const { dev, ino } = fstatSync(descriptor);
  return stream === `${dev}:${ino}`;
}

/**
 * A request without an answer would keep the process alive until it times out. `process.exit` waits for calls to a disk
 * that hangs, so a signal ends the process then; systemd counts SIGTERM as a clean exit.
 */
export async function exitNow(): Promise<void> {
  const isBusy = () => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
  for (let waits = 0; waits < 20 && isBusy(); waits++) await systemClock.sleep(50);
  if (!isBusy()) process.exit(0);
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}

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
