import type { ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { readRecord } from '../read/record.js';
import { cutAt } from './delimited.js';
import type { OpenFile } from './open-file.js';

/** Does not read the file: what is known of it stands in its name and path. */
export async function readNone(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const { source, refuse, pace } = file;
  return readRecord({
    lines: nothing,
    context: {
      ...{
        options: { ...options, tables: {} },
        refuse,
        pace,
        sheets: [],
        maxKeptCells: 0,
        isNameEnough: true,
      },
      ...{ path: source.path, name: source.name, cut: cutAt(undefined, 'none') },
    },
  });
}

async function* nothing(): AsyncGenerator<never> {}
