import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, pino } from 'pino';
import type PinoPretty from 'pino-pretty';
import { secretPattern } from './secrets.js';
import { escapeControls } from './text.js';

export type Log = Logger;

interface LogOptions {
  readonly level: string;
  /** Readable lines for a terminal or for the journal of systemd; by default JSON lines. */
  readonly format?: 'terminal' | 'journal' | 'json';
  readonly destination?: DestinationStream;
}

/** Not needed by a service. */
const loadPretty = (): typeof PinoPretty => createRequire(import.meta.url)('pino-pretty');

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

/** A shorter secret can be part of a text by chance. */
const MIN_CERTAIN_LENGTH = 8;

/** Redacts the whole line, not certain fields: a key can appear in the text of an error or in a server's response. */
export function createLog({ level, format = 'json', destination }: LogOptions) {
  const secrets = new Set<string>();
  let pattern: RegExp | undefined;
  let longPattern: RegExp | undefined;
  const out =
    destination ??
    (format === 'terminal'
      ? loadPretty()({ sync: true, ignore: 'pid,hostname', singleLine: true, translateTime: 'SYS:HH:MM:ss' })
      : inBatches(process.stdout));
  const concealing: DestinationStream = {
    write(line) {
      const safe = escapeControls(pattern ? line.replace(pattern, '[secret]') : line);
      if (format === 'journal') out.write(toJournalLine(safe));
      else out.write(format === 'terminal' ? escapeTwice(safe) : safe);
    },
  };
  return {
    log: pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, concealing),
    /** From now on the log shows `[secret]` instead of this text, in fields, URLs and messages. */
    conceal(secret: string): void {
      if (secret === '' || secrets.has(secret)) return;
      secrets.add(secret);
      pattern = secretPattern(secrets);
      longPattern = secretPattern([...secrets].filter(({ length }) => length >= MIN_CERTAIN_LENGTH));
    },
    /** Whether a text contains one of these secrets. */
    isSecretIn: (text: string): boolean => longPattern !== undefined && text.search(longPattern) >= 0,
  };
}

/** pino-pretty prints the characters that JSON escapes. Line breaks and tabs stay, for stack traces. */
const escapeTwice = (line: string): string =>
  line.replace(/\\(?:\\|[bfr]|u00[0-9a-f]{2})/g, (one) => (one === '\\\\' ? one : `\\${one}`));

/** The priorities of syslog: critical, error, warning, information, debugging. */
const PRIORITIES = [
  [60, 2],
  [50, 3],
  [40, 4],
  [30, 6],
] as const;

/** A line that `journalctl` shows with its priority: the message, then its fields. The journal knows the time. */
function toJournalLine(line: string): string {
  const { level, time, msg = '', err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const [, priority] = PRIORITIES.find(([from]) => Number(level) >= from) ?? [0, 7];
  const { message, stack } = (err ?? {}) as { message?: string; stack?: string };
  const error = Number(level) >= 60 ? stack : message;
  const all = { ...fields, ...(error === undefined ? {} : { error }) };
  const texts = Object.entries(all).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${name}=${/^[^\s"]+$/.test(text) ? text : JSON.stringify(text.replace(/\s*\n\s*/g, ' '))}`;
  });
  return `<${priority}>${escapeControls([msg, ...texts].join(' '))}\n`;
}
