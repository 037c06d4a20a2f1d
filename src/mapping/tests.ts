import { dirname, relative } from 'node:path';
import PQueue from 'p-queue';
import type { Clock } from '../clock.js';
import type { Expectation, Scalar } from '../config/expectations.js';
import { regexSource } from '../config/grammar.js';
import type { Claim, Instrument } from '../config/load.js';
import { explain, FileError, formatPlace, LabfeedError, type Problem } from '../errors.js';
import type { Mapped } from '../map/draft.js';
import { choosePlot, isPlot } from '../map/plot.js';
import type { Column, FileRecord, Table, Value } from '../model.js';
import { formatCount, nearest, plural } from '../text.js';
import type { MappingOptions } from './mapping.js';
import { openRun } from './sample.js';

type GoldenTest = Instrument['tests'][number];

/** The result of one golden test. It passes if there are no problems. */
export interface TestResult {
  readonly instrument: string;
  readonly file: string;
  readonly problems: readonly Problem[];
}

/** One golden test: plain data, which can be sent to a thread. */
export interface TestTask {
  readonly instrument: MappingOptions & Claim;
  readonly test: GoldenTest;
  readonly nowMs: number;
}

export interface TestDeps {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Runs one test. By default here, which blocks the event loop while a large sample is read. */
  readonly run?: ((task: TestTask, signal: AbortSignal) => Promise<Failure[]>) | undefined;
}

/** A sample on a share that hangs must not keep the daemon from starting. */
const TIMEOUT_MS = 30_000;

/** Runs the golden tests of instruments without template mistakes, a few at a time. An aborted test counts as failed. */
export function runGoldenTests(instruments: readonly Instrument[], deps: TestDeps): Promise<TestResult[]> {
  const queue = new PQueue({ concurrency: 4 });
  return queue.addAll(
    instruments.flatMap((instrument) => {
      if (instrument.tests.length === 0) return [];
      const plain = plainOf(instrument);
      return instrument.tests.map((test, n) => async (): Promise<TestResult> => {
        const failures = await runWithTimeout({ instrument: plain, test, nowMs: deps.clock.now() }, deps);
        const problems = failures.map((failure) => toProblem(instrument, n, test, failure));
        return { instrument: instrument.name, file: test.file, problems };
      });
    }),
  );
}

const plainOf = ({ name, parse, experiment, comments, watch, files, ignore, ready, run }: Instrument) => ({
  ...{ name, parse, experiment, comments, watch, files, ignore, ready, run },
});

/** Concerns one expectation, another key of the instrument at `path`, or the sample as a whole. */
export interface Failure {
  readonly key?: string;
  readonly path?: readonly (string | number)[];
  readonly message: string;
  readonly hint?: string | undefined;
}

async function runWithTimeout(task: TestTask, { clock, signal, run = runTest }: TestDeps): Promise<Failure[]> {
  const ended = new AbortController();
  const either = signal ? AbortSignal.any([ended.signal, signal]) : ended.signal;
  const timedOut: Failure = { message: `could not be read within ${TIMEOUT_MS / 1000} seconds` };
  try {
    return await Promise.race([run(task, either), clock.sleep(TIMEOUT_MS, either).then(() => [timedOut])]);
  } finally {
    ended.abort();
  }
}

export async function runTest({ instrument, test, nowMs }: TestTask, signal: AbortSignal): Promise<Failure[]> {
  const { file: path, expect } = test;
  try {
    // Loaded only by the thread that reads the sample.
    const { createMapping } = await import('./mapping.js');
    const mapping = createMapping(instrument);
    const file = await openRun(path, instrument, signal);
    const record = await mapping.parse(file, signal);
    return [...compare(expect, { record, ...mapping.map(record, file, nowMs) }), ...checkPlot(instrument, record)];
  } catch (error) {
    if (signal.aborted) return [];
    if (error instanceof FileError) return checkRejection(expect, error);
    if (error instanceof LabfeedError) return [{ message: error.message, hint: error.hint }];
    throw error;
  }
}

