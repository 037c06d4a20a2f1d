import type { Instrument } from '../config/load.js';
import type { Mapped } from '../map/draft.js';
import { createMapping } from '../mapping.js';
import { markComment, referenceOf } from '../markers.js';
import type { FileRecord, IdentifiedFile } from '../model.js';

/** What would be filed for a file: tried, neither sent nor recorded. */
export interface Trial extends Mapped {
  readonly instrument: Instrument;
  readonly file: IdentifiedFile;
  readonly record: FileRecord;
}

/** Reads and maps a file as the daemon would. A FileError where it would be quarantined. */
export async function tryFile(
  instrument: Instrument,
  file: IdentifiedFile,
  nowMs: number,
  signal?: AbortSignal,
): Promise<Trial> {
  const mapping = createMapping(instrument);
  const record = await mapping.parse(file, signal);
  return { instrument, file, record, ...mapping.map(record, file, nowMs) };
}

/** The comments with their marks: exactly what would be sent. */
export function markedComments({ instrument, file, draft }: Trial): string[] {
  const copy = instrument.duplicates === 'ingest' ? file.path : '';
  const reference = referenceOf({ instrument: instrument.name, sha256: file.sha256, copy, refiling: 0 });
  return draft.comments.map((text, index) => markComment(text, reference, index + 1));
}

/** Where a date came from, for people. */
export const DATE_FROM: Readonly<Record<Mapped['dateFrom'], string>> = {
  template: 'from the template',
  fact: 'from the fact "date"',
  modified: 'the day the file was modified',
};
