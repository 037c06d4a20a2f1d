import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLI, start } from './processes.mjs';

/** Nothing listens there, so whatever is to be sent waits. */
export const NOWHERE = { url: 'http://127.0.0.1:1', key: 'none' };

/**
 * A configuration for one daemon, with a journal of its own.
 * @returns {{ config: string, journal: string }}
 */
export function makeSite(
  folder,
  { watch, notebook = NOWHERE, existing = 'skip', poll = 'auto', journal, others = '', files = '*.csv' },
) {
  mkdirSync(join(folder, 'journal'), { recursive: true });
  if (journal) cpSync(journal, join(folder, 'journal'), { recursive: true });
  writeFileSync(join(folder, 'api-key'), notebook.key, { mode: 0o600 });
  writeFileSync(
    join(folder, 'labfeed.yaml'),
    `notebook: { url: "${notebook.url}", key: { file: api-key }, rate: 100000/s, concurrency: 4 }
journal: journal/journal.db
status: false
instruments:
  balance: { watch: "${watch}", files: "${files}", existing: ${existing}, poll: ${poll}, ready: { quiet: 50ms } }
${others}`,
  );
  return { config: join(folder, 'labfeed.yaml'), journal: join(folder, 'journal') };
}

export const startDaemon = ({ config }) => start(CLI, 'run', '--config', config);

/** The built-in notebook, empty. */
export async function startSandbox(folder) {
  mkdirSync(folder, { recursive: true });
  const process = start(CLI, 'sandbox', '--port', '0', '--json', '--data', join(folder, 'notebook.db'));
  await process.wrote('"url"');
  const { url, key } = JSON.parse(process.lines[0]);
  return { url, key, stop: process.stop };
}

/** Writes so many files, each with other bytes, and returns their folder. */
export function fillFolder(folder, count, contentOf) {
  mkdirSync(folder, { recursive: true });
  for (let n = 0; n < count; n++) writeFileSync(join(folder, `run-${String(n).padStart(6, '0')}.csv`), contentOf(n));
  return folder;
}

/** A file of a balance or a reader, of so many rows, different for every n. */
export function csv(rows, n = 0) {
  const run = String(n).padStart(6, '0');
  const lines = Array.from({ length: rows }, (_, row) => {
    const well = `${'ABCDEFGH'[row % 8]}${(row % 12) + 1}`;
    return `S${run}-${row},${well},${(row * 0.017 + 0.21).toFixed(3)},${(row * 0.31 + 12.5).toFixed(2)},ok`;
  });
  return ['Sample,Well,A260 (AU),Weight (mg),Flag', ...lines, ''].join('\n');
}
