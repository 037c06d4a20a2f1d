import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig } from '../../dist/config/load.js';
import { tryFile } from '../../dist/mapping/mapping.js';
import { openSample } from '../../dist/mapping/sample.js';

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
  const path = join(folder, `sample.${extension}`);
  await writeFile(path, bytes);
  return tryFile(await instrumentOf(folder, mapping), await openSample(path), Date.now());
}
