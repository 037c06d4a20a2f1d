import {
  AssignTag,
  analyzeSync,
  CaptureTag,
  type Context,
  Drop,
  defaultOperators,
  EchoTag,
  type Emitter,
  evalToken,
  isFalsy,
  Liquid,
  LiquidError,
  type LiquidOptions,
  Value as LiquidValue,
  type Operators,
  Output,
  Parser,
  filters as standardFilters,
  type Template,
  type TopLevelToken,
  toValue,
} from 'liquidjs';
import type { CommentOptions, ExperimentTemplates } from '../config/schema.js';
import type { Table, Value } from '../model.js';
import { escapeHtml } from '../text.js';
import { escapeLines, Markup, renderFacts, renderTable } from './body.js';
import {
  equalityKey,
  FILE_NAMES,
  ORIGIN,
  type Origin,
  ROWS_LOCATION,
  SHOWN,
  scopeOf,
  TemplateFalse,
  type TemplateInput,
  TemplateValue,
  toText,
} from './scope.js';
import { alignTable, factLine, type RowsLocation, shortenTable, type TableRows } from './tables.js';
import {
  explainRenderError,
  explainSyntaxError,
  type Part,
  RAW_FILTER,
  type TemplateError,
  type TemplatePath,
  unknownNames,
} from './template-errors.js';

/**
 * Reads a date that is not ISO with the mapping's formats: the date; all formats that fit, if they give different
 * days; undefined if none fits.
 */
export type ReadDate = (
  text: string,
) => { readonly iso: string } | { readonly ambiguous: readonly string[] } | undefined;

/** A day, alone or followed by a time. */
export const ISO_DATE = /^\d{4}-\d{2}-\d{2}(?!\d)/;

export const readIsoOnly: ReadDate = (text) => (ISO_DATE.test(text) ? { iso: text } : undefined);

export interface TemplateSources {
  readonly experiment: ExperimentTemplates;
  readonly comments: Pick<CommentOptions, 'text'>;
}

/** One engine for each way to print values. */
export const createEngines = (readDate: ReadDate) => ({
  text: createEngine(printText, readDate),
  date: createEngine(printDate, readDate),
  html: createHtmlEngine(readDate),
  /** Rarely needed, and it takes time to create. */
  get number() {
    return createEngine(printNumber, readDate);
  },
});

/** As written if that is a plain number, otherwise with a decimal point, whatever the file has. */
const printNumber = (value: unknown): string =>
  value instanceof TemplateValue && typeof value.value === 'number' && !isPlain(value)
    ? String(value.value)
    : printText(value);

const isPlain = ({ text, value }: TemplateValue): boolean => /^-?\d+(?:\.\d+)?$/.test(text) && Number(text) === value;

/** The templates of one instrument, and all mistakes in them. */
export function compileTemplates({ experiment, comments }: TemplateSources, engines: ReturnType<typeof createEngines>) {
  const { text, date, html } = engines;
  const errors: TemplateError[] = [];
  const compile = (engine: Liquid, part: Part, path: TemplatePath, source: string | undefined) => {
    if (source === undefined) return undefined;
    const parsed = parse(engine, path, source, errors);
    const plain = compilePlain(source, engine);
    return (input: TemplateInput) => plain(input) ?? render(engine, parsed, part, input);
  };
  const templates = {
    title: compile(text, 'title', ['experiment', 'title'], experiment.title),
    date: compile(date, 'date', ['experiment', 'date'], experiment.date),
    body: compile(html, 'body', ['experiment', 'body'], experiment.body),
    tags: experiment.tags?.flatMap((source, i) => compile(text, 'tags', ['experiment', 'tags', i], source) ?? []),
    fields: Object.entries(experiment.fields ?? {}).map(([name, { value, ...field }]) => ({
      name,
      ...field,
      render: compile(field.type === 'number' ? engines.number : text, 'fields', ['experiment', 'fields', name], value),
    })),
    comment: compile(text, 'comments', ['comments', 'text'], comments.text),
  };
  return { templates, errors };
}

