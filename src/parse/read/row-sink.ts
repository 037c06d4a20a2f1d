import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { caught, groupNames } from '../grammar/line.js';
import type { Refuse } from '../refuse.js';
import type { TableBuilder } from '../table/build.js';
import { readHeader, refuseNumbers } from '../table/header.js';
import type { NumberReader } from '../values/number.js';
import type { BlockSink } from './find-table.js';

export interface SinkDeps {
  readonly options: TableOptions;
  /** Columns that the lines which begin a block can fill. */
  readonly captureNames: readonly string[];
  readonly builder: TableBuilder;
  readonly numbers: NumberReader;
  readonly refuse: Refuse;
}

/** Lines whose cells are the cells of the rows. */
export function createRowSink({ options, captureNames, builder, numbers, refuse }: SinkDeps): BlockSink {
  // The very text of a header that the mapping gives may be numbers.
  const isGiven = options.header.some((form) => typeof form === 'string' && form !== 'first');
  return {
    begin(head, captures) {
      if (!isGiven) refuseNumbers(head, numbers, refuse);
      const captured = captureNames.map((name) => captures.get(name) ?? '');
      builder.begin(readHeader(head), captured, head.header[0]);
    },
    row: (line) => builder.row(line.cells, line),
    gap: () => undefined,
  };
}

/** Rows that are lines of a certain form, such as a balance prints them: their named groups are the cells. */
export function createPatternSink(pattern: string, { captureNames, builder }: SinkDeps): BlockSink {
  const regex = new RegExp(regexSource(pattern) ?? pattern);
  const names = groupNames([pattern]);
  const columns = names.map((name, cell) => ({ name, unit: undefined, cell, isNamed: true }));
  return {
    begin(_, captures) {
      const captured = captureNames.map((name) => captures.get(name) ?? '');
      builder.begin(columns, captured, undefined);
    },
    row(line) {
      const groups = caught(regex.exec(line.text));
      builder.row(
        names.map((name) => groups.get(name)?.trim() ?? ''),
        line,
      );
    },
    gap: () => undefined,
  };
}
