import { type Liquid, LiquidError, type StaticAnalysis, type Token, UndefinedVariableError } from 'liquidjs';
import { FileError, LabfeedError } from '../errors.js';
import type { Table } from '../model.js';
import { formatCount, nearest } from '../text.js';
import { isCut, RowNotKept } from './tables.js';
import { FILE_NAMES, VARIABLES, type View } from './view.js';

/** Where a template stands within its instrument: `['experiment', 'tags', 1]`. */
export type TemplatePath = readonly (string | number)[];

/** A template that cannot be used. Who knows the configuration's file adds where in it the template stands. */
export class TemplateError extends LabfeedError {
  override readonly name = 'TemplateError';
  readonly path: TemplatePath;
  /** Within the template, from 1. */
  readonly line: number;
  readonly column: number;

  constructor(path: TemplatePath, line: number, column: number, message: string, hint?: string) {
    super(message, hint === undefined ? {} : { hint });
    this.path = path;
    this.line = line;
    this.column = column;
  }
}

interface Mistake {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly hint?: string;
}

/** What Liquid could not read, in plain words. */
export function explainMistake(error: LiquidError, path: TemplatePath, engine: Liquid): TemplateError {
  const said = (error.originalError?.message ?? error.message).replace(
    /(, file:.*)?, line:\d+, col:\d+$/,
    '',
  );
  const { message, hint } = inPlainWords(said, engine);
  const { line, column } = placeOf(said, error.token);
  return new TemplateError(path, line, column, message, hint);
}

/** Liquid points at the beginning of the output; a filter that is unknown is looked for in it. */
function placeOf(said: string, { input, begin }: Token): { line: number; column: number } {
  const [, filter] = UNKNOWN_FILTER.exec(said) ?? [];
  const after = filter === undefined ? -1 : input.slice(begin).search(new RegExp(`\\|\\s*${filter}\\b`));
  const at = after < 0 ? begin : input.indexOf(filter ?? '', begin + after);
  const lines = input.slice(0, at).split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

const UNKNOWN_FILTER = /^undefined filter: ([\w-]+)$/;

function inPlainWords(said: string, engine: Liquid): { message: string; hint?: string } {
  const [, filter] = UNKNOWN_FILTER.exec(said) ?? [];
  if (filter !== undefined)
    return { message: `there is no filter "${filter}"`, ...didYouMean(filter, Object.keys(engine.filters)) };
  const [, end] = /^tag "((?:end|els)\w*)" not found$/.exec(said) ?? [];
  if (end !== undefined) return { message: `{% ${end} %} closes or continues nothing` };
  const [, tag] = /^tag "(.*)" not found$/.exec(said) ?? [];
  if (tag !== undefined)
    return { message: `there is no tag "${tag}"`, ...didYouMean(tag, Object.keys(engine.tags)) };
  const [, kind, open] = /^(output|tag|raw) (.*) not closed$/s.exec(said) ?? [];
  // Liquid quotes the end of the template, and not a whole tag.
  if (open !== undefined) return notClosed(kind === 'output', open.startsWith('"') ? JSON.parse(open) : open);
  const [, illegal] = /^illegal tag: (.*)$/s.exec(said) ?? [];
  if (illegal !== undefined)
    return { message: `${illegal} cannot be read`, hint: 'expected {% for row in readings %}' };
  const [, rest] = /^invalid value expression: (.*)$/s.exec(said) ?? [];
  if (rest !== undefined) return { message: `expected a name or a value, found ${rest}` };
  if (said === 'expected "|" before filter') {
    return { message: 'expected "|" or the end, found something else', hint: BRACKETS_HINT };
  }
  return { message: said };
}

function notClosed(isOutput: boolean, open: string): { message: string; hint?: string } {
  if (isOutput) return { message: `${open} is not closed`, hint: 'expected }}' };
  const [, name] = /^\{%-?\s*(\w+).*%\}$/s.exec(open) ?? [];
  return { message: `${open} is not closed`, hint: name ? `expected {% end${name} %}` : 'expected %}' };
}

function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const near = nearest(name, known);
  return near === undefined ? {} : { hint: `did you mean ${near}?` };
}

const BRACKETS_HINT = 'a name with blanks or signs in it is written in brackets: meta["Sample ID"]';
const NAMES_HINT = `expected one of ${VARIABLES.join(', ')}; what the file says is in meta, and ${BRACKETS_HINT}`;

