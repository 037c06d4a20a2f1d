import type { ParseMapping } from '../config/vocabulary.js';
import type { Records } from '../parse/formats/records.js';
import type { TableMapping } from './describe.js';

/** Records of analysers: their fields have numbers in the file, and names in the standards HL7 version 2 and LIS2-A2. */

type Tree = Records['tree'];

const HL7 = fieldNames({
  MSH: '3 sending application,4 sending facility,5 receiving application,6 receiving facility,7 message time,9 message type,10 message id,11 processing id,12 version',
  PID: '1 set,2 external patient id,3 patient id,5 patient name,7 birth date,8 sex,11 address,13 phone,18 account',
  PV1: '2 patient class,3 location,19 visit',
  ORC: '1 order control,2 placer order,3 filler order,5 order status,9 order time',
  OBR: '1 set,2 placer order,3 filler order,4 service,7 observation time,8 observation end,10 collector,11 specimen action,14 received,16 ordering provider,22 reported,25 result status',
  OBX: '1 set,2 value type,3 observation,4 sub-id,5 value,6 unit,7 reference range,8 flags,11 status,14 observation time,16 observer,17 method,18 equipment,19 analysis time',
  SPM: '1 set,2 specimen id,4 specimen type,17 collected,18 received',
  NTE: '1 set,2 source,3 comment',
});

const LIS2 = fieldNames({
  H: '3 message id,5 sender,10 receiver,12 processing id,13 version,14 message time',
  P: '2 sequence,3 practice patient id,4 laboratory patient id,5 other patient id,6 patient name,8 birth date,9 sex,11 address,14 physician',
  O: '2 sequence,3 specimen id,4 instrument specimen id,5 test,6 priority,7 requested,8 collected,12 action,15 received,16 specimen,23 reported,25 instrument section,26 report type',
  R: '2 sequence,3 test,4 value,5 unit,6 reference range,7 flags,9 status,11 operator,12 started,13 completed,14 instrument',
  C: '2 sequence,3 source,4 comment,5 comment type',
  L: '2 sequence,3 termination',
});

/** By type and field, such as `OBX/5`. */
function fieldNames(types: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(types).flatMap(([type, fields]) =>
      fields.split(',').map((field): [string, string] => {
        const at = field.indexOf(' ');
        return [`${type}/${field.slice(0, at)}`, field.slice(at + 1)];
      }),
    ),
  );
}

/** The parts of a coded field. */
const CODED: ReadonlySet<string> = new Set(['OBX/3', 'OBR/4']);
const CODED_PARTS = [' id', '', ' coding system'];

/** A field with its unit in another field of the same record. */
const UNITS: ReadonlyMap<string, string> = new Map([
  ['OBX/5', '6'],
  ['R/4', '5'],
]);

/** Where the standards put the time of a measurement and of the message about it, and how they write them. */
const RUN_AT = ['/R/12', '/R/13', '/OBX/19'];
const SENT_AT: readonly unknown[] = ['/MSH/7', '/H/14'];
const FORMATS = ['yyyyMMddHHmmss', 'yyyyMMddHHmmssZZZ', 'yyyyMMddHHmm', 'yyyyMMdd'];
const isTime = (text: string | undefined): boolean => /^(?:19|20)\d{6}(?:\d{4}|\d{6}(?:[+-]\d{4})?)?$/.test(text ?? '');

/** Whether the value at this path is the time of a message, which the number of its field does not show. */
export const isSentAt = (path: unknown): boolean => SENT_AT.includes(path);

const MAX_FACTS = 60;

/** The fields of a record type that occurs once are facts; other types are tables. */
export function describeRecords(records: Records): ParseMapping {
  const { tree, lines } = records;
  const types = new Map<string, number>();
  for (const { cells } of lines) if (cells[0]) types.set(cells[0], (types.get(cells[0]) ?? 0) + 1);
  const names = types.has('MSH') ? HL7 : types.has('H') && types.has('L') ? LIS2 : new Map<string, string>();
  const facts: NonNullable<ParseMapping['facts']> = {};
  const tables: Record<string, TableMapping> = {};
  for (const [type, count] of types) {
    const [row] = tree.rows(type) ?? [];
    if (count > 1) {
      const { columns, ...table } = columnsOf(type, tree, names);
      tables[type] = { rows: type, ...table, columns: { ...ownersOf(type, records, names, types), ...columns } };
    } else if (row) {
      for (const [path, { text }] of tree.values(row)) {
        if (!/[\p{L}\p{N}]/u.test(text) || Object.keys(facts).length >= MAX_FACTS) continue;
        if (isRepeated(path, records, names === HL7)) continue;
        const known = names.get(path);
        const name = known === undefined || known in facts ? path.replace('/', ' ') : known;
        facts[name] = isSentAt(`/${path}`) && isTime(text) ? { from: `/${path}`, format: FORMATS } : `/${path}`;
      }
    }
  }
  const date = RUN_AT.find((path) => /^(?:19|20)\d{6}/.test(tree.lookup(path)()?.text ?? ''));
  if (date !== undefined) facts['date'] = { from: date, format: FORMATS };
  return { format: 'records', facts, tables };
}

