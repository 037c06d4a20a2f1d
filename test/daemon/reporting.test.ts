import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { requireUsable } from '../../src/commands/options.js';
import { loadConfig } from '../../src/config/load.js';
import { createJournalWatch, createReporting, type Reporting } from '../../src/daemon/reporting.js';
import { openJournal } from '../../src/journal/journal.js';
import { Spool, spoolOf } from '../../src/spool.js';
import { someLive } from '../support/live.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

interface Scene {
  readonly folder: string;
  readonly journalPath: string;
  readonly concealed: string[];
  readonly reporting: Reporting;
}

/** The reporting of a daemon without instruments, with these `alarms` settings. */
async function reportingOn(alarms: (folder: string) => string, page?: string): Promise<Scene> {
  const folder = tempFolder();
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(
    file,
    `notebook: { url: "https://eln.example.org", key: { env: LAB_KEY } }\nalarms: ${alarms(folder)}\n`,
  );
  const config = loadConfig(file);
  requireUsable(config);
  const journalPath = join(folder, 'journal.db');
  const journal = await openJournal(journalPath, systemClock);
  const concealed: string[] = [];
  const reporting = createReporting({
    journal,
    journalPath,
    spool: new Spool(spoolOf(journalPath)),
    runtime: () => ({
      config,
      problems: [],
      instruments: [],
      gate: () => ({ kind: 'open', perSecond: 10 }),
      strays: () => [],
      hasAnswered: () => true,
      wake: () => undefined,
      start: async () => undefined,
      stop: async () => undefined,
    }),
    live: (alarms) => someLive({ instruments: [], alarms }),
    page: () => page,
    clock: systemClock,
    log: silentLog(),
    conceal: (secret) => void concealed.push(secret),
  });
  onTestFinished(async () => {
    await reporting.stop();
    await journal.close();
  });
  await reporting.start();
  return { folder, journalPath, concealed, reporting };
}

const kinds = ({ reporting }: Scene): string[] => reporting.alarms().map(({ kind }) => kind);

const PAGE = 'the port of the page is taken';

/** Writes its environment to a file next to the configuration. */
function envKeeper(folder: string): string {
  const script = join(folder, 'keep-env');
  writeFileSync(script, '#!/bin/sh\nenv > "$1/part" && mv "$1/part" "$1/env"\n');
  chmodSync(script, 0o755);
  return `{ command: "${script} ${folder}" }`;
}

test('the alarm command gets the text of the alarm, and no key in its environment', async () => {
  vi.stubEnv('LAB_KEY', 'TOPSECRET');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { folder } = await reportingOn(envKeeper, PAGE);
  const kept = join(folder, 'env');
  await until('notified', () => existsSync(kept));
  const env = readFileSync(kept, 'utf8');
  expect(env).toMatch(new RegExp(`^LABFEED_ALARM_TEXT=.*${PAGE}$`, 'm'));
  expect(env).not.toContain('TOPSECRET');
});

test('the webhook URL, which may contain a secret, is redacted before its first use', async () => {
  const webhook = 'http://127.0.0.1:1/hooks/TOPSECRET';
  const scene = await reportingOn(() => `{ webhook: "${webhook}" }`, PAGE);
  await until('raised', () => kinds(scene).includes('configuration'));
  expect(scene.concealed).toEqual([webhook]);
});

test('a journal that is moved while the daemon runs raises an alarm, which is cleared when it is back', async () => {
  const scene = await reportingOn(() => '{}');
  const { journalPath } = scene;
  renameSync(journalPath, `${journalPath}.away`);
  await until('raised', () => kinds(scene).includes('journal'));
  renameSync(`${journalPath}.away`, journalPath);
  await until('over', () => kinds(scene).length === 0);
});

test('a journal that is moved or replaced while labfeed is running is reported', async () => {
  const path = join(tempFolder(), 'journal.db');
  writeFileSync(path, '');
  const trouble = createJournalWatch(path);
  expect(await trouble()).toBeUndefined();
  renameSync(path, `${path}.away`);
  expect(await trouble()).toBe(`the journal ${path} cannot be written (ENOENT)`);
  writeFileSync(path, '');
  expect(await trouble()).toBe(`the journal ${path} was replaced while labfeed was running: restart labfeed`);
  rmSync(path);
  renameSync(`${path}.away`, path);
  expect(await trouble()).toBeUndefined();
});