/** A plot of a column that the sample lacks is a mistake in the mapping. */
function checkPlot({ experiment: { plot: option } }: MappingOptions, record: FileRecord): Failure[] {
  if (typeof option !== 'object') return [];
  const plot = choosePlot(record, option);
  if (isPlot(plot) || plot.column === undefined) return [];
  const at = plot.column === option.x ? ['x'] : ['y', option.y.indexOf(plot.column)];
  return [{ path: ['experiment', 'plot', ...at], message: plot.reason }];
}

/** A file that would be quarantined fails the test, unless the test expects exactly that. */
function checkRejection(expect: GoldenTest['expect'], error: FileError): Failure[] {
  const wanted = expect.find(({ of }) => of === 'quarantined')?.wanted;
  if (wanted === undefined) {
    const { line } = error.where ?? {};
    const at = line === undefined ? '' : ` (line ${line})`;
    return [{ message: `would be quarantined${at}: ${error.message}`, hint: error.hint }];
  }
  const reason = explain(error);
  if (wanted === true || hasText(String(wanted), reason)) return [];
  const difference = showDifference(quote(String(wanted)), quote(reason));
  return [{ key: 'quarantined', message: `quarantined for another reason${difference}` }];
}

function toProblem(instrument: Instrument, n: number, { file }: GoldenTest, failure: Failure): Problem {
  const { key, path: elsewhere, message, hint } = failure;
  const where = instrument.placeOf(elsewhere ?? ['tests', n, ...(key === undefined ? ['file'] : ['expect', key])]);
  // As the configuration most likely has it: relative to its own folder.
  const inside = relative(dirname(where.file), file);
  const path = inside.startsWith('..') ? formatPlace({ file }) : inside;
  const about = [path, key ?? elsewhere?.join('.')].filter(Boolean).join(', ');
  return { where, message: `${about}: ${message}`, hint, stops: { instrument: instrument.name } };
}

/** What the mapping made of a sample. */
export interface Outcome extends Mapped {
  readonly record: FileRecord;
}

/** An expectation that was not met. */
class Mismatch extends LabfeedError {
  constructor(message: string, hint?: string) {
    super(message, { hint });
  }
}

export const compare = (expectations: readonly Expectation[], outcome: Outcome): Failure[] =>
  expectations.flatMap((expectation) => {
    try {
      (CHECKS[expectation.of] as Check<Expectation>)(expectation, outcome);
      return [];
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      return [{ key: expectation.key, message: error.message, hint: error.hint }];
    }
  });

/** Each throws a Mismatch. */
const CHECKS: { [Of in Expectation['of']]: Check<Extract<Expectation, { of: Of }>> } = {
  title: ({ wanted }, { draft }) => checkText(wanted, draft.title),
  date: ({ wanted }, { draft, dateFrom }) =>
    checkText(wanted, draft.date, dateFrom === 'modified' ? MODIFIED_HINT : undefined),
  body: ({ wanted }, { draft }) => checkPart(wanted, draft.body),
  tags: ({ wanted }, { draft }) => checkTags(wanted, draft.tags),
  comments: ({ wanted }, { draft }) => checkComments(wanted, draft.comments),
  quarantined: (_, { draft }) => {
    throw new Mismatch(`expected to be quarantined, but was read with the title ${quote(draft.title)}`);
  },
  fact: ({ wanted, name }, { record }) => checkValue(wanted, findFact(record, name)),
  factUnit: ({ wanted, name }, { record }) => checkUnit(wanted, findFact(record, name).unit),
  rows: ({ wanted, table }, { record }) => checkRows(wanted, record, table),
  columns: ({ wanted, table }, { record }) => checkColumns(wanted, findTable(record, table)),
  columnUnit: ({ wanted, table, column }, { record }) =>
    checkUnit(wanted, findColumn(findTable(record, table), column).unit),
  cell: ({ wanted, table, row, column }, { record }) =>
    checkValue(wanted, findCell(findTable(record, table), row, column)),
};

type Check<E> = (expectation: E, outcome: Outcome) => void;

const MODIFIED_HINT = 'this is the day the sample was modified; neither a template nor a fact contains the date';

