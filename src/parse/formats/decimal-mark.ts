import type { ParseOptions } from '../../config/vocabulary.js';

/**
 * Numbers that a format itself writes with a point (JSON, sheets, JCAMP) get the mark under which all values are read,
 * so that a mapping with `decimal: ","` for its texts does not unmake them.
 */
export function createPointWriter({
  decimal,
  thousands,
}: Pick<ParseOptions, 'decimal' | 'thousands'>): (text: string) => string {
  const hasComma = decimal === ',' || (decimal === undefined && thousands === '.');
  return hasComma ? (text) => text.replace('.', ',') : (text) => text;
}
