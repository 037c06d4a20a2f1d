import type { ParseMapping } from '../../config/vocabulary.js';
import { findDateFormats } from './dates.js';
import { findNameDate } from './file-name.js';
import type { LineDate } from './line-date.js';
import { describeDates, type FoundDates } from './when.js';

/** What is known of a file's dates, to be put into a mapping. */
export interface SettledDates {
  /** With what the file itself proves. */
  sure(mapping: ParseMapping): ParseMapping;
  /** With the likelier order of days and months too, where the file leaves it open. */
  likely(mapping: ParseMapping): ParseMapping;
  /** What it leaves open, in words. */
  readonly doubts: readonly string[];
}

/** `isDated`: the mapping says already which date is that of the run. */
export function settleDates(found: FoundDates, fileName: string, isDated = false): SettledDates {
  const { sure, open } = findDateFormats(found.pools);
  const likely = [...new Set([...sure, ...open.map(({ formats }) => formats[0] ?? '')])];
  const isDoubtful = open.some(({ text }) => text === found.inLine?.text);
  const settle = (formats: readonly string[], inLine: LineDate | undefined) => (mapping: ParseMapping) => {
    const elsewhere =
      found.fact || isDated ? undefined : inLine ? { ...inLine, formats: [] } : findNameDate(fileName);
    const named = elsewhere
      ? { ...mapping, meta: [...[mapping.meta ?? []].flat(), elsewhere.finder] }
      : mapping;
    return describeDates(found, [...formats, ...(elsewhere?.formats ?? [])], named);
  };
  return {
    // For the sake of when it was printed, no file is set aside.
    sure: settle(sure, isDoubtful && !found.inLine?.isOfRun ? undefined : found.inLine),
    likely: settle(likely, found.inLine),
    doubts: open.map(({ text, formats }) => `${text} can be ${formats.join(' or ')}; the first is assumed`),
  };
}
