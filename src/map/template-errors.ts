import { type Liquid, LiquidError, type StaticAnalysis, type Token, UndefinedVariableError } from 'liquidjs';
import { FileError, LabfeedError } from '../errors.js';
import type { Table } from '../model.js';
import { formatCount, nearest } from '../text.js';
import { FILE_NAMES, type TemplateInput, VARIABLES } from './scope.js';
import { isPartial, RowNotKept } from './tables.js';

/** Where a template is within its instrument: `['experiment', 'tags', 1]`. */
export type TemplatePath = readonly (string | number)[];

/** A mistake in a template. The caller adds where the template is in the configuration file. */
export class TemplateError extends LabfeedError {
  override readonly name = 'TemplateError';
  readonly path: TemplatePath;
  /** Within the template, from 1. */
  readonly line: number;
  readonly column: number;

  constructor(path: TemplatePath, line: number, column: number, message: string, hint?: string) {
    super(message, { hint });
    this.path = path;
    this.line = line;
    this.column = column;
  }
}

/** A syntax error of Liquid, reworded. */
export function explainSyntaxError(error: LiquidError, path: TemplatePath, engine: Liquid): TemplateError {
  const reason = (error.originalError?.message ?? error.message).replace(/(, file:.*)?, line:\d+, col:\d+$/, '');
  const { message, hint } = rewordSyntaxError(reason, engine);
  const { line, column } = locate(reason, error.token);
  return new TemplateError(path, line, column, message, hint);
}

/** Liquid reports where the output starts. An unknown filter is searched for in it. */
function locate(reason: string, { input, begin }: Token): { line: number; column: number } {
  const [, filter] = UNKNOWN_FILTER.exec(reason) ?? [];
  const after = filter === undefined ? -1 : input.slice(begin).search(new RegExp(`\\|\\s*${filter}\\b`));
  const at = after < 0 ? begin : input.indexOf(filter ?? '', begin + after);
  const lines = input.slice(0, at).split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

/** Prints a value without escaping it. */
export const RAW_FILTER = 'raw';

const UNKNOWN_FILTER = /^undefined filter: ([\w-]+)$/;

interface Explanation {
  readonly message: string;
  readonly hint?: string;
}

function rewordSyntaxError(reason: string, engine: Liquid): Explanation {
  const [, filter] = UNKNOWN_FILTER.exec(reason) ?? [];
  if (filter === RAW_FILTER)
    return {
      message: 'the filter "raw" is not allowed in the body: files could add markup to it',
      hint: 'remove it, and write markup in the template around the value',
    };
  if (filter !== undefined)
    return { message: `unknown filter "${filter}"`, ...didYouMean(filter, Object.keys(engine.filters)) };
  const [, end] = /^tag "((?:end|els)\w*)" not found$/.exec(reason) ?? [];
  if (end !== undefined) return { message: `{% ${end} %} has no matching opening tag` };
  const [, tag] = /^tag "(.*)" not found$/.exec(reason) ?? [];
  if (tag !== undefined) return { message: `unknown tag "${tag}"`, ...didYouMean(tag, Object.keys(engine.tags)) };
  const [, kind, open] = /^(output|tag|raw) (.*) not closed$/s.exec(reason) ?? [];
  // Liquid quotes the text if the template ends in it, but not a complete tag.
  if (open !== undefined) return notClosed(kind === 'output', open.startsWith('"') ? JSON.parse(open) : open);
  const [, illegal] = /^illegal tag: (.*)$/s.exec(reason) ?? [];
  if (illegal !== undefined) return { message: `cannot read ${illegal}`, hint: 'expected {% for row in readings %}' };
  const [, found] = /^invalid value expression: (.*)$/s.exec(reason) ?? [];
  if (found !== undefined) return { message: `expected a name or a value, found ${found}` };
  if (reason === 'expected "|" before filter')
    return { message: 'expected "|" or the end of the expression', hint: BRACKETS_HINT };
  return { message: reason };
}

function notClosed(isOutput: boolean, open: string): Explanation {
  if (isOutput) return { message: `${open} is not closed`, hint: 'expected }}' };
  const [, name] = /^\{%-?\s*(\w+).*%\}$/s.exec(open) ?? [];
  return { message: `${open} is not closed`, hint: name ? `expected {% end${name} %}` : 'expected %}' };
}

function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const near = nearest(name, known);
  return near === undefined ? {} : { hint: `did you mean ${near}?` };
}

const BRACKETS_HINT = 'write a name with spaces or special characters in brackets: meta["Sample ID"]';

