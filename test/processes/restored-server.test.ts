import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allFiled } from '../daemon/scene.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { DIALECTS, type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

interface Scene {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
  drop(...numbers: number[]): void;
  /** Keeps a copy of the notebook's data. */
  save(): Promise<void>;
  /** Replaces the data with the copy, as an administrator would. */
  restore(): Promise<void>;
}

const HALTED = 'delivery is halted until `labfeed recover` has run';

async function setUp(dialect: 'v2' | 'elabftw' = 'v2'): Promise<Scene> {
  const folder = tempFolder();
  const data = join(folder, 'notebook.db');
  const sandbox = await runSandbox(data, 0, dialect);
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  async function whileDown(act: () => void): Promise<void> {
    await sandbox.stop();
    act();
    await sandbox.start();
  }
  return {
    site,
    sandbox,
    drop: (...numbers) => {
      for (const n of numbers) site.drop(`w${n}.csv`, weighing(n));
    },
    save: () => whileDown(() => copyFileSync(data, join(folder, 'saved.db'))),
    restore: () => whileDown(() => copyFileSync(join(folder, 'saved.db'), data)),
  };
}

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);

function expectEachOnce({ sandbox }: Scene, filed: readonly number[]): void {
  const experiments = sandbox.experiments();
  expect(experiments.map(({ title }) => title).sort()).toEqual(filed.map((n) => `w${n} (balance)`).sort());
  for (const { comments } of experiments) expect(comments).toHaveLength(1);
}

async function fileAndStop(scene: Scene, ...files: number[]): Promise<void> {
  scene.drop(...files);
  const daemon = startDaemon(scene.site.config);
  await allFiled(daemon, files.length);
  expect(await daemon.stop()).toBe(0);
}

/** Starts a daemon and waits for its first scan. */
async function start({ site }: Scene): Promise<DaemonProcess> {
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  return daemon;
}

const recover = ({ site }: Scene, ...args: string[]) => labfeed(['recover', ...args, '--config', site.config]);

test('a restored server is sent one creation and nothing else until recover; refile then files what is missing', async () => {
  const scene = await setUp();
  await fileAndStop(scene, 0, 1);
  await scene.save();
  scene.drop(2, 3);
  const daemon = await start(scene);
  await allFiled(daemon, 2);
  await scene.restore();
  const writes = scene.sandbox.control.writes().length;
  scene.drop(4);
  const { reason } = await daemon.logged(HALTED);
  expect(reason).toMatch(/restored to an older state.*the id 3 a second time.*labfeed recover/);
  scene.drop(5);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(await daemon.stop()).toBe(0);
  const sent = scene.sandbox.control.writes().slice(writes);
  expect(sent.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /api/v2/experiments']);

  const words = await recover(scene);
  expect(words).toMatchObject({ status: 0, stderr: '' });
  expect(words.stdout).toMatch(/^2 runs held, because the experiment no longer exists; .*refile.*: 3, 4$/m);
  const again = await start(scene);
  scene.drop(6);
  await allFiled(again, 3);
  expectEachOnce(scene, [0, 1, 4, 5, 6]);
  expect(again.lines.filter(({ msg }) => msg === HALTED)).toEqual([]);

  expect(await labfeed(['refile', '3', '4', '--config', scene.site.config])).toMatchObject({ status: 0 });
  await allFiled(again, 5);
  expect(await again.stop()).toBe(0);
  expectEachOnce(scene, numbers(0, 6));
});

test('a server that lost the last eight experiments is sent nothing until recover', async () => {
  const scene = await setUp();
  await fileAndStop(scene, 0, 1);
  await scene.save();
  await fileAndStop(scene, ...numbers(2, 10));
  await scene.restore();
  const writes = scene.sandbox.control.writes().length;
  scene.drop(11);
  for (const attempt of [1, 2]) {
    const halted = await start(scene);
    expect((await halted.logged(HALTED))['reason'], `start ${attempt}`).toMatch(
      /4 to 11, no longer exist.*labfeed recover/,
    );
    expect(await halted.stop()).toBe(0);
  }
  expect(scene.sandbox.control.writes()).toHaveLength(writes);
  expectEachOnce(scene, [0, 1]);

  const { status, stdout } = await recover(scene, '--json');
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ gone: numbers(3, 11), reopened: [] });
  expect(scene.sandbox.control.writes()).toHaveLength(writes);
  const again = await start(scene);
  await allFiled(again, 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await again.stop()).toBe(0);
  expectEachOnce(scene, [0, 1, 11]);
});

