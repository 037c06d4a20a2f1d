import { Drop } from 'liquidjs';
import { FileError } from '../errors.js';
import { originLine } from '../markers.js';
import type { FileRecord, Value } from '../model.js';
import { capitalize, escapeHtml, formatCount, headingOf, multiLine, plural, singleLine } from '../text.js';
import { describeUnread, type Held, warningsOf } from './omissions.js';
import type { Plate, ShownTable, ShowTable } from './plates.js';
import { describeSource, type SourceFile } from './scope.js';
import {
  isPartial,
  MAX_SUMMARISED_COLUMNS,
  type RowsLocation,
  shortenTable,
  summariseColumns,
  type TableRows,
  withUnit,
} from './tables.js';

/** The largest body that notebooks accept. */
const MAX_BYTES = 4_120_000;

interface BodySources {
  /** The rendered template, if there is one. */
  readonly template: string | undefined;
  readonly record: FileRecord;
  readonly file: SourceFile;
  readonly instrument: string;
  /** The id of the journal. */
  readonly journal: string | undefined;
  readonly allRowsIn: RowsLocation;
  readonly show: ShowTable;
}

interface Body {
  readonly body: string;
  /** Where the plot belongs: after the facts, or after the text of a template. */
  readonly plotAt: number;
  /** What it contains in full. Empty with a template, which may print anything. */
  readonly holds: Held;
}

/** HTML that ends with the source for people and the origin line by which labfeed recognises the experiment. */
export function makeBody({ template, record, file, instrument, journal, allRowsIn, show }: BodySources): Body {
  const label = singleLine(`${instrument} ${file.name}`);
  const unread = record.unread.filter(({ kind }) => kind === 'unread');
  const origin = [
    ...warningsOf(record).map((warning) => `<p>${escapeHtml(capitalize(warning))}.</p>`),
    ...(unread.length === 0 ? [] : [`<p>Not read: ${escapeHtml(describeUnread(unread))}.</p>`]),
    `<p>Source: ${escapeHtml(describeSource(file))}</p>`,
    ...listParts(file),
    `<p>${escapeHtml(originLine({ label, sha256: file.sha256, journal }))}</p>`,
  ].join('\n');
  const maxBytes = MAX_BYTES - Buffer.byteLength(origin) - 1;
  const rendered =
    template === undefined
      ? renderRecord(record, file.name, allRowsIn, maxBytes, show)
      : { html: checkSize(multiLine(template), file, maxBytes), holds: new Set<never>() };
  const html = rendered.html === '' ? '' : `${rendered.html.trimEnd()}\n`;
  const { factsEnd = html.length, holds } = rendered;
  return { body: html + origin, plotAt: Math.min(factsEnd, html.length), holds };
}

const MAX_PARTS = 100;

/** Each raw file of the run with its hash, so that it can be found and verified. */
function listParts({ parts }: SourceFile): string[] {
  if (!parts) return [];
  const items = parts
    .slice(0, MAX_PARTS)
    .map((part) => `<li>${escapeHtml(describeSource(part))}, sha256:${part.sha256}</li>`);
  const more = parts.length - MAX_PARTS;
  return ['<ul>', ...items, ...(more > 0 ? [`<li>and ${plural(more, 'more file')}</li>`] : []), '</ul>'];
}

function checkSize(body: string, file: SourceFile, maxBytes: number): string {
  const bytes = Buffer.byteLength(body);
  if (bytes <= maxBytes) return body;
  throw new FileError(
    `the body is ${plural(bytes, 'byte')} long; the notebook accepts at most ${formatCount(MAX_BYTES)}`,
    {
      where: { file: file.path },
      hint: 'show fewer rows, for example {{ readings | table: 50 }}',
    },
  );
}

interface BodyLimits {
  /** A table with more rows is summarised. */
  readonly maxRows: number;
  /** Of one cell. */
  readonly maxChars: number;
}

/** Tried in order until the body fits. */
const LIMITS: readonly BodyLimits[] = [
  { maxRows: 30, maxChars: 10_000 },
  { maxRows: 30, maxChars: 1000 },
  { maxRows: 10, maxChars: 100 },
];

/** A shorter table needs no summary. */
const MIN_SUMMARISED = 10;

interface Rendered {
  readonly html: string;
  /** Where the facts end, if it has them. */
  readonly factsEnd?: number;
  /** What it shows in full. */
  readonly holds: Held;
}

