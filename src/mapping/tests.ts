import { dirname, relative } from 'node:path';
import PQueue from 'p-queue';
import type { Clock } from '../clock.js';
import type { Expectation, Scalar } from '../config/expectations.js';
import { regexSource } from '../config/grammar.js';
import type { Instrument } from '../config/load.js';
import { explain, FileError, formatPlace, LabfeedError, type Problem } from '../errors.js';
import type { Column, Draft, FileRecord, Table, Value } from '../model.js';
import { nearest, plural } from '../text.js';
import { createMapping, type Mapping } from './mapping.js';
import { openRun } from './sample.js';

type GoldenTest = Instrument['tests'][number];

/** What came of one golden test; it passes where there is no problem. */
export interface TestResult {
  readonly instrument: string;
  readonly file: string;
  readonly problems: readonly Problem[];
}

export interface TestDeps {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** What is wrong, of the sample as a whole or with one expectation of it. */
interface Failure {
  readonly key?: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** A sample on a share that hangs must not keep the daemon from starting. */
const LONGEST_MS = 30_000;

/** Runs the golden tests of instruments whose mappings have no mistake, a few at a time. Stopped, they are as failed. */
export function runGoldenTests(instruments: readonly Instrument[], deps: TestDeps): Promise<TestResult[]> {
  const queue = new PQueue({ concurrency: 4 });
  return queue.addAll(
    instruments.flatMap((instrument) => {
      if (instrument.tests.length === 0) return [];
      const mapping = createMapping(instrument);
      return instrument.tests.map((test, n) => async (): Promise<TestResult> => {
        const failures = await runInTime(instrument, mapping, test, deps);
        const problems = failures.map((failure) => toProblem(instrument, n, test, failure));
        return { instrument: instrument.name, file: test.file, problems };
      });
    }),
  );
}

async function runInTime(
  instrument: Instrument,
  mapping: Mapping,
  test: GoldenTest,
  { clock, signal }: TestDeps,
): Promise<Failure[]> {
  const ended = new AbortController();
  const either = signal ? AbortSignal.any([ended.signal, signal]) : ended.signal;
  const late: Failure = { message: `it could not be read within ${LONGEST_MS / 1000} s` };
  try {
    return await Promise.race([
      run(instrument, mapping, test, clock.now(), either),
      clock.sleep(LONGEST_MS, either).then(() => [late]),
    ]);
  } finally {
    ended.abort();
  }
}

async function run(
  instrument: Instrument,
  mapping: Mapping,
  { file: path, expect }: GoldenTest,
  nowMs: number,
  signal: AbortSignal,
): Promise<Failure[]> {
  try {
    const file = await openRun(path, instrument, signal);
    const record = await mapping.parse(file, signal);
    return compare(expect, { record, ...mapping.map(record, file, nowMs) });
  } catch (error) {
    if (signal.aborted) return [];
    if (error instanceof FileError) return judgeRefusal(expect, error);
    if (error instanceof LabfeedError) return [{ message: error.message, hint: error.hint }];
    throw error;
  }
}

/** A refusal is a failure, unless it is what the test asks for. */
function judgeRefusal(expect: GoldenTest['expect'], error: FileError): Failure[] {
  const wanted = expect.find((one) => one.of === 'quarantined')?.wanted;
  if (wanted === undefined) {
    const { line } = error.where ?? {};
    const at = line === undefined ? '' : `, for its line ${line}`;
    return [{ message: `it would be quarantined${at}: ${error.message}`, hint: error.hint }];
  }
  const reason = explain(error);
  if (wanted === true || hasText(wanted, reason)) return [];
  const message = `refused, but not for this reason${showDifference(quote(wanted), quote(reason))}`;
  return [{ key: 'quarantined', message }];
}

function toProblem(
  instrument: Instrument,
  n: number,
  { file }: GoldenTest,
  { key, message, hint }: Failure,
): Problem {
  const where = instrument.placeOf(['tests', n, ...(key === undefined ? ['file'] : ['expect', key])]);
  return {
    where,
    message: `${[shownPath(file, where.file), key].filter(Boolean).join(', ')}: ${message}`,
    ...(hint === undefined ? {} : { hint }),
    stops: { instrument: instrument.name },
  };
}

/** As it is mostly written in the configuration: seen from there. */
function shownPath(file: string, config: string): string {
  const inside = relative(dirname(config), file);
  return inside.startsWith('..') ? formatPlace({ file }) : inside;
}

/** What the mapping made of a file. */
export interface Made {
  readonly record: FileRecord;
  readonly draft: Draft;
  readonly dateFrom: 'template' | 'fact' | 'modified';
}

/** An expectation that was not met, in words for a scientist. */
interface Mismatch {
  readonly key: string;
  readonly message: string;
  readonly hint?: string;
}

/** Holds what was made of a file against what was expected of it. */
export const compare = (expectations: readonly Expectation[], made: Made): Mismatch[] =>
  expectations.flatMap((expectation) => {
    const lack = differenceIn(expectation, made);
    return lack ? [{ key: expectation.key, ...lack }] : [];
  });

function differenceIn(expectation: Expectation, { record, draft, dateFrom }: Made): Lack | undefined {
  switch (expectation.of) {
    case 'title':
      return text(expectation.wanted, draft.title);
    case 'date':
      return date(expectation.wanted, draft.date, dateFrom);
    case 'body':
      return part(expectation.wanted, draft.body);
    case 'tags':
      return tags(expectation.wanted, draft.tags);
    case 'comments':
      return comments(expectation.wanted, draft.comments);
    case 'quarantined':
      return { message: `expected to be refused, but it is read, as ${quote(draft.title)}` };
    case 'fact':
      return inside(findFact(record, expectation.name), (fact) => value(expectation.wanted, fact));
    case 'factUnit':
      return inside(findFact(record, expectation.name), (fact) => unit(expectation.wanted, fact.unit));
    case 'rows':
      return rows(expectation.wanted, record, expectation.table);
    case 'columns':
      return inside(findTable(record, expectation.table), ({ columns }) =>
        columnNames(
          expectation.wanted,
          columns.map(({ name }) => name),
        ),
      );
    case 'columnUnit':
      return inside(findTable(record, expectation.table), (table) =>
        inside(findColumn(table, expectation.column), ({ column }) => unit(expectation.wanted, column.unit)),
      );
    case 'cell':
      return inside(findTable(record, expectation.table), (table) =>
        inside(findCell(table, expectation.row, expectation.column), (cell) =>
          value(expectation.wanted, cell),
        ),
      );
  }
}

const inside = <T>(found: Found<T>, differs: (it: T) => Lack | undefined): Lack | undefined =>
  'lack' in found ? found.lack : differs(found.it);

const DIFFERENT = 'not as expected';

const different = (expected: string, came: string, more: Record<string, string> = {}): Lack => ({
  message: DIFFERENT + showDifference(expected, came, more),
});

function text(wanted: string, came: string): Lack | undefined {
  if (isText(wanted, came)) return undefined;
  const shown = quoteDifference(wanted, came);
  return different(shown.expected, shown.came);
}

function date(wanted: string, came: string, from: Made['dateFrom']): Lack | undefined {
  const lack = text(wanted, came);
  if (!lack || from !== 'modified') return lack;
  const hint = 'it is the day on which the sample was modified: neither a template nor a fact says the date';
  return { ...lack, hint };
}

const part = (wanted: string, came: string): Lack | undefined =>
  hasText(wanted, came) ? undefined : different(quote(wanted.trim()), quoteInstead(wanted.trim(), came));

/** The notebook keeps tags in an order of its own. */
function tags(wanted: readonly string[], came: readonly string[]): Lack | undefined {
  const missing = wanted.filter((one) => !came.some((tag) => isText(one, tag)));
  const extra = came.filter((tag) => !wanted.some((one) => isText(one, tag)));
  if (missing.length + extra.length === 0) return undefined;
  return different(quoteAll(wanted), quoteAll(came), {
    ...(missing.length > 0 && { missing: quoteAll(missing) }),
    ...(extra.length > 0 && { extra: quoteAll(extra) }),
  });
}

function comments(wanted: number | readonly string[], came: readonly string[]): Lack | undefined {
  const count = typeof wanted === 'number' ? wanted : wanted.length;
  if (count !== came.length) return different(plural(count, 'comment'), plural(came.length, 'comment'));
  if (typeof wanted === 'number') return undefined;
  for (const [index, one] of wanted.entries()) {
    const lack = part(one, came[index] ?? '');
    if (lack) return { message: `comment ${index + 1} is ${lack.message}` };
  }
  return undefined;
}

function rows(wanted: number, record: FileRecord, name: string | undefined): Lack | undefined {
  const found = findTable(record, name);
  // A file with facts alone has no readings; a table that somebody names must be there.
  if ('lack' in found && name !== undefined) return found.lack;
  const came = 'lack' in found ? 0 : found.it.count;
  return came === wanted ? undefined : different(plural(wanted, 'row'), plural(came, 'row'));
}

function columnNames(wanted: readonly string[], came: readonly string[]): Lack | undefined {
  if (wanted.length === came.length && wanted.every((name, n) => name === came[n])) return undefined;
  const missing = wanted.filter((name) => !came.includes(name));
  const extra = came.filter((name) => !wanted.includes(name));
  const isOrder = missing.length + extra.length === 0;
  return {
    ...different(quoteAll(wanted), quoteAll(came), {
      ...(missing.length > 0 && { missing: quoteAll(missing) }),
      ...(extra.length > 0 && { extra: quoteAll(extra) }),
    }),
    ...(isOrder && { hint: 'they are the same names in another order, or a different number of times' }),
  };
}

const unit = (wanted: string | null, came: string | undefined): Lack | undefined =>
  wanted === (came ?? null) ? undefined : different(asUnit(wanted), asUnit(came ?? null));

const asUnit = (name: string | null): string => (name === null ? 'no unit' : quote(name));

function value(wanted: Scalar, came: Value): Lack | undefined {
  if (isValue(wanted, came)) return undefined;
  if (typeof wanted === 'string' && typeof came.value === 'string') {
    const shown = quoteDifference(wanted, came.value);
    return different(shown.expected, `${shown.came}${asWritten(came)}`);
  }
  const lack = different(asValue(wanted), `${asValue(came.value)}${asWritten(came)}`);
  const isTextOfIt = typeof wanted === 'number' && came.text.trim() === String(wanted);
  return isTextOfIt ? { ...lack, hint: `it is a text there: write it in quotes, ${quote(came.text)}` } : lack;
}

const asValue = (it: Scalar): string =>
  typeof it === 'string' ? quote(it) : it === null ? 'no value' : String(it);

const asWritten = ({ value: meant, text: written }: Value): string =>
  String(meant ?? '') === written ? '' : `, written ${quote(written)}`;

/** How a difference is shown to a scientist: what was expected, what came, one below the other. */

/** Two lines of what was expected and what came; further lines where they help. */
const showDifference = (expected: string, came: string, more: Record<string, string> = {}): string =>
  Object.entries({ expected, came, ...more })
    .map(([label, text]) => `\n    ${label.padEnd(8)}  ${text}`)
    .join('');

/** Quoted, so that blanks at its ends and numbers that are texts can be seen. */
const quote = (text: string): string => JSON.stringify(shorten(text, LONGEST));

const quoteAll = (texts: readonly string[]): string =>
  texts.length === 0 ? 'none' : texts.map(quote).join(', ');

const LONGEST = 300;
const AROUND = 40;

const shorten = (text: string, longest: number): string =>
  text.length > longest ? `${text.slice(0, longest)}…` : text;

/** Two texts from shortly before the place where they part, if they are long. */
function quoteDifference(expected: string, came: string): { expected: string; came: string } {
  let same = 0;
  while (same < expected.length && expected[same] === came[same]) same++;
  if (Math.max(expected.length, came.length) <= 2 * AROUND) {
    return { expected: quote(expected), came: quote(came) };
  }
  return { expected: quoteAround(expected, same), came: quoteAround(came, same) };
}

/** What a long text has instead of the one that it should contain: from where the best beginning of it ends. */
function quoteInstead(part: string, text: string): string {
  let end = 0;
  let at = 0;
  for (let length = 1; length <= part.length; length++) {
    const found = text.indexOf(part.slice(0, length), at);
    if (found < 0) break;
    [end, at] = [length, found];
  }
  // A few letters stand anywhere: they show nothing.
  return end < Math.min(8, part.length) ? quote(text) : quoteAround(text, at + end);
}

function quoteAround(text: string, at: number): string {
  const from = Math.max(0, at - AROUND);
  const piece = shorten(text.slice(from), 3 * AROUND);
  return JSON.stringify(from > 0 ? `…${piece}` : piece);
}

/** The file lacks what a test speaks of. */
interface Lack {
  readonly message: string;
  readonly hint?: string;
}

/** Something of the record, or that the record lacks it. */
type Found<T> = { readonly it: T } | { readonly lack: Lack };

function findFact({ meta }: FileRecord, name: string): Found<Value> {
  const fact = meta.get(name);
  return fact ? { it: fact } : { lack: lacks('fact', name, [...meta.keys()]) };
}

/** The table of this name; without a name, the first one. */
function findTable({ tables }: FileRecord, name: string | undefined): Found<Table> {
  const table = name === undefined ? tables[0] : tables.find((one) => one.name === name);
  if (table) return { it: table };
  if (name === undefined) return { lack: { message: 'the file has no table' } };
  const names = tables.map((one) => one.name);
  return { lack: lacks('table', name, names) };
}

function findColumn({ columns }: Table, name: string): Found<{ column: Column; index: number }> {
  const index = columns.findIndex((one) => one.name === name);
  const column = columns[index];
  if (column) return { it: { column, index } };
  return {
    lack: lacks(
      'column',
      name,
      columns.map((one) => one.name),
    ),
  };
}

/** The value in a row, which counts from 0, or from -1 at the end. */
function findCell(table: Table, row: number, name: string): Found<Value> {
  const found = findColumn(table, name);
  if ('lack' in found) return found;
  const { rows, count } = table;
  const at = row < 0 ? count + row : row;
  if (at < 0 || at >= count) {
    const hint = count > 0 ? `they are [0] to [${count - 1}]; the last one is also [-1]` : undefined;
    return { lack: { message: `there is no such row: the table has ${count}`, ...(hint && { hint }) } };
  }
  const cell = rows[at]?.[found.it.index];
  if (cell) return { it: cell };
  const message =
    at < rows.length
      ? 'the row ends before this column'
      : `of the ${count} rows only the first ${rows.length} are kept`;
  return { lack: { message } };
}

const SHOWN = 20;

function lacks(what: string, name: string, known: readonly string[]): Lack {
  const guess = nearest(name, known);
  const list = known
    .slice(0, SHOWN)
    .map((one) => JSON.stringify(one))
    .join(', ');
  const rest = known.length > SHOWN ? ` and ${known.length - SHOWN} more` : '';
  return {
    message: `the file has no ${what} ${JSON.stringify(name)}`,
    hint: guess
      ? `did you mean ${JSON.stringify(guess)}?`
      : known.length > 0
        ? `it has ${list}${rest}`
        : `it has no ${what} at all`,
  };
}

/** Whether a text is the wanted one, or fits the wanted /regex/. */
function isText(wanted: string, text: string): boolean {
  const source = regexSource(wanted);
  return source === undefined ? wanted === text : new RegExp(source).test(text);
}

/** Whether a long text contains the wanted one, or fits the wanted /regex/. */
const hasText = (wanted: string, text: string): boolean =>
  regexSource(wanted) === undefined ? text.includes(wanted.trim()) : isText(wanted, text);

/** Whether a value of a file is the wanted one: as what it means, or as it is written there. */
function isValue(wanted: Scalar, { value, text }: Value): boolean {
  if (typeof wanted !== 'string') return wanted === value;
  return isText(wanted, text) || (value !== null && isText(wanted, String(value)));
}
