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

/** The text with its abbreviated zone written as an offset, `UTC+1`, which is a zone that luxon knows. */
export function withOffset(text: string): string {
  return text.replace(/\b[A-Z]{3,4}\b/g, (word) => {
    const hours = HOURS[word];
    if (hours === undefined) return word;
    const minutes = Math.round((Math.abs(hours) % 1) * 60);
    return `UTC${hours < 0 ? '-' : '+'}${Math.floor(Math.abs(hours))}${minutes ? `:${minutes}` : ''}`;
  });
}