/** The body without a template: the facts, and each table as far as it is short, as a plate, or summarised. */
function renderRecord(
  record: FileRecord,
  fileName: string,
  allRowsIn: RowsLocation,
  maxBytes: number,
  show: ShowTable,
): Rendered {
  for (const limits of LIMITS) {
    if (minBytes(record, limits) > maxBytes) continue;
    const rendered = renderLimited(record, fileName, allRowsIn, limits, show);
    if (Buffer.byteLength(rendered.html) <= maxBytes) return rendered;
  }
  const { meta, tables } = record;
  const html = `<p>${plural(meta.size, 'fact')} and ${plural(tables.length, 'table')}, too many for this page; all are in the file</p>`;
  return { html, holds: new Set() };
}

/** The size of the cells' markup alone, to avoid rendering a million cells that cannot fit. */
const minBytes = ({ tables }: FileRecord, { maxRows }: BodyLimits): number =>
  tables.reduce((sum, { columns, count }) => sum + (count <= maxRows ? count * columns.length : 0), 0) *
  '<td></td>'.length;

function renderLimited(
  { meta, tables }: FileRecord,
  fileName: string,
  allRowsIn: RowsLocation,
  limits: BodyLimits,
  show: ShowTable,
): Rendered {
  const { maxChars } = limits;
  const fits = (text: string) => text.length <= maxChars;
  const facts = factsToShow(meta, fileName);
  const areFactsHeld = [...facts].every(([name, value]) => fits(name) && fits(withUnit(value)));
  // Without a heading, adjacent tables look like one.
  const needsHeading = tables.length > 1 || facts.size > 0;
  const shown = tables.map((table) => ({ table, ...renderReadings(show(table), allRowsIn, limits) }));
  const html = shown.map(({ table: { name }, html }) =>
    needsHeading ? `<h3>${escapeHtml(singleLine(name))}</h3>\n${html}` : html,
  );
  const factsHtml = facts.size > 0 ? multiLine(renderFacts(facts, maxChars)) : '';
  return {
    html: factsHtml + multiLine(html.join('')),
    factsEnd: factsHtml.length,
    holds: new Set([
      ...(areFactsHeld ? [meta] : []),
      ...shown.flatMap(({ table, isWhole }) => (isWhole ? [table] : [])),
    ]),
  };
}

/**
 * Without empty facts, facts that are repeated with the same value, and labfeed's own `date` where another fact, two facts
 * or the name of the file show it.
 */
function factsToShow(meta: FileRecord['meta'], fileName: string): FileRecord['meta'] {
  const date = meta.get('date')?.text ?? '';
  const texts = [fileName, ...[...meta].flatMap(([name, { text }]) => (name === 'date' ? [] : text))];
  const isRepeated =
    texts.some((text) => text.includes(date)) ||
    texts.some((day) => day !== '' && date.startsWith(`${day} `) && texts.includes(date.slice(day.length + 1)));
  // A report repeats its head on every page.
  const isAgain = (name: string, text: string) => {
    const first = meta.get(name.replace(/ \(\d+\)$/, ''));
    return first?.text === text && / \(\d+\)$/.test(name);
  };
  return new Map(
    [...meta].filter(([name, { text }]) => text !== '' && !(name === 'date' && isRepeated) && !isAgain(name, text)),
  );
}

/** A summary unless the table is short, then its rows or its plates. `isWhole`: every cell is shown, uncut. */
function renderReadings(
  { shown: table, plate }: ShownTable,
  allRowsIn: RowsLocation,
  { maxRows, maxChars }: BodyLimits,
): { html: string; isWhole: boolean } {
  const { columns, rows, count } = table;
  const isUncut =
    columns.every((column) => headingOf(column).length <= maxChars) &&
    rows.every((row) => row.every(({ text }) => text.length <= maxChars));
  const isShort = count <= maxRows && !isPartial(table);
  const { html, isWhole } = plate
    ? renderPlates(table, plate, maxChars)
    : { html: isShort ? renderRows(table, count, maxChars) : '', isWhole: isShort };
  const note = isWhole || plate ? '' : `<p>${plural(count, 'row')}; all are in the ${allRowsIn}.</p>\n`;
  const summary = count > MIN_SUMMARISED ? renderSummary(table, maxChars) : '';
  return { html: note + summary + html, isWhole: isWhole && isUncut };
}