/** Names, facts and the number of readings, as they are. */
const PLAIN_OUTPUT = /\{\{ *(instrument|now|file\.\w+|readings\.size|meta\.\w+|meta\["[^"\\]*"\]) *\}\}/;

/** Prints templates of texts and plain outputs, as most are, for which Liquid takes 40 µs. Undefined if it cannot. */
function compilePlain(source: string, { options }: Liquid): (input: TemplateInput) => string | undefined {
  const parts = source.split(PLAIN_OUTPUT);
  if (parts.some((part, n) => n % 2 === 0 && /\{[{%]/.test(part))) return () => undefined;
  const values = parts.map((part, n) => (n % 2 === 0 ? part : readPlain(part)));
  return (input) => {
    let text = '';
    for (const value of values) {
      const shown = typeof value === 'string' ? value : value(input);
      if (shown === undefined) return undefined;
      text += shown === value ? shown : options.outputEscape?.(shown);
    }
    return text;
  };
}

function readPlain(path: string): (input: TemplateInput) => unknown {
  if (path === 'instrument' || path === 'now') return ({ scope }) => scope[path];
  if (path === 'readings.size') return ({ record: { tables } }) => tables[0]?.count ?? 0;
  const [, of, name = ''] = /^(file|meta)(?:\.|\[")(.*?)(?:"\])?$/.exec(path) ?? [];
  const known = FILE_NAMES.find((each) => of === 'file' && each === name);
  if (known) return ({ scope }) => scope.file[known];
  // Liquid decides about those that are missing.
  return ({ scope }) => (of === 'meta' && scope.meta[name] instanceof TemplateValue ? scope.meta[name] : undefined);
}

function parse(engine: Liquid, path: TemplatePath, source: string, errors: TemplateError[]): Template[] {
  try {
    const parsed = new TemplateParser(engine).parse(source);
    errors.push(...unknownNames(analyzeSync(parsed, { partials: false }), path));
    return parsed;
  } catch (error) {
    if (!LiquidError.is(error)) throw error;
    errors.push(explainSyntaxError(error, path, engine));
    return [];
  }
}

/** People find a run by these, so a missing name quarantines the run instead of leaving a gap. */
const STRICT_PARTS: readonly Part[] = ['title', 'date'];

function render(engine: Liquid, parsed: Template[], part: Part, input: TemplateInput): string {
  try {
    const strictVariables = STRICT_PARTS.includes(part);
    return String(engine.renderSync(parsed, input.scope, { strictVariables }));
  } catch (error) {
    throw explainRenderError(error, part, input);
  }
}

/** Removed, because templates must not read files. */
const FILE_TAGS = ['include', 'render', 'layout', 'block'];

function createEngine(outputEscape: (value: unknown) => string, readDate: ReadDate): Liquid {
  const options: LiquidOptions = {
    outputEscape,
    operators: { ...defaultOperators, ...NULL_SAFE_OPERATORS },
    strictFilters: true,
    lenientIf: true,
    ownPropertyOnly: true,
    preserveTimezones: true,
    // Month and day names must not depend on the machine.
    locale: 'en-US',
    templates: {},
    // Nested loops over a long table must not block the daemon.
    renderLimit: 3000,
    memoryLimit: 2e7,
  };
  const engine = new Liquid(options);
  for (const tag of FILE_TAGS) delete engine.tags[tag];
  engine.registerTag('assign', StrictAssign);
  engine.registerTag('echo', LazyEcho);
  registerFilters(engine, readDate);
  return engine;
}

function createHtmlEngine(readDate: ReadDate): Liquid {
  const engine = createEngine(printHtml, readDate);
  registerHtmlFilters(engine);
  engine.registerTag('capture', CaptureMarkup);
  return engine;
}

/** In JavaScript null < 3. A missing reading must not compare as less. */
const NULL_SAFE_OPERATORS: Operators = Object.fromEntries(
  ['<', '<=', '>', '>='].map((name) => {
    const compare = defaultOperators[name];
    return [
      name,
      (left: unknown, right: unknown, context: Context) =>
        toValue(left) == null || toValue(right) == null ? false : (compare?.(left, right, context) ?? false),
    ];
  }),
);

function printText(value: unknown): string {
  if (value instanceof TemplateValue || value instanceof TemplateFalse) value.isPrinted = true;
  if (value instanceof TemplateFalse) return value.text;
  if (Array.isArray(value)) return value.map(printText).join('');
  if (value instanceof TemplateValue || value instanceof Drop) return toText(value);
  // `meta` or a row as a whole is printed as JSON.
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
}

/** A value that the mapping read as a date is printed as ISO. */
const printDate = (value: unknown): string =>
  value instanceof TemplateValue && typeof value.value === 'string' && ISO_DATE.test(value.value)
    ? value.value
    : printText(value);

const printHtml = (value: unknown): string => (value instanceof Markup ? value.html : escapeHtml(printText(value)));

/** Captured text is already escaped and must not be escaped again when it is printed. */
class CaptureMarkup extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    yield* super.render(context);
    const scope = context.bottom();
    const captured: unknown = scope[this.variable];
    scope[this.variable] = new Markup(String(captured));
  }
}

/**
 * Evaluates the argument of `default` only if it is used. Liquid evaluates the arguments of all filters first, and
 * would reject `meta.Sample | default: meta.Name` in a strict template if the file has only the sample.
 * Conditions (`if`, `unless`, `case`) keep Liquid's own evaluation, because their values cannot be replaced.
 */
function* evaluate({ initial, filters }: LiquidValue, context: Context): Generator<unknown, unknown, unknown> {
  let value = yield initial.evaluate(context, filters[0]?.name === 'default');
  for (const [i, filter] of filters.entries()) {
    const fallback = filter.name === 'default' ? filter.args[0] : undefined;
    if (fallback === undefined || Array.isArray(fallback)) {
      value = yield filter.render(value, context);
      continue;
    }
    const allowsFalse = filter.args.some((arg) => Array.isArray(arg) && arg[0] === 'allow_false');
    const isPresent = hasValue(value, context) || (allowsFalse && toValue(value) === false);
    if (!isPresent) value = yield evalToken(fallback, context, filters[i + 1]?.name === 'default');
  }
  return value;
}

function hasValue(value: unknown, context: Context): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  return !isFalsy(value, context);
}

class TemplateParser extends Parser {
  readonly #engine: Liquid;

  constructor(engine: Liquid) {
    super(engine);
    this.#engine = engine;
  }

  override parseToken(token: TopLevelToken, remaining: TopLevelToken[]) {
    const template = super.parseToken(token, remaining);
    return template instanceof Output ? new LazyOutput(template.token, this.#engine) : template;
  }
}

class LazyOutput extends Output {
  override *render(context: Context, emitter: Emitter): Generator<unknown, void, unknown> {
    emitter.write(toValue(yield* evaluate(this.value, context)));
  }
}

class LazyEcho extends EchoTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, void, unknown> {
    const [value] = this.arguments();
    if (!(value instanceof LiquidValue)) return;
    const result = yield* evaluate(value, context);
    const isRaw = value.filters.at(-1)?.raw === true;
    emitter.write(isRaw ? toValue(result) : this.liquid.options.outputEscape?.(result));
  }
}

/** Liquid's own `assign` ignores missing names even in strict templates. */
class StrictAssign extends AssignTag {
  override *render(context: Context): Generator<unknown, void, unknown> {
    const [[value], [name]] = [this.arguments(), this.localScope()];
    if (value instanceof LiquidValue && name) context.bottom()[name.content] = yield* evaluate(value, context);
  }
}

/** Adds `table`, and replaces filters of Liquid that guess, pick at random or compare objects by identity. */
function registerFilters(engine: Liquid, readDate: ReadDate): void {
  engine.unregisterFilter('sample');
  for (const name of DATE_FILTERS) registerDateFilter(engine, name, readDate);
  for (const name of ['group_by', 'group_by_exp']) registerGrouping(engine, name);
  engine.registerFilter('uniq', (value: unknown) => distinct(Array.isArray(value) ? value : [value]));
  registerTableFilter(engine, textTable);
}

function distinct(items: readonly unknown[]): unknown[] {
  const seen = new Map<unknown, unknown>();
  for (const item of items) if (!seen.has(equalityKey(item))) seen.set(equalityKey(item), item);
  return [...seen.values()];
}

interface Group {
  readonly name: unknown;
  readonly items: unknown[];
}

/** Liquid groups values by identity, so groups with equal values are merged afterwards. */
function registerGrouping(engine: Liquid, name: string): void {
  const group = standardFilters[name];
  if (typeof group !== 'function') return;
  engine.registerFilter(name, function* (...args: [unknown, ...unknown[]]): Generator<unknown, Group[], Group[]> {
    const groups = new Map<unknown, Group>();
    for (const { name, items } of yield group.apply(this, args)) {
      const same = groups.get(equalityKey(name));
      if (same) for (const item of items) same.items.push(item);
      else groups.set(equalityKey(name), { name, items });
    }
    return [...groups.values()];
  });
}

/** The body escapes every value, so these filters must not escape it a second time. */
function registerHtmlFilters(engine: Liquid): void {
  // With it, a file could put markup into the notebook.
  engine.unregisterFilter(RAW_FILTER);
  const register = (name: string, toHtml: (text: string) => string) =>
    engine.registerFilter(name, {
      raw: true,
      handler: (value: unknown) => (value instanceof Markup ? value : new Markup(toHtml(toText(value)))),
    });
  register('escape', escapeHtml);
  register('xml_escape', escapeHtml);
  register('escape_once', (text) => escapeHtml(text).replace(/&amp;(#?\w+;)/g, '&$1'));
  register('newline_to_br', escapeLines);
  registerTableFilter(engine, htmlTable);
}

const DATE_FILTERS = ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'];

/** Liquid reads `03/04/2026` as an American date. Here only ISO and the mapping's formats count; the rest stays text. */
function registerDateFilter(engine: Liquid, name: string, readDate: ReadDate): void {
  const format = standardFilters[name];
  if (typeof format !== 'function') return;
  engine.registerFilter(name, function (value: unknown, ...rest: unknown[]) {
    if (typeof toValue(value) === 'number') return format.call(this, value, ...rest);
    const { now } = scopeOf(this.context);
    const time = ['now', 'today'].includes(toText(value)) ? now : toDateTime(value, readDate);
    return time === undefined ? value : format.call(this, time, ...rest);
  });
}

function toDateTime(value: unknown, readDate: ReadDate): string | undefined {
  const iso = toIso(value, readDate);
  if (iso === undefined) return undefined;
  // JavaScript reads a day without a time as midnight UTC, which is the day before in America.
  const time = `${iso.slice(0, 10)}T${iso.slice(11) || '00:00:00'}`;
  return Number.isNaN(Date.parse(time)) ? undefined : time;
}

function toIso(value: unknown, readDate: ReadDate): string | undefined {
  const text = printDate(value).trim();
  const read = ISO_DATE.test(text) ? { iso: text } : readDate(text);
  return read && 'iso' in read ? read.iso : undefined;
}

const DEFAULT_ROWS = 200;

type ShowTable = (value: unknown, maxRows: number, allRowsIn: RowsLocation) => Markup | string;

/** `{{ readings | table }}`, `{{ tables.wells | table: 50 }}`, `{{ meta | table }}`. */
function registerTableFilter(engine: Liquid, show: ShowTable): void {
  engine.registerFilter('table', function (value: unknown, limit: unknown) {
    const maxRows = limit === undefined ? DEFAULT_ROWS : Math.max(0, Math.floor(Number(limit)) || 0);
    const scope = scopeOf(this.context);
    const shown = show(value, maxRows, scope[ROWS_LOCATION] ?? 'file');
    const whole = factsIn(value) ?? tableIn(value);
    if (whole && ('count' in whole ? isShownWhole(whole, maxRows) : true))
      scope[SHOWN]?.set(whole as Table, String(shown));
    return shown;
  });
}

const isShownWhole = ({ rows, count }: TableRows, maxRows: number): boolean =>
  rows.length === count && count <= maxRows;

function htmlTable(value: unknown, maxRows: number, allRowsIn: RowsLocation): Markup | '' {
  const facts = factsIn(value);
  if (facts) return new Markup(renderFacts(facts));
  const table = tableIn(value);
  return table ? new Markup(renderTable(table, { maxRows, allRowsIn })) : '';
}

function textTable(value: unknown, maxRows: number, allRowsIn: RowsLocation): string {
  const facts = factsIn(value);
  if (facts) return Array.from(facts, ([name, fact]) => factLine(name, fact)).join('\n');
  const table = tableIn(value);
  if (!table) return '';
  const { shown, rest } = shortenTable(table, maxRows, allRowsIn);
  if (!rest) return tableLines(table, shown).join('\n');
  const { note, summary } = rest;
  return [
    ...(shown > 0 ? [...tableLines(table, shown), ''] : []),
    note,
    ...(summary.count > 0 ? tableLines(summary, summary.count) : []),
  ].join('\n');
}

function tableLines({ columns, rows }: TableRows, shown: number): string[] {
  const first = rows.slice(0, shown);
  const { head, line } = alignTable(columns, first);
  return [head, ...first.map(line)];
}

function factsIn(value: unknown): ReadonlyMap<string, Value> | undefined {
  const origin = originOf(value);
  return origin && 'facts' in origin ? origin.facts : undefined;
}

/** A whole table, or rows selected from one: `readings | where: "Type", "S" | table`. */
function tableIn(value: unknown): TableRows | undefined {
  const whole = originOf(value);
  if (whole && 'table' in whole && !whole.cells) return whole.table;
  const items: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  let table: Table | undefined;
  const rows: (readonly Value[])[] = [];
  for (const item of items) {
    const origin = originOf(item);
    if (!origin || !('table' in origin) || !origin.cells)
      throw new Error('the filter "table" expects readings, a table or meta');
    table ??= origin.table;
    if (table !== origin.table) throw new Error('the filter "table" expects rows of one table, not of several');
    rows.push(origin.cells);
  }
  return table && { columns: table.columns, rows, count: rows.length };
}

function originOf(value: unknown): Origin | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, ORIGIN)) return undefined;
  return (value as { [ORIGIN]?: Origin })[ORIGIN];
}
