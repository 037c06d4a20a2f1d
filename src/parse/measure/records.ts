import type { Records } from '../formats/records.js';
import type { TableMapping } from './describe.js';
import type { Measured, Measuring } from './measured.js';
import { withDates } from './tree.js';

const MOST_FACTS = 60;

/** What records hold: those that come once are facts by their fields, the others are tables by their type. */
export async function measureRecords({ tree, lines }: Records, file: Measuring): Promise<Measured> {
  const types = new Map<string, number>();
  for (const { cells } of lines) if (cells[0]) types.set(cells[0], (types.get(cells[0]) ?? 0) + 1);
  const facts: Record<string, string> = {};
  const tables: Record<string, TableMapping> = {};
  for (const [type, times] of types) {
    const [row] = tree.rows(type) ?? [];
    if (times > 1) tables[type] = { rows: type, ...columnsOf(type, { tree, lines }) };
    else if (row) {
      for (const [name, { text }] of tree.values(row)) {
        const isTold = /[\p{L}\p{N}]/u.test(text) && Object.keys(facts).length < MOST_FACTS;
        if (isTold) facts[name.replace('/', ' ')] = `/${name}`;
      }
    }
  }
  const date = SENT.find((path) => /^(?:19|20)\d{6}/.test(tree.lookup(path)()?.text ?? ''));
  const told = date === undefined ? facts : { ...facts, date: { from: date, format: STAMPS } };
  return withDates({ format: 'records', facts: told, tables }, file);
}

/** Where the standards put the moment at which a message was sent, and how they write it. */
const SENT = ['/MSH/7', '/H/14'];
const STAMPS = ['yyyyMMddHHmmss', 'yyyyMMddHHmmssZZZ', 'yyyyMMddHHmm', 'yyyyMMdd'];

/** The fields that some record of the type fills; where a field has parts, each of them. */
function columnsOf(type: string, { tree }: Records): TableMapping {
  const parts = new Map<string, string>();
  for (const row of (tree.rows(type) ?? []).slice(0, 200)) {
    for (const [path, { text }] of tree.values(row)) {
      const name = path.slice(path.indexOf('/') + 1);
      if (text === '') continue;
      const pieces = text.split('^');
      if (pieces.length === 1) parts.set(name, name);
      for (const [n, piece] of pieces.length === 1 ? [] : pieces.entries()) {
        if (piece !== '') parts.set(`${name}.${n + 1}`, `${name}/${n + 1}`);
      }
    }
  }
  return parts.size === 0
    ? {}
    : { columns: Object.fromEntries([...parts].map(([name, path]) => [`field ${name}`, path])) };
}
