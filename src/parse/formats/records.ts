import { findDelimiter, lineFormat, splitLine } from '../cells.js';
import { type Condition, type Path, parsePath, type Step } from '../extract/path.js';
import {
  countWhile,
  type Found,
  type Lookup,
  type Missing,
  type Row,
  type Tree,
  type UnreadValues,
} from '../extract/tree.js';
import { isPlainNumber, type LineRange, MIN_SHORT_ROWS, spanOf } from '../extract/unread.js';
import { type Line, type Refuse, suggestName } from '../lines.js';
import { decodeText, loadWhole, type OpenFile } from '../source.js';

/** A file of records, as a tree for paths and as lines for finders and cells. */
export interface Records {
  readonly tree: Tree;
  readonly lines: readonly Line[];
}

const LINE_BREAK = /\r\r\n|\r\n|\n|\r/;

/** Reads lines whose first cell is their type: ASTM E1394 and LIS2-A2, HL7 version 2, and others. */
export async function readRecords(file: OpenFile): Promise<Records> {
  const { options, refuse, slice } = file;
  const bytes = unframe(await loadWhole(file), refuse);
  const texts = withoutFrameNumbers((await decodeText(bytes, file)).split(LINE_BREAK));
  const lines: Line[] = [];
  const records: TypedLine[] = [];
  const format = lineFormat(options.delimiter ?? findDelimiter(texts), options.quote);
  let split = (line: Line): readonly string[] => splitLine(line, format).cells;
  let dialect = PLAIN;
  for (const [n, text] of texts.entries()) {
    const header = delimitersIn(text);
    if (header) {
      dialect = dialectOf(header);
      split = (line) => line.text.split(header.field).map((cell) => cell.trim());
    }
    const cells = split({ number: n + 1, text, cells: [] });
    const [type = '', ...others] = cells;
    lines.push({ number: n + 1, text, cells });
    // The separator itself is field 1 of an HL7 header, so that MSH-9 is the message type.
    const fields = header?.standard === 'hl7' ? [type, header.field, ...others] : cells;
    if (type !== '') records.push({ type, index: records.length, line: n + 1, fields, dialect });
    if (n % 512 === 0 && slice.isOver()) await slice.renew();
  }
  if (records.length === 0) throw refuse('the file has no records: all lines are blank');
  return { tree: createRecordTree(records), lines };
}

/** Some programs remove the frames but leave their numbers. */
function withoutFrameNumbers(texts: readonly string[]): readonly string[] {
  const first = texts.find((text) => text.trim() !== '') ?? '';
  const isNumbered = /^[0-7]H/.test(first) && delimitersIn(first.slice(1)) !== undefined;
  return isNumbered ? texts.map((text) => text.replace(/^[0-7](?=[A-Z][^\w\s])/, '')) : texts;
}

/** The delimiters that the header of a message declares. */
type Delimiters = NonNullable<ReturnType<typeof delimitersIn>>;

const ASTM = /^H([^\w\s])([^\w\s])([^\w\s])([^\w\s])(?:\1|$)/;
const HL7 = /^(?:MSH|FHS|BHS)([^\w\s])([^\w\s])([^\w\s])([^\w\s])?([^\w\s])?/;

/** Undefined if the line is not the header of a message. */
export function delimitersIn(text: string) {
  const [, field = '', repeat = '', component = '', escapeMark = ''] = ASTM.exec(text) ?? [];
  if (areDistinct([field, repeat, component, escapeMark])) {
    return { standard: 'astm' as const, field, repeat, component, escapeMark, subcomponent: undefined };
  }
  const [, separator = '', ...others] = HL7.exec(text) ?? [];
  const [first = '', second = '', third = '\\', fourth = '&'] = others;
  if (!areDistinct([separator, first, second])) return undefined;
  return {
    ...{ standard: 'hl7' as const, field: separator, component: first },
    ...{ repeat: second, escapeMark: third, subcomponent: fourth },
  };
}

