import type { Instrument } from '../config/load.js';
import type { CommentOptions, ExperimentTemplates } from '../config/schema.js';
import { FileError, type Problem } from '../errors.js';
import { isProvisional } from '../markers.js';
import type { Draft, ExtraField, Extras, FileRecord, Value } from '../model.js';
import { escapeHtml, formatDay, isUnsetDay, singleLine } from '../text.js';
import { makeBody } from './body.js';
import { makeBrief, makeComments, makeNotes } from './comments.js';
import { type Held, omissionsOf, warningsOf } from './omissions.js';
import { createShowTable } from './plates.js';
import {
  createInput,
  ROWS_LOCATION,
  SHOWN,
  type SourceFile,
  TemplateFalse,
  type TemplateInput,
  TemplateValue,
} from './scope.js';
import type { RowsLocation } from './tables.js';
import type { TemplateError } from './template-errors.js';
import {
  compileTemplates,
  createEngines,
  ISO_DATE,
  type ReadDate,
  readIsoOnly,
  type TemplateSources,
} from './templates.js';

export interface MapperOptions {
  /** The instrument's name. */
  readonly instrument: string;
  readonly experiment: ExperimentTemplates;
  readonly comments: CommentOptions;
  /** The id of the journal, for the origin line. */
  readonly journal?: string | undefined;
  /** Whether the raw file is attached, where the notebook takes it. Default: no. */
  readonly attach?: 'auto' | 'never' | undefined;
  /** Reads dates in the mapping's formats. Default: ISO dates only. */
  readonly readDate?: ReadDate;
}

export interface Mapped {
  readonly draft: Draft;
  readonly dateFrom: DateOrigin;
  /** What the file has and the draft does not, as phrases. Empty only if the draft has all of it. */
  readonly omits: readonly string[];
  /** What people should check, as phrases. */
  readonly warnings: readonly string[];
  /** Where the plot belongs in the body, if there is one. */
  readonly plotAt: number;
  /** Of a growing file: whether the comments have all of the new readings. */
  readonly hasAllRows?: boolean;
}

/** The template, the fact `date`, or the day the file was modified. */
type DateOrigin = 'template' | 'fact' | 'modified';

/** The lines that a growing file got since the last update. They become comments; the body shows all of the file. */
export interface NewPart {
  readonly record: FileRecord;
  /** With the number of the lines in its name. */
  readonly file: SourceFile;
  /** The day of the first reading. */
  readonly day: string;
  /** Whether the experiment is of this day alone. Otherwise a fact can have another date. */
  readonly isDaily: boolean;
  /** Whether the comments before have all earlier readings. */
  readonly isWhole: boolean;
  /** What people must know about these lines, such as those that could not be read. */
  readonly notes: string;
}

/** Makes the draft of one file. Depends on its arguments only. */
type Mapper = (record: FileRecord, file: SourceFile, nowMs: number, part?: NewPart) => Mapped;

/** Throws a TemplateError if a template has a mistake. */
export function createMapper(options: MapperOptions): Mapper {
  const { instrument, experiment, comments, journal, attach, readDate = readIsoOnly } = options;
  const { templates, errors } = compileTemplates({ experiment, comments }, createEngines(readDate));
  if (errors[0]) throw errors[0];
  return (record, file, nowMs, part) => {
    const input = createInput(record, file, instrument, nowMs);
    const name = `${file.stem || file.name}${part?.isDaily ? ` ${part.day}` : ''}`;
    const title = cleanTitle(templates.title?.(input) ?? `${name} (${instrument})`, file);
    const written = isModified(experiment.date) ? undefined : templates.date?.(input);
    const facts = record.isUndated || isModified(experiment.date) ? NO_FACTS : record.meta;
    const { date, dateFrom } = chooseDate(written, facts, file, readDate, part);
    const tags = cleanTags(templates.tags?.map((render) => render(input)) ?? [instrument]);
    const comment = renderNoting(
      templates.comment,
      part ? createInput(part.record, part.file, instrument, nowMs) : input,
    );
    const show = createShowTable();
    const sources = { record, file, ...part, options: comments, text: comment.text, show };
    const made = makeComments(sources);
    const describe = (allRowsIn: RowsLocation, held: readonly Held[]) => {
      input.scope[ROWS_LOCATION] = allRowsIn;
      const template = renderNoting(templates.body, input);
      const { holds, ...made } = makeBody({
        template: template.text,
        record,
        file,
        instrument,
        journal,
        allRowsIn,
        show,
      });
      return { omits: omissionsOf(record, [holds, template.holds, ...held]), ...made };
    };
    const warnings = warningsOf(record);
    const held = [made.holds, ...(made.isTemplate ? [comment.holds] : [])];
    if (part) {
      const { body, plotAt } = describe(part.isWhole ? made.allRowsIn : 'file', []);
      const extras = makeExtras(experiment, templates.fields, input, file);
      const texts = [...made.comments, ...makeNotes(part.notes, comments)];
      const draft = { title, date, body, tags, ...(extras && { extras }), comments: texts };
      return { draft, dateFrom, omits: LATER, warnings, plotAt, hasAllRows: made.allRowsIn === 'comments' };
    }
    const { body, plotAt, omits } = describe(made.allRowsIn, held);
    const brief = attach === 'auto' ? makeBrief(made, sources) : undefined;
    const attached = brief && { ...describe('file', []), comments: [brief] };
    const extras = makeExtras(experiment, templates.fields, input, file);
    const draft = {
      title,
      date,
      body,
      tags,
      ...(extras && { extras }),
      ...(attached && { attached }),
      comments: made.comments,
    };
    return { draft, dateFrom, omits, warnings, plotAt };
  };
}