function checkText(wanted: string, actual: string, hint?: string): void {
  if (!matches(wanted, actual)) throw different(...quoteDifference(wanted, actual), {}, hint);
}

/** `prefix` names the comment. */
function checkPart(wanted: string, actual: string, prefix = ''): void {
  if (hasText(wanted, actual)) return;
  const { message } = different(quote(wanted.trim()), quoteInstead(wanted.trim(), actual));
  throw new Mismatch(prefix + message);
}

/** In any order, because notebooks sort tags. */
function checkTags(wanted: readonly string[], actual: readonly string[]): void {
  const missing = wanted.filter((text) => !actual.some((tag) => matches(text, tag)));
  const extra = actual.filter((tag) => !wanted.some((text) => matches(text, tag)));
  if (missing.length + extra.length > 0) throw different(quoteAll(wanted), quoteAll(actual), { missing, extra });
}

function checkComments(wanted: number | readonly string[], actual: readonly string[]): void {
  checkCount(typeof wanted === 'number' ? wanted : wanted.length, actual.length, 'comment');
  if (typeof wanted === 'number') return;
  for (const [i, text] of wanted.entries()) checkPart(text, actual[i] ?? '', `comment ${i + 1} `);
}

function checkRows(wanted: number, record: FileRecord, name: string | undefined): void {
  // A file with facts only has 0 readings, but a table named in the test must exist.
  const isNone = name === undefined && record.tables.length === 0;
  checkCount(wanted, isNone ? 0 : findTable(record, name).count, 'row');
}

function checkCount(wanted: number, actual: number, what: string): void {
  if (wanted !== actual) throw different(plural(wanted, what), plural(actual, what));
}

function checkColumns(wanted: readonly string[], { columns }: Table): void {
  const actual = columns.map(({ name }) => name);
  if (wanted.length === actual.length && wanted.every((name, n) => name === actual[n])) return;
  const missing = wanted.filter((name) => !actual.includes(name));
  const extra = actual.filter((name) => !wanted.includes(name));
  const isSameSet = missing.length + extra.length === 0;
  const hint = isSameSet ? 'the names are the same, but their order or number differs' : undefined;
  throw different(quoteAll(wanted), quoteAll(actual), { missing, extra }, hint);
}

function checkUnit(wanted: string | null, actual: string | undefined): void {
  const show = (unit: string | null): string => (unit === null ? 'no unit' : quote(unit));
  if (wanted !== (actual ?? null)) throw different(show(wanted), show(actual ?? null));
}

/** A wanted text may be the value or the way it is written. */
function checkValue(wanted: Scalar, { value, text }: Value): void {
  const isMatch =
    typeof wanted === 'string'
      ? matches(wanted, text) || (value !== null && matches(wanted, String(value)))
      : wanted === value;
  if (isMatch) return;
  const written = String(value ?? '') === text ? '' : `, written ${quote(text)}`;
  if (typeof wanted === 'string' && typeof value === 'string') {
    const [expected, actual] = quoteDifference(wanted, value);
    throw different(expected, actual + written);
  }
  const isText = typeof wanted === 'number' && text.trim() === String(wanted);
  const hint = isText ? `the file has text here; write ${quote(text)} with quotes` : undefined;
  throw different(showValue(wanted), showValue(value) + written, {}, hint);
}

const showValue = (value: Scalar): string =>
  typeof value === 'string' ? quote(value) : value === null ? 'no value' : String(value);

function findFact({ meta }: FileRecord, name: string): Value {
  return meta.get(name) ?? fail('fact', name, [...meta.keys()]);
}

/** Without a name, the first table. */
function findTable({ tables }: FileRecord, name: string | undefined): Table {
  const table = name === undefined ? tables[0] : tables.find((table) => table.name === name);
  if (table) return table;
  if (name === undefined) throw new Mismatch('the file has no table');
  const names = tables.map((table) => table.name);
  return fail('table', name, names);
}

function findColumn({ columns }: Table, name: string): Column {
  const names = columns.map((column) => column.name);
  return columns[names.indexOf(name)] ?? fail('column', name, names);
}

