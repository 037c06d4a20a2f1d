import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger;

interface LogOptions {
  readonly level: string;
  /** Readable lines for a terminal; otherwise JSON lines. */
  readonly pretty: boolean;
  readonly destination?: DestinationStream;
}

/** How long a line waits for others: a write costs more than everything else about a line. */
const BATCH_MS = 10;

/** Writes the lines of a few milliseconds together, at the latest when the process ends. */
function inBatches(out: DestinationStream): DestinationStream {
  let lines = '';
  let isUsed = false;
  const flush = (): void => {
    const batch = lines;
    lines = '';
    if (batch !== '') out.write(batch);
  };
  return {
    write(line) {
      if (lines === '') setTimeout(flush, BATCH_MS);
      lines += line;
      if (!isUsed) process.once('exit', flush);
      isUsed = true;
    },
  };
}

/** Redacts the whole line, not certain fields: a key can appear in the text of an error or in a server's response. */
export function createLog({ level, pretty: readable, destination }: LogOptions) {
  const secrets = new Set<string>();
  const out =
    destination ??
    (readable
      ? pretty({ sync: true, ignore: 'pid,hostname', singleLine: true, translateTime: 'SYS:HH:MM:ss' })
      : inBatches(process.stdout));
  const concealing: DestinationStream = {
    write(line) {
      let safe = line;
      for (const secret of secrets) safe = safe.replaceAll(secret, '[secret]');
      out.write(safe);
    },
  };
  return {
    log: pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, concealing),
    /** From now on the log shows `[secret]` instead of this text, in fields, URLs and messages. */
    conceal(secret: string): void {
      if (!secret) return;
      secrets.add(secret);
      // JSON may escape it.
      secrets.add(JSON.stringify(secret).slice(1, -1));
    },
  };
}