/** A file that grows is never filed completely. */
const LATER = ['lines that are appended to the file'];

type FieldTemplates = ReturnType<typeof compileTemplates>['templates']['fields'];

/** What only eLabFTW has; undefined if the mapping has none of it. */
function makeExtras(
  { category, status, template, link, canread, canwrite }: ExperimentTemplates,
  templates: FieldTemplates,
  input: TemplateInput,
  file: SourceFile,
): Extras | undefined {
  const fields = templates.flatMap(({ name, type, unit, render }): [string, ExtraField][] => {
    const value = singleLine(render?.(input) ?? '').trim();
    if (value === '') return [];
    if (type === 'number' && !Number.isFinite(Number(value)))
      throw refused(
        file,
        `the field ${JSON.stringify(name)} is ${JSON.stringify(value)}, which is not a number`,
        'use `type: text`, or a template whose text is a number',
      );
    return [[name, { value, type, ...(unit === undefined ? {} : { unit }) }]];
  });
  const extras: Extras = {
    ...(fields.length > 0 && { fields: Object.fromEntries(fields) }),
    ...definedOf({ category, status, template, link, canread, canwrite }),
  };
  return Object.keys(extras).length > 0 ? extras : undefined;
}

const definedOf = <T extends object>(values: T): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;

const NOTHING_RENDERED = { text: undefined, holds: new Set<never>() };

/** Renders a template and notes what its text contains in full: tables, and facts that it prints as written. */
function renderNoting(
  render: ((input: TemplateInput) => string) | undefined,
  input: TemplateInput,
): { text: string | undefined; holds: Held } {
  if (!render) return NOTHING_RENDERED;
  const { scope, record } = input;
  scope[SHOWN].clear();
  const printable = [...record.meta].flatMap(([name, value]) => {
    const shown = scope.meta[name];
    return shown instanceof TemplateValue || shown instanceof TemplateFalse ? [{ value, shown }] : [];
  });
  for (const { shown } of printable) shown.isPrinted = false;
  const text = render(input);
  // What was captured or assigned may not have been printed.
  const has = (part: string): boolean => text.includes(part) || text.includes(escapeHtml(part));
  const facts = printable.filter(({ value, shown }) => shown.isPrinted && has(value.text) && has(value.unit ?? ''));
  const whole = [...scope[SHOWN]].filter(([, shown]) => has(shown)).map(([part]) => part);
  return { text, holds: new Set([...whole, ...facts.map(({ value }) => value)]) };
}

/** Created once: it takes longer than checking a template, and there may be thousands of instruments. */
let enginesForChecks: ReturnType<typeof createEngines> | undefined;

/** All mistakes in the templates of an instrument. */
export function checkTemplates(sources: TemplateSources): readonly TemplateError[] {
  enginesForChecks ??= createEngines(readIsoOnly);
  return compileTemplates(sources, enginesForChecks).errors;
}

/** Mistakes in an instrument's templates, with their locations in the configuration. */
export function checkMapping(instrument: Instrument): Problem[] {
  return checkTemplates(instrument).map(({ path, line, column, message, hint }) => ({
    where: instrument.placeOf(path),
    message: `${path.join('.')}: ${message}, at ${line > 1 ? `line ${line}` : `character ${column}`} of the template`,
    hint,
    stops: { instrument: instrument.name },
  }));
}

/** Notebooks silently cut longer titles. */
const MAX_TITLE_GRAPHEMES = 255;
// Created only when needed: it takes 5 MB of memory.
let segmenter: Intl.Segmenter | undefined;

/** One line, not empty, with a visible "…" if it was cut. */
export function cleanTitle(rendered: string, file: SourceFile): string {
  const title = cutGraphemes(singleLine(rendered.replace(/\s*[\r\n]+\s*/g, ' ')).trim());
  if (title === '') {
    throw refused(file, 'the title is empty', 'add a fallback, for example {{ meta.Sample | default: file.stem }}');
  }
  // Delivery recognises experiments that were created but not yet filled in by such titles.
  if (isProvisional(title.toLowerCase())) {
    const hint = 'add something to the title, for example {{ instrument }}';
    throw refused(file, `the title ${JSON.stringify(title)} is reserved for labfeed`, hint);
  }
  return title;
}

const refused = ({ path }: SourceFile, message: string, hint?: string): FileError =>
  new FileError(message, { where: { file: path }, hint });

