import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { manyLines, oneLine } from '../text.js';
import { escapeHtml } from './html.js';
import { renderHtmlFacts, renderHtmlTable } from './html-table.js';
import { describeSource, type SourceFile } from './source.js';
import { amountOf, countOf, type WhereAll } from './wording.js';

/** What a notebook takes. */
const MAX_BYTES = 4_120_000;

export interface BodySources {
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
    `<p>labfeed ${escapeHtml(oneLine(`${instrument} ${file.name}`))} sha256:${file.sha256}</p>`,
  ].join('\n');
  const room = MAX_BYTES - Buffer.byteLength(origin) - 1;
  const content =
    template === undefined ? showRecord(record, allRows, room) : fits(manyLines(template), file, room);
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
  return ['<ul>', ...items, ...(more > 0 ? [`<li>and ${amountOf(more, 'more file')}</li>`] : []), '</ul>'];
}

function fits(body: string, file: SourceFile, maxBytes: number): string {
  const bytes = Buffer.byteLength(body);
  if (bytes <= maxBytes) return body;
  throw new FileError(`the body has ${countOf(bytes)} bytes, and the notebook takes ${countOf(MAX_BYTES)}`, {
    where: { file: file.path },
    hint: 'show fewer rows, for example {{ readings | table: 50 }}',
  });
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
    const html = manyLines(showCut(record, whereAll, cut));
    if (Buffer.byteLength(html) <= maxBytes) return html;
  }
  const { meta, tables } = record;
  const tooMuch = `${amountOf(meta.size, 'fact')} and ${amountOf(tables.length, 'table')}`;
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
    const heading = isAlone ? '' : `<h3>${escapeHtml(oneLine(table.name))}</h3>\n`;
    return heading + renderHtmlTable(table, { maxRows, maxChars, whereAll });
  });
  return facts + shown.join('');
}
