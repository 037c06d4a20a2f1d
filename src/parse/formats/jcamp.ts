import type { ParseOptions } from '../../config/vocabulary.js';
import type { NamedFact } from '../trees/tree-facts.js';
import { type DataTable, joinPages, readData } from './jcamp/data.js';
import type { LabelledRecord } from './jcamp/record.js';
import { type WholeFile, wholeText } from './whole.js';

/** What a JCAMP-DX file says: its labels, and its data as tables. */
export interface Jcamp {
  readonly labels: readonly NamedFact[];
  readonly tables: readonly DataTable[];
}

/** Reads JCAMP-DX: one block, or several within or after each other. */
export async function readJcamp(file: WholeFile, options: ParseOptions): Promise<Jcamp> {
  const records = recordsIn((await wholeText(file, options)).split(/\r\n|\n|\r/));
  if (records.length === 0) {
    throw file.refuse('this is not JCAMP-DX: no line begins with ##', {
      hint: 'say what it is: `format: delimited`',
      isAbsent: true,
    });
  }
  const labels: NamedFact[] = [];
  const tables: DataTable[] = [];
  let pages: DataTable[] = [];
  // What was said of the data that come next, in the same block.
  let known = new Map<string, LabelledRecord>();
  for (const record of records) {
    if (record.key === 'TITLE' || record.key === 'END' || record.key === 'ENDNTUPLES') {
      tables.push(...joinPages(pages));
      pages = [];
    }
    if (record.key === 'TITLE') known = new Map();
    const data = await readData(record, known, file, options);
    if (data) {
      pages.push(data);
      // It is said anew for the next data, if at all.
      known.delete('NPOINTS');
    } else if (!record.key.startsWith('END') && !isEmptyOwn(record)) labels.push(labelOf(record));
    known.set(record.key, record);
  }
  tables.push(...joinPages(pages));
  return { labels, tables };
}

function recordsIn(texts: readonly string[]): LabelledRecord[] {
  const records: (LabelledRecord & { lines: string[] })[] = [];
  for (const [n, text] of texts.entries()) {
    const comment = text.indexOf('$$');
    const content = comment < 0 ? text : text.slice(0, comment);
    const [, label, value = ''] = /^\s*##([^=]*)=(.*)$/.exec(content) ?? [];
    if (label === undefined) records.at(-1)?.lines.push(content.trim());
    else {
      const key = label.replace(/[\s\-_/]/g, '').toUpperCase();
      records.push({ label: label.trim(), key, lines: [value.trim()], number: n + 1 });
    }
  }
  return records;
}

/** Makers write many labels of their own, also where they have nothing to say. */
const isEmptyOwn = ({ label, lines }: LabelledRecord): boolean =>
  label.startsWith('$') && lines.every((line) => line === '');

/** Texts of the makers' own labels stand in angle brackets, which are not part of them. */
function labelOf({ label, lines, number }: LabelledRecord): NamedFact {
  const text = lines.filter((line) => line !== '').join(' ');
  return { name: label, text: /^<[^<>]*>$/.test(text) ? text.slice(1, -1).trim() : text, line: number };
}
