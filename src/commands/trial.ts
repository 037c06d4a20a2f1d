import type { Instrument } from '../config/load.js';
import type { Mapped } from '../map/draft.js';
import type { FileRecord, IdentifiedFile, Table } from '../model.js';
import { markComment, referenceOf } from '../reference.js';

/** What came of trying a file. */
export interface Trial extends Mapped {
  readonly instrument: Instrument;
  readonly file: IdentifiedFile;
  readonly record: FileRecord;
}

/** The comments with their marks: exactly what would be sent. */
function markedComments({ instrument, file, draft }: Trial): string[] {
  const copy = instrument.duplicates === 'ingest' ? file.path : '';
  const reference = referenceOf({ instrument: instrument.name, sha256: file.sha256, copy, refiling: 0 });
  return draft.comments.map((text, index) => markComment(text, reference, index + 1));
}

export const trialAsJson = (trial: Trial) => ({
  file: trial.file.path,
  instrument: trial.instrument.name,
  record: {
    meta: Object.fromEntries([...trial.record.meta].map(([name, { value }]) => [name, value])),
    tables: trial.record.tables.map(tableAsJson),
  },
  draft: { ...trial.draft, comments: markedComments(trial) },
});

/** Of very many rows the first are shown, and how many there are. */
const tableAsJson = ({ name, columns, rows, count }: Table) => ({
  name,
  columns,
  ...(count > rows.length && { count }),
  rows: rows.map((row) =>
    Object.fromEntries(columns.map((column, index) => [column.name, row[index]?.value ?? null])),
  ),
});

const DATE_FROM = {
  template: 'from the template',
  fact: 'from the fact "date"',
  modified: 'the day the file was modified',
} as const;

export function trialAsText(trial: Trial): string {
  const { draft, dateFrom, instrument, file } = trial;
  const comments = markedComments(trial);
  return [
    `file        ${file.path}`,
    `instrument  ${instrument.name}`,
    `title       ${draft.title}`,
    `date        ${draft.date} (${DATE_FROM[dateFrom]})`,
    `tags        ${draft.tags.join(', ')}`,
    `body        ${Buffer.byteLength(draft.body)} bytes of HTML`,
    indent(draft.body),
    ...comments.flatMap((text, index) => [
      `comment ${index + 1} of ${comments.length}, ${Buffer.byteLength(text)} bytes`,
      indent(text),
    ]),
  ].join('\n');
}

const indent = (text: string): string => text.replace(/^/gm, '  ');
