import { LiquidError, UndefinedVariableError } from 'liquidjs';
import { FileError } from '../errors.js';
import type { Table } from '../model.js';
import { nearest } from '../text.js';
import { isCut, RowNotKept } from './rows.js';
import type { View } from './view.js';
import { countOf } from './wording.js';

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
  const [asked, count, kept] = [row, table.count, table.rows.length].map(countOf);
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