const areDistinct = (characters: readonly string[]): boolean =>
  characters.every((character, n) => character !== '' && characters.indexOf(character) === n);

/** How fields are numbered and split, which the header of a message declares. */
interface Dialect {
  /** The number of the field with the type: 0 in HL7, otherwise 1. */
  readonly firstField: 0 | 1;
  /** The first of repeated values, or a component or subcomponent of it. */
  part(field: string, indexes: readonly number[]): string;
  /** All components of a field; undefined if the field is repeated: only the first of repeated values is read. */
  components(field: string): readonly string[] | undefined;
}

/** Without a header, fields are not split. */
const PLAIN: Dialect = {
  firstField: 1,
  part: (field, indexes) => (indexes.every((index) => index === 1) ? field : ''),
  components: (field) => [field],
};

function dialectOf(delimiters: Delimiters): Dialect {
  const { standard, field: separator, repeat, component, escapeMark, subcomponent = '' } = delimiters;
  const isHl7 = standard === 'hl7';
  const declaration = isHl7 ? component + repeat + escapeMark + subcomponent : repeat + component + escapeMark;
  const plain = createUnescape(delimiters);
  return {
    firstField: isHl7 ? 0 : 1,
    components: (field) => (field.includes(repeat) ? undefined : field.split(component)),
    part(field, [wanted, wantedPart]) {
      if (field === declaration || field === separator) return field;
      // In HL7, two quotes delete a value.
      if (field === '""' && isHl7) return '';
      const [first = ''] = field.split(repeat);
      if (wanted === undefined) return plain(first);
      const piece = first.split(component)[wanted - 1] ?? '';
      if (wantedPart === undefined) return plain(piece);
      const pieces = subcomponent === '' ? [piece] : piece.split(subcomponent);
      return plain(pieces[wantedPart - 1] ?? '');
    },
  };
}

/** `\F\` in HL7 and `&F&` in ASTM stand for a delimiter as a character. */
function createUnescape(delimiters: Delimiters): (text: string) => string {
  const { field, component, repeat, escapeMark, subcomponent = '' } = delimiters;
  const characters: Readonly<Record<string, string>> = {
    ...{ F: field, S: component, R: repeat, T: subcomponent, E: escapeMark },
    ...{ H: '', N: '', '.br': '\n' },
  };
  const mark = escapeMark.replace(/\W/g, '\\$&');
  const pattern = new RegExp(`${mark}(F|S|R|T|E|H|N|\\.br|X(?:[0-9A-Fa-f]{2})+)${mark}`, 'g');
  const replace = (_: string, code: string) => characters[code] ?? Buffer.from(code.slice(1), 'hex').toString('latin1');
  return (text) => (escapeMark !== '' && text.includes(escapeMark) ? text.replace(pattern, replace) : text);
}

const [STX, ETX, EOT, ENQ, ACK, VT, NAK, ETB, FS] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x0b, 0x15, 0x17, 0x1c];
const [CR, LF] = [0x0d, 0x0a];
const HANDSHAKE = new Set([ENQ, ACK, NAK, EOT, VT, FS]);

/**
 * Removes the transmission protocol: ASTM frames (STX, a number, text, ETX or ETB, a checksum), the handshake around
 * them, and the marks of HL7's MLLP. Refuses a frame with a wrong checksum.
 */
