import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Live, readLive } from '../../src/live.js';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const LONG_MS = 60_000;

async function setUp(instruments?: string) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, {
    url: sandbox.url,
    key: sandbox.key,
    timeout: '20s',
    ...(instruments === undefined ? {} : { instruments }),
  });
  /** Resolves with the daemon's status file once the condition holds. */
  async function says(what: string, holds: (live: Live) => boolean): Promise<Live> {
    let found: Live | undefined;
    const look = (): boolean => {
      found = readLive(site.journal);
      return found !== undefined && holds(found);
    };
    await until(what, look, LONG_MS).catch((error: Error) => {
      throw new Error(`${error.message}\n${JSON.stringify(found, null, 1)}`);
    });
    return found as Live;
  }
  return { folder, site, sandbox, says };
}

test('the status file names files that are not ready, with the reason, and counts files that match no pattern', async () => {
  const { folder, site, says } = await setUp(
    [
      '  balance: { watch: data/balance, files: "*.csv", ready: { quiet: 10m }, poll: 200ms }',
      '  logger: { watch: data/logger, ready: { doneFile: "{name}.done" }, poll: 200ms }',
    ].join('\n'),
  );
  site.drop('a.csv', weighing(1));
  site.drop('notes.txt', 'x');
  site.drop('b.csv', weighing(2), 'logger');
  const daemon = startDaemon(site.config);
  const live = await says('both wait', ({ instruments }) =>
    instruments.every(({ line, waiting }) => line === 'watching' && waiting.files === 1),
  );
  expect(live).toMatchObject({ pid: daemon.child.pid, config: site.config, problems: [], alarms: [] });
  expect(live.instruments).toMatchObject([
    {
      name: 'balance',
      watch: join(folder, 'data/balance'),
      folder: { state: 'present' },
      files: 1,
      unmatched: { files: 1, example: join(folder, 'data/balance/notes.txt') },
      waiting: { first: [{ path: join(folder, 'data/balance/a.csv') }] },
    },
    {
      name: 'logger',
      unmatched: { files: 0 },
      waiting: { first: [{ reason: 'waiting for done-file b.csv.done' }] },
    },
  ]);
  const [balance] = live.instruments;
  expect(balance?.waiting.first[0]?.reason).toMatch(/^unchanged for \d+ s of 600 s$/);
  expect(balance?.scannedAt).toBeGreaterThan(live.startedAt);
  expect(balance?.lastFileAt).toBeUndefined();
  site.drop('b.csv.done', '', 'logger');
  const taken = await says('taken', ({ instruments }) => instruments[1]?.waiting.files === 0);
  expect(taken.instruments[1]?.lastFileAt).toBeGreaterThan(live.startedAt);
  await daemon.stop();
});

test('requests are counted by response, and an open circuit breaker says why', async () => {
  const { site, sandbox, says } = await setUp();
  const daemon = startDaemon(site.config);
  site.drop('a.csv', weighing(1));
  await daemon.logged('run filed', LONG_MS);
  const filed = await says('requests counted', ({ notebook }) =>
    notebook.requests.some(({ method, count }) => method === 'POST' && count === 2),
  );
  expect(filed.notebook).toMatchObject({ url: sandbox.url, gate: { kind: 'open' } });
  expect(filed.notebook.requests).toContainEqual({ method: 'POST', status: '201', count: 2 });
  expect(filed.notebook.requests).toContainEqual({ method: 'PATCH', status: '200', count: 1 });
  sandbox.control.decide = () => 'cutBefore';
  site.drop('b.csv', weighing(2));
  const down = await says('down', ({ notebook }) => notebook.gate.kind === 'down');
  expect(down.notebook.gate).toMatchObject({ failure: 'server', reason: expect.any(String) });
  expect(down.notebook.requests).toContainEqual(expect.objectContaining({ method: 'POST', status: 'none' }));
  await daemon.stop();
});

test('configuration errors have file, line and column, and the time of the last file survives a restart', async () => {
  const { site, folder, says } = await setUp(
    '  balance: { watch: data/balance, ready: { quiet: 100ms } }\n  typo: { watch: data/typo, pars: {} }',
  );
  const first = startDaemon(site.config);
  const live = await says('watching', ({ instruments }) => instruments[0]?.line === 'watching');
  expect(live.problems).toEqual([
    {
      at: expect.stringMatching(/labfeed\.yaml:10:\d+$/),
      message: 'unknown key "pars"',
      hint: 'did you mean parse?',
      instrument: 'typo',
    },
  ]);
  expect(live.instruments[1]).toMatchObject({
    name: 'typo',
    line: 'stopped',
    watch: join(folder, 'data/typo'),
    folder: { state: 'unknown' },
  });
  const good = readFileSync(site.config, 'utf8');
  writeFileSync(site.config, `${good}nonsense: 1\n`);
  first.child.kill('SIGHUP');
  const { refused } = await says('refused', (one) => one.refused !== undefined);
  expect(refused?.problems.map(({ at, message }) => `${at.split('/').at(-1)} ${message}`)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^labfeed\.yaml:11:1 unknown key "nonsense"$/)]),
  );
  site.drop('a.csv', weighing(1));
  await first.logged('run filed', LONG_MS);
  const before = await says('last file', ({ instruments }) => instruments[0]?.lastFileAt !== undefined);
  await first.kill();

  writeFileSync(site.config, good);
  const second = startDaemon(site.config);
  const after = await says('another process', ({ pid }) => pid === second.child.pid);
  const known = await says('recalled', ({ instruments }) => instruments[0]?.lastFileAt !== undefined);
  expect(after.refused).toBeUndefined();
  expect(known.instruments[0]?.lastFileAt).toBeLessThanOrEqual(before.instruments[0]?.lastFileAt ?? 0);
  await second.stop();
});

test('the status file has the permissions of the journal, is refreshed, and is removed on stop', async () => {
  const { site, says } = await setUp();
  const daemon = startDaemon(site.config);
  const { at } = await says('written', () => true);
  const path = `${site.journal}.live`;
  expect(statSync(path).mode & 0o777).toBe(statSync(site.journal).mode & 0o666);
  await says('written again although nothing happens', (live) => live.at > at + 8000);
  await daemon.stop();
  expect(existsSync(path)).toBe(false);
  expect(existsSync(`${path}.new`)).toBe(false);
});
