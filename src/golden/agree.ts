import type { Scalar } from '../config/expectations.js';
import { regexSource } from '../config/grammar.js';
import type { Value } from '../model.js';

/** Whether a text is the wanted one, or fits the wanted /regex/. */
export function isText(wanted: string, text: string): boolean {
  const source = regexSource(wanted);
  return source === undefined ? wanted === text : new RegExp(source).test(text);
}

/** Whether a long text contains the wanted one, or fits the wanted /regex/. */
export const hasText = (wanted: string, text: string): boolean =>
  regexSource(wanted) === undefined ? text.includes(wanted.trim()) : isText(wanted, text);

/** Whether a value of a file is the wanted one: as what it means, or as it is written there. */
export function isValue(wanted: Scalar, { value, text }: Value): boolean {
  if (typeof wanted !== 'string') return wanted === value;
  return isText(wanted, text) || (value !== null && isText(wanted, String(value)));
}