function unframe(bytes: Uint8Array, refuse: Refuse): Uint8Array {
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isUtf16 || ![STX, VT, ENQ].some((mark) => bytes.includes(mark))) return bytes;
  const kept = new Uint8Array(bytes.byteLength);
  let length = 0;
  let frame: { start: number; keptBefore: number } | undefined;
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === STX) {
      frame = { start: at + 1, keptBefore: length };
      if (isFrameNumber(bytes[at + 1])) at++;
    } else if (byte === ETX || byte === ETB) {
      const checksum = checksumAt(bytes, at + 1);
      if (frame && checksum !== undefined && !hasChecksum(bytes.subarray(frame.start, at + 1), checksum)) {
        throw refuse('the frame that starts here has a wrong checksum: it was damaged in transmission', {
          line: countLines(kept.subarray(0, frame.keptBefore)),
          hint: 'send it from the instrument again, or correct the file',
        });
      }
      frame = undefined;
      if (checksum !== undefined) at += 2;
      // After ETB the record continues in the next frame, so its line does not end here.
      while (byte === ETB && (bytes[at + 1] === CR || bytes[at + 1] === LF)) at++;
    } else if (!HANDSHAKE.has(byte)) kept[length++] = byte;
  }
  return kept.subarray(0, length);
}

const isFrameNumber = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x37;

function checksumAt(bytes: Uint8Array, at: number): number | undefined {
  const text = String.fromCharCode(bytes[at] ?? 0, bytes[at + 1] ?? 0);
  return /^[0-9A-F]{2}$/i.test(text) ? Number.parseInt(text, 16) : undefined;
}

/** The sum from the frame number to its end, even if a program has since replaced CR with CR LF or LF. */
function hasChecksum(frame: Uint8Array, checksum: number): boolean {
  let [sum, feeds] = [0, 0];
  for (const byte of frame) {
    sum += byte;
    if (byte === LF) feeds++;
  }
  return [sum, sum - feeds * LF, sum + feeds * (CR - LF)].some((total) => total % 256 === checksum);
}

const countLines = (bytes: Uint8Array): number => Buffer.from(bytes).toString('latin1').split(LINE_BREAK).length;

/** A line whose first cell is its type. Its parents are the lines above it. */
interface TypedLine extends Row {
  readonly type: string;
  readonly index: number;
  /** Numbered from `dialect.firstField`. */
  readonly fields: readonly string[];
  readonly dialect: Dialect;
}

/** Records belong together by their order: a result R belongs to the nearest order O above it. */
function createRecordTree(lines: readonly TypedLine[]): Tree {
  const used: UsedFields = new Map();
  return {
    size: lines.reduce((sum, { fields }) => sum + fields.length, 0),
    rows(path) {
      const found = select(parsePath(path).steps[0], lines);
      return found.length === 0 ? undefined : found;
    },
    lookup: (path) => createLookup(parsePath(path), lines, used),
    list(path) {
      const parsed = parsePath(path);
      const [type, ...fields] = parsed.steps;
      const found = select(type, lines);
      if (found.length === 0 || !fields.every(isField)) return explainMissing(parsed, lines);
      return { items: found.map((line) => fieldOf(line, fields, used)) };
    },
    values: (row) => allFields(row as TypedLine, used),
    unread: () => unusedRecords(lines, used),
    explainMissing: (path) => explainMissing(parsePath(path), lines),
  };
}

/** Lines with numbers are readings if nothing was looked up in any line of their type. */
function unusedRecords(lines: readonly TypedLine[], used: UsedFields): UnreadValues {
  const others: LineRange[] = [];
  const readings: UnreadValues['readings'][number][] = [];
  let usedNumbers = 0;
  const types = new Map<string, TypedLine[]>();
  for (const line of lines) {
    const same = types.get(line.type);
    if (same) same.push(line);
    else types.set(line.type, [line]);
  }
  for (const [type, same] of types) {
    const count = same.reduce((sum, { fields }) => sum + fields.filter(isPlainNumber).length, 0);
    const unused = same.filter((line) => hasUnused(line, used.get(line))).map(({ line }) => ({ from: line, to: line }));
    if (same.some((line) => used.has(line))) usedNumbers += count;
    else if (count >= MIN_SHORT_ROWS && same.length > 2) {
      readings.push({ path: `/${type}`, count, ...spanOf(unused) });
      continue;
    }
    others.push(...unused);
  }
  return { others, readings, used: usedNumbers };
}

