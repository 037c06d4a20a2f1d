import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig } from '../../dist/config/load.js';
import { tryFile } from '../../dist/mapping/mapping.js';

const PARSE = {
  none: '',
  table: ', parse: { table: {} }',
  comma: ', parse: { delimiter: ",", decimal: ".", meta: { separator: ":" }, table: { header: "/Sample/" } }',
  semicolon: ', parse: { delimiter: ";", decimal: ",", table: {} }',
  text: ', parse: { format: text, meta: { separator: ":" } }',
};

/** The mappings with which a file can be read; `none` measures the file. */
export const MAPPINGS = Object.keys(PARSE);

const instruments = new Map();

async function instrumentOf(folder, mapping) {
  const known = instruments.get(mapping);
  if (known) return known;
  const config = join(folder, `${mapping}.yaml`);
  await writeFile(
    config,
    `notebook: { url: "http://127.0.0.1:1", key: { env: NONE } }\ninstruments:\n  any: { watch: data${PARSE[mapping]} }\n`,
  );
  const [instrument] = loadConfig(config).instruments;
  instruments.set(mapping, instrument);
  return instrument;
}

/** What the daemon would file. Rejects if it would quarantine the run. */
export async function readBytes(folder, { bytes, extension, mapping }) {
  // As the daemon has identified it, without the detour over the disk.
  const path = join(folder, `sample.${extension}`);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const stamp = { size: bytes.length, mtimeNs: BigInt(Date.now()) * 1_000_000n, inode: 0n };
  const file = { path, location: path, ...stamp, sha256, content: bytes };
  return tryFile(await instrumentOf(folder, mapping), file, Date.now());
}

/** What a file says, without what depends on its bytes or its time. */
export const contentOf = ({ record: { meta, tables } }) =>
  JSON.stringify([[...meta], tables.map(({ name, columns, rows }) => [name, columns, rows])]);

/** The line of the first difference, in lines of text whatever their ends. */
export function lineOfChange(before, after) {
  let index = 0;
  while (before[index] === after[index]) index++;
  return before.slice(0, index).split(/\r\n|\r\0\n|\n|\r/).length;
}

/** Whether the line is reported as not read. */
export const isReported = ({ record: { unread } }, line) =>
  unread.some(({ from, to }) => from === undefined || (from <= line && line <= to));
