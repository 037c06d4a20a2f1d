import type { FinderMapping } from './pairs.js';

/** A date in the name of a file: the finder for it, and how it is written. */
export interface NameDate {
  readonly finder: FinderMapping;
  readonly formats: readonly string[];
}

const FORMS: readonly (readonly [pattern: string, ...formats: string[]])[] = [
  ['20\\d{6}[_-]\\d{6}', 'yyyyMMdd_HHmmss', 'yyyyMMdd-HHmmss'],
  [
    '20\\d\\d-\\d\\d-\\d\\d[ _T]\\d\\d-\\d\\d-\\d\\d',
    'yyyy-MM-dd HH-mm-ss',
    'yyyy-MM-dd_HH-mm-ss',
    "yyyy-MM-dd'T'HH-mm-ss",
  ],
  ['\\d{1,2}_\\d{1,2}_20\\d\\d_\\d{1,2}_\\d\\d_\\d\\d_[AP]M', 'M_d_yyyy_h_mm_ss_a'],
  ['\\d{1,2}_\\d{1,2}_20\\d\\d \\d{1,2}_\\d\\d_\\d\\d [AP]M', 'M_d_yyyy h_mm_ss a'],
  ['20\\d\\d-\\d\\d-\\d\\d', 'yyyy-MM-dd'],
  ['20\\d\\d_\\d\\d_\\d\\d', 'yyyy_MM_dd'],
  ['(?<!\\d)20\\d\\d[01]\\d[0-3]\\d(?!\\d)', 'yyyyMMdd'],
];

/** Instruments that write no date into a file often write one into its name. */
export function findNameDate(name: string): NameDate | undefined {
  for (const [pattern, ...formats] of FORMS) {
    if (new RegExp(pattern).test(name))
      return { finder: { in: 'name', match: `/(?<date>${pattern})/` }, formats };
  }
  return undefined;
}