/** Of Liquid's own; `continue` as in `offset: continue`. */
const LIQUID_NAMES = ['forloop', 'tablerowloop', 'continue'];

/** Names that no file can fill, since they are none of what templates see. */
export function* unknownNames({ globals, locals }: StaticAnalysis): Generator<Mistake> {
  const known: readonly string[] = [...VARIABLES, ...LIQUID_NAMES, ...Object.keys(locals)];
  for (const { segments, location } of Object.values(globals).flat()) {
    const [root, name] = segments;
    const at = { line: location.row, column: location.col };
    if (typeof root === 'string' && !known.includes(root)) {
      const { hint = NAMES_HINT } = didYouMean(root, VARIABLES);
      yield { ...at, message: `there is nothing called "${root}"`, hint };
    }
    const ofFile: readonly string[] = FILE_NAMES;
    if (root === 'file' && typeof name === 'string' && !ofFile.includes(name)) {
      const { hint = `expected one of ${FILE_NAMES.join(', ')}` } = didYouMean(name, FILE_NAMES);
      yield { ...at, message: `file has no "${name}"`, hint };
    }
  }
}

export type Part = 'title' | 'date' | 'body' | 'tags' | 'comments';

/** Why a template could not be filled in with this file, for who wrote the template or made the file. */
export function explainRendering(error: unknown, part: Part, view: View): unknown {
  if (!LiquidError.is(error)) return error;
  const cause = error.originalError;
  if (error instanceof UndefinedVariableError && cause && 'variableName' in cause)
    return missingName(String(cause.variableName), part, view);
  if (cause instanceof RowNotKept) return rowNotKept(cause, part, view);
  const said = cause?.message ?? error.message;
  // Among very many rows, Liquid's limits may come before the first that was not kept.
  const cut = /limit exceeded/.test(said) ? view.record.tables.find(isCut) : undefined;
  return new FileError(`the template of the ${part} cannot be filled in: ${said}`, {
    where: { file: view.file.path },
    cause: error,
    ...(cut && { hint: hintAt(cut, view) }),
  });
}

function rowNotKept({ table, row }: RowNotKept, part: Part, view: View): FileError {
  const [asked, count, kept] = [row, table.count, table.rows.length].map(formatCount);
  return new FileError(
    `the ${part} needs row ${asked} of ${nameOf(table, view)}: the file has ${count} rows, of which templates see the first ${kept}`,
    { where: { file: view.file.path }, hint: hintAt(table, view) },
  );
}

function hintAt(table: Table, view: View): string {
  const name = nameOf(table, view);
  return `use {{ ${name} | table }}, ${name}.size, ${name}.first or {% for row in ${name} limit: 10 %}; comments.readings: summary sums up all rows`;
}

const nameOf = (table: Table, { record }: View): string =>
  table === record.tables[0] ? 'readings' : `tables${access(table.name)}`;

function missingName(path: string, part: Part, view: View): FileError {
  const { shown, meant } = lookUp(path, view);
  const hints = [
    meant === undefined ? undefined : `did you mean ${meant}?`,
    `where it may be absent: {{ ${shown} | default: "…" }}`,
  ];
  return new FileError(`the ${part} needs ${shown}, which this file does not have`, {
    where: { file: view.file.path },
    hint: hints.filter((hint) => hint !== undefined).join(' '),
  });
}

/** The name as a template writes it, and what it was likely meant to be. Liquid joins a path with dots. */
function lookUp(path: string, { record }: View): { shown: string; meant: string | undefined } {
  const [root = '', ...rest] = path.split('.');
  if (root === 'meta' || root === 'tables') {
    const known = root === 'meta' ? record.meta.keys() : record.tables.map(({ name }) => name);
    const name = rest.join('.');
    const near = nearest(name, known);
    return { shown: root + access(name), meant: near === undefined ? undefined : root + access(near) };
  }
  const above = root + rest.slice(0, -1).map(access).join('');
  const name = rest.at(-1) ?? '';
  const columns = new Set(record.tables.flatMap((table) => table.columns.map((column) => column.name)));
  const near = /^-?\d*$/.test(name) ? undefined : nearest(name, columns);
  return {
    shown: above + (rest.length > 0 ? access(name) : ''),
    meant: near === undefined ? undefined : above + access(near),
  };
}

function access(name: string): string {
  if (/^-?\d+$/.test(name)) return `[${name}]`;
  return /^[\p{L}_][\p{L}\p{N}_-]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
