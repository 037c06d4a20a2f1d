import type { ParseMapping } from '../config/vocabulary.js';
import { isRule } from '../parse/lines.js';
import { isUnit } from '../parse/values/unit.js';
import { escapeRegex } from '../text.js';
import type { TableMapping } from './describe.js';
import { kindOf } from './kinds.js';
import type { FinderMapping } from './pieces.js';

/**
 * What balances and titrators print: a line for each value, as `N     12.345 g`, `Weight: 12.3 g`, ` 1:  12.345 g`,
 * among names with their values, dates on lines of their own, titles and drawn lines.
 */

/** Such a line. Names and values of pairs can be anything. */
type Printed =
  | { readonly kind: 'reading'; readonly label: string; readonly number: string; readonly at: number }
  | {
      readonly kind: 'pair';
      readonly label: string;
      readonly value: string;
      readonly sign: string;
      readonly at: number;
    }
  | { readonly kind: 'moment' | 'title'; readonly at: number };

type Reading = Extract<Printed, { kind: 'reading' }>;
type Pair = Extract<Printed, { kind: 'pair' }>;

/** Longer lines and files are of other kinds. */
const [MAX_LINE, MAX_LINES, MAX_TITLES] = [80, 2000, 4];

const VALUE = String.raw`(?:\+\s*)?(?<value>-?\d[\d.,]*)`;
const UNIT = String.raw`\s*(?<unit>[^\s\d]\S*)\s*$`;
/** Behind a name. */
const SIGN = String.raw`(?:\s*[:=]\s*|\s{2,})`;

const READING = new RegExp(
  String.raw`^\s*(?:(?<label>\d{1,4}[:.)]?|\p{L}[^:=\d]*?)(?:(?<=\d[:.)]?)\s+|${SIGN}))?${VALUE}${UNIT}`,
  'u',
);
const PAIR = /^\s*(\p{L}[^:=]*?)(\s*[:=]\s*|\s{2,})(\S.*)$/u;
/** Something beside a value: another name, or a row. */
const BESIDE = /[:=]\s|\p{L}[:=]| {2,}(?!\S+$)|[,;|]\S*[,;|]/u;

/** Undefined if a line is of another kind, or if no value has a unit. */
export function describePrinted(texts: readonly string[]): ParseMapping | undefined {
  if (texts.length > MAX_LINES || texts.some((text) => text.length > MAX_LINE || /[\t;|]/.test(text))) return undefined;
  const lines: Printed[] = [];
  for (const [at, text] of texts.entries()) {
    if (text.trim() === '' || isRule({ text })) continue;
    const line = classify(text, at);
    if (!line) return undefined;
    lines.push(line);
  }
  const readings = lines.filter((line) => line.kind === 'reading');
  const pairs = lines.filter((line) => line.kind === 'pair');
  const titles = lines.filter(({ kind }) => kind === 'title').length;
  if (readings.length === 0 || titles > Math.min(MAX_TITLES, readings.length + pairs.length)) return undefined;
  if (lines.some((line, n) => areColumnNames(line) && lines[n + 1]?.kind === 'reading')) return undefined;
  const rows = rowsOf(readings);
  const isRow = new Set<Printed>(rows);
  const facts = [...pairs, ...readings].filter((line) => !isRow.has(line));
  const blocks = blocksOf(lines, rows, texts);
  if (!blocks) return undefined;
  const meta = describeFacts(facts, lines, blocks);
  const table = rows.length === 0 ? undefined : describeRows(rows, blocks);
  return {
    ...decimalIn([...readings.map(({ number }) => number), ...pairs.map(({ value }) => value)]),
    ...(meta.length > 0 && { meta }),
    ...(table && { table }),
  };
}

function classify(text: string, at: number): Printed | undefined {
  const plain = text.trim().replace(/\s+/g, ' ');
  if (kindOf(plain) === 'date') return { kind: 'moment', at };
  const { label = '', value: number = '', unit = '' } = READING.exec(text)?.groups ?? {};
  if (isUnit(unit)) return { kind: 'reading', label, number, at };
  const [, name = '', sign = '', value = ''] = PAIR.exec(text.trimEnd()) ?? [];
  // A time of day has colons too.
  if (name !== '' && (!BESIDE.test(value) || kindOf(value) === 'date'))
    return { kind: 'pair', label: name, value, sign, at };
  // `Name:` is left to be filled in by hand.
  return /^\p{L}[^\d:=,]*:?$/u.test(plain) && plain.split(' ').length <= 6 ? { kind: 'title', at } : undefined;
}

/** `Sample   Weight`: two words without a sign, above values. */
const areColumnNames = (line: Printed): boolean =>
  line.kind === 'pair' && !/[:=]/.test(line.sign) && !/\d/.test(line.value);

