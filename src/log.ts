import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { secretPattern } from './secrets.js';
import { escapeControls } from './text.js';

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

/** A shorter secret can be part of a text by chance. */
const MIN_CERTAIN_LENGTH = 8;

/** Redacts the whole line, not certain fields: a key can appear in the text of an error or in a server's response. */
export function createLog({ level, pretty: readable, destination }: LogOptions) {
  const secrets = new Set<string>();
  let pattern: RegExp | undefined;
  let longPattern: RegExp | undefined;
  const out =
    destination ??
    (readable
      ? pretty({ sync: true, ignore: 'pid,hostname', singleLine: true, translateTime: 'SYS:HH:MM:ss' })
      : inBatches(process.stdout));
  const concealing: DestinationStream = {
    write(line) {
      const safe = escapeControls(pattern ? line.replace(pattern, '[secret]') : line);
      out.write(readable ? escapeTwice(safe) : safe);
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
