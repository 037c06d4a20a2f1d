import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until as untilWithin } from '../support/until.js';

beforeAll(() => {
  vi.stubEnv('LABFEED_TEST_UNCHANGED_MS', '0');
});
afterAll(() => {
  vi.unstubAllEnvs();
});

/** Filed files are looked for every five seconds. */
const until = (what: string, holds: () => boolean | Promise<boolean>, withinMs = 90_000): Promise<void> =>
  untilWithin(what, holds, withinMs);

async function setUp(source: string, dialect: Dialect = 'v2', more = '') {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const instruments = configured(source, more);
  return { folder, sandbox, site: makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments }) };
}

const configured = (source: string, more = ''): string =>
  `  balance: { watch: data/balance, ready: { quiet: 100ms }, source: ${source}${more} }`;

/** As the journal says: a file is at its new place before that is recorded. */
const settled = (daemon: DaemonProcess, name: string) =>
  daemon.logged(({ msg, file }) => msg === 'filed files settled' && String(file).endsWith(name), 90_000);

const watched = ({ folder }: Site): string[] =>
  readdirSync(join(folder, 'data/balance'), { recursive: true }).sort() as string[];
const why = async (path: string, { config, folder }: Site): Promise<string> =>
  (await labfeed(['why', path, '--config', config], folder)).stdout;

test('source: move puts a filed file elsewhere, once, and it is found by its old path', async () => {
  const { site, sandbox, folder } = await setUp('{ move: filed }');
  mkdirSync(join(folder, 'data/balance/monday'));
  site.drop('monday/a.csv', weighing(1));
  const daemon = startDaemon(site.config);
  const target = join(folder, 'filed/monday/a.csv');
  await settled(daemon, 'a.csv');
  expect(watched(site)).toEqual(['monday']);
  expect(readFileSync(target, 'utf8')).toBe(weighing(1));
  expect(sandbox.experiments()).toHaveLength(1);
  expect(await why(join(folder, 'data/balance/monday/a.csv'), site)).toContain(`its file was moved to ${target}`);
  // The same name again, with other content, overwrites nothing.
  site.drop('monday/a.csv', weighing(2));
  await until(
    'the second file is moved',
    () => daemon.lines.filter(({ msg }) => msg === 'filed files settled').length === 2,
  );
  expect(existsSync(join(folder, 'filed/monday/a (2).csv'))).toBe(true);
  await daemon.stop();
  expect(readFileSync(target, 'utf8')).toBe(weighing(1));
  expect(sandbox.experiments()).toHaveLength(2);
  const again = startDaemon(site.config);
  await again.logged('ready');
  await again.stop();
  expect(sandbox.experiments()).toHaveLength(2);
  const audit = await labfeed(['audit', '--config', site.config], folder);
  expect(audit.status).toBe(0);
});

test('source: delete removes a file once the notebook has all of it, and no other', async () => {
  const { site, folder } = await setUp('delete', 'v2', ', parse: { delimiter: ";", table: { header: Time } }');
  // The first line of the second file is in no table and no fact.
  site.drop('a.csv', 'Time;Weight [g]\n1;2.5\n');
  site.drop('b.csv', 'remark without a place\nTime;Weight [g]\n1;3.5\n');
  const daemon = startDaemon(site.config);
  await settled(daemon, 'a.csv');
  await daemon.logged('the filed file stays for now');
  expect(watched(site)).toEqual(['b.csv']);
  expect(await why(join(folder, 'data/balance/a.csv'), site)).toContain('its file was deleted');
  expect(await why(join(folder, 'data/balance/b.csv'), site)).toMatch(/neither moved nor deleted yet: .*not read/);
  await until('there is an alarm', async () => {
    const { stdout } = await labfeed(['status', '--config', site.config], folder);
    return /1 filed file is neither moved nor deleted; for example b\.csv/.test(stdout);
  });
  await daemon.stop();
});

test('source: delete waits until the raw file is attached, which makes it safe', async () => {
  const { site, sandbox } = await setUp('delete', 'elabftw', ', parse: { delimiter: ";", table: { header: Time } }');
  site.drop('b.csv', 'remark without a place\nTime;Weight [g]\n1;3.5\n');
  const daemon = startDaemon(site.config);
  await until('the file is deleted', () => watched(site).length === 0);
  expect(sandbox.control.experiments().flatMap(({ uploads }) => uploads)).toMatchObject([{ real_name: 'b.csv' }]);
  await daemon.stop();
});