/** Values that are counted, have no name, or have one that repeats. */
function rowsOf(readings: readonly Reading[]): Reading[] {
  const times = new Map<string, number>();
  for (const { label } of readings) times.set(label, (times.get(label) ?? 0) + 1);
  return readings.filter(({ label }) => /^(?:\d|$)/.test(label) || (times.get(label) ?? 0) > 1);
}

/** A line that starts a block of rows, as a pattern, and the name of what it says. */
interface Block {
  readonly pattern: string;
  readonly name: string;
  readonly lines: readonly Printed[];
}

/** Names and dates that repeat, each time above further rows. Undefined if they do not. */
function blocksOf(lines: readonly Printed[], rows: readonly Reading[], texts: readonly string[]): Block[] | undefined {
  const groups = new Map<string, Printed[]>();
  for (const line of lines) {
    if (line.kind !== 'pair' && line.kind !== 'moment') continue;
    const name = line.kind === 'pair' ? line.label : '';
    groups.set(name, [...(groups.get(name) ?? []), line]);
  }
  // A second date at the end is when printing ended.
  const isEnd = (name: string, own: readonly Printed[]) =>
    name === '' && own.length === 2 && rows.every(({ at }) => at < (own[1]?.at ?? 0));
  const repeated = [...groups].filter(([name, own]) => own.length > 1 && !isEnd(name, own));
  const isAbove = (own: readonly Printed[]) =>
    own.every(({ at }, n) => rows.some((row) => row.at > at && row.at < (own[n + 1]?.at ?? texts.length)));
  if (!repeated.every(([, own]) => isAbove(own) && (own[0]?.at ?? 0) < (rows[0]?.at ?? 0))) return undefined;
  return repeated.map(([name, own], n) => ({
    name: name === '' ? 'date' : name,
    pattern: name === '' ? MOMENT(`block${n}`) : `/^\\s*${escapeRegex(name)}${SIGN}(?<block${n}>\\S.*?)\\s*$/`,
    lines: own,
  }));
}

const MOMENT = (group: string): string =>
  `/^\\s*(?<${group}>\\d{1,4}[-./ ][^\\s-./]{1,9}[-./ ]\\d{1,4}(?:[ T,]+\\d{1,2}:\\d\\d\\S*(?: ?[AaPp][Mm])?)?)\\s*$/`;

function describeRows(rows: readonly Reading[], blocks: readonly Block[]): TableMapping {
  const labels = [...new Set(rows.map(({ label }) => label))];
  const isCounted = rows.every(({ label }) => /^\d/.test(label));
  const [only = '', ...others] = isCounted ? [''] : labels;
  const words = labels.filter((label) => /^\p{L}/u.test(label)).map(escapeRegex);
  const isOne = others.length === 0 && only !== '';
  const name = isCounted
    ? '(?<no>\\d{1,4})[:.)]?\\s+'
    : words.length === 0
      ? ''
      : `(${isOne ? '?:' : '?<quantity>'}${words.join('|')})${SIGN}`;
  return {
    ...(blocks.length > 0 && { every: blocks.map(({ pattern }) => pattern) }),
    ...{ until: 'eof', rows: `/^\\s*${name}${VALUE}${UNIT}/`, units: { column: 'unit' } },
    columns: {
      ...Object.fromEntries(blocks.map((block, n) => [block.name, `block${n}`])),
      ...(isOne && { [only]: 'value' }),
    },
  };
}

function describeFacts(
  facts: readonly (Pair | Reading)[],
  lines: readonly Printed[],
  blocks: readonly Block[],
): FinderMapping[] {
  const isEmpty = (line: Pair | Reading) => line.kind === 'pair' && !/[\p{L}\p{N}]/u.test(line.value);
  const except = [...new Set([...facts.filter(isEmpty).map(({ label }) => label), ...blocks.map(({ name }) => name)])];
  const isDated = lines.some(({ kind }) => kind === 'moment') && !blocks.some(({ name }) => name === 'date');
  const named = { every: '/^\\s*[^\\s\\d]/', separator: `/${SIGN}(?:\\+\\s*)?/`, ...(except.length > 0 && { except }) };
  return [
    ...(isDated ? [{ match: MOMENT('date') }] : []),
    ...(facts.some(({ label }) => !except.includes(label)) ? [named] : []),
  ];
}

/** A comma, if it is in all fractions, and in one of them cannot separate thousands. */
function decimalIn(values: readonly string[]): Pick<ParseMapping, 'decimal'> {
  const numbers = values.flatMap((value) =>
    kindOf(value) === 'date' ? [] : (/^-?\d[\d.,]*(?=\s*\D*$)/.exec(value)?.[0] ?? []),
  );
  const isComma = numbers.some(
    (number) => /^-?(?:\d{4,}|\d*,(?!\d{3}$)\d+|0,\d+)$/.test(number) && number.includes(','),
  );
  return isComma && numbers.every((number) => !number.includes('.')) ? { decimal: ',' } : {};
}
