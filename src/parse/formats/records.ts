import { CsvError } from 'csv-parse';
import { parse as parseCsv } from 'csv-parse/sync';
import type { ParseOptions } from '../../config/vocabulary.js';
import { compileSplit, NO_SPLIT } from '../grammar/split.js';
import type { Line } from '../lines.js';
import { createRecordTree, type TypedLine } from '../trees/record-tree.js';
import type { Tree } from '../trees/tree.js';
import { findDelimiter } from './find-delimiter.js';
import { delimitersIn, dialectOf, PLAIN_DIALECT } from './records/dialects.js';
import { unframe } from './records/frames.js';
import { type WholeFile, wholeText } from './whole.js';

/** A file of records, as a tree for paths and as lines for finders and cells. */
export interface Records {
  readonly tree: Tree;
  readonly lines: readonly Line[];
}

/** Reads lines that their first cell types: ASTM E1394 and LIS2-A2, HL7 version 2, and whatever else does so. */
export async function readRecords(file: WholeFile, options: ParseOptions): Promise<Records> {
  const text = await wholeText({ ...file, bytes: unframe(file.bytes, file.refuse) }, options);
  const texts = withoutFrameNumbers(text.split(/\r\r\n|\r\n|\n|\r/));
  const lines: Line[] = [];
  const records: TypedLine[] = [];
  let cut = otherCut(texts, options);
  let dialect = PLAIN_DIALECT;
  for (const [n, text] of texts.entries()) {
    const header = delimitersIn(text);
    if (header) {
      dialect = dialectOf(header);
      cut = (line) => line.split(header.field).map((cell) => cell.trim());
    }
    const cells = cut(text);
    const [type = '', ...others] = cells;
    lines.push({ number: n + 1, text, cells });
    // The separator itself is field 1 of an HL7 header, so that MSH-9 is the message type.
    const fields = header?.standard === 'hl7' ? [type, header.field, ...others] : cells;
    if (type !== '') records.push({ type, index: records.length, line: n + 1, fields, dialect });
    if (n % 512 === 0 && file.pace.due()) await file.pace.rest();
  }
  if (records.length === 0) throw file.refuse('the file has no records: only blank lines');
  return { tree: createRecordTree(records), lines };
}

type CutText = (text: string) => string[];

function otherCut(texts: readonly string[], { delimiter, quote }: ParseOptions): CutText {
  const word = delimiter ?? findDelimiter(texts);
  const split = word === undefined ? NO_SPLIT : compileSplit(word);
  const { text: sign } = split;
  if (sign === undefined || quote === 'none') return split.cut;
  return (text) => (text.includes(quote) && cutQuoted(text, sign, quote)) || split.cut(text);
}

/** Undefined where a quote is not closed: it is an ordinary character then. */
function cutQuoted(text: string, delimiter: string, quote: string): string[] | undefined {
  try {
    const [cells] = parseCsv(text, { delimiter, quote, escape: quote, trim: true, relax_quotes: true });
    return cells;
  } catch (error) {
    if (error instanceof CsvError) return undefined;
    throw error;
  }
}

/** Some programs keep the numbers of the frames when they take away the frames. */
function withoutFrameNumbers(texts: readonly string[]): readonly string[] {
  const first = texts.find((text) => text.trim() !== '') ?? '';
  const isNumbered = /^[0-7]H/.test(first) && delimitersIn(first.slice(1)) !== undefined;
  return isNumbered ? texts.map((text) => text.replace(/^[0-7](?=[A-Z][^\w\s])/, '')) : texts;
}
