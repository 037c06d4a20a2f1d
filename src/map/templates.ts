import {
  AssignTag,
  analyzeSync,
  CaptureTag,
  type Context,
  Drop,
  defaultOperators,
  evalToken,
  isFalsy,
  Liquid,
  LiquidError,
  type LiquidOptions,
  Value as LiquidValue,
  type Operators,
  filters as standard,
  type Template,
  toValue,
  toValueSync,
} from 'liquidjs';
import type { CommentOptions, ExperimentTemplates } from '../config/schema.js';
import type { Table, Value } from '../model.js';
import { escapeHtml } from '../text.js';
import { escapeLines, Markup, renderHtmlFacts, renderHtmlTable } from './body.js';
import { ISO_DATE, type ReadDate } from './date.js';
import {
  explainMistake,
  explainRendering,
  type Part,
  TemplateError,
  type TemplatePath,
  unknownNames,
} from './mistakes.js';
import { alignTable, cutTable, listLine, type TableRows, type WhereAll } from './tables.js';
import {
  ALL_ROWS,
  type FactsOrigin,
  identityOf,
  ORIGIN,
  type RowOrigin,
  scopeIn,
  type TableOrigin,
  textIn,
  type View,
  Written,
  WrittenFalse,
} from './view.js';

/** A template, ready to be filled in with what one file says. */
type FillIn = (view: View) => string;

interface Templates {
  readonly title: FillIn | undefined;
  readonly date: FillIn | undefined;
  readonly body: FillIn | undefined;
  readonly tags: readonly FillIn[] | undefined;
  readonly comment: FillIn | undefined;
}

export interface TemplateSources {
  readonly experiment: ExperimentTemplates;
  readonly comments: Pick<CommentOptions, 'text'>;
}

/** The templates of one instrument, and every mistake in them. */
export function compileTemplates(
  { experiment, comments }: TemplateSources,
  { text, date, html }: Engines,
): { templates: Templates; mistakes: readonly TemplateError[] } {
  const mistakes: TemplateError[] = [];
  const compile = (engine: Liquid, part: Part, path: TemplatePath, source: string | undefined) => {
    if (source === undefined) return undefined;
    const parsed = parse(engine, path, source, mistakes);
    return (view: View) => fillIn(engine, parsed, part, view);
  };
  const templates: Templates = {
    title: compile(text, 'title', ['experiment', 'title'], experiment.title),
    date: compile(date, 'date', ['experiment', 'date'], experiment.date),
    body: compile(html, 'body', ['experiment', 'body'], experiment.body),
    tags: experiment.tags?.flatMap(
      (source, i) => compile(text, 'tags', ['experiment', 'tags', i], source) ?? [],
    ),
    comment: compile(text, 'comments', ['comments', 'text'], comments.text),
  };
  return { templates, mistakes };
}

function parse(engine: Liquid, path: TemplatePath, source: string, mistakes: TemplateError[]): Template[] {
  try {
    const parsed = engine.parse(source);
    for (const { message, hint, line, column } of unknownNames(analyzeSync(parsed, { partials: false })))
      mistakes.push(new TemplateError(path, line, column, message, hint));
    askForNeededOnly(parsed);
    return parsed;
  } catch (error) {
    if (!LiquidError.is(error)) throw error;
    mistakes.push(explainMistake(error, path, engine));
    return [];
  }
}

/** People look for a run by these: better none than one under half a title or a wrong day. */
const STRICT: readonly Part[] = ['title', 'date'];

function fillIn(engine: Liquid, parsed: Template[], part: Part, view: View): string {
  try {
    const filled: unknown = engine.renderSync(parsed, view.scope, { strictVariables: STRICT.includes(part) });
    return String(filled);
  } catch (error) {
    throw explainRendering(error, part, view);
  }
}

/** One Liquid for each way in which values are printed. */
interface Engines {
  /** Titles, tags and comments: as written. */
  readonly text: Liquid;
  /** The date: what the mapping read as a date comes out as ISO. */
  readonly date: Liquid;
  /** The body: escaped. */
  readonly html: Liquid;
}

export function createEngines(readDate: ReadDate): Engines {
  const text = createEngine(printText);
  const date = createEngine(printDate);
  const html = createEngine(printHtml);
  addFilters(text, 'text', readDate);
  addFilters(date, 'text', readDate);
  addFilters(html, 'html', readDate);
  html.registerTag('capture', CaptureMarkup);
  return { text, date, html };
}

/** A template is a page of text: it reads no files. */
const FILE_TAGS = ['include', 'render', 'layout', 'block'];

