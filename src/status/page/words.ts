/** How this page says numbers and times. Only words: no document is needed to test them. */

export const count = (n: number): string => n.toLocaleString('en');

export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${count(n)} ${n === 1 ? one : many}`;

const UNITS: readonly (readonly [ms: number, one: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
];

/** `12 minutes`, `3 hours`, `2 days`; short times in seconds. */
export function duration(ms: number): string {
  for (const [unit, name] of UNITS) if (ms >= unit) return plural(Math.floor(ms / unit), name);
  return plural(Math.max(0, Math.floor(ms / 1000)), 'second');
}

/** How long ago: `just now`, `3 minutes ago`. */
export function ago(at: number, now: number): string {
  const ms = now - at;
  return ms < 10_000 ? 'just now' : `${duration(ms)} ago`;
}

const sameDay = (a: Date, b: Date): boolean => a.toDateString() === b.toDateString();

const two = (n: number): string => String(n).padStart(2, '0');

/** In the reader's time zone: `14:32:10` of today, otherwise `2026-03-04 14:32`. */
export function clockTime(at: number, now: number): string {
  const date = new Date(at);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return sameDay(date, new Date(now)) ? `${time}:${two(date.getSeconds())}` : `${day(at)} ${time}`;
}

/** `2026-03-04`, in the reader's time zone. */
export function day(at: number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** `2026-03-04 14:32:10`, for histories. */
export function fullTime(at: number): string {
  const date = new Date(at);
  return `${day(at)} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** `1,234 bytes`, `12.3 MB`. */
export function bytes(n: number): string {
  if (n < 100_000) return plural(n, 'byte');
  const [unit, name] = n < 1e6 ? [1e3, 'kB'] : n < 1e9 ? [1e6, 'MB'] : [1e9, 'GB'];
  return `${(n / unit).toFixed(1)} ${name}`;
}

/** The file's own name; paths come from Windows too. */
export const fileName = (path: string): string => path.split(/[\\/]/).at(-1) || path;

/** `a`, `a and b`, `a, b and c`. */
export const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

/** What happened, and below it what to do, as errors of labfeed are written: `place: message`, `  → hint`. */
export function splitReason(reason: string): { readonly what: string; readonly toDo: string | undefined } {
  const [what = '', ...hints] = reason.split(/\n\s*→\s*/);
  return { what, toDo: hints.length === 0 ? undefined : hints.join('\n') };
}

/** `PATH:7:4: message` as `Line 7, column 4: message`, where the path is that of the file itself. */
export function withinFile(what: string, path: string): string {
  if (path === '' || !what.startsWith(`${path}:`)) return what;
  const rest = what.slice(path.length + 1);
  const place = /^(\d+)(?::(\d+))?: /.exec(rest);
  if (!place) return rest.trimStart();
  const [whole, line, column] = place;
  return `line ${line}${column === undefined ? '' : `, column ${column}`}: ${rest.slice(whole.length)}`;
}

export const sentence = (text: string): string =>
  text === '' ? '' : `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?:]$/.test(text) ? '' : '.'}`;
