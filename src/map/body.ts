import { Drop } from 'liquidjs';
import { FileError } from '../errors.js';
import type { FileRecord, Value } from '../model.js';
import { escapeHtml, formatCount, multiLine, plural, singleLine } from '../text.js';
import { describeSource, type SourceFile } from './date.js';
import { cutTable, headingOf, type TableRows, type WhereAll, withUnit } from './tables.js';

/** What a notebook takes. */
const MAX_BYTES = 4_120_000;

interface BodySources {
  /** The filled-in template, where there is one. */
  readonly template: string | undefined;
  readonly record: FileRecord;
  readonly file: SourceFile;
  readonly instrument: string;
  readonly allRows: WhereAll;
}

/** HTML that ends with where it came from: in words, and in a line by which it is known again. */
export function makeBody({ template, record, file, instrument, allRows }: BodySources): string {
  const origin = [
    `<p>Source: ${escapeHtml(describeSource(file))}</p>`,
    ...listParts(file),
    `<p>labfeed ${escapeHtml(singleLine(`${instrument} ${file.name}`))} sha256:${file.sha256}</p>`,
  ].join('\n');
  const room = MAX_BYTES - Buffer.byteLength(origin) - 1;
  const content =
    template === undefined ? showRecord(record, allRows, room) : fits(multiLine(template), file, room);
  return content === '' ? origin : `${content.trimEnd()}\n${origin}`;
}

/** More of them are no help to who looks for one, and no notebook's matter. */
const MOST_PARTS = 100;

/** So that each raw file of a run can be found, and proved to be the one. */
function listParts({ parts }: SourceFile): string[] {
  if (!parts) return [];
  const items = parts
    .slice(0, MOST_PARTS)
    .map((part) => `<li>${escapeHtml(describeSource(part))}, sha256:${part.sha256}</li>`);
  const more = parts.length - MOST_PARTS;
  return ['<ul>', ...items, ...(more > 0 ? [`<li>and ${plural(more, 'more file')}</li>`] : []), '</ul>'];
}

function fits(body: string, file: SourceFile, maxBytes: number): string {
  const bytes = Buffer.byteLength(body);
  if (bytes <= maxBytes) return body;
  throw new FileError(
    `the body has ${formatCount(bytes)} bytes, and the notebook takes ${formatCount(MAX_BYTES)}`,
    {
      where: { file: file.path },
      hint: 'show fewer rows, for example {{ readings | table: 50 }}',
    },
  );
}

/** How much of a file is shown: less and less, until it fits. */
const CUTS = [
  { maxRows: 200, maxChars: 10_000 },
  { maxRows: 50, maxChars: 1000 },
  { maxRows: 10, maxChars: 100 },
];

function showRecord(record: FileRecord, whereAll: WhereAll, maxBytes: number): string {
  for (const cut of CUTS) {
    if (leastBytes(record, cut) > maxBytes) continue;
    const html = multiLine(showCut(record, whereAll, cut));
    if (Buffer.byteLength(html) <= maxBytes) return html;
  }
  const { meta, tables } = record;
  const tooMuch = `${plural(meta.size, 'fact')} and ${plural(tables.length, 'table')}`;
  return `<p>${tooMuch}, too much for this page; all is in the file</p>`;
}

/** The markup of the cells alone: not worth laying out a million of them to find that they are too many. */
const leastBytes = ({ tables }: FileRecord, { maxRows }: (typeof CUTS)[number]): number =>
  tables.reduce((sum, { rows, columns }) => sum + Math.min(rows.length, maxRows) * columns.length, 0) *
  '<td></td>'.length;

function showCut(
  { meta, tables }: FileRecord,
  whereAll: WhereAll,
  { maxRows, maxChars }: (typeof CUTS)[number],
): string {
  const facts = meta.size > 0 ? renderHtmlFacts(meta, maxChars) : '';
  // One table right below another looks like one.
  const isAlone = tables.length === 1 && meta.size === 0;
  const shown = tables.map((table) => {
    const heading = isAlone ? '' : `<h3>${escapeHtml(singleLine(table.name))}</h3>\n`;
    return heading + renderHtmlTable(table, { maxRows, maxChars, whereAll });
  });
  return facts + shown.join('');
}

const ALL = Number.POSITIVE_INFINITY;

interface TableCut {
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

const SPECIAL_OR_BREAK = /[&<>"'\r\n]/;

/** Line breaks of a text stay visible. */
export function escapeLines(text: string): string {
  return SPECIAL_OR_BREAK.test(text) ? escapeHtml(text).replace(/\r\n?|\n/g, '<br>') : text;
}

/** Markup that the program or the template's author wrote, with every value in it escaped: printed as it is. */
export class Markup extends Drop {
  readonly html: string;

  constructor(html: string) {
    super();
    this.html = html;
  }

  override valueOf(): string {
    return this.html;
  }

  override toString(): string {
    return this.html;
  }
}
