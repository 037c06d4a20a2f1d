import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { openJournal } from '../../src/journal/journal.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

interface Scene {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
  readonly daemon: DaemonProcess;
  /** What somebody did to the experiment of the held run. */
  readonly touched: number;
}

const TITLE = 'w1 (balance)';
const BY_HAND = 'renamed by hand';

/** Somebody renames the experiment of the second run before labfeed has filled it in: the run is held. */
async function withHeldRun(): Promise<Scene> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  site.drop('w0.csv', weighing(0));
  const daemon = startDaemon(site.config);
  await daemon.logged('run filed');
  const { control } = sandbox;
  let touched = 0;
  control.decide = ({ method, path }) => {
    if (method !== 'PATCH' || touched > 0) return 'pass';
    touched = Number(path.split('/').at(-1));
    control.as('owner').edit(touched, { title: BY_HAND });
    return 'cutBefore';
  };
  site.drop('w1.csv', weighing(1));
  expect(await daemon.logged('run parked')).toMatchObject({ as: 'held', run: 2 });
  return { site, sandbox, daemon, touched };
}

const titles = ({ sandbox }: Scene): string[] => sandbox.experiments().map(({ title }) => title);

const filedAs = (daemon: DaemonProcess, run: number) =>
  daemon.logged((line) => line.msg === 'run filed' && line['run'] === run);

/** How long the daemon took to notice the last request. */
async function noticedAfterMs({ site, daemon }: Scene): Promise<number> {
  const { time } = await daemon.logged('decision applied');
  const database = new DatabaseSync(site.journal, { readOnly: true, timeout: 10_000 });
  try {
    const row: unknown = database.prepare('SELECT max(at) AS at FROM inbox').get();
    return Date.parse(String(time)) - (row as { at: number }).at;
  } finally {
    database.close();
  }
}

const decisions = [
  {
    name: 'retried once its experiment has its provisional title back, is filled in',
    prepare: async ({ sandbox: { control }, touched }: Scene) => {
      const creation = control
        .requests()
        .filter(({ path }) => path.endsWith('/experiments'))
        .at(-1);
      control.as('owner').edit(touched, JSON.parse(creation?.body ?? '{}'));
    },
    command: () => ['retry', '--held'],
    says: /^run 2 \(w1\.csv\) continues where it stopped, and keeps experiment 2$/m,
    run: 2,
    leaves: ['w0 (balance)', TITLE],
  },
  {
    name: 'given its experiment by a person, is filled in whatever that holds',
    prepare: async () => undefined,
    command: ({ touched }: Scene) => ['adopt', '2', String(touched)],
    says: /^run 2 \(w1\.csv\) is now assigned experiment 2/m,
    run: 2,
    leaves: ['w0 (balance)', TITLE],
  },
  {
    name: 'refiled: it gets its own experiment, and the edited one is left alone',
    prepare: async () => undefined,
    command: () => ['refile', '2'],
    says: /^run 2 \(w1\.csv\) is refiled as run 3$/m,
    run: 3,
    leaves: ['w0 (balance)', BY_HAND, TITLE],
  },
];

for (const { name, prepare, command, says, run, leaves } of decisions) {
  test(`a held run, ${name}: the running daemon notices within about a second`, async () => {
    const scene = await withHeldRun();
    await prepare(scene);
    const { status, stdout } = await labfeed([...command(scene), '--config', scene.site.config]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(says) });
    await filedAs(scene.daemon, run);
    // A busy machine takes longer, but a command does not wait for more than 10 s.
    expect(await noticedAfterMs(scene)).toBeLessThan(10_000);
    await scene.daemon.stop();
    expect(titles(scene)).toEqual(leaves);
    expect(scene.sandbox.experiments().at(-1)?.comments).toHaveLength(1);
  });

  test(`a held run, ${name}: also without a daemon`, async () => {
    const scene = await withHeldRun();
    await scene.daemon.stop();
    await prepare(scene);
    const { status, stdout } = await labfeed([...command(scene), '--config', scene.site.config]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(says) });
    const again = startDaemon(scene.site.config);
    await filedAs(again, run);
    await again.stop();
    expect(titles(scene)).toEqual(leaves);
    expect(scene.sandbox.experiments().at(-1)?.comments).toHaveLength(1);
  });
}

test('an impossible request is reported on stderr with exit status 1, and the others are carried out', async () => {
  const { site, daemon } = await withHeldRun();
  const run = (...args: string[]) => labfeed([...args, '--config', site.config]);
  const mixed = await run('retry', '1', '2', '77');
  expect(mixed.status).toBe(1);
  expect(mixed.stdout).toMatch(/^run 2 .* continues/);
  expect(mixed.stderr).toMatch(/^run 1 \(w0\.csv\) is done \(experiment 1\); .*refile 1\nthere is no run 77\n$/);
  await daemon.logged(({ msg, run }) => msg === 'decision refused' && run === 77);
  const json = await run('refile', '77', '--json');
  expect(json.status).toBe(1);
  expect(JSON.parse(json.stdout)).toEqual([{ run: 77, outcome: 'refused', text: 'there is no run 77' }]);
  expect((await run('retry', '--quarantined')).stdout).toBe('no runs are quarantined\n');
  await daemon.stop();
});

test('a quarantined file is read again on request, even if neither file nor mapping changed', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  site.drop('prose.csv', '');
  await daemon.logged('run quarantined');
  const { status, stdout } = await labfeed(['retry', '--quarantined', '--config', site.config]);
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('will be re-read') });
  const twice = () => daemon.lines.filter(({ msg }) => msg === 'run quarantined').length === 2;
  await daemon.logged(twice);
  await daemon.stop();
});

test('a command without a journal says so and does not create one', async () => {
  const folder = tempFolder();
  const { config, journal } = makeSite(folder, { url: 'http://127.0.0.1:9', key: 'k' });
  for (const args of [
    ['retry', '1'],
    ['backup', join(folder, 'copy.db')],
  ]) {
    const { status, stderr } = await labfeed([...args, '--config', config]);
    expect(status).toBe(1);
    expect(stderr).toContain(`there is no journal at ${journal} yet`);
  }
  expect(existsSync(journal)).toBe(false);
});

test('a request that the daemon does not answer in time is saved and reported, and the command fails', async () => {
  const { site, daemon } = await withHeldRun();
  await daemon.stop();
  // Another process holds the journal and does not answer requests.
  const busy = await openJournal(site.journal, systemClock);
  const { status, stdout, stderr } = await labfeed(['refile', '2', '--config', site.config]);
  await busy.close();
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/^run 2: the daemon has not responded yet. The request is saved/),
  });
  const again = startDaemon(site.config);
  await filedAs(again, 3);
  await again.stop();
});