/** The fields of each line that were looked up, as `3`, or `3/1` for a component. */
type UsedFields = Map<TypedLine, Set<string>>;

function use(line: TypedLine, field: number, indexes: readonly number[], used: UsedFields | undefined): void {
  const known = used?.get(line) ?? new Set();
  known.add([field, ...indexes].join('/'));
  used?.set(line, known);
}

/** Whether the line has a field, or a part of one, that was not looked up. The type of the line says where it belongs. */
function hasUnused({ fields, dialect }: TypedLine, known: ReadonlySet<string> = new Set()): boolean {
  return fields.some((text, n) => {
    const field = n + dialect.firstField;
    if (n === 0 || !/[\p{L}\p{N}]/u.test(text)) return false;
    const isWhole = known.has(String(field)) && dialect.part(text, []).length >= text.trim().length;
    const isPartKnown = (part: string, at: number) => part === '' || known.has(`${field}/${at + 1}`);
    return !isWhole && dialect.components(text)?.every(isPartKnown) !== true;
  });
}

const isField = (step: Step | undefined): boolean => step?.index !== undefined && !step.isDeep;

/** `3/5` is in the row itself, `/O/3/1` or `O/3/1` in the nearest O at or above it. */
function createLookup({ steps, isAbsolute }: Path, lines: readonly TypedLine[], used: UsedFields): Lookup {
  if (!isAbsolute && isField(steps[0])) {
    return (row) => (row ? fieldOf(row as TypedLine, steps, used) : undefined);
  }
  const found = select(steps[0], lines);
  const fields = steps.slice(1);
  const nearestTo = ({ index }: TypedLine) =>
    found[countWhile(found.length, (n) => (found[n]?.index ?? 0) <= index) - 1];
  return (row) => {
    const line = row ? nearestTo(row as TypedLine) : found[0];
    return line && fields.every(isField) ? fieldOf(line, fields, used) : undefined;
  };
}

function select(step: Step | undefined, lines: readonly TypedLine[]): TypedLine[] {
  if (!step) return [];
  const { name, conditions } = step;
  return lines.filter(
    (line) => (line.type === name || name === '*') && conditions.every((condition) => meets(condition, line)),
  );
}

const meets = ({ key, value }: Condition, line: TypedLine): boolean => fieldOf(line, key).text === value;

/** Fields that a line omits at its end are empty. */
function fieldOf(line: TypedLine, steps: readonly Step[], used?: UsedFields): Found {
  const [field = line.dialect.firstField, ...indexes] = steps.map(({ index }) => index ?? 0);
  use(line, field, indexes, used);
  const cell = line.fields[field - line.dialect.firstField] ?? '';
  return { text: line.dialect.part(cell, indexes).trim(), unit: undefined, line: line.line };
}

function* allFields(line: TypedLine, used: UsedFields): Generator<readonly [string, Found]> {
  for (let n = 1; n < line.fields.length; n++) {
    use(line, n + line.dialect.firstField, [], used);
    const text = line.dialect.part(line.fields[n] ?? '', []).trim();
    yield [`${line.type}/${n + line.dialect.firstField}`, { text, unit: undefined, line: line.line }];
  }
}

function explainMissing({ steps, written }: Path, lines: readonly TypedLine[]): Missing {
  const [{ name } = { name: '' }, ...rest] = steps;
  const sameType = lines.find(({ type }) => type === name);
  if (sameType && !rest.every(isField)) {
    return {
      message: `\`${written}\` is not a field`,
      hint: `fields and components are numbers: \`/${name}/3/1\``,
      line: sameType.line,
    };
  }
  const types = [...new Set(lines.map(({ type }) => type))];
  return {
    message: sameType
      ? `no ${name} record matches \`${written}\`, or none is at or above the rows`
      : `there is no ${name} record`,
    hint: suggestName(sameType ? '' : name, types, 'the record types are'),
    line: undefined,
  };
}