/** Whether the field has several values, of which only the first would be read. */
function isRepeated(path: string, { lines }: Records, isHl7: boolean): boolean {
  const [type = '', field = ''] = path.split('/');
  // The sign after the type of MSH is its first field.
  const at = Number(field) - Number(!isHl7 || type === 'MSH');
  return lines.some(({ cells }) => cells[0] === type && cells[at]?.includes(isHl7 ? '~' : '\\'));
}

/** What a result belongs to: its patient and specimen, if the file has several. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  R: ['P/3', 'P/4', 'O/3'],
  OBX: ['PID/3', 'OBR/2', 'OBR/3'],
};

function ownersOf(
  type: string,
  { tree, lines }: Records,
  names: ReadonlyMap<string, string>,
  types: ReadonlyMap<string, number>,
): Record<string, string> {
  const paths = OWNERS[type] ?? [];
  const chain = [...new Set(paths.map((path) => path.split('/')[0] ?? ''))];
  // A result directly below a patient is not of the specimen of the patient before.
  const known = new Set<string>();
  const absent = new Set<string>();
  for (const { cells } of lines) {
    const [own = ''] = cells;
    if (own === type) for (const owner of chain) if (!known.has(owner)) absent.add(owner);
    if (!chain.includes(own)) continue;
    for (const inner of chain.slice(chain.indexOf(own))) known.delete(inner);
    known.add(own);
  }
  const owners = paths.filter((path) => {
    const [owner = ''] = path.split('/');
    const isFilled = (row: Parameters<Tree['values']>[0]) =>
      [...tree.values(row)].some(([at, { text }]) => at === path && text !== '');
    const isNamed = names.has(path) && (types.get(owner) ?? 0) > 1 && !absent.has(owner);
    return isNamed && tree.rows(owner)?.every(isFilled);
  });
  return Object.fromEntries(owners.map((path) => [names.get(path) ?? path, `/${path}`]));
}

/** The fields that some record of the type fills; components of a field are columns of their own. */
function columnsOf(type: string, tree: Tree, names: ReadonlyMap<string, string>): TableMapping {
  const fields = new Map<string, Set<number>>();
  for (const row of (tree.rows(type) ?? []).slice(0, 200)) {
    for (const [path, { text }] of tree.values(row)) {
      const field = path.slice(path.indexOf('/') + 1);
      const known = fields.get(field) ?? new Set();
      const parts = text.split('^');
      if (parts.length === 1 && text !== '') known.add(0);
      for (const [n, part] of parts.length === 1 ? [] : parts.entries()) if (part !== '') known.add(n + 1);
      if (known.size > 0) fields.set(field, known);
    }
  }
  const columns: Record<string, string | { readonly from: string; readonly unit: { readonly from: string } }> = {};
  const unitOf = (field: string) => {
    const unit = names.has(`${type}/${field}`) ? UNITS.get(`${type}/${field}`) : undefined;
    return unit !== undefined && fields.get(unit)?.has(0) ? unit : undefined;
  };
  const units = new Set([...fields.keys()].map(unitOf));
  for (const [field, parts] of [...fields].sort(([a], [b]) => Number(a) - Number(b))) {
    if (units.has(field)) continue;
    const name = names.get(`${type}/${field}`);
    const unit = unitOf(field);
    for (const part of parts) {
      const own = columnName(name, `${type}/${field}`, part, parts.size);
      const from = part === 0 ? field : `${field}/${part}`;
      columns[own in columns ? `${own} ${field}` : own] = unit === undefined ? from : { from, unit: { from: unit } };
    }
  }
  return Object.keys(columns).length === 0 ? {} : { columns };
}

function columnName(name: string | undefined, path: string, part: number, parts: number): string {
  const field = path.slice(path.indexOf('/') + 1);
  if (name === undefined) return part === 0 ? `field ${field}` : `field ${field}.${part}`;
  if (CODED.has(path) && part > 0 && part <= CODED_PARTS.length) return `${name}${CODED_PARTS[part - 1]}`;
  return part === 0 || parts === 1 ? name : `${name} ${part}`;
}
