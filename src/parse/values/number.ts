import type { ParseOptions } from '../../config/vocabulary.js';

/** How numbers are written in a file. */
export type Marks = Pick<ParseOptions, 'decimal' | 'thousands'>;

export interface NumberReader {
  /** The number that the whole text is under the file's marks, or undefined. */
  read(text: string): number | undefined;
  /** Whether the text would be a number under other marks: `1,234`, `12,5`, `50.026.184`. */
  isSuspect(text: string): boolean;
}

const ESCAPED: Record<string, string> = { '.': '\\.', ',': ',', ' ': '[ \\u00a0\\u202f]', "'": "['’]" };

const ANY_MARKS =
  /^[+\-−]?(?:\d{1,3}(?:[.,' \u00a0\u202f’]\d{3})+(?:[.,]\d+)?|\d+[.,]\d+|\d+[.,]|[.,]\d+)(?:[eE][+-]?\d+)?$/;

/** The whole numbers beyond this lose digits when counted: serial numbers and barcodes, which stay text. */
const isExact = (value: number, text: string): boolean => Number.isSafeInteger(value) || /[.eE]/.test(text);

export function createNumberReader(marks: Marks): NumberReader {
  const decimal = marks.decimal ?? (marks.thousands === '.' ? ',' : '.');
  const point = ESCAPED[decimal];
  const group = marks.thousands === undefined ? undefined : ESCAPED[marks.thousands];
  const whole = group === undefined ? '(?:0|[1-9]\\d*)' : `(?:0|[1-9]\\d{0,2}(?:${group}\\d{3})+|[1-9]\\d*)`;
  const shape = new RegExp(`^[+\\-−]?(?:${whole}(?:${point}\\d*)?|${point}\\d+)(?:[eE][+-]?\\d+)?$`);
  const groups = group === undefined ? undefined : new RegExp(group, 'g');

  function read(text: string): number | undefined {
    if (!mayBeNumber(text) || !shape.test(text)) return undefined;
    let digits = groups ? text.replace(groups, '') : text;
    if (decimal === ',') digits = digits.replace(',', '.');
    if (digits.charCodeAt(0) === MINUS_SIGN) digits = `-${digits.slice(1)}`;
    const value = Number(digits);
    return Number.isFinite(value) && isExact(value, digits) ? value : undefined;
  }

  return {
    read,
    isSuspect: (text) =>
      mayBeNumber(text) && !startsWithZeros(text) && !shape.test(text) && ANY_MARKS.test(text),
  };
}

const MINUS_SIGN = 0x2212;

/** Spares the regular expressions on the many cells that begin like no number does. */
function mayBeNumber(text: string): boolean {
  const first = text.charCodeAt(0);
  // 0-9, then + , - .
  return (first >= 48 && first <= 57) || (first >= 43 && first <= 46) || first === MINUS_SIGN;
}

/** `007`, `00.5`: text, under any marks. */
const startsWithZeros = (text: string): boolean => /^[+\-−]?0\d/.test(text);
