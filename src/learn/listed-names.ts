import { splitNames } from '../parse/extract/listed.js';
import type { Line } from '../parse/lines.js';
import { unitInName } from '../parse/values/unit.js';
import { escapeRegex } from '../text.js';
import type { AnchoredFile } from './anchors.js';
import type { ListedNames } from './header.js';
import { isQuantity, isWord } from './kinds.js';
import type { FoundRows, FoundTable } from './layout.js';

/** Names of columns in lines above the rows, of tables without a header. */

/** Tables without names, with those that the lines above list for as many columns. */
export const withListedNames = (found: readonly FoundTable[], file: AnchoredFile): FoundTable[] =>
  found.map((table, n) => {
    if (table.kind !== 'rows' || table.header.rows > 0 || table.described || table.asides) return table;
    const listed = findListed(table, file, found[n - 1]?.to ?? 0);
    return listed ? { ...table, header: { ...table.header, listed } } : table;
  });

/** Further up, a list is for something else. */
const MAX_ABOVE = 400;

function findListed({ body }: FoundRows, file: AnchoredFile, top: number): ListedNames | undefined {
  const above = file.lines.slice(Math.max(top, body.from - MAX_ABOVE), body.from);
  const width = body.kinds.length;
  if (width < 2) return undefined;
  return findNumbered(above, width, file) ?? findInOneLine(above, width, file);
}

/** A mark, words, a number from 0 or 1, a sign, a name. The limits keep a long line of blanks fast. */
const NUMBERED =
  /^([\s#%*!;/]{0,20})(\p{L}[\p{L} ]{0,30}?)?([\s._#-]{0,20})(\d{1,3})(\s{0,20}[:=)]\s*|\s{1,20}-\s+|\.\s+|\t)(\p{L}.*)$/u;

/** Channels and sensors have names too, which are not those of columns. */
const OF_COLUMNS = /^(?:(?:column|col|field|variable|var|data)s?(?: names?)?|names?)$/i;
const OF_COLUMN = /^[\s#%*!;/]{0,20}(?:column|col|field|var|data|name)/i;
const OF_DEVICES = /^(?:channel|ch|sensor|sig|signal|parameter|param|input)?$/i;

/** The numbers of lines that name columns, which look like rows. */
export const columnLines = (texts: readonly string[]): number[] =>
  texts.slice(0, MAX_ABOVE).flatMap((text, n) => {
    // First, because most lines have none of these words.
    const [, , label = ''] = (OF_COLUMN.test(text) && NUMBERED.exec(text)) || [];
    return OF_COLUMNS.test(label.trim()) ? [n + 1] : [];
  });

function findNumbered(above: readonly Line[], width: number, file: AnchoredFile): ListedNames | undefined {
  const lists = new Map<string, { line: Line; number: number; name: string }[]>();
  for (const line of above) {
    const [, mark = '', label = '', gap = '', number = '', sign = '', name = ''] = NUMBERED.exec(file.raw(line)) ?? [];
    // A number alone in the first cell is that of a row.
    if (name === '' || (sign === '\t' && label === '')) continue;
    if (!OF_COLUMNS.test(label.trim()) && !OF_DEVICES.test(label.trim())) continue;
    const start = `${pattern(mark)}${pattern(label)}${pattern(gap)}\\d+${pattern(sign)}`;
    lists.set(start, [...(lists.get(start) ?? []), { line, number: Number(number), name }]);
  }
  for (const [start, list] of lists) {
    const [first] = list;
    const isCounted = list.every(({ number }, n) => number === (first?.number ?? 2) + n) && (first?.number ?? 2) < 2;
    const names = list.map(({ name }) => name.trim());
    const saysColumn = /column|col|field|var|name|data/i.test(start);
    const isSure = saysColumn || names.filter(isMeasured).length * 2 >= names.length;
    if (list.length === width && isCounted && isSure && new Set(names).size === width)
      return { header: `/^${start}(?<name>.+)/`, lines: list.map(({ line }) => line) };
  }
  return undefined;
}

const isMeasured = (name: string): boolean => unitInName(name) !== undefined || isQuantity(name);

/** A pattern for the text, with any number of blanks where it has some. */
const pattern = (text: string): string =>
  escapeRegex(text.trim() === '' ? '' : text).replace(/\s+/g, '\\s+') || (text === '' ? '' : '\\s*');

/** All names in one line, behind words that say so. */
const LABELLED =
  /^([\s#%*!;/]*)((?:columns?|cols?|fields?|variables?)(?:[ _-]?(?:labels?|names?|headers?|titles?))?|labels|legend)(\s*[:=]\s*)(\S.*)$/i;

function findInOneLine(above: readonly Line[], width: number, file: AnchoredFile): ListedNames | undefined {
  const line = above.findLast((each) => LABELLED.test(file.raw(each)));
  const [, mark = '', label = '', sign = '', text = ''] = (line && LABELLED.exec(file.raw(line))) ?? [];
  const names = splitNames(text);
  if (!line || names.length !== width || !names.every(isWord) || new Set(names).size < width) return undefined;
  return { header: `/^${pattern(mark)}${pattern(label)}${pattern(sign)}(?<names>.+)/`, lines: [line] };
}
