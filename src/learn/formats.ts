import { type Format, type ParseOptions, withDefaults } from '../config/vocabulary.js';
import { firstLines, openText } from '../parse/cells.js';
import { readJson, readXml } from '../parse/formats/documents.js';
import { formatOf } from '../parse/formats/formats.js';
import { readRecords } from '../parse/formats/records.js';
import { openSheets } from '../parse/formats/workbook.js';
import { readFile } from '../parse/parse.js';
import { loadWhole, type OpenFile } from '../parse/source.js';
import { measureText } from './measure.js';
import type { Measured, Measuring } from './measured.js';
import { measureRecords, measureSheets, measureTree } from './trees.js';

/** Measures a sample: which mapping reads it, and what the sample leaves open. */
export async function measureFile(file: OpenFile): Promise<Measured> {
  const options = withDefaults({});
  const measure = MEASURERS[await formatOf(file, options)];
  const read: Measuring['read'] = (mapping) => readFile(file, withDefaults(mapping));
  return measure({ ...file, name: file.source.name, read }, options);
}

type Measurer = (file: OpenFile & Measuring, options: ParseOptions) => Promise<Measured>;

/** More lines add nothing to what is known about a file's layout. */
const MEASURED_LINES = 20_000;

const measureDelimited: Measurer = async (file, options) =>
  measureText({ ...file, texts: await firstLines(await openText(file, options), MEASURED_LINES) });

/** Files of these formats need no further keys in their mapping. */
const nothingToMeasure =
  (format: 'jcamp' | 'none'): Measurer =>
  async () => ({ mapping: { format }, likely: { format }, doubts: [], refusal: undefined });

const MEASURERS: Readonly<Record<Format, Measurer>> = {
  delimited: measureDelimited,
  text: measureDelimited,
  json: async (file, options) =>
    measureTree('json', await readJson(await loadWhole(file, options), options), file),
  xml: async (file, options) =>
    measureTree('xml', await readXml(await loadWhole(file, options), options), file),
  records: async (file, options) =>
    measureRecords(await readRecords(await loadWhole(file, options), options), file),
  xlsx: async (file, options) => measureSheets(await openSheets(file, options), file),
  jcamp: nothingToMeasure('jcamp'),
  none: nothingToMeasure('none'),
};
