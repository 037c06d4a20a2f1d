import type { Column, Value } from '../model.js';
import { escapeHtml, escapeLines } from './html.js';
import { headingOf, moreRows, type WhereAll, withUnit } from './wording.js';

export interface TableCut {
  readonly maxRows: number;
  readonly whereAll: WhereAll;
  /** The most characters of one cell that are shown. */
  readonly maxChars?: number;
}

/** Nothing but table, tr, th and td: notebooks strip the rest. Values as written, everything escaped. */
export function renderHtmlTable(
  columns: readonly Column[],
  rows: readonly (readonly Value[])[],
  { maxRows, whereAll, maxChars = Number.POSITIVE_INFINITY }: TableCut,
): string {
  const show = (text: string) => escapeLines(shorten(text, maxChars));
  let html = `<table>\n<tr>${columns.map((column) => `<th>${show(headingOf(column))}</th>`).join('')}</tr>\n`;
  const shown = Math.min(rows.length, maxRows);
  for (let i = 0; i < shown; i++) {
    html += '<tr>';
    for (const { text } of rows[i] ?? []) html += `<td>${show(text)}</td>`;
    html += '</tr>\n';
  }
  html += '</table>\n';
  return shown < rows.length
    ? `${html}<p>${escapeHtml(moreRows(rows.length - shown, whereAll))}</p>\n`
    : html;
}

/** Facts, one a row: name and value. */
export function renderHtmlFacts(
  facts: ReadonlyMap<string, Value>,
  maxChars = Number.POSITIVE_INFINITY,
): string {
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