function createEngine(outputEscape: (value: unknown) => unknown): Liquid {
  const options: LiquidOptions = {
    outputEscape: outputEscape as (value: unknown) => string,
    operators: { ...defaultOperators, ...NOTHING_IS_NOT_LESS },
    strictFilters: true,
    lenientIf: true,
    ownPropertyOnly: true,
    preserveTimezones: true,
    // The same words on every machine.
    locale: 'en-US',
    templates: {},
    // A loop within a loop over a long table must not stop the daemon.
    renderLimit: 3000,
    memoryLimit: 2e7,
  };
  const engine = new Liquid(options);
  for (const tag of FILE_TAGS) delete engine.tags[tag];
  return engine;
}

/** In JavaScript null is less than 3. A reading that is missing is not. */
const NOTHING_IS_NOT_LESS: Operators = Object.fromEntries(
  ['<', '<=', '>', '>='].map((name) => {
    const compare = defaultOperators[name];
    return [
      name,
      (left: unknown, right: unknown, context: Context) =>
        toValue(left) == null || toValue(right) == null ? false : (compare?.(left, right, context) ?? false),
    ];
  }),
);

function printText(value: unknown): unknown {
  if (value instanceof WrittenFalse) return value.text;
  if (Array.isArray(value)) return value.map(printText).map(String).join('');
  if (value instanceof Written || value instanceof Drop) return toValue(value) ?? '';
  // `meta` or a row as a whole.
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value ?? '');
}

const printDate = (value: unknown): unknown =>
  value instanceof Written && typeof value.value === 'string' && ISO_DATE.test(value.value)
    ? value.value
    : printText(value);

const printHtml = (value: unknown): string =>
  value instanceof Markup ? value.html : escapeHtml(String(printText(value)));

/** What was captured is escaped already: printing it must not escape it twice. */
class CaptureMarkup extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    yield* super.render(context);
    const scope = context.bottom();
    const captured: unknown = scope[this.variable];
    scope[this.variable] = new Markup(String(captured));
  }
}

/**
 * Makes parsed templates ask for no more names than they need. Liquid evaluates what stands after `default:`
 * even where it is not used, and lets `assign` pass over a name that is not there.
 */
function askForNeededOnly(templates: readonly Template[]): void {
  for (const template of templates) {
    for (const argument of template.arguments?.() ?? []) {
      if (!(argument instanceof LiquidValue)) continue;
      if (template instanceof AssignTag) insist(argument);
      makeDefaultsLazy(argument);
    }
    const children = template.children?.(false, true);
    if (children) askForNeededOnly(toValueSync(children) as Template[]);
  }
}

function insist(value: LiquidValue): void {
  const evaluate = value.value.bind(value);
  value.value = (context) => evaluate(context, false);
}

function makeDefaultsLazy({ filters }: LiquidValue): void {
  filters.forEach((filter, i) => {
    if (filter.name !== 'default') return;
    const [fallback] = filter.args;
    if (fallback === undefined || Array.isArray(fallback)) return;
    const allowsFalse = filter.args.some((arg) => Array.isArray(arg) && arg[0] === 'allow_false');
    const hasAnother = filters[i + 1]?.name === 'default';
    filter.render = function* (value: unknown, context: Context) {
      const present = allowsFalse && toValue(value) === false ? true : isPresent(value, context);
      return present ? value : yield evalToken(fallback, context, hasAnother);
    };
  });
}

function isPresent(value: unknown, context: Context): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  return !isFalsy(value, context);
}

/** The words that templates have beside Liquid's own, and Liquid's own where they would guess or draw lots. */
function addFilters(engine: Liquid, kind: 'html' | 'text', readDate: ReadDate): void {
  engine.unregisterFilter('sample');
  addDateFilters(engine, readDate);
  addTableFilter(engine, kind);
  engine.registerFilter('uniq', (value: unknown) => distinct(Array.isArray(value) ? value : [value]));
  for (const name of ['group_by', 'group_by_exp']) addGrouping(engine, name);
  if (kind === 'html') addMarkupFilters(engine);
}

function distinct(items: readonly unknown[]): unknown[] {
  const seen = new Map<unknown, unknown>();
  for (const item of items) if (!seen.has(identityOf(item))) seen.set(identityOf(item), item);
  return [...seen.values()];
}

interface Group {
  readonly name: unknown;
  readonly items: unknown[];
}

/** Liquid makes a group of each object: those of equal values are put together again. */
function addGrouping(engine: Liquid, name: string): void {
  const group = standard[name];
  if (typeof group !== 'function') return;
  engine.registerFilter(name, function* (...args: [unknown, ...unknown[]]): Generator<
    unknown,
    Group[],
    Group[]
  > {
    const groups = new Map<unknown, Group>();
    for (const { name, items } of yield group.apply(this, args)) {
      const same = groups.get(identityOf(name));
      if (same) for (const item of items) same.items.push(item);
      else groups.set(identityOf(name), { name, items });
    }
    return [...groups.values()];
  });
}

