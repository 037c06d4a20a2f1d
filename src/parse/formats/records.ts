import { CsvError } from 'csv-parse';
import { parse as parseCsv } from 'csv-parse/sync';
import type { ParseOptions } from '../../config/vocabulary.js';
import { nearest } from '../../text.js';
import { compileSplit, findDelimiter, NO_SPLIT } from '../cells.js';
import {
  type Condition,
  type Found,
  type Lookup,
  type Missing,
  type Path,
  parsePath,
  type Row,
  type Step,
  type Tree,
} from '../extract/tree.js';
import type { Line, Refuse } from '../lines.js';
import { readText, type WholeFile } from '../source.js';

/** A file of records, as a tree for paths and as lines for finders and cells. */
export interface Records {
  readonly tree: Tree;
  readonly lines: readonly Line[];
}

/** Reads lines that their first cell types: ASTM E1394 and LIS2-A2, HL7 version 2, and whatever else does so. */
export async function readRecords(file: WholeFile, options: ParseOptions): Promise<Records> {
  const text = await readText({ ...file, bytes: unframe(file.bytes, file.refuse) }, options);
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
    if (n % 512 === 0 && file.slice.isOver()) await file.slice.renew();
  }
  if (records.length === 0) throw file.refuse('the file has no records: only blank lines');
  return { tree: createRecordTree(records), lines };
}

type CutText = (text: string) => string[];

function otherCut(texts: readonly string[], { delimiter, quote }: ParseOptions): CutText {
  const word = delimiter ?? findDelimiter(texts);
  const split = word === undefined ? NO_SPLIT : compileSplit(word);
  const { text: sign } = split;
  if (sign === undefined || quote === 'none') return split.all;
  return (text) => (text.includes(quote) && cutQuoted(text, sign, quote)) || split.all(text);
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

/** The signs that the header of a message declares. */
interface Delimiters {
  readonly standard: 'astm' | 'hl7';
  readonly field: string;
  readonly repeat: string;
  readonly component: string;
  readonly release: string;
  /** Of a component; HL7 only. */
  readonly part: string | undefined;
}

const ASTM = /^H([^\w\s])([^\w\s])([^\w\s])([^\w\s])(?:\1|$)/;
const HL7 = /^(?:MSH|FHS|BHS)([^\w\s])([^\w\s])([^\w\s])([^\w\s])?([^\w\s])?/;

/** The delimiters that a line declares, where it is the header of a message. */
export function delimitersIn(text: string): Delimiters | undefined {
  const [, field = '', repeat = '', component = '', release = ''] = ASTM.exec(text) ?? [];
  if (areDistinct([field, repeat, component, release])) {
    return { standard: 'astm', field, repeat, component, release, part: undefined };
  }
  const [, separator = '', ...signs] = HL7.exec(text) ?? [];
  const [first = '', second = '', third = '\\', fourth = '&'] = signs;
  if (!areDistinct([separator, first, second])) return undefined;
  return {
    standard: 'hl7',
    field: separator,
    component: first,
    repeat: second,
    release: third,
    part: fourth,
  };
}

const areDistinct = (signs: readonly string[]): boolean =>
  signs.every((sign, n) => sign !== '' && signs.indexOf(sign) === n);

/** Without a header, a field is all that there is. */
const PLAIN_DIALECT: Dialect = {
  firstField: 1,
  part: (field, places) => (places.every((place) => place === 1) ? field : ''),
};

function dialectOf(delimiters: Delimiters): Dialect {
  const { standard, repeat, component, part } = delimiters;
  const declared = declaration(delimiters);
  const plain = createPlain(delimiters);
  return {
    firstField: standard === 'hl7' ? 0 : 1,
    part(field, [wanted, wantedPart]) {
      if (field === declared || field === delimiters.field) return field;
      // Two quotes mean: there is no value any more.
      if (field === '""' && standard === 'hl7') return '';
      const [first = ''] = field.split(repeat);
      if (wanted === undefined) return plain(first);
      const piece = first.split(component)[wanted - 1] ?? '';
      if (wantedPart === undefined) return plain(piece);
      const pieces = part === undefined ? [piece] : piece.split(part);
      return plain(pieces[wantedPart - 1] ?? '');
    },
  };
}

/** What the header itself holds: signs, and nothing that they would take apart. */
const declaration = ({ standard, repeat, component, release, part = '' }: Delimiters): string =>
  standard === 'hl7' ? component + repeat + release + part : repeat + component + release;

/** `\F\` in HL7, `&F&` in ASTM: a sign that is meant as a mere character. */
function createPlain(delimiters: Delimiters): (text: string) => string {
  const { field, component, repeat, release, part = '' } = delimiters;
  const signs: Readonly<Record<string, string>> = {
    ...{ F: field, S: component, R: repeat, T: part, E: release },
    ...{ H: '', N: '', '.br': '\n' },
  };
  const sign = release.replace(/\W/g, '\\$&');
  const pattern = new RegExp(`${sign}(F|S|R|T|E|H|N|\\.br|X(?:[0-9A-Fa-f]{2})+)${sign}`, 'g');
  return (text) =>
    release !== '' && text.includes(release)
      ? text.replace(
          pattern,
          (_, code: string) => signs[code] ?? Buffer.from(code.slice(1), 'hex').toString('latin1'),
        )
      : text;
}

const [STX, ETX, EOT, ENQ, ACK, VT, NAK, ETB, FS] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x0b, 0x15, 0x17, 0x1c];
const [CR, LF] = [0x0d, 0x0a];

