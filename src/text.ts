/**
 * Wording shared by commands, logs and the page. The page imports this file into the browser, so it must not import
 * Node modules or use Node globals while it is loaded.
 */

/** `7`, `1,312`. Intl.NumberFormat would take 5 MB of memory. */
export const formatCount = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

/** `1 run`, `1,312 runs`. */
export const plural = (n: number, one: string, many = `${one}s`): string => `${formatCount(n)} ${n === 1 ? one : many}`;

/** `1,234 bytes`, `12.3 MB`. */
export function formatBytes(n: number): string {
  if (n < 100_000) return plural(n, 'byte');
  const [unit, name] = n < 1e6 ? [1e3, 'kB'] : n < 1e9 ? [1e6, 'MB'] : [1e9, 'GB'];
  return `${(n / unit).toFixed(1)} ${name}`;
}

/** For comparing names: `dwell_time` and `Dwell Time [ms]` begin with the same words. */
export const wordsIn = (name: string): string => (name.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** A column can be named after its unit: `mAU`, `[mV]`, `mAU (2)`. */
export function headingOf({ name, unit }: { readonly name: string; readonly unit?: string | undefined }): string {
  const isUnit = unit !== undefined && [unit, `[${unit}]`, `(${unit})`].includes(name.replace(/ \(\d+\)$/, ''));
  return unit && !isUnit ? `${name} (${unit})` : name;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `150 ms`, `90 seconds`, `12 minutes`, `3 hours`, `2 days`: the smallest unit that keeps the number below about 100. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 100 * SECOND) return plural(Math.floor(ms / SECOND), 'second');
  if (ms < 100 * MINUTE) return plural(Math.floor(ms / MINUTE), 'minute');
  if (ms < 2 * DAY) return plural(Math.floor(ms / HOUR), 'hour');
  return plural(Math.floor(ms / DAY), 'day');
}

/** `5 minutes ago`, `just now`, `in 12 seconds`. */
export function relativeTime(ms: number, now: number): string {
  if (ms > now - 10 * SECOND && ms < now + SECOND) return 'just now';
  return ms < now ? `${formatDuration(now - ms)} ago` : `in ${formatDuration(ms - now)}`;
}

const two = (n: number): string => String(n).padStart(2, '0');

/** The first days of clocks that were not set, and all days before 1970: no instrument ran on them. */
export const isUnsetDay = (iso: string): boolean => /^(?:0|1[0-8]|19[0-6]|1970-01-01|1980-01-01)/.test(iso);

