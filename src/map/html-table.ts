import type { Value } from '../model.js';
import { cutTable } from './cut-table.js';
import type { TableRows } from './figures.js';
import { escapeLines } from './html.js';
import { headingOf, type WhereAll, withUnit } from './wording.js';

const ALL = Number.POSITIVE_INFINITY;

export interface TableCut {
  readonly maxRows: number;
  readonly whereAll: WhereAll;
  /** The most characters of one cell that are shown. */
  readonly maxChars?: number;
}

/** Where rows are left out, it ends with how many there are and what they come to. */
export function renderHtmlTable(table: TableRows, { maxRows, whereAll, maxChars = ALL }: TableCut): string {
  const { shown, rest } = cutTable(table, maxRows, whereAll);
  if (!rest) return renderRows(table, shown, maxChars);
  const { note, figures } = rest;
  const rows = shown > 0 ? renderRows(table, shown, maxChars) : '';
  const summary = figures.count > 0 ? renderRows(figures, figures.count, maxChars) : '';
  return `${rows}<p>${note}</p>\n${summary}`;
}

/** Nothing but table, tr, th and td: notebooks strip the rest. Values as written, everything escaped. */
function renderRows({ columns, rows }: TableRows, shown: number, maxChars: number): string {
  const show = (text: string) => escapeLines(shorten(text, maxChars));
  let html = `<table>\n<tr>${columns.map((column) => `<th>${show(headingOf(column))}</th>`).join('')}</tr>\n`;
  for (let i = 0; i < shown; i++) {
    html += '<tr>';
    for (const { text } of rows[i] ?? []) html += `<td>${show(text)}</td>`;
    html += '</tr>\n';
  }
  return `${html}</table>\n`;
}

/** Facts, one a row: name and value. */
export function renderHtmlFacts(facts: ReadonlyMap<string, Value>, maxChars = ALL): string {
  const show = (text: string) => escapeLines(shorten(text, maxChars));
  let html = '<table>\n';
  for (const [name, value] of facts)
    html += `<tr><th>${show(name)}</th><td>${show(withUnit(value))}</td></tr>\n`;
  return `${html}</table>\n`;
}

/** Never between the halves of a character. */
function shorten(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const cut = text.slice(0, maxChars);
  return `${cut.replace(/[\ud800-\udbff]$/, '')}…`;
}
