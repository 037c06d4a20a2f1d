import type { FileRecord, Table, Unread, Value } from '../model.js';
import { formatCount, plural, singleLine } from '../text.js';

/** What a draft does not contain of its file: nothing is called safe to delete while there is anything. */

/** What a body or the comments contain in full: all facts (as the map of them), single facts, tables. */
export type Held = ReadonlySet<FileRecord['meta'] | Value | Table>;

const MAX_RANGES = 10;
const MAX_NAMES = 5;

/** One phrase for each kind of thing that the notebook will not have; none if it will have everything. */
export function omissionsOf(record: FileRecord, held: readonly Held[]): string[] {
  const isHeld = (part: FileRecord['meta'] | Value | Table) => held.some((each) => each.has(part));
  const facts = isHeld(record.meta)
    ? []
    : [...record.meta].filter(([, value]) => value.text.trim() !== '' && !isHeld(value)).map(([name]) => name);
  const tables = record.tables.filter((table) => table.count > 0 && !isHeld(table));
  return [
    ...KINDS.flatMap(([kind, verb]) => {
      const some = record.unread.filter((each) => each.kind === kind);
      return some.length === 0 ? [] : [`${verb}: ${describeUnread(some)}`];
    }),
    ...tables.map(({ name, count }) => `not filed in full: ${singleLine(name)}, ${plural(count, 'row')}`),
    ...(facts.length === 0 ? [] : [`not filed: ${plural(facts.length, 'fact')}, ${listNames(facts)}`]),
  ];
}

/** What people should check: lines that may be readings, and columns that have no name. */
export function warningsOf(record: Pick<FileRecord, 'unread' | 'tables' | 'assumed'>): string[] {
  const unnamed = record.tables.flatMap(({ columns }) => columns.filter(({ invented }) => invented === 'name'));
  return [
    ...describeUnused(record),
    ...(record.assumed ?? []),
    ...(unnamed.length === 0
      ? []
      : [
          `${plural(unnamed.length, 'column')} without a name in the file: ${listNames(unnamed.map(({ name }) => name))}`,
        ]),
  ];
}

const unusedOf = ({ unread }: Pick<FileRecord, 'unread'>): readonly Unread[] =>
  unread.filter(({ kind, readings }) => readings !== undefined && kind !== 'left out');

const countUnused = (unused: readonly Unread[]): number => unused.reduce((sum, { readings = 0 }) => sum + readings, 0);

/** `12 lines that look like readings were not used: 88–99`; values if they are at paths: `lines 5–7 of /scan/times`. */
function describeUnused(record: Pick<FileRecord, 'unread'>): string[] {
  const unused = unusedOf(record);
  const count = countUnused(unused);
  if (count === 0) return [];
  if (unused.every(({ what }) => what !== undefined)) {
    return [`${formatCount(count)} values that look like readings were not used: ${describeUnread(unused)}`];
  }
  const what =
    count === 1 ? '1 line that looks like a reading was' : `${formatCount(count)} lines that look like readings were`;
  return [`${what} not used: ${describeUnread(unused).replace(/^lines? /, '')}`];
}

/** Many files have a line or two of numbers that are not readings. A small unread share causes only a warning. */
const MIN_UNUSED = 3;
const MAX_UNUSED_SHARE = 0.1;

/** The unused lines, if there are so many that the readings are probably incomplete. */
export function findUnused(
  record: FileRecord,
): { readonly message: string; readonly line: number | undefined } | undefined {
  const unused = unusedOf(record);
  const count = countUnused(unused);
  const [message] = describeUnused(record);
  if (message === undefined || count < MIN_UNUSED) return undefined;
  if (count <= MAX_UNUSED_SHARE * (count + (record.tableLines ?? 0))) return undefined;
  return { message, line: unused[0]?.from };
}

const KINDS: readonly (readonly [Unread['kind'], string])[] = [
  ['unread', 'not read'],
  ['partly read', 'read only in part'],
  ['left out', 'left out by the mapping'],
];

/** `lines 4–5, 9; sheet "Notes"`. */
export function describeUnread(unread: readonly Unread[]): string {
  const groups = new Map<string, { from: number; to: number }[]>();
  const others: string[] = [];
  for (const { file, sheet, from, to, table, columns, what } of unread) {
    const place = [
      ...(what === undefined ? [] : [what]),
      ...(sheet === undefined ? [] : [`sheet ${JSON.stringify(sheet)}`]),
      ...(file === undefined ? [] : [file]),
    ];
    if (columns) others.push(`columns ${listNames(columns)}${table === undefined ? '' : ` of ${table}`}`);
    else if (from === undefined || to === undefined) others.push(place.join(' of ') || 'the content of the file');
    else {
      const of = place.map((each) => ` of ${each}`).join('');
      const ranges = groups.get(of) ?? [];
      groups.set(of, ranges);
      const last = ranges.at(-1);
      if (last && from === last.to + 1) last.to = to;
      else ranges.push({ from, to });
    }
  }
  const lines = [...groups].map(([of, ranges]) => {
    const shown = ranges.map(({ from, to }) =>
      from === to ? formatCount(from) : `${formatCount(from)}–${formatCount(to)}`,
    );
    return `${isOne(shown) ? 'line' : 'lines'} ${shorten(shown, MAX_RANGES)}${of}`;
  });
  return singleLine([...lines, ...shortenList(others)].join('; '));
}

const isOne = (ranges: readonly string[]): boolean => ranges.length === 1 && !ranges[0]?.includes('–');

const shorten = (parts: readonly string[], max: number): string =>
  parts.length > max
    ? `${parts.slice(0, max).join(', ')} and ${plural(parts.length - max, 'more range')}`
    : parts.join(', ');

const shortenList = (parts: readonly string[]): string[] =>
  parts.length > MAX_RANGES ? [...parts.slice(0, MAX_RANGES), `${parts.length - MAX_RANGES} more`] : [...parts];

function listNames(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  return singleLine(names.slice(0, MAX_NAMES).join(', ')) + (more > 0 ? ` and ${more} more` : '');
}
