import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import { readLive } from '../../src/live.js';
import { allFiled } from '../daemon/scene.js';
import { type DaemonProcess, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { until } from '../support/until.js';
import { type AlarmScene, alarmScene } from './alarm-scene.js';

/** A site with a status page, and two filed runs. */
async function setUp(): Promise<AlarmScene> {
  const scene = await alarmScene();
  const { config } = scene.site;
  writeFileSync(config, readFileSync(config, 'utf8').replace('status: false', 'status: 127.0.0.1:0'));
  return scene;
}

async function fileTwo({ site }: AlarmScene): Promise<void> {
  for (const n of [0, 1]) site.drop(`w${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await allFiled(daemon, 2);
  expect(await daemon.stop()).toBe(0);
}

/** Everything that can halt delivery, and what the reason says. Each leaves a site whose next daemon halts. */
const HALTS: readonly (readonly [string, RegExp, (scene: AlarmScene) => Promise<void>])[] = [
  [
    'a journal that was restored from a backup',
    /restored from a backup/,
    async (scene) => {
      const { site } = scene;
      await fileTwo(scene);
      const backup = join(site.folder, 'backup.db');
      expect(await labfeed(['backup', backup, '--config', site.config])).toMatchObject({ status: 0 });
      for (const suffix of ['-wal', '-shm']) rmSync(`${site.journal}${suffix}`, { force: true });
      renameSync(backup, site.journal);
    },
  ],
  [
    'a server that was restored to an older state',
    /restored to an older state/,
    async (scene) => {
      const data = join(scene.folder, 'notebook.db');
      await scene.sandbox.stop();
      copyFileSync(data, join(scene.folder, 'saved.db'));
      await scene.sandbox.start();
      await fileTwo(scene);
      await scene.sandbox.stop();
      copyFileSync(join(scene.folder, 'saved.db'), data);
      await scene.sandbox.start();
    },
  ],
  [
    'a server that does not report the ids of experiments',
    /does not report their ids/,
    async ({ sandbox }) => {
      sandbox.control.decide = ({ method, path }) =>
        method === 'POST' && path.endsWith('/experiments') ? { answer: 201, json: {} } : 'pass';
    },
  ],
  [
    'a recovery that was interrupted',
    /was interrupted/,
    async (scene) => {
      await fileTwo(scene);
      const database = new DatabaseSync(scene.site.journal);
      database.exec("UPDATE servers SET halted = 'labfeed recover was interrupted: run it again'");
      database.close();
    },
  ],
];

const pageOf = async (daemon: DaemonProcess): Promise<string> =>
  String((await daemon.logged('status page listening'))['url']);

test.each(HALTS)(
  'delivery halted by %s is in status, /readyz, metrics, page and alarms, and once in the log',
  async (_, says, prepare) => {
    const scene = await setUp();
    const { site, webhook } = scene;
    await prepare(scene);
    for (const n of [5, 6, 7, 8]) site.drop(`w${n}.csv`, weighing(n));
    const daemon = startDaemon(site.config);
    const url = await pageOf(daemon);
    await daemon.logged('delivery is halted until `labfeed recover` has run', 60_000);
    await until('notified', () => webhook.received().includes('raised held -'), 60_000);
    expect(webhook.messages.find(({ kind }) => kind === 'held')?.text).toMatch(says);

    // Written after the alarm was raised.
    await until('the status file says it', () => readLive(site.journal)?.notebook.gate.kind === 'halted');
    const { stdout: text } = await labfeed(['status', '--config', site.config]);
    expect(text).toMatch(/^notebook .*: halted, nothing is sent/m);
    expect(text).toMatch(/→ labfeed recover$/m);
    expect(text.match(new RegExp(says, 'g'))).toHaveLength(1);
    expect(text).not.toContain('accepts requests');
    const json = JSON.parse((await labfeed(['status', '--json', '--config', site.config])).stdout);
    expect(json).toMatchObject({
      live: { notebook: { gate: { kind: 'halted', reason: expect.stringMatching(says) } } },
      attention: [expect.objectContaining({ text: expect.stringMatching(says), command: 'labfeed recover' })],
    });

    const queuedSoFar = () => daemon.lines.filter(({ msg }) => msg === 'run queued').length;
    await until('all files are taken', () => queuedSoFar() >= 4);
    const { stdout: shown } = await labfeed(['jobs', '--state', 'queued', '--json', '--config', site.config]);
    const [queued] = JSON.parse(shown) as { id: number }[];
    const { stdout: run } = await labfeed(['show', String(queued?.id), '--config', site.config]);
    expect(run).toMatch(/^next step +labfeed recover; nothing is sent before that/m);

    const ready = await fetch(new URL('/readyz', url));
    expect(ready.status).toBe(503);
    expect(await ready.json()).toEqual({
      status: 'not ready',
      reasons: [{ part: 'notebook', text: expect.stringMatching(says) }],
    });
    const metrics = await (await fetch(new URL('/metrics', url))).text();
    expect(metrics).toContain('labfeed_gate_state{state="halted"} 1');
    expect(metrics).toContain('labfeed_alarm{kind="held",instrument=""} 1');
    const page = (await (await fetch(new URL('/api/state', url))).json()) as Record<string, unknown>;
    expect(page).toMatchObject({ live: { notebook: { gate: { kind: 'halted' } } } });

    expect(await daemon.stop()).toBe(0);
    expect(daemon.lines.filter(({ msg }) => /halted/.test(msg))).toHaveLength(1);
    expect(webhook.received().filter((one) => one === 'raised held -')).toHaveLength(1);
  },
);
