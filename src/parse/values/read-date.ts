import type { DateHabits } from '../../model.js';
import { createDateReader, readIso, withKnownZone } from './date.js';
import { type DateForm, dateForms } from './date-forms.js';

export type DateReading = { readonly iso: string } | { readonly ambiguous: readonly DateForm[] };

/**
 * Reads one text that is used as a date. Undefined where it is none;
 * `ambiguous` where no format is given and the text can mean several days: nobody may choose then.
 */
export function readDate(text: string, dates: DateHabits): DateReading | undefined {
  const trimmed = text.trim();
  const known = withKnownZone(dates);
  const iso = createDateReader(known).readAsDate(trimmed) ?? readIso(trimmed, known.zone);
  const elsewhere = dates.known?.get(trimmed);
  if (elsewhere !== undefined && iso !== undefined && elsewhere !== iso)
    return { ambiguous: dateForms(trimmed) };
  if (iso !== undefined || elsewhere !== undefined) return { iso: iso ?? elsewhere ?? '' };
  if (dates.format !== undefined) return undefined;
  const forms = dateForms(trimmed);
  return forms.length > 0 ? { ambiguous: forms } : undefined;
}
