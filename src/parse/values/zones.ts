import { IANAZone } from 'luxon';

/**
 * Zones as instruments abbreviate them, in hours from UTC. Only those that mean one thing in practice:
 * `IST` is India, Ireland and Israel, and is left to `dates.zone`.
 */
const HOURS: Readonly<Record<string, number>> = {
  ...{ UTC: 0, GMT: 0, WET: 0, WEST: 1, BST: 1, CET: 1, CEST: 2, MEZ: 1, MESZ: 2, EET: 2, EEST: 3, MSK: 3 },
  ...{ AST: -4, ADT: -3, EST: -5, EDT: -4, CST: -6, CDT: -5, MST: -7, MDT: -6, PST: -8, PDT: -7 },
  ...{
    AKST: -9,
    AKDT: -8,
    HST: -10,
    JST: 9,
    KST: 9,
    SGT: 8,
    HKT: 8,
    AEST: 10,
    AEDT: 11,
    ACST: 9.5,
    ACDT: 10.5,
  },
  ...{ AWST: 8, NZST: 12, NZDT: 13 },
};

/** Also of a word that luxon would take for a zone: it knows `BST` as that of Bangladesh. */
const ABBREVIATION = /^[A-Z]{3,5}$/;

/** The text with its abbreviated zone written as an offset, `+01:00`; undefined where it has none that is known. */
export function withOffset(text: string): string | undefined {
  let isFound = false;
  const written = text.replace(/\b[A-Z]{3,4}\b/g, (word) => {
    const hours = HOURS[word];
    isFound ||= hours !== undefined;
    return hours === undefined ? word : offsetOf(Math.round(hours * 60));
  });
  return isFound ? written : undefined;
}

function offsetOf(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}:${String(rest).padStart(2, '0')}`;
}

/** The zone that a file names: `Europe/Zurich`, `CEST`, `UTC+2`, `+02:00`. Undefined where it is none. */
export function zoneNamed(written: string): string | undefined {
  const text = written.trim();
  const [, sign, hours = '', minutes = '0'] =
    /^(?:UTC|GMT)? ?([+-])(\d{1,2})(?::?([0-5]\d))?$/i.exec(text) ?? [];
  const known = HOURS[text];
  if (sign !== undefined || known !== undefined) {
    const total = known === undefined ? Number(hours) * 60 + Number(minutes) : Math.round(known * 60);
    return `UTC${offsetOf(sign === '-' ? -total : total)}`;
  }
  return !ABBREVIATION.test(text) && IANAZone.isValidZone(text) ? text : undefined;
}

/** Whether a zone that luxon read is one that can be meant by its name. */
export const isClearZone = (name: string | null): boolean => name === 'UTC' || !ABBREVIATION.test(name ?? '');
