import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, test } from 'vitest';
import { CLI, startDaemon, weighing } from '../support/daemon-process.js';
import { expectFiled, growingLogger, makeFleet } from '../support/fleet-site.js';
import { type Ended, labfeed, runNode } from '../support/labfeed.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { sha256 } from '../support/runs.js';
import { until } from '../support/until.js';

const KILLING = new URL('../support/killed-in-steps.mjs', import.meta.url).href;

/** Moments at which the command is killed: before and after queries, closer to each other at the beginning. */
const MOMENTS = [1, 8, 14, 21, 30];

/**
 * Kills the command at each moment and before the query that begins with `last`, and repeats it until it succeeds. Returns
 * its output, and how often it was killed.
 */
async function killedAndRepeated(
  args: readonly string[],
  folder: string,
  last?: string,
): Promise<Ended & { kills: number }> {
  let kills = 0;
  for (const moment of [...MOMENTS, ...(last === undefined ? [] : [last]), Number.NaN]) {
    const env = { ...process.env, LABFEED_KILL_AT_QUERY: String(moment) };
    const ended = await runNode(['--import', KILLING, CLI, ...args], { cwd: folder, timeout: 120_000, env });
    if (ended.signal !== 'SIGKILL') return { ...ended, kills };
    kills += 1;
  }
  throw new Error('the command did not end');
}

/** What happened to each run, with its fingerprint. */
function readHistory(journal: string) {
  const database = new DatabaseSync(journal, { readOnly: true });
  try {
    return database
      .prepare('SELECT run, sha256, event, history.at FROM history JOIN runs ON runs.id = run ORDER BY history.id')
      .all()
      .map((row) => ({ ...row }) as { run: number; sha256: string; event: string; at: number });
  } finally {
    database.close();
  }
}

/** The names of the machines that the database knows. */
async function readMembers(url: string): Promise<string[]> {
  const postgres = connectTo(url);
  try {
    const rows = await postgres.rows<{ name: string }>('SELECT name FROM labfeed.members');
    return rows.map(({ name }) => name);
  } finally {
    await postgres.close();
  }
}

