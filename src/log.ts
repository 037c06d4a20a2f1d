import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger;

export interface LogOptions {
  readonly level: string;
  /** Readable lines for a terminal; otherwise JSON for journald. */
  readonly pretty: boolean;
  readonly destination?: DestinationStream;
}

export interface LogWithSecrets {
  readonly log: Log;
  /** From now on this text leaves the log as `[secret]`, wherever it stands: in a field, a URL, a message. */
  conceal(secret: string): void;
}

/**
 * Redaction works on the written line rather than on chosen fields:
 * a key can surface in an error's text or a server's answer, where no path names it.
 */
export function createLog({ level, pretty: readable, destination }: LogOptions): LogWithSecrets {
  const secrets = new Set<string>();
  const out =
    destination ??
    (readable
      ? pretty({ sync: true, ignore: 'pid,hostname', singleLine: true, translateTime: 'SYS:HH:MM:ss' })
      : process.stdout);
  const concealing: DestinationStream = {
    write(line) {
      let safe = line;
      for (const secret of secrets) safe = safe.replaceAll(secret, '[secret]');
      out.write(safe);
    },
  };
  return {
    log: pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, concealing),
    conceal(secret) {
      if (!secret) return;
      secrets.add(secret);
      // Inside a JSON line the same text can stand escaped.
      secrets.add(JSON.stringify(secret).slice(1, -1));
    },
  };
}
