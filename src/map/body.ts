import { Drop } from 'liquidjs';
import { FileError } from '../errors.js';
import { originLine } from '../markers.js';
import type { FileRecord, Value } from '../model.js';
import { escapeHtml, formatCount, multiLine, plural, singleLine } from '../text.js';
import { describeUnread, type Held } from './omissions.js';
import { describeSource, type SourceFile } from './scope.js';
import { headingOf, type RowsLocation, shortenTable, type TableRows, withUnit } from './tables.js';

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
}

interface Body {
  readonly body: string;
  /** What it contains in full. Empty with a template, which may print anything. */
  readonly holds: Held;
}

/** HTML that ends with the source for people and the origin line by which labfeed recognises the experiment. */
export function makeBody({ template, record, file, instrument, journal, allRowsIn }: BodySources): Body {
  const label = singleLine(`${instrument} ${file.name}`);
  const unread = record.unread.filter(({ kind }) => kind === 'unread');
  const origin = [
    ...(unread.length === 0 ? [] : [`<p>Not read: ${escapeHtml(describeUnread(unread))}.</p>`]),
    `<p>Source: ${escapeHtml(describeSource(file))}</p>`,
    ...listParts(file),
    `<p>${escapeHtml(originLine({ label, sha256: file.sha256, journal }))}</p>`,
  ].join('\n');
  const maxBytes = MAX_BYTES - Buffer.byteLength(origin) - 1;
  const { html, holds } =
    template === undefined
      ? renderRecord(record, allRowsIn, maxBytes)
      : { html: checkSize(multiLine(template), file, maxBytes), holds: new Set<never>() };
  return { body: html === '' ? origin : `${html.trimEnd()}\n${origin}`, holds };
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
  readonly maxRows: number;
  /** Of one cell. */
  readonly maxChars: number;
}

/** Tried in order until the body fits. */
const LIMITS: readonly BodyLimits[] = [
  { maxRows: 200, maxChars: 10_000 },
  { maxRows: 50, maxChars: 1000 },
  { maxRows: 10, maxChars: 100 },
];

/** The body without a template: all facts and tables. */
function renderRecord(record: FileRecord, allRowsIn: RowsLocation, maxBytes: number): { html: string; holds: Held } {
  for (const limits of LIMITS) {
    if (minBytes(record, limits) > maxBytes) continue;
    const html = multiLine(renderLimited(record, allRowsIn, limits));
    if (Buffer.byteLength(html) <= maxBytes) return { html, holds: heldWithin(record, limits) };
  }
  const { meta, tables } = record;
  const html = `<p>${plural(meta.size, 'fact')} and ${plural(tables.length, 'table')}, too many for this page; all are in the file</p>`;
  return { html, holds: new Set() };
}

/** The facts and tables of which these limits cut nothing. */
function heldWithin({ meta, tables }: FileRecord, { maxRows, maxChars }: BodyLimits): Held {
  const fits = (text: string) => text.length <= maxChars;
  const areFactsHeld = [...meta].every(([name, value]) => fits(name) && fits(withUnit(value)));
  const whole = tables.filter(
    ({ columns, rows, count }) =>
      rows.length === count &&
      count <= maxRows &&
      columns.every((column) => fits(headingOf(column))) &&
      rows.every((row) => row.every(({ text }) => fits(text))),
  );
  return new Set([...(areFactsHeld ? [meta] : []), ...whole]);
}

/** The size of the cells' markup alone, to avoid rendering a million cells that cannot fit. */
const minBytes = ({ tables }: FileRecord, { maxRows }: BodyLimits): number =>
  tables.reduce((sum, { rows, columns }) => sum + Math.min(rows.length, maxRows) * columns.length, 0) *
  '<td></td>'.length;

function renderLimited(
  { meta, tables }: FileRecord,
  allRowsIn: RowsLocation,
  { maxRows, maxChars }: BodyLimits,
): string {
  const facts = meta.size > 0 ? renderFacts(meta, maxChars) : '';
  // Without a heading, adjacent tables look like one.
  const needsHeading = tables.length > 1 || meta.size > 0;
  const shown = tables.map((table) => {
    const heading = needsHeading ? `<h3>${escapeHtml(singleLine(table.name))}</h3>\n` : '';
    return heading + renderTable(table, { maxRows, maxChars, allRowsIn });
  });
  return facts + shown.join('');
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