/** `2026-03-04`, in local time like all times here. */
export function formatDay(ms: number): string {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** `14:32`. */
function formatMinute(ms: number): string {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** `14:32:10`. */
const formatSecond = (ms: number): string => `${formatMinute(ms)}:${two(new Date(ms).getSeconds())}`;

/** `2026-03-04 14:32:10`. */
export const formatTime = (ms: number): string => `${formatDay(ms)} ${formatSecond(ms)}`;

/** The difference between local time and UTC at this moment: `+01:00`. */
export function formatUtcOffset(ms: number): string {
  const minutes = -new Date(ms).getTimezoneOffset();
  const absolute = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(absolute / 60))}:${two(absolute % 60)}`;
}

/** `14:32:10` on the day of `now`, otherwise `2026-03-04 14:32`. */
export const formatClock = (ms: number, now: number): string =>
  formatDay(ms) === formatDay(now) ? formatSecond(ms) : `${formatDay(ms)} ${formatMinute(ms)}`;

/** `03-04 14:32`, with the year if it is not the current one. */
export function formatShortTime(ms: number, now: number): string {
  const day = formatDay(ms);
  const [year] = formatDay(now).split('-');
  return `${day.startsWith(`${year}-`) ? day.slice(5) : day} ${formatMinute(ms)}`;
}

/** `a`, `a and b`, `a, b and c`. */
export const joinWords = (words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;

export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** With a capital letter and a full stop. */
export const asSentence = (text: string): string =>
  text === '' || /[.!?:]$/.test(text) ? capitalize(text) : `${capitalize(text)}.`;

/** Replaces `PATH:7:4: ` at the start of a reason with `line 7, column 4: `, for places that already name the file. */
export function withoutPath(reason: string, path: string): string {
  if (path === '' || !reason.startsWith(`${path}:`)) return reason;
  const rest = reason.slice(path.length + 1);
  const [place, line, column] = /^(\d+)(?::(\d+))?: /.exec(rest) ?? [];
  if (place === undefined) return rest.trimStart();
  return `line ${line}${column === undefined ? '' : `, column ${column}`}: ${rest.slice(place.length)}`;
}

/** The known name that a misspelt one most likely stands for; undefined if none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = fold(name);
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = distanceBetween(wanted, fold(candidate));
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Names are compared without case, spaces, underscores and hyphens. */
const fold = (name: string): string => name.toLowerCase().replace(/[\s_-]+/g, '');

/** Infinite if the names have too little in common. */
function distanceBetween(a: string, b: string): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  const maxEdits = Math.floor(long.length / 3);
  const edits = long.length - short.length > maxEdits ? Number.POSITIVE_INFINITY : countEdits(a, b);
  if (edits <= maxEdits) return edits;
  // `Sample` may stand for `Sample Name`, but a typo is more likely.
  return short.length >= 3 && long.includes(short) ? long.length : Number.POSITIVE_INFINITY;
}

/** Characters inserted, deleted, replaced or swapped with their neighbour (optimal string alignment). */
function countEdits(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = cell(above, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        replaced,
        cell(above, j) + 1,
        cell(row, j - 1) + 1,
        swapped ? cell(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, above] = [above, row];
  }
  return cell(above, b.length);
}

const cell = (row: readonly number[], j: number): number => row[j] ?? Number.POSITIVE_INFINITY;

const HTML_SPECIAL = /[&<>"']/;
const HTML_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for use between tags or in a quoted attribute. */
export function escapeHtml(text: string): string {
  return HTML_SPECIAL.test(text) ? text.replace(/[&<>"']/g, (char) => HTML_ENTITIES[char] ?? char) : text;
}

/** The named characters of HTML 4 in the order of their code points, from these on. */
const NAMED_CHARACTERS: readonly (readonly [from: number, names: string])[] = [
  [
    160,
    `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro
     para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil
     Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave
     Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml
     igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute
     thorn yuml`,
  ],
  [
    0x391,
    `Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi
     Psi Omega`,
  ],
  [
    0x3b1,
    `alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi
     chi psi omega`,
  ],
];

const ENTITIES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    NAMED_CHARACTERS.flatMap(([from, names]) =>
      names.split(/\s+/).map((name, n) => [name, String.fromCodePoint(from + n)]),
    ),
  ),
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' },
  ...{ ndash: '–', mdash: '—', hellip: '…', bull: '•', permil: '‰', prime: '′', Prime: '″', euro: '€', trade: '™' },
  ...{ larr: '←', rarr: '→', minus: '−', infin: '∞', asymp: '≈', ne: '≠', le: '≤', ge: '≥', radic: '√', sum: '∑' },
};

/** The text that HTML shows for these entities. Other names stay as they are. */
export const decodeEntities = (text: string): string =>
  text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z][a-z0-9]*));/gi, (entity, decimal?: string, hex?: string, name = '') => {
    const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16);
    return code > 0 && code <= 0x10ffff
      ? String.fromCodePoint(code)
      : (Object.hasOwn(ENTITIES, name) && ENTITIES[name]) || entity;
  });

/** Only the notebook has the pictures of a body: elsewhere, a description stands in their place. */
export const describeImages = (html: string): string =>
  html.replace(/<img\b(?:"[^"]*"|'[^']*'|[^>"'])*>/gi, (tag) => {
    const [, alt = 'image'] = /\balt="([^"]+)"/i.exec(tag) ?? [];
    return `[${escapeHtml(decodeEntities(alt))}]`;
  });

/** Whether a text contains all these words, in any case and order. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** Undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const indent = (text: string, by = '  '): string => text.replace(/^/gm, by);

const CONTROL = /[\p{Cc}\u2028\u2029]/gu;
const CONTROL_IN_LINES = /[^\P{Cc}\n\t]/gu;
const SURROGATE = /\p{Cs}/gu;
const NEEDS_CLEANING = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
const NEEDS_CLEANING_IN_LINES = /[^\P{Cc}\n\t]|\p{Cs}/u;

/** Text from a file as one line. Each control character becomes one space, so the length does not change. */
export function singleLine(text: string): string {
  return NEEDS_CLEANING.test(text) ? text.replace(CONTROL, ' ').replace(SURROGATE, '\ufffd') : text;
}

/** Text from a file without control characters, except line breaks and tabs. */
export function multiLine(text: string): string {
  if (!NEEDS_CLEANING_IN_LINES.test(text)) return text;
  return text.replace(/\r\n?/g, '\n').replace(CONTROL_IN_LINES, ' ').replace(SURROGATE, '\ufffd');
}

/** One line for a terminal. Format characters are replaced too: they could reverse the direction of the text. */
export const terminalLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');

/** Text for a terminal; line breaks and tabs stay. */
export const terminalText = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]|\p{Cf}/gu, '\ufffd');

/** Line breaks and tabs are harmless. The others move the cursor, or change the direction or visibility of text. */
const HARMFUL = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** Control characters as JSON escapes them, so that text is shown as it is and JSON keeps its meaning. */
export const escapeControls = (text: string): string =>
  text.replace(HARMFUL, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A UTF-16 code unit takes at most three bytes in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/** Splits a text between characters into pieces of at most `maxBytes` of UTF-8, but at least four. */
export function* splitBytes(text: string, maxBytes: number): Generator<string> {
  if (text.length * MAX_BYTES_PER_UNIT <= maxBytes) {
    yield text;
    return;
  }
  const bytes = encoder.encode(text);
  const step = Math.max(4, Math.floor(maxBytes));
  for (let from = 0; from < bytes.length; ) {
    let to = Math.min(from + step, bytes.length);
    while (to > from && isContinuation(bytes[to])) to--;
    yield decoder.decode(bytes.subarray(from, to));
    from = to;
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const ELLIPSIS = '…';
const ELLIPSIS_BYTES = encoder.encode(ELLIPSIS).length;

/** The text, or as much of it as fits into `maxBytes` of UTF-8 together with an ellipsis. */
export function truncateBytes(text: string, maxBytes: number): string {
  if (text.length * MAX_BYTES_PER_UNIT <= maxBytes || encoder.encode(text).length <= maxBytes) return text;
  const [start = ''] = splitBytes(text, maxBytes - ELLIPSIS_BYTES);
  return start + ELLIPSIS;
}

/** A file of a filed run, with what became of it. */
interface SettledFile {
  readonly outcome?: string | undefined;
  readonly movedTo?: string | undefined;
  readonly reason?: string | undefined;
}

/** What became of a file after it was filed, to follow its name. Undefined if it stays, as intended. */
export function describeSource({ outcome, movedTo, reason }: SettledFile): string | undefined {
  switch (outcome) {
    case 'moved':
      return `was moved to ${movedTo}`;
    case 'deleted':
      return 'was deleted, after labfeed verified that the notebook has the file itself or every reading in it';
    case 'changed':
      return 'was neither moved nor deleted: it has other content than what was filed';
    case 'gone':
      return 'is no longer there: somebody removed it, or labfeed did just before it was interrupted';
    case 'kept':
      return undefined;
    default:
      return reason === undefined ? undefined : `is neither moved nor deleted yet: ${reason}`;
  }
}

interface FileVersion {
  readonly sha256: string;
  /** When it was read. */
  readonly at: number;
  readonly state: string;
  readonly filedAt?: number | undefined;
  /** The quarantined run that has it. */
  readonly unread?: number | undefined;
}

/** A file that is written every minute has many. */
const MAX_VERSIONS = 50;

/** The versions of a file, newest last, one line each. */
export function versionLines(versions: readonly FileVersion[]): string[] {
  const earlier = versions.length - MAX_VERSIONS;
  const lines = versions.slice(-MAX_VERSIONS).map(({ sha256, at, state, filedAt, unread }) => {
    const details = [
      ...(filedAt === undefined ? [] : [`filed ${formatTime(filedAt)}`]),
      ...(unread === undefined ? [] : [`see run ${unread}`]),
    ];
    return `${formatTime(at)}  ${sha256}  ${state}${details.length === 0 ? '' : ` (${details.join(', ')})`}`;
  });
  return earlier > 0 ? [plural(earlier, 'earlier version'), ...lines] : lines;
}

/** A word for a POSIX shell. */
export const shellWord = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** How many folders deep a glob matches at most: for `*.csv`, subfolders need not be listed. */
export function globDepth(pattern: string): number {
  if (pattern.includes('**') || pattern.includes('(')) return Number.POSITIVE_INFINITY;
  return pattern.split('/').length - 1;
}

/** A text as a pattern that matches it. */
export const escapeRegex = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\t/g, '\\t');

/** A name that is not taken: the second `Area` is `Area 2`. */
export function unique(name: string, taken: object): string {
  let own = name;
  for (let n = 2; own in taken; n++) own = `${name} ${n}`;
  return own;
}