function cutGraphemes(text: string): string {
  // A grapheme has at least one code unit, so a short text needs no counting.
  if (text.length <= MAX_TITLE_GRAPHEMES) return text;
  const starts: number[] = [];
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  for (const { index } of segmenter.segment(text)) {
    starts.push(index);
    if (starts.length > MAX_TITLE_GRAPHEMES) return `${text.slice(0, starts.at(-2))}…`;
  }
  return text;
}

/** In code points, as databases count. */
const MAX_TAG_CHARACTERS = 255;

/** Tags that notebooks accept: one line, without `|`, cut to length, not empty, unique ignoring case. */
export function cleanTags(rendered: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const text of rendered) {
    const tag = cutCharacters(singleLine(text).replaceAll('|', ' ').trim());
    const folded = tag.toLowerCase();
    if (tag !== '' && !tags.has(folded)) tags.set(folded, tag);
  }
  return [...tags.values()];
}

function cutCharacters(text: string): string {
  if (text.length <= MAX_TAG_CHARACTERS) return text;
  // A code point has at most two code units.
  const characters = Array.from(text.slice(0, 2 * MAX_TAG_CHARACTERS + 2));
  return characters.length > MAX_TAG_CHARACTERS ? `${characters.slice(0, MAX_TAG_CHARACTERS - 1).join('')}…` : text;
}

const NO_FACTS: FileRecord['meta'] = new Map();

/** The day of the run as YYYY-MM-DD. A day from the file or template is at most one day after the modification. */
function chooseDate(
  template: string | undefined,
  meta: FileRecord['meta'],
  file: SourceFile,
  readDate: ReadDate,
  { day, isDaily = false }: Partial<Pick<NewPart, 'day' | 'isDaily'>> = {},
): { date: string; dateFrom: DateOrigin } {
  const fact = meta.get('date') ?? dateFactInAnyCase(meta, readDate);
  const modified = formatDay(file.modifiedMs);
  const [dateFrom, written]: [DateOrigin, string] =
    template !== undefined
      ? ['template', template]
      : fact && !isDaily && fact.value !== null && fact.text.trim() !== ''
        ? ['fact', isIso(fact) ? String(fact.value) : fact.text]
        : ['modified', day ?? modified];
  const date = readDay(written.trim(), file, readDate);
  // Clocks and time zones may differ by a day. Readings without a date get the day on which they arrived.
  if (dateFrom !== 'modified' && dayNumber(date) - dayNumber(modified) > 1) {
    const hint = 'check the clocks of the instrument and of this computer, and the date format (parse.dates)';
    throw refused(file, `the date ${date} is more than one day after the file was modified (${modified})`, hint);
  }
  if (dateFrom !== 'modified' && isUnsetDay(date)) {
    const hint = 'set the clock of the instrument, or choose another date (experiment.date, or the fact `date`)';
    throw refused(file, `the date ${date} is before 1970, or the first day of a clock that was not set`, hint);
  }
  return { date, dateFrom };
}

/** Says in words that the file has no date of the run. */
const isModified = (template: string | undefined): boolean => /^\{\{ *file\.modified *\}\}$/.test(template ?? '');

/** `Date` and `DATE` count as the fact `date` if they hold a date, even an ambiguous one. */
function dateFactInAnyCase(meta: FileRecord['meta'], readDate: ReadDate): Value | undefined {
  for (const [name, value] of meta) {
    if (name.toLowerCase() === 'date' && (isIso(value) || readDate(value.text) !== undefined)) return value;
  }
  return undefined;
}

const isIso = ({ value }: Value): boolean => typeof value === 'string' && ISO_DATE.test(value);

function readDay(text: string, file: SourceFile, readDate: ReadDate): string {
  if (text === '') {
    throw refused(file, 'the date is empty', 'add a fallback, for example {{ meta.Date | default: file.modified }}');
  }
  const read = ISO_DATE.test(text) ? { iso: text } : readDate(text);
  if (read === undefined) {
    const hint = `add the date format under parse, for example ${formatLine('dd/MM/yyyy')}`;
    throw refused(file, `cannot read ${JSON.stringify(text)} as a date`, hint);
  }
  if ('ambiguous' in read) {
    const lines = new Set(read.ambiguous.map(formatLine));
    const hint = `add the date format under parse: ${[...lines].join(' or ')}`;
    throw refused(file, `the date ${JSON.stringify(text)} is ambiguous`, hint);
  }
  const day = read.iso.slice(0, 10);
  if (!ISO_DATE.test(day) || !isRealDay(day)) {
    throw refused(file, `the date ${JSON.stringify(text)} is not a calendar date`);
  }
  return day;
}

const formatLine = (format: string): string =>
  `dates: { format: ${/^[\w/.: -]+$/.test(format) ? format : JSON.stringify(format)} }`;

/** 2026-02-30 has the right form but makes notebooks fail. */
const isRealDay = (day: string): boolean => {
  const at = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day) && day >= '1000';
};

const dayNumber = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 86_400_000;
