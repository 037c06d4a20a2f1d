import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type Clock, every, type Loop } from '../clock.js';
import { explain } from '../errors.js';
import type { Live } from '../live.js';
import type { Log } from '../log.js';
import { plural } from '../text.js';

interface ServiceDeps {
  readonly clock: Clock;
  readonly log: Log;
  live(): Live;
  /** Rejects, or does not settle, if the journal cannot be used until a restart. */
  checkJournal(): Promise<void>;
}

/** During the start, systemd waits this long for the next message. */
const START_US = 120_000_000;
const START_TICK_MS = 30_000;

/**
 * Reports to systemd: readiness, a line for `systemctl status`, and that the daemon is alive. Without systemd it does
 * nothing.
 */
export function createService({ clock, log, live, checkJournal }: ServiceDeps, env = process.env) {
  const notify = createNotify(env, log);
  const watchdogMs = Number(env['WATCHDOG_USEC'] ?? 0) / 1000;
  let isReady = false;
  let loop: Loop | undefined;
  const tick = async (): Promise<void> => {
    if (!isReady) return notify([`EXTEND_TIMEOUT_USEC=${START_US}`, 'STATUS=first scan of the folders']);
    await checkJournal();
    await notify(['WATCHDOG=1', `STATUS=${describeStatus(live())}`]);
  };
  return {
    start(): void {
      if (notify === NOWHERE) return;
      // Three times in each period: a message that is lost or late does not end the daemon.
      const everyMs = watchdogMs > 0 ? Math.min(START_TICK_MS, watchdogMs / 3) : START_TICK_MS;
      loop = every(everyMs, clock, async () => {
        await tick().catch((error: unknown) =>
          log.error({ reason: explain(error) }, 'the watchdog of systemd is not notified'),
        );
        return undefined;
      });
    },
    async ready(): Promise<void> {
      if (isReady) return;
      isReady = true;
      await notify(['READY=1', `STATUS=${describeStatus(live())}`]);
    },
    async stop(): Promise<void> {
      // Not awaited: a journal that does not respond must not keep the daemon from stopping.
      void loop?.stop();
      await notify(['STOPPING=1', 'STATUS=finishing the requests in progress']);
    },
  };
}

type Notify = (assignments: readonly string[]) => Promise<void>;

const NOWHERE: Notify = async () => undefined;

/** Node cannot send datagrams to a Unix socket, so a command of systemd does it. */
function createNotify(env: NodeJS.ProcessEnv, log: Log): Notify {
  if (!env['NOTIFY_SOCKET']) return NOWHERE;
  let isWarned = false;
  return (assignments) =>
    new Promise((resolve) => {
      execFile('systemd-notify', [...assignments], { timeout: 10_000, env }, (error) => {
        if (error && !isWarned) log.warn({ reason: error.message }, 'cannot report to systemd');
        isWarned = error !== null;
        resolve();
      });
    });
}

const GATES: Readonly<Record<string, string>> = {
  held: 'waiting because the notebook asks for fewer requests',
  down: 'the notebook is not available',
  halted: 'nothing is sent until `labfeed recover` has run',
};

/** One line for `systemctl status`. */
export function describeStatus({ instruments, alarms, notebook: { gate } }: Live): string {
  const gateText = GATES[gate.kind];
  const parts = [
    `watching ${plural(instruments.filter(({ line }) => line === 'watching').length, 'folder')}`,
    ...(gateText === undefined ? [] : [gateText]),
    ...(alarms.length > 0 ? [`${plural(alarms.length, 'alarm')}: labfeed status`] : []),
  ];
  return parts.join('; ');
}

/** The bit of SIGHUP in the signal masks in /proc. */
const SIGHUP_BIT = 1n;

/**
 * What SIGHUP means: a service is asked to reload. A terminal has been closed, and ends what runs in it unless `nohup`
 * protects it.
 */
export function meaningOfHangup(): 'reload' | 'stop' | 'nothing' {
  try {
    // The name of the program is in parentheses and may contain spaces.
    const [, , , , terminal] = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    if (terminal === '0') return 'reload';
    const [, ignored = '0'] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return BigInt(`0x${ignored}`) & SIGHUP_BIT ? 'nothing' : 'stop';
  } catch {
    return process.stdin.isTTY ? 'stop' : 'reload';
  }
}