/** Rows count from 0, or backwards from -1. */
function findCell(table: Table, row: number, column: string): Value {
  const { rows, count, columns } = table;
  const index = columns.indexOf(findColumn(table, column));
  const at = row < 0 ? count + row : row;
  if (at < 0 || at >= count) {
    const hint = count > 0 ? `rows are [0] to [${count - 1}]; [-1] is the last` : undefined;
    throw new Mismatch(`no such row: the table has ${plural(count, 'row')}`, hint);
  }
  const cell = rows[at]?.[index];
  if (cell) return cell;
  const [kept, all] = [rows.length, count].map(formatCount);
  throw new Mismatch(
    at < rows.length ? 'the row ends before this column' : `only the first ${kept} of ${all} rows are kept`,
  );
}

const MAX_NAMES = 20;

function fail(what: string, name: string, known: readonly string[]): never {
  const guess = nearest(name, known);
  const more = known.length > MAX_NAMES ? ` and ${known.length - MAX_NAMES} more` : '';
  const all = `it has ${quoteAll(known.slice(0, MAX_NAMES))}${more}`;
  const hint = guess ? `did you mean ${JSON.stringify(guess)}?` : known.length > 0 ? all : `it has no ${what}`;
  throw new Mismatch(`the file has no ${what} ${JSON.stringify(name)}`, hint);
}

/** Equal, or matched by the wanted /regex/. */
function matches(wanted: string, text: string): boolean {
  const source = regexSource(wanted);
  return source === undefined ? wanted === text : new RegExp(source).test(text);
}

/** Contains the wanted text, or is matched by the wanted /regex/. */
const hasText = (wanted: string, text: string): boolean =>
  regexSource(wanted) === undefined ? text.includes(wanted.trim()) : matches(wanted, text);

function different(
  expected: string,
  actual: string,
  lists: Readonly<Record<string, readonly string[]>> = {},
  hint?: string,
): Mismatch {
  const shown = Object.entries(lists).filter(([, names]) => names.length > 0);
  const more = Object.fromEntries(shown.map(([label, names]) => [label, quoteAll(names)]));
  return new Mismatch(`differs${showDifference(expected, actual, more)}`, hint);
}

/** One line each, aligned. */
const showDifference = (expected: string, actual: string, more: Record<string, string> = {}): string =>
  Object.entries({ expected, actual, ...more })
    .map(([label, text]) => `\n    ${label.padEnd(8)}  ${text}`)
    .join('');

const MAX_QUOTED = 300;
const CONTEXT = 40;

/** In quotes, so that spaces at the ends are visible. */
const quote = (text: string): string => JSON.stringify(shorten(text, MAX_QUOTED));

const quoteAll = (texts: readonly string[]): string => (texts.length === 0 ? 'none' : texts.map(quote).join(', '));

const shorten = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max)}…` : text);

/** Long texts are shown from shortly before their first difference. */
function quoteDifference(expected: string, actual: string): [string, string] {
  if (Math.max(expected.length, actual.length) <= 2 * CONTEXT) return [quote(expected), quote(actual)];
  let same = 0;
  while (same < expected.length && expected[same] === actual[same]) same++;
  return [quoteFrom(expected, same), quoteFrom(actual, same)];
}

/** What a long text has where the wanted part should continue: after the longest prefix of it that occurs. */
function quoteInstead(part: string, text: string): string {
  let end = 0;
  let at = 0;
  for (let length = 1; length <= part.length; length++) {
    const found = text.indexOf(part.slice(0, length), at);
    if (found < 0) break;
    [end, at] = [length, found];
  }
  // A few letters occur anywhere and say nothing.
  return end < Math.min(8, part.length) ? quote(text) : quoteFrom(text, at + end);
}

function quoteFrom(text: string, at: number): string {
  const from = Math.max(0, at - CONTEXT);
  const piece = shorten(text.slice(from), 3 * CONTEXT);
  return JSON.stringify(from > 0 ? `…${piece}` : piece);
}