/**
 * Takes away what carried records over a wire: ASTM frames (STX, a number, text, ETX or ETB, a checksum),
 * the handshake around them, and the two marks of HL7's MLLP. A frame that its checksum does not fit is refused:
 * who received it should have asked for it again.
 */
function unframe(bytes: Uint8Array, refuse: Refuse): Uint8Array {
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isWide || ![STX, VT, ENQ].some((mark) => bytes.includes(mark))) return bytes;
  const kept = new Uint8Array(bytes.byteLength);
  let length = 0;
  let frame: { from: number; keptBefore: number } | undefined;
  const end = (at: number): number => {
    const checksum = checksumAt(bytes, at + 1);
    if (frame && checksum !== undefined && !fits(bytes.subarray(frame.from, at + 1), checksum)) {
      const line = linesIn(kept.subarray(0, frame.keptBefore)) + 1;
      throw refuse('the frame that begins here does not fit its checksum: it was damaged on its way', {
        at: { line },
        hint: 'have the instrument send it again, or mend the file',
      });
    }
    frame = undefined;
    return checksum === undefined ? 0 : 2;
  };
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at];
    switch (byte) {
      case STX:
        frame = { from: at + 1, keptBefore: length };
        if (isFrameNumber(bytes[at + 1])) at++;
        break;
      case ETX:
        at += end(at);
        break;
      case ETB:
        // The record goes on in the next frame, so its line does not end here.
        at += end(at);
        while (bytes[at + 1] === CR || bytes[at + 1] === LF) at++;
        break;
      case ENQ:
      case ACK:
      case NAK:
      case EOT:
      case VT:
      case FS:
        break;
      default:
        kept[length++] = byte ?? 0;
    }
  }
  return kept.subarray(0, length);
}

const isFrameNumber = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= 0x30 && byte <= 0x37;

function checksumAt(bytes: Uint8Array, at: number): number | undefined {
  const text = String.fromCharCode(bytes[at] ?? 0, bytes[at + 1] ?? 0);
  return /^[0-9A-F]{2}$/i.test(text) ? Number.parseInt(text, 16) : undefined;
}

/** The sum of all from the frame's number to its end; also where a program has since written CR as CR LF, or as LF. */
function fits(frame: Uint8Array, checksum: number): boolean {
  let [sum, feeds] = [0, 0];
  for (const byte of frame) {
    sum += byte;
    if (byte === LF) feeds++;
  }
  return [sum, sum - feeds * LF, sum + feeds * (CR - LF)].some((total) => total % 256 === checksum);
}

const linesIn = (bytes: Uint8Array): number =>
  Buffer.from(bytes)
    .toString('latin1')
    .split(/\r\r\n|\r\n|\n|\r/).length - 1;

/** A line whose first cell says what it is. Its parents are the lines above it. */
interface TypedLine extends Row {
  readonly type: string;
  /** Where it stands among all of them. */
  readonly index: number;
  /** As the standard of the file counts them, from `firstField`. */
  readonly fields: readonly string[];
  readonly dialect: Dialect;
}

