import { DATE_FROM, markedComments, type Trial } from '../mapping/sample.js';
import type { Table } from '../model.js';

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
