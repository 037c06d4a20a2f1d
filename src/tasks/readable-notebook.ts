import type { MarkedComment } from '../journal/recovery.js';
import { markIn } from '../markers.js';

/** What recovery asks of the notebook: nothing but to be read. */
export interface ReadableNotebook {
  listKeys(): Promise<unknown>;
  readExperiment(id: number): Promise<ReadableExperiment>;
  listComments(experiment: number): Promise<readonly ReadableComment[]>;
}

export type ReadableExperiment = {
  readonly title?: unknown;
  readonly date?: unknown;
  readonly body?: unknown;
} & Readonly<Record<string, unknown>>;

export type ReadableComment = { readonly id: number } & Readonly<Record<string, unknown>>;

/** Sends a request, and again for as long as it may yet succeed. */
export type Ask = <T>(request: () => Promise<T>) => Promise<T>;

/** The comments that bear a mark. The contract names no fields: it may stand in any text of the record. */
export function marksOf(records: readonly ReadableComment[]): MarkedComment[] {
  return records.flatMap((record) =>
    Object.values(record).flatMap((value) => {
      const mark = typeof value === 'string' ? markIn(value) : undefined;
      return mark ? [{ ...mark, id: record.id }] : [];
    }),
  );
}
