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

const KINDS: readonly (readonly [Unread['kind'], string])[] = [
  ['unread', 'not read'],
  ['partly read', 'read only in part'],
  ['left out', 'left out by the mapping'],
];

/** `lines 4–5, 9; sheet "Notes"`. */
export function describeUnread(unread: readonly Unread[]): string {
  const groups = new Map<string, string[]>();
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
      const range = from === to ? formatCount(from) : `${formatCount(from)}–${formatCount(to)}`;
      groups.set(of, [...(groups.get(of) ?? []), range]);
    }
  }
  const lines = [...groups].map(
    ([of, ranges]) => `${isOne(ranges) ? 'line' : 'lines'} ${shorten(ranges, MAX_RANGES)}${of}`,
  );
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