/** Names that Liquid defines itself; `continue` as in `offset: continue`. */
const LIQUID_NAMES = ['forloop', 'tablerowloop', 'continue'];

/** Names that no file can provide, because templates have no such variable. */
export function* unknownNames({ globals, locals }: StaticAnalysis, path: TemplatePath): Generator<TemplateError> {
  const known: readonly string[] = [...VARIABLES, ...LIQUID_NAMES, ...Object.keys(locals)];
  const fileNames: readonly string[] = FILE_NAMES;
  for (const { segments, location } of Object.values(globals).flat()) {
    const [root, name] = segments;
    const error = (message: string, hint: string) => new TemplateError(path, location.row, location.col, message, hint);
    if (typeof root === 'string' && !known.includes(root)) {
      const names = `for a fact from the file, write meta.${root}; ${BRACKETS_HINT}`;
      const { hint = names } = didYouMean(root, VARIABLES);
      yield error(`unknown name "${root}"`, hint);
    }
    if (root === 'file' && typeof name === 'string' && !fileNames.includes(name)) {
      const { hint = `expected one of ${FILE_NAMES.join(', ')}` } = didYouMean(name, FILE_NAMES);
      yield error(`file has no "${name}"`, hint);
    }
  }
}

export type Part = 'title' | 'date' | 'body' | 'tags' | 'fields' | 'comments';

/** Why a template could not be rendered with this file. */
export function explainRenderError(error: unknown, part: Part, input: TemplateInput): unknown {
  if (!LiquidError.is(error)) return error;
  const cause = error.originalError;
  if (error instanceof UndefinedVariableError && cause && 'variableName' in cause)
    return missingName(String(cause.variableName), part, input);
  if (cause instanceof RowNotKept) return rowNotKept(cause, part, input);
  const reason = cause?.message ?? error.message;
  // With very many rows, Liquid's own limits can apply before the first row that was not kept.
  const partial = /limit exceeded/.test(reason) ? input.record.tables.find(isPartial) : undefined;
  return new FileError(`cannot render the ${part} template: ${reason}`, {
    where: { file: input.file.path },
    cause: error,
    hint: partial && partialTableHint(partial, input),
  });
}

function rowNotKept({ table, row }: RowNotKept, part: Part, input: TemplateInput): FileError {
  const [wanted, kept, count] = [row, table.rows.length, table.count].map(formatCount);
  return new FileError(
    `the ${part} needs row ${wanted} of ${tableName(table, input)}, but templates see only the first ${kept} of its ${count} rows`,
    { where: { file: input.file.path }, hint: partialTableHint(table, input) },
  );
}

function partialTableHint(table: Table, input: TemplateInput): string {
  const name = tableName(table, input);
  return `use {{ ${name} | table }}, ${name}.size, ${name}.first or {% for row in ${name} limit: 10 %}; comments.readings: summary summarises all rows`;
}

const tableName = (table: Table, { record }: TemplateInput): string =>
  table === record.tables[0] ? 'readings' : `tables${access(table.name)}`;

function missingName(path: string, part: Part, input: TemplateInput): FileError {
  const { written, suggestion } = lookUp(path, input);
  const optional = `it may be missing, write {{ ${written} | default: "…" }}`;
  return new FileError(`the ${part} needs ${written}, which this file does not have`, {
    where: { file: input.file.path },
    hint: suggestion === undefined ? `if ${optional}` : `did you mean ${suggestion}? If ${optional}`,
  });
}

/** The name as a template writes it, and the nearest name that the file has. Liquid joins a path with dots. */
function lookUp(path: string, { record }: TemplateInput): { written: string; suggestion: string | undefined } {
  const [root = '', ...rest] = path.split('.');
  const result = (parent: string, name: string, known: Iterable<string>) => {
    const near = nearest(name, known);
    return { written: parent + access(name), suggestion: near === undefined ? undefined : parent + access(near) };
  };
  if (rest.length === 0) return { written: root, suggestion: undefined };
  if (root === 'meta') return result(root, rest.join('.'), record.meta.keys());
  const tables = record.tables.map(({ name }) => name);
  if (root === 'tables') return result(root, rest.join('.'), tables);
  const name = rest.at(-1) ?? '';
  const columns = record.tables.flatMap((table) => table.columns.map((column) => column.name));
  return result(root + rest.slice(0, -1).map(access).join(''), name, /^-?\d*$/.test(name) ? [] : columns);
}

function access(name: string): string {
  if (/^-?\d+$/.test(name)) return `[${name}]`;
  return /^[\p{L}_][\p{L}\p{N}_-]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
