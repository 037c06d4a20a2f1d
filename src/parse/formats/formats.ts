import type { Format, ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import type { Line } from '../lines.js';
import { measureText } from '../measure/measure.js';
import type { Measured } from '../measure/measured.js';
import { measureRecords } from '../measure/records.js';
import { measureTree } from '../measure/tree.js';
import { measureSheets } from '../measure/workbook.js';
import { readLabelled } from '../trees/read-labelled.js';
import { readTree } from '../trees/read-tree.js';
import { firstLines, openText, readDelimited } from './delimited.js';
import { readJcamp } from './jcamp.js';
import { readJson } from './json.js';
import { loadWhole, namedIn } from './load-whole.js';
import { readNone } from './none.js';
import type { OpenFile } from './open-file.js';
import { readRecords } from './records.js';
import { openSheets, readWorkbook, sheetLines } from './workbook.js';
import { readXml } from './xml.js';

/** What labfeed does with one kind of file. A new kind is one more of these. */
export interface FormatReader {
  /** Reads a file as the options say. */
  read(file: OpenFile, options: ParseOptions): Promise<FileRecord>;
  /**
   * Says how a file is to be read, in the words of a mapping, as far as the file itself tells.
   * `read` tries a mapping on the file.
   */
  measure(file: OpenFile, options: ParseOptions, read: TryMapping): Promise<Measured>;
  /** The lines among which `when` looks, where they are not those of its text. */
  lines?(file: OpenFile, options: ParseOptions): Promise<() => AsyncIterable<readonly Line[]>>;
}

export type TryMapping = Parameters<typeof measureText>[0]['read'];

/** More lines tell nothing new about how a file is written. */
const MEASURED_LINES = 20_000;

const delimited: FormatReader = {
  read: readDelimited,
  async measure(file, options, read) {
    const texts = await firstLines(await openText(file, options), MEASURED_LINES);
    return measureText({ ...file, name: file.source.name, texts, read });
  },
};

/** Places within places: facts and tables are paths into a tree. */
const nested = (format: 'json' | 'xml', readNested: typeof readJson): FormatReader => ({
  async read(file, options) {
    const tree = await readNested(await loadWhole(file, options), options);
    return readTree(tree, await namedIn(file, options), options);
  },
  async measure(file, options, read) {
    const tree = await readNested(await loadWhole(file, options), options);
    return measureTree(format, tree, { ...file, name: file.source.name, read });
  },
});

const records: FormatReader = {
  async read(file, options) {
    const { tree, lines } = await readRecords(await loadWhole(file, options), options);
    return readTree(tree, await namedIn(file, options, lines), options);
  },
  async measure(file, options, read) {
    const found = await readRecords(await loadWhole(file, options), options);
    return measureRecords(found, { ...file, name: file.source.name, read });
  },
};

const jcamp: FormatReader = {
  async read(file, options) {
    const labelled = await readJcamp(await loadWhole(file, options), options);
    return readLabelled(labelled, await namedIn(file, options), options);
  },
  measure: async () => selfEvident('jcamp'),
};

const xlsx: FormatReader = {
  read: readWorkbook,
  async measure(file, options, read) {
    return measureSheets(await openSheets(file, options), { ...file, name: file.source.name, read });
  },
  async lines(file, options) {
    const sheets = await openSheets(file, options);
    return () => sheetLines(sheets, options);
  },
};

const none: FormatReader = {
  read: readNone,
  measure: async () => selfEvident('none'),
};

/** Such files need no more of a mapping than the name of their format. */
const selfEvident = (format: 'jcamp' | 'none'): Measured => ({
  ...{ mapping: { format }, likely: { format }, doubts: [], refusal: undefined },
});

/** One for each word that `format` knows. Plain text is delimited text that is cut only where the mapping says. */
export const FORMATS: Readonly<Record<Format, FormatReader>> = {
  ...{ delimited, text: delimited, records, jcamp, xlsx, none },
  json: nested('json', readJson),
  xml: nested('xml', readXml),
};