/** How fields are counted and taken apart, which the first line of a message says. */
interface Dialect {
  /** The number of the cell that holds the type: 0 in HL7, 1 in ASTM and everywhere else. */
  readonly firstField: 0 | 1;
  /** The first of repeated values; of that, the component and its part that are asked for. */
  part(field: string, places: readonly number[]): string;
}

/** Records that belong to each other by their order: what an R is a result of is the nearest O above it. */
function createRecordTree(lines: readonly TypedLine[]): Tree {
  return {
    size: lines.reduce((sum, { fields }) => sum + fields.length, 0),
    rows(path) {
      const found = select(parsePath(path).steps[0], lines);
      return found.length === 0 ? undefined : found;
    },
    lookup: (path) => createLookup(parsePath(path), lines),
    list(path) {
      const parsed = parsePath(path);
      const [type, ...fields] = parsed.steps;
      const found = select(type, lines);
      if (found.length === 0 || !fields.every(isField)) return deadEnd(parsed, lines);
      return { items: found.map((line) => fieldOf(line, fields)) };
    },
    values: (row) => allFields(row as TypedLine),
    explainMissing: (path) => deadEnd(parsePath(path), lines),
  };
}

const isField = (step: Step | undefined): boolean => step?.place !== undefined && !step.isDeep;

/** `3/5` is of the row itself, `/O/3/1` or `O/3/1` of the nearest O at or above it. */
function createLookup({ steps, isAbsolute }: Path, lines: readonly TypedLine[]): Lookup {
  if (!isAbsolute && isField(steps[0])) {
    return (row) => (row ? fieldOf(row as TypedLine, steps) : undefined);
  }
  const found = select(steps[0], lines);
  const rest = steps.slice(1);
  return (row) => {
    const line = row ? lastUpTo((row as TypedLine).index, found) : found[0];
    return line && rest.every(isField) ? fieldOf(line, rest) : undefined;
  };
}

function select(step: Step | undefined, lines: readonly TypedLine[]): TypedLine[] {
  if (!step) return [];
  const { name, conditions } = step;
  return lines.filter(
    (line) => (line.type === name || name === '*') && conditions.every((condition) => holds(condition, line)),
  );
}

const holds = ({ key, value }: Condition, line: TypedLine): boolean => fieldOf(line, key).text === value;

/** Fields that a line leaves out at its end are empty. */
function fieldOf(line: TypedLine, steps: readonly Step[]): Found {
  const [field = line.dialect.firstField, ...places] = steps.map(({ place }) => place ?? 0);
  const cell = line.fields[field - line.dialect.firstField] ?? '';
  return { text: line.dialect.part(cell, places).trim(), unit: undefined, line: line.line };
}

function lastUpTo(index: number, found: readonly TypedLine[]): TypedLine | undefined {
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((found[middle]?.index ?? 0) <= index) low = middle + 1;
    else high = middle;
  }
  return found[low - 1];
}

function* allFields(line: TypedLine): Generator<readonly [string, Found]> {
  for (let n = 1; n < line.fields.length; n++) {
    const field = n + line.dialect.firstField;
    const text = line.dialect.part(line.fields[n] ?? '', []).trim();
    yield [`${line.type}/${field}`, { text, unit: undefined, line: line.line }];
  }
}

function deadEnd({ steps, written }: Path, lines: readonly TypedLine[]): Missing {
  const [first, ...rest] = steps;
  const types = [...new Set(lines.map(({ type }) => type))];
  const sameType = lines.find(({ type }) => type === first?.name);
  if (sameType && !rest.every(isField)) {
    return {
      message: `\`${written}\` leads to no field`,
      hint: `fields and their components are numbers: \`/${sameType.type}/3/1\``,
      line: sameType.line,
    };
  }
  const near = nearest(first?.name ?? '', types);
  const isFound = sameType !== undefined;
  const types20 = types.slice(0, 20).join(', ');
  return {
    message: isFound
      ? `no ${sameType.type} record fits \`${written}\`, or none at or above the rows`
      : `there is no ${first?.name ?? ''} record`,
    hint:
      isFound || near === undefined ? `the records are: ${types20}` : `did you mean ${JSON.stringify(near)}?`,
    line: undefined,
  };
}
