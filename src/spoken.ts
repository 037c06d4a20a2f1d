/** How long, as people say it: in the one unit that fits. */
export function spokenDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 100_000) return `${Math.floor(ms / 1000)} s`;
  if (ms < 100 * 60_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 48 * 3_600_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} days`;
}

/** A reason that begins with the place of the mistake, where the file is named already: its line and column stay. */
export function withoutPath(reason: string, path: string): string {
  if (path === '' || !reason.startsWith(path)) return reason;
  const rest = reason.slice(path.length);
  const [, line, column] = /^:(\d+)(?::(\d+))?: /.exec(rest) ?? [];
  const told = rest.replace(/^(?::\d+){0,2}: /, '');
  if (line === undefined) return told;
  return `line ${line}${column === undefined ? '' : `, column ${column}`}: ${told}`;
}

/** `1 run`, `2 runs`. */
export const spokenCount = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
