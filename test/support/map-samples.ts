import type { CommentOptions, ExperimentTemplates } from '../../src/config/schema.js';
import { FileError } from '../../src/errors.js';
import { createMapper, type Mapped, type MapperOptions } from '../../src/map/draft.js';
import type { SourceFile } from '../../src/map/scope.js';
import { markComment, referenceOf } from '../../src/markers.js';
import type { Column, ColumnSummary, FileRecord, Table, Value } from '../../src/model.js';

/** `v(2.1, '2.100')`: the value 2.1, written 2.100. */
export const v = (value: Value['value'], text = String(value ?? ''), unit?: string): Value =>
  unit === undefined ? { value, text } : { value, text, unit };

/** `Weight (mg)` is a column with a unit. */
export const table = (name: string, headings: readonly string[], rows: readonly (readonly Value[])[]): Table => ({
  name,
  columns: headings.map((heading): Column => {
    const [, column = heading, unit] = /^(.*) \((.*)\)$/.exec(heading) ?? [];
    return unit === undefined ? { name: column } : { name: column, unit };
  }),
  rows,
  count: rows.length,
});

/** The table as the first rows of a partial table of `count` rows, with summaries of its columns. */
export const partial = (
  { name, columns, rows }: Table,
  count: number,
  summaries: Readonly<Record<string, ColumnSummary>> = {},
): Table => ({
  name,
  columns: columns.map((column) => {
    const summary = summaries[column.name];
    return summary ? { ...column, summary } : column;
  }),
  rows,
  count,
});

export const record = (facts: Record<string, Value>, ...tables: Table[]): FileRecord => ({
  unread: [],
  meta: new Map(Object.entries(facts)),
  tables,
});

export const nanodrop = record(
  {
    Sample: v('Plasmid <A>'),
    'Sample ID': v('007'),
    Operator: v('R. Müller'),
    Volume: v(2.1, '2.100 µL', 'µL'),
    Dilution: v(4, '4.0'),
    Blank: v(null, 'OVRFLW'),
    Valid: v(false, 'NO'),
  },
  table(
    'readings',
    ['Well', 'A260 (AU)', 'Remark'],
    [
      [v('A1'), v(1.5, '1.50'), v('')],
      [v('A2'), v(null, '< 0.10'), v('low')],
      [v('A1'), v(10, '10.0'), v('high')],
    ],
  ),
);

const MODIFIED = new Date(2026, 2, 4, 12, 30, 15).getTime();
export const SHA = '0123456789abcdef'.repeat(4);

export const file: SourceFile = {
  name: 'run 7.csv',
  stem: 'run 7',
  path: '/srv/nanodrop/run 7.csv',
  size: 1234,
  modifiedMs: MODIFIED,
  sha256: SHA,
};

export const comments: CommentOptions = { readings: 'table', maxBytes: 60 * 1024, maxComments: 5 };

export interface Given {
  readonly experiment?: ExperimentTemplates;
  readonly comments?: Partial<CommentOptions>;
  readonly readDate?: NonNullable<MapperOptions['readDate']>;
  readonly record?: FileRecord;
  readonly file?: Partial<SourceFile>;
  readonly journal?: string;
  readonly attach?: MapperOptions['attach'];
}

export function map(given: Given = {}): Mapped {
  const mapper = createMapper({
    instrument: 'nanodrop',
    experiment: given.experiment ?? {},
    comments: { ...comments, ...given.comments },
    journal: given.journal,
    attach: given.attach,
    ...(given.readDate ? { readDate: given.readDate } : {}),
  });
  return mapper(given.record ?? nanodrop, { ...file, ...given.file }, MODIFIED);
}

/** Renders a title template with the sample. */
export const renderTitle = (title: string, given: Given = {}): string =>
  map({ ...given, experiment: { title } }).draft.title;

/** Renders a body template with the sample, and removes the source and origin lines. */
export const renderBody = (body: string, given: Given = {}): string =>
  map({ ...given, experiment: { body } }).draft.body.replace(/\n?<p>Source: .*<\/p>\n<p>labfeed .*<\/p>$/, '');

export const commentsOf = (given: Given = {}): readonly string[] => map(given).draft.comments;

const reference = referenceOf({ instrument: 'nanodrop', sha256: SHA, copy: '', refiling: 0 });

/** The size of the comments as sent, with their marker lines. */
export const sentBytes = (comments: readonly string[]): number[] =>
  comments.map((comment, i) => Buffer.byteLength(markComment(comment, reference, i + 1)));

/** The error that quarantines the run. */
export function fileErrorOf(act: () => unknown): FileError {
  try {
    act();
  } catch (error) {
    if (error instanceof FileError) return error;
    throw error;
  }
  throw new Error('expected a FileError');
}