describe.skipIf(noPostgres)('moving to a fleet and back', () => {
  test('nothing is filed twice or forgotten, wherever the command is killed', async () => {
    const fleet = await makeFleet();
    const pc = fleet.member('pc1');
    const { control } = fleet.notebook;
    const alone = startDaemon(pc.alone);
    for (let n = 0; n < 4; n++) pc.drop(`a${n}.csv`, weighing(n));
    await expectFiled(fleet, 4);
    const into = ['migrate', '--to', fleet.url, '--config', pc.config];
    expect((await labfeed(into, pc.folder)).stderr).toContain('is in use by another daemon');
    // One whose outcome is unknown.
    control.decide = ({ method }) => (method === 'POST' ? 'cutAfter' : 'pass');
    pc.drop('a4.csv', weighing(4));
    await until('it was sent', () => control.experiments().length === 5);
    await alone.kill();
    control.decide = () => 'pass';

    const early = pc.start();
    expect(await early.ended).not.toBe(0);
    expect(early.output()).toContain(`labfeed migrate --to ${fleet.url}`);
    expect((await labfeed(['migrate', '--to', fleet.url, '--config', pc.alone], pc.folder)).stderr).toContain(
      'the configuration is not that of the fleet yet',
    );
    const before = readHistory(pc.journal);
    const moved = await killedAndRepeated(into, pc.folder);
    expect(moved).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('5 runs of this machine are in the fleet'),
    });
    expect(moved.kills).toBeGreaterThan(3);
    const late = startDaemon(pc.alone);
    expect(await late.ended).not.toBe(0);
    expect(late.output()).toContain('belong to a fleet');

    const member = pc.start();
    for (let n = 0; n < 5; n++) pc.drop(`again${n}.csv`, weighing(n));
    pc.drop('new.csv', weighing(5));
    await expectFiled(fleet, 6);
    control.decide = ({ method }) => (method === 'POST' ? 'cutAfter' : 'pass');
    pc.drop('a6.csv', weighing(6));
    await until('it was sent', () => control.experiments().length === 7);
    await member.stop();
    control.decide = () => 'pass';

    const out = ['migrate', '--to', pc.journal, '--config', pc.config];
    // The fleet forgets the machine only once its journal has everything.
    const back = await killedAndRepeated(out, pc.folder, 'DELETE FROM labfeed.members');
    expect(back).toMatchObject({ status: 0, stdout: expect.stringContaining('are not in a fleet') });
    expect(back.kills).toBeGreaterThan(4);
    // Also if it was killed before the database could do so.
    expect(await readMembers(fleet.url)).not.toContain('pc1');
    const history = readHistory(pc.journal);
    expect(history).toEqual(expect.arrayContaining(before));
    expect(new Set(history.map(({ run }) => run)).size).toBe(7);
    // Nothing of the machine but its journal says what was filed.
    rmSync(join(pc.folder, 'state', 'fleet.db'), { force: true });
    const home = startDaemon(pc.alone);
    for (let n = 0; n < 7; n++) pc.drop(`once-more${n}.csv`, weighing(n));
    pc.drop('newer.csv', weighing(7));
    await expectFiled(fleet, 8);
    await home.stop();
  });

  test('raw files that wait for the notebook move with their bytes, there and back', async () => {
    const fleet = await makeFleet('elabftw');
    const pc = fleet.member('pc1');
    const { control } = fleet.notebook;
    // More than one piece in the database.
    const large = weighing(1) + '\n'.repeat(1_500_000);
    const isUpload = ({ method, path }: { method: string; path: string }) =>
      method === 'POST' && path.endsWith('/uploads');
    const attached = () => control.experiments().flatMap(({ uploads }) => uploads.map(({ hash }) => hash));
    /** Files the run, but not its raw file, which is then gone. */
    async function fileWithout(daemon: ReturnType<typeof startDaemon>, name: string, content: string) {
      control.decide = (request) => (isUpload(request) ? { answer: 429 } : 'pass');
      const path = join(pc.folder, 'data', 'balance', name);
      writeFileSync(path, content);
      // An upload whose outcome is unknown would be waited for.
      await daemon.logged(({ msg, file }) => msg === 'upload postponed' && file === name);
      await daemon.kill();
      rmSync(path);
      control.decide = () => 'pass';
    }
    await fileWithout(startDaemon(pc.alone), 'large.csv', large);
    const into = await labfeed(['migrate', '--to', fleet.url, '--config', pc.config], pc.folder);
    expect(into).toMatchObject({ status: 0 });
    expect(readdirSync(`${pc.journal}.spool`)).toEqual([]);
    const first = pc.start();
    await until('the fleet has attached it', () => attached().length === 1, 90_000);
    expect(attached()).toEqual([sha256(large)]);
    const second = weighing(2) + '\n'.repeat(1_200_000);
    await fileWithout(first, 'second.csv', second);
    const back = await labfeed(['migrate', '--to', pc.journal, '--config', pc.config], pc.folder);
    expect(back).toMatchObject({ status: 0 });
    const home = startDaemon(pc.alone);
    await until('the machine has attached it', () => attached().length === 2, 90_000);
    expect(attached().sort()).toEqual([sha256(large), sha256(second)].sort());
    await home.stop();
  });

  test('a growing file is continued after its last line, there and back', async () => {
    const fleet = await makeFleet();
    const instruments = growingLogger();
    const pc = fleet.member('pc1', { instruments });
    const file = join(pc.folder, 'data', 'logger', 'temp.csv');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, 'Time,T (°C)\n');
    const texts = () =>
      fleet.notebook.control.experiments().map(({ comments }) => comments.map(({ comment }) => comment).join('\n'));
    let lines = 0;
    /** Two lines while it runs, the second of which may only be in its journal when it is killed. */
    async function grow(daemon: ReturnType<typeof startDaemon>): Promise<void> {
      for (let n = 0; n < 2; n++) {
        lines += 1;
        const value = `${lines}00.25`;
        appendFileSync(file, `2026-03-04 00:${10 + lines}:00,${value}\n`);
        if (n === 0) await until(`${value} is filed`, () => texts().join().includes(value), 90_000);
        else await daemon.logged('lines taken');
      }
      await daemon.kill();
    }
    await grow(startDaemon(pc.alone));
    expect(await labfeed(['migrate', '--to', fleet.url, '--config', pc.config], pc.folder)).toMatchObject({
      status: 0,
    });
    await grow(pc.start());
    expect(await labfeed(['migrate', '--to', pc.journal, '--config', pc.config], pc.folder)).toMatchObject({
      status: 0,
    });
    await grow(startDaemon(pc.alone));
    const last = startDaemon(pc.alone);
    await until('the last line is filed', () => texts().join().includes(`${lines}00.25`), 90_000);
    expect(texts()).toHaveLength(1);
    const values = texts()
      .join()
      .split(/[^\d.]/);
    for (let n = 1; n <= lines; n++) expect(values.filter((value) => value === `${n}00.25`)).toHaveLength(1);
    await last.stop();
  });
});
