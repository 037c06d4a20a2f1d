import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { utils, write } from '@e965/xlsx';
import fc from 'fast-check';
import { binaryKind } from '../../dist/parse/source.js';

/*
 * Files as instruments write them. Every digit in them is a reading or a fact, so that a changed one must be noticed.
 */

const rows = Array.from({ length: 24 }, (_, n) => [
  `S-${n + 1}`,
  `${'ABCDEFGH'[n % 8]}${1 + (n % 12)}`,
  (0.21 + n * 0.137).toFixed(3),
  (12.5 + n * 3.1).toFixed(2),
]);
const header = ['Sample', 'Well', 'A260 (AU)', 'Weight (mg)'];
const lines = (sign, all) => all.map((row) => row.join(sign)).join('\n');

const csv = `${lines(',', [header, ...rows])}\n`;
const facts = `Instrument: NanoPlate\nOperator: R. Meier\nRun: 4711\nDate: 2026-03-14\nVolume: 2.5 µL\n\n${csv}`;
const decimalComma = `${lines(';', [header, ...rows.map((row) => row.map((cell, n) => (n > 1 ? cell.replace('.', ',') : cell)))])}\n`;
const tabs = `Instrument\tBalance\nSerial\t20815\nOperator\tR. Meier\n\n${lines('\t', [header, ...rows])}\n`;
const fixed = `${lines(
  '',
  [header, ...rows].map((row) => row.map((cell) => cell.padEnd(14))),
)}\n`;
const plate = `Plate 7\n\n${lines(',', [['', ...Array.from({ length: 12 }, (_, n) => n + 1)], ...[...'ABCDEFGH'].map((letter, n) => [letter, ...Array.from({ length: 12 }, (__, m) => (0.1 + n * 0.31 + m * 0.017).toFixed(3))])])}\n`;
const json = JSON.stringify({
  run: 4711,
  operator: 'R. Meier',
  readings: rows.map(([sample, well, absorbance, weight]) => ({
    sample,
    well,
    absorbance: Number(absorbance),
    weight: Number(weight),
  })),
});
const xml = `<run id="4711"><operator>R. Meier</operator>${rows.map(([sample, well, a, w]) => `<reading><sample>${sample}</sample><well>${well}</well><absorbance unit="AU">${a}</absorbance><weight unit="mg">${w}</weight></reading>`).join('')}</run>\n`;
const jcamp = `##TITLE=Caffeine\n##JCAMP-DX=4.24\n##DATA TYPE=INFRARED SPECTRUM\n##XUNITS=1/CM\n##YUNITS=ABSORBANCE\n##FIRSTX=400\n##LASTX=423\n##NPOINTS=24\n##FIRSTY=21\n##XFACTOR=1\n##YFACTOR=0.001\n##DELTAX=1\n##XYDATA=(X++(Y..Y))\n400 21 34 48 62 75 89\n406 103 117 130 144 158 171\n412 185 199 212 226 240 254\n418 267 281 295 308 322 336\n##END=\n`;

const book = utils.book_new();
utils.book_append_sheet(
  book,
  utils.aoa_to_sheet([header, ...rows.map(([a, b, c, d]) => [a, b, Number(c), Number(d)])]),
  'Results',
);
const workbook = write(book, { type: 'buffer', bookType: 'xlsx', compression: true });

const EXTENSIONS = { json: 'json', xml: 'xml', jcamp: 'jdx' };

/** Those whose digits can be changed one by one. */
export const TEXTS = Object.fromEntries(
  Object.entries({ csv, facts, decimalComma, tabs, fixed, plate, json, xml, jcamp }).map(([name, text]) => [
    name,
    { text, bytes: Buffer.from(text), extension: EXTENSIONS[name] ?? 'csv' },
  ]),
);

const OWN = {
  ...TEXTS,
  utf16: { bytes: Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(facts, 'utf16le')]), extension: 'txt' },
  workbook: { bytes: workbook, extension: 'xlsx' },
  bomb: { bytes: deflateRawSync(Buffer.alloc(5_000_000, ',')), extension: 'csv' },
};

const readFolder = (folder) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [path, { bytes: readFileSync(path), extension: extname(path).slice(1) }]),
  );

/** The folder with files to mutate instead of those above. */
export const FOLDER = process.env['LABFEED_SAMPLES'];

const MAX_START_BYTES = 10_000;
const MAX_END_BYTES = 5_000;

/** Without the middle of its lines: a long section of data takes long, and mutations of it are mostly alike. */
function shorten({ bytes, extension }) {
  const isTree = /^[^\w#]{0,4}[<{[]/.test(bytes.toString('latin1', 0, 10));
  if (bytes.length < MAX_START_BYTES + MAX_END_BYTES || isTree || binaryKind(bytes) !== undefined) return undefined;
  // One byte per character, so that any encoding keeps its bytes.
  const text = bytes.toString('latin1');
  const newline = text.includes('\n') ? '\n' : '\r';
  const start = text.slice(0, text.lastIndexOf(newline, MAX_START_BYTES));
  const end = text.slice(text.indexOf(newline, text.length - MAX_END_BYTES));
  return { bytes: Buffer.from(start + end, 'latin1'), extension };
}

/** By name: the bytes and the file's extension. Those of a folder are whole, and large ones also `… (shortened)`. */
export const SAMPLES = FOLDER === undefined ? OWN : readFolder(FOLDER);
const SHORTENED = Object.fromEntries(
  Object.entries(FOLDER === undefined ? {} : SAMPLES).flatMap(([name, file]) => {
    const short = shorten(file);
    return short ? [[name, short]] : [];
  }),
);
for (const [name, short] of Object.entries(SHORTENED)) SAMPLES[`${name} (shortened)`] = short;

/** One of these samples. In most cases a large one is shortened, so that it does not take most of the time. */
export function sampleAmong(names) {
  const [large, others] = [names.filter((name) => name in SHORTENED), names.filter((name) => !(name in SHORTENED))];
  const other = fc.constantFrom(...others);
  return large.length === 0 ? other : fc.oneof({ weight: 29, arbitrary: other }, fc.constantFrom(...large));
}