/** In a body every value is escaped anyway: asking for it must not escape it twice. */
function addMarkupFilters(engine: Liquid): void {
  const add = (name: string, toHtml: (text: string) => string) =>
    engine.registerFilter(name, {
      raw: true,
      handler: (value: unknown) => (value instanceof Markup ? value : new Markup(toHtml(textIn(value)))),
    });
  add('escape', escapeHtml);
  add('xml_escape', escapeHtml);
  add('escape_once', (text) => escapeHtml(text).replace(/&amp;(#?\w+;)/g, '&$1'));
  add('newline_to_br', escapeLines);
}

const NAMES = ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'];

/** Liquid reads `03/04/2026` as an American would. Here a date is ISO, or what the mapping says, or stays a text. */
function addDateFilters(engine: Liquid, readDate: ReadDate): void {
  for (const name of NAMES) {
    const format = standard[name];
    if (typeof format !== 'function') continue;
    engine.registerFilter(name, function (value: unknown, ...rest: unknown[]) {
      if (typeof toValue(value) === 'number') return format.call(this, value, ...rest);
      const { now } = scopeIn(this.context.environments);
      const moment = ['now', 'today'].includes(textIn(value)) ? now : momentOf(value, readDate);
      return moment === undefined ? value : format.call(this, moment, ...rest);
    });
  }
}

/** A time that every JavaScript reads alike; nothing where the value is none. */
function momentOf(value: unknown, readDate: ReadDate): string | undefined {
  const iso = isoOf(value, readDate);
  if (iso === undefined) return undefined;
  // A day alone would be midnight in Greenwich, and so the day before in America.
  const moment = `${iso.slice(0, 10)}T${iso.slice(11) || '00:00:00'}`;
  return Number.isNaN(Date.parse(moment)) ? undefined : moment;
}

function isoOf(value: unknown, readDate: ReadDate): string | undefined {
  if (value instanceof Written && typeof value.value === 'string' && ISO_DATE.test(value.value))
    return value.value;
  const text = textIn(value).trim();
  if (ISO_DATE.test(text)) return text;
  const read = readDate(text);
  return read && 'iso' in read ? read.iso : undefined;
}

const DEFAULT_ROWS = 200;

/** `{{ readings | table }}`, `{{ tables.wells | table: 50 }}`, `{{ meta | table }}`. */
function addTableFilter(engine: Liquid, kind: 'html' | 'text'): void {
  engine.registerFilter('table', {
    raw: kind === 'html',
    handler(value: unknown, most: unknown) {
      const maxRows = most === undefined ? DEFAULT_ROWS : Math.max(0, Math.floor(Number(most)) || 0);
      const { [ALL_ROWS]: whereAll = 'file' } = scopeIn(this.context.environments);
      return kind === 'html' ? htmlOf(value, maxRows, whereAll) : textOf(value, maxRows, whereAll);
    },
  });
}

function htmlOf(value: unknown, maxRows: number, whereAll: WhereAll): Markup | '' {
  const facts = factsIn(value);
  if (facts) return new Markup(renderHtmlFacts(facts));
  const table = tableIn(value);
  return table ? new Markup(renderHtmlTable(table, { maxRows, whereAll })) : '';
}

function textOf(value: unknown, maxRows: number, whereAll: WhereAll): string {
  const facts = factsIn(value);
  if (facts) return Array.from(facts, ([name, fact]) => listLine(name, fact)).join('\n');
  const table = tableIn(value);
  if (!table) return '';
  const { shown, rest } = cutTable(table, maxRows, whereAll);
  if (!rest) return linesOf(table, shown).join('\n');
  const { note, figures } = rest;
  return [
    ...(shown > 0 ? [...linesOf(table, shown), ''] : []),
    note,
    ...(figures.count > 0 ? linesOf(figures, figures.count) : []),
  ].join('\n');
}

function linesOf({ columns, rows }: TableRows, shown: number): string[] {
  const first = rows.slice(0, shown);
  const { head, line } = alignTable(columns, first);
  return [head, ...first.map(line)];
}

type Origin = RowOrigin | TableOrigin | FactsOrigin;

function factsIn(value: unknown): ReadonlyMap<string, Value> | undefined {
  const origin = originOf(value);
  return origin && 'facts' in origin ? origin.facts : undefined;
}

/** A table, whole or picked over: `readings | where: "Type", "S" | table`. */
function tableIn(value: unknown): TableRows | undefined {
  const whole = originOf(value);
  if (whole && 'of' in whole && !('cells' in whole)) return whole.of;
  const items: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  let of: Table | undefined;
  const rows: (readonly Value[])[] = [];
  for (const item of items) {
    const origin = originOf(item);
    if (!origin || !('cells' in origin))
      throw new Error('the filter "table" takes readings, a table or meta');
    of ??= origin.of;
    if (of !== origin.of) throw new Error('the filter "table" takes the rows of one table, not of several');
    rows.push(origin.cells);
  }
  return of && { columns: of.columns, rows, count: rows.length };
}

function originOf(value: unknown): Origin | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, ORIGIN)) return undefined;
  return (value as { [ORIGIN]?: Origin })[ORIGIN];
}