function renderSummary(table: TableRows, maxChars: number): string {
  const summary = summariseColumns(table, 'numeric columns');
  const shown = Math.min(summary.count, MAX_SUMMARISED_COLUMNS);
  const rest = summary.count - shown;
  const more = rest > 0 ? `<p>and ${plural(rest, 'more numeric column')}</p>\n` : '';
  return shown === 0 ? '' : renderRows(summary, shown, maxChars) + more;
}

const MAX_PLATES = 8;

/** One grid for each column with numbers. */
function renderPlates(table: TableRows, plate: Plate, maxChars: number): { html: string; isWhole: boolean } {
  const { columns, rows } = table;
  const others = columns.flatMap((column, at) => (at === plate.wells ? [] : [{ column, at }]));
  const numeric = others.filter(({ at }) => rows.some((row) => typeof row[at]?.value === 'number'));
  const shown = numeric.slice(0, MAX_PLATES);
  const html = shown.map(({ column, at }) => renderPlate(rows, plate, headingOf(column), at, maxChars)).join('');
  return { html, isWhole: shown.length === others.length };
}

function renderPlate(
  rows: TableRows['rows'],
  { letters, numbers, rowOf }: Plate,
  heading: string,
  at: number,
  maxChars: number,
): string {
  const cell = (letter: string, number: number): string => {
    const row = rowOf(letter, number);
    return `<td>${row === undefined ? '' : renderCell(rows[row]?.[at]?.text ?? '', maxChars)}</td>`;
  };
  const lines = letters.map(
    (letter) => `<tr><th>${letter}</th>${numbers.map((number) => cell(letter, number)).join('')}</tr>`,
  );
  const top = numbers.map((number) => `<th>${number}</th>`).join('');
  return `<table>\n<tr><th>${renderCell(heading, maxChars)}</th>${top}</tr>\n${lines.join('\n')}\n</table>\n`;
}

interface TableLimits {
  readonly maxRows: number;
  readonly allRowsIn: RowsLocation;
  readonly maxChars?: number;
}

/** If rows are left out, their number and a summary of all rows follow. */
export function renderTable(table: TableRows, { maxRows, allRowsIn, maxChars }: TableLimits): string {
  const { shown, rest } = shortenTable(table, maxRows, allRowsIn);
  if (!rest) return renderRows(table, shown, maxChars);
  const { note, summary } = rest;
  const rows = shown > 0 ? renderRows(table, shown, maxChars) : '';
  return `${rows}<p>${note}</p>\n${summary.count > 0 ? renderRows(summary, summary.count, maxChars) : ''}`;
}

/** Only table, tr, th and td, because notebooks strip other markup. Values as written, everything escaped. */
function renderRows({ columns, rows }: TableRows, shown: number, maxChars?: number): string {
  let html = `<table>\n<tr>${columns.map((column) => `<th>${renderCell(headingOf(column), maxChars)}</th>`).join('')}</tr>\n`;
  for (let i = 0; i < shown; i++) {
    html += '<tr>';
    for (const { text } of rows[i] ?? []) html += `<td>${renderCell(text, maxChars)}</td>`;
    html += '</tr>\n';
  }
  return `${html}</table>\n`;
}

/** One row per fact: name and value. */
export function renderFacts(facts: ReadonlyMap<string, Value>, maxChars?: number): string {
  let html = '<table>\n';
  for (const [name, value] of facts)
    html += `<tr><th>${renderCell(name, maxChars)}</th><td>${renderCell(withUnit(value), maxChars)}</td></tr>\n`;
  return `${html}</table>\n`;
}

function renderCell(text: string, maxChars = Number.POSITIVE_INFINITY): string {
  if (text.length <= maxChars) return escapeLines(text);
  // Not between the two halves of a surrogate pair.
  return escapeLines(`${text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')}…`);
}

const SPECIAL_OR_BREAK = /[&<>"'\r\n]/;

/** Escaped, with line breaks as `<br>`. Most cells need neither, and a test is faster than two replacements. */
export const escapeLines = (text: string): string =>
  SPECIAL_OR_BREAK.test(text) ? escapeHtml(text).replace(/\r\n?|\n/g, '<br>') : text;

/** HTML written by labfeed or by the template's author, with all values escaped. It is printed unchanged. */
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
