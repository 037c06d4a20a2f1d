import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { loadConfig, type UsableConfig } from '../../src/config/load.js';
import { createDaemon } from '../../src/daemon/daemon.js';
import { openJournal } from '../../src/journal/journal.js';
import { openReader } from '../../src/journal/reader.js';
import { makeSite } from '../support/daemon-process.js';
import { newRun, someDraft } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';

const YEAR_MS = 366 * 86_400_000;

/** The daemon within this process, with whatever mistakes its configuration has elsewhere. */
async function start(file: string) {
  const { notebook, ...rest } = loadConfig(file);
  if (!notebook) expect.fail('the notebook is configured');
  const config: UsableConfig = { ...rest, notebook };
  const daemon = createDaemon({ config, clock: systemClock, log: silentLog(), conceal: () => undefined });
  await daemon.start();
  return daemon;
}

/** What of the history of a run is left that was finished two years ago. */
async function historyUnder(keep: string): Promise<string[]> {
  const site = makeSite(tempFolder(), { url: 'http://127.0.0.1:1', key: 'k', settings: `keep: ${keep}\n` });
  const longAgo = { ...systemClock, now: () => Date.now() - 2 * YEAR_MS };
  const journal = await openJournal(site.journal, longAgo);
  await journal.runs.add(newRun('old'), someDraft('old'));
  await journal.runs.record(1, { kind: 'finished' });
  await journal.close();
  // What was begun at the start ends before it stops.
  await (await start(site.config)).stop();
  const reader = openReader(site.journal);
  onTestFinished(() => reader.close());
  return ((await reader.job(1))?.history ?? []).map(({ event }) => event);
}

test('a mistake in keep costs nobody their history', async () => {
  expect(await historyUnder('1y')).toEqual([]);
  expect(await historyUnder('soon')).toEqual(['read', 'finished']);
});

test('a journal that lies in a watched folder is no run, nor is what belongs to it', async () => {
  const folder = tempFolder();
  const site = makeSite(folder, {
    url: 'http://127.0.0.1:1',
    key: 'k',
    instruments: '  all: { watch: ., files: "journal*", existing: ingest, ready: { quiet: 1h } }',
  });
  writeFileSync(join(folder, 'journal.txt'), 'no journal');
  const daemon = await start(site.config);
  onTestFinished(() => daemon.stop());
  const [all] = daemon.live().instruments;
  expect(all?.waiting.first.map(({ path }) => path)).toEqual([join(folder, 'journal.txt')]);
});

test('a file belongs to the first instrument that matches it, and to no other', async () => {
  const ready = 'existing: ingest, ready: { quiet: 1h }';
  const site = makeSite(tempFolder(), {
    url: 'http://127.0.0.1:1',
    key: 'k',
    instruments: `  tables: { watch: data, files: "**/*.csv", ${ready} }\n  rest: { watch: data, ${ready} }`,
  });
  site.drop('a.csv', 'x,y\n1,2\n');
  site.drop('b.txt', 'x');
  const daemon = await start(site.config);
  onTestFinished(() => daemon.stop());
  expect(
    daemon
      .live()
      .instruments.map(({ name, waiting }) => [name, ...waiting.first.map(({ path }) => basename(path))]),
  ).toEqual([
    ['tables', 'a.csv'],
    ['rest', 'b.txt'],
  ]);
});
