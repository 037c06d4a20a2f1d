import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { type Ended, labfeed } from '../support/labfeed.js';
import { type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

interface Scene {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
}

async function setUp(): Promise<Scene> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  return { sandbox, site: makeSite(folder, { url: sandbox.url, key: sandbox.key, timeout: '20s' }) };
}

const filed = (daemon: DaemonProcess): number => daemon.lines.filter(({ msg }) => msg === 'run filed').length;

/** Files these runs with a daemon, and leaves it running. */
async function fileAll({ site }: Scene, numbers: readonly number[]): Promise<DaemonProcess> {
  for (const n of numbers) site.drop(`w${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await until(`${numbers.length} runs filed`, () => filed(daemon) === numbers.length, 120_000);
  return daemon;
}

function loseJournal({ site }: Scene): void {
  for (const end of ['', '-wal', '-shm', '.lock']) rmSync(`${site.journal}${end}`, { force: true });
}

const recover = ({ site }: Scene, ...args: string[]): Promise<Ended> =>
  labfeed(['recover', '--json', ...args, '--config', site.config]);

function expectEachOnce({ sandbox }: Scene, numbers: readonly number[]): void {
  const experiments = sandbox.experiments();
  expect(experiments.map(({ title }) => title).sort()).toEqual(numbers.map((n) => `w${n} (balance)`).sort());
  for (const { comments } of experiments) expect(comments).toHaveLength(1);
}

/** Starts the daemon on the same folders and gives it time to send something. */
async function restart({ site }: Scene): Promise<DaemonProcess> {
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  return daemon;
}

test('a lost journal is rebuilt from the notebook, and the daemon then files only new files', async () => {
  const scene = await setUp();
  const daemon = await fileAll(scene, [0, 1, 2, 3, 4]);
  const refused = await recover(scene);
  expect(refused).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/in use by another daemon[\s\S]*stop/),
  });
  await daemon.stop();
  loseJournal(scene);
  const before = scene.sandbox.control.requests().length;
  const { status, stdout, stderr } = await recover(scene);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ from: 1, to: 5, recovered: 5, known: 0, withoutComments: [] });
  const writes = scene.sandbox.control
    .requests()
    .slice(before)
    .filter(({ method }) => method !== 'GET');
  expect(writes).toEqual([]);

  const asked = scene.sandbox.control.requests().length;
  const again = await restart(scene);
  scene.site.drop('w5.csv', weighing(5));
  await again.logged('run filed');
  await again.stop();
  const sent = scene.sandbox.control
    .requests()
    .slice(asked)
    .filter(({ method }) => method !== 'GET');
  expect(sent.map(({ method }) => method)).toEqual(['POST', 'PATCH', 'POST']);
  expectEachOnce(scene, [0, 1, 2, 3, 4, 5]);
});

test('with a journal from an older backup, sending halts; after recover nothing is filed twice', async () => {
  const scene = await setUp();
  const { site, sandbox } = scene;
  const backup = join(site.folder, 'backup.db');
  const daemon = await fileAll(scene, [0, 1]);
  expect(await labfeed(['backup', backup, '--config', site.config])).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/backup\.db: 2 runs, \S+ \w+\n$/),
  });
  for (const n of [2, 3]) site.drop(`w${n}.csv`, weighing(n));
  await until('4 runs filed', () => filed(daemon) === 4, 120_000);
  await daemon.stop();
  loseJournal(scene);
  copyFileSync(backup, site.journal);
  const writes = sandbox.control.writes().length;
  const halted = startDaemon(site.config);
  const { reason } = await halted.logged('delivery is halted until `labfeed recover` has run');
  expect(reason).toContain('labfeed recover');
  await halted.stop();
  expect(sandbox.control.writes()).toHaveLength(writes);

  const { status, stdout } = await recover(scene);
  expect(status).toBe(0);
  const { from, to, recovered, completed } = JSON.parse(stdout);
  // The halted daemon may have taken the two files, but not sent them: such runs are completed, the others recovered.
  expect({ from, to, found: recovered + completed }).toEqual({ from: 3, to: 4, found: 2 });
  const again = await restart(scene);
  site.drop('w4.csv', weighing(4));
  await again.logged('run filed');
  await again.stop();
  expect(sandbox.control.writes()).toHaveLength(writes + 3);
  expectEachOnce(scene, [0, 1, 2, 3, 4]);
});

test('a run that was interrupted between POST and PATCH gets its experiment back after the journal was lost', async () => {
  const scene = await setUp();
  const { sandbox, site } = scene;
  const daemon = await fileAll(scene, [0]);
  sandbox.control.decide = async ({ method }) => {
    if (method !== 'PATCH') return 'pass';
    await daemon.kill();
    return 'cutBefore';
  };
  site.drop('w1.csv', weighing(1));
  await daemon.ended;
  sandbox.control.decide = () => 'pass';
  loseJournal(scene);
  const { stdout } = await recover(scene);
  expect(JSON.parse(stdout)).toMatchObject({ recovered: 1, spares: 1 });
  const writes = sandbox.control.writes().length;
  const again = startDaemon(site.config);
  await again.logged('run filed');
  await again.stop();
  expect(
    sandbox.control
      .writes()
      .slice(writes)
      .map(({ method }) => method),
  ).toEqual(['PATCH', 'POST']);
  expectEachOnce(scene, [0, 1]);
});

test('the summary is text; configuration errors are printed, and recover refuses only those that hide instruments', async () => {
  const scene = await setUp();
  const { site, sandbox } = scene;
  const daemon = await fileAll(scene, [0]);
  await daemon.stop();
  loseJournal(scene);
  const words = await labfeed(['recover', '--ids', '1-3', '--config', site.config]);
  expect(words).toMatchObject({ status: 0, stderr: '' });
  expect(words.stdout).toMatch(
    /^read experiments 1 to 1: 1 run recovered, 0 completed, 0 already known\nthe end is not confirmed: .* above id \d+; .*\n$/,
  );
  loseJournal(scene);
  const wrong = '  balance: { watch: data/balance, pars: {} }\nlog: loud';
  makeSite(site.folder, { url: sandbox.url, key: sandbox.key, instruments: wrong });
  const withMistakes = await recover(scene);
  expect(withMistakes).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/: log: unknown value[\s\S]*: unknown key "pars"/),
  });
  expect(JSON.parse(withMistakes.stdout)).toMatchObject({ recovered: 1, unknownInstruments: [] });
  loseJournal(scene);
  for (const hiding of ['  - balance', 'instrumnets: { balance: { watch: data/balance } }', 'include: gone.yaml']) {
    makeSite(site.folder, { url: sandbox.url, key: sandbox.key, instruments: hiding });
    expect(await recover(scene)).toMatchObject({ status: 78 });
  }
  expect(existsSync(site.journal)).toBe(false);
});