test('a move that fails leaves the file where it is, with an alarm, and is not repeated at once', async () => {
  const { site, folder } = await setUp('{ move: filed }');
  writeFileSync(join(folder, 'filed'), 'a file, not a folder');
  site.drop('a.csv', weighing(1));
  const daemon = startDaemon(site.config);
  const { reason } = await daemon.logged('the filed file stays for now');
  expect(reason).toMatch(/cannot move files to .*filed: it is a file, not a folder/);
  await until('there is an alarm', async () => {
    const { stdout } = await labfeed(['status', '--config', site.config], folder);
    return /1 filed file is neither moved nor deleted; for example a\.csv: cannot move/.test(stdout);
  });
  expect(watched(site)).toEqual(['a.csv']);
  const times = daemon.lines
    .filter(({ msg }) => msg === 'the filed file stays for now')
    .map(({ time }) => String(time));
  for (const [n, time] of times.slice(1).entries())
    expect(Date.parse(time) - Date.parse(times[n] ?? '')).toBeGreaterThan(9000);
  // Once the cause is gone, a restart is not needed.
  rmSync(join(folder, 'filed'));
  await settled(daemon, 'a.csv');
  await daemon.stop();
  const { stdout } = await labfeed(['show', '1', '--config', site.config], folder);
  expect(stdout).toContain(`a.csv was moved to ${join(folder, 'filed/a.csv')}`);
  expect(stdout).toMatch(/The file is neither moved nor deleted yet: cannot move.*File moved: /s);
});

test('a changed configuration decides about files that wait', async () => {
  const { site, folder, sandbox } = await setUp('{ move: missing/filed }');
  site.drop('a.csv', weighing(1));
  const daemon = startDaemon(site.config);
  await daemon.logged('the filed file stays for now');
  await daemon.stop();
  makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments: configured('keep') });
  const again = startDaemon(site.config);
  await again.logged('ready');
  await until(
    'it is known that the file stays',
    async () => {
      const { stdout } = await labfeed(['show', '1', '--config', site.config], folder);
      return stdout.includes('File stays where it is: the configuration');
    },
    60_000,
  );
  await again.stop();
  expect(watched(site)).toEqual(['a.csv']);
});

const PAIRS = `, run: { join: ["{stem}.csv", "{stem}.xml"] }, experiment: { plot: never }, parse: { delimiter: ",", table: {},
    also: { "{stem}.xml": { format: xml, facts: { Operator: //operator } } } }`;

const KILLING = new URL('../support/killed-in-steps.mjs', import.meta.url).pathname;

/** For each moment a run of two files, for which a daemon is killed then, and which the next one completes. */
async function killAtEach(
  source: string,
  check: (files: readonly string[], name: string) => void,
  step = 1,
): Promise<void> {
  const { site, sandbox } = await setUp(source, 'elabftw', PAIRS);
  const env = { NODE_OPTIONS: `--import ${pathToFileURL(KILLING).href}` };
  for (let moment = 0, runs = 1; ; moment += step, runs++) {
    const name = `run${moment}`;
    site.drop(`${name}.csv`, `time,weight\n1,${moment}.5\n`);
    site.drop(`${name}.xml`, '<run><operator>Ada</operator></run>');
    const killed = startDaemon(site.config, { ...env, LABFEED_KILL_AT: String(moment) });
    const end = await Promise.race([
      killed.ended.then(() => 'killed'),
      killed.logged('filed files settled', 300_000).then(
        () => 'completed',
        () => 'killed',
      ),
    ]);
    if (end === 'completed') await killed.stop();
    const daemon = startDaemon(site.config);
    await until(`the files of ${name} are settled`, () => watched(site).length === 0);
    await daemon.stop();
    check(watched(site), name);
    expect(sandbox.experiments(), name).toHaveLength(runs);
    if (end === 'completed') return expect(moment).toBeGreaterThanOrEqual(8);
  }
}

test('a move to another file system that is killed at any moment is completed after the restart', async () => {
  const isThere = existsSync('/dev/shm');
  if (!isThere) console.warn('there is no /dev/shm, so the files are moved on one file system');
  const target = mkdtempSync(isThere ? '/dev/shm/labfeed-' : '/tmp/labfeed-');
  onTestFinished(() => rmSync(target, { recursive: true }));
  const names: string[] = [];
  await killAtEach(
    `{ move: ${target} }`,
    (_, name) => {
      names.push(`${name}.csv`, `${name}.xml`);
      expect(readdirSync(target).toSorted()).toEqual(names.toSorted());
      expect(readFileSync(join(target, `${name}.csv`), 'utf8')).toBe(`time,weight\n1,${name.slice(3)}.5\n`);
      // After a change is the same as before the next one. disposal-crashes.test has every moment.
    },
    2,
  );
}, 1_200_000);

test('a deletion that is killed at any moment is completed after the restart', async () => {
  await killAtEach('delete', (files) => expect(files).toEqual([]));
}, 1_200_000);