/** What a colleague created, as it is now. */
const theirs = ({ sandbox }: Scene) => sandbox.experiments().filter(({ title }) => title.startsWith('theirs'));

function createTheirs({ sandbox }: Scene, count: number) {
  const colleague = sandbox.control.as('colleague');
  for (let n = 0; n < count; n++) colleague.create({ title: `theirs ${n}`, body: 'their work' });
}

test.each(DIALECTS)(
  'a server restored while people go on working is noticed at the start, and nothing of theirs is touched (%s)',
  async (dialect) => {
    const scene = await setUp(dialect);
    const { site, sandbox } = scene;
    await fileAndStop(scene, 0, 1);
    await scene.save();
    await fileAndStop(scene, ...numbers(2, 8));
    await scene.restore();
    // They got ids of the seven experiments that vanished, and higher ones.
    createTheirs(scene, 9);
    const before = theirs(scene);
    const writes = sandbox.control.writes().length;
    // Without any new file.
    const idle = await start(scene);
    const halted = /restored to an older state[\s\S]*labfeed recover/;
    await until('the halt is shown', async () =>
      halted.test((await labfeed(['status', '--config', site.config])).stdout),
    );
    scene.drop(9);
    expect((await idle.logged(HALTED))['reason']).toMatch(halted);
    expect(await idle.stop()).toBe(0);
    expect(sandbox.control.writes()).toHaveLength(writes);

    const { status, stdout } = await recover(scene, '--json');
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ gone: numbers(3, 9), reopened: [], others: 9 });
    const again = await start(scene);
    await allFiled(again, 1);
    const vanished = numbers(3, 9).map(String);
    expect(await labfeed(['refile', ...vanished, '--config', site.config])).toMatchObject({ status: 0 });
    await allFiled(again, 8);
    expect(await again.stop()).toBe(0);
    expect(theirs(scene)).toEqual(before);
    const ours = sandbox.experiments().filter(({ title }) => title.startsWith('w'));
    expect(ours.map(({ title }) => title).sort()).toEqual(numbers(0, 9).map((n) => `w${n} (balance)`));
    for (const { comments } of ours) expect(comments).toHaveLength(1);
  },
);

test('a run that waits during an outage does not comment on the experiment that has its id afterwards', async () => {
  const scene = await setUp();
  const { sandbox } = scene;
  await fileAndStop(scene, 0, 1);
  await scene.save();
  const daemon = await start(scene);
  sandbox.control.decide = ({ method, path }) =>
    method === 'POST' && path.endsWith('/comments') ? { answer: 502, html: 'bad gateway' } : 'pass';
  scene.drop(2);
  await until('the comment is refused', () =>
    sandbox.control.writes().some(({ path }) => path.endsWith('/3/comments')),
  );
  sandbox.control.decide = () => ({ answer: 502, html: 'bad gateway' });
  await scene.restore();
  createTheirs(scene, 3);
  const before = theirs(scene);
  expect(before.map(({ id }) => id)).toEqual([3, 4, 5]);
  sandbox.control.decide = () => 'pass';
  expect((await daemon.logged(HALTED, 120_000))['reason']).toMatch(/restored to an older state/);
  expect(await daemon.stop()).toBe(0);
  expect(theirs(scene)).toEqual(before);
});
