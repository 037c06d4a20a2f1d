import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import { allFiled, dropAll, type Scene, setUp } from '../daemon/scene.js';
import { makeSite, startCrashing, startDaemon } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { AFTER, asAfter, asBefore, BEFORE, fileBefore, filed, readAs, retry, shown } from './remapping.js';

const DIALECTS = ['v2', 'elabftw'] as const;

function rowsOf({ site }: Scene): unknown[] {
  const database = new DatabaseSync(site.journal, { readOnly: true });
  try {
    return database.prepare('SELECT id, ifnull(parked, step) AS state, reason FROM runs ORDER BY id').all();
  } finally {
    database.close();
  }
}

test.each(DIALECTS)(
  'done runs are updated in place with the current mapping, and unchanged readings are not sent (%s)',
  async (dialect) => {
    const scene = await setUp(dialect);
    await fileBefore(scene, 2, dialect);
    expect(shown(scene)).toEqual([asBefore('w0'), asBefore('w1')]);
    const daemon = startDaemon(scene.site.config);
    await daemon.logged('ready');
    readAs(scene, AFTER);
    daemon.child.kill('SIGHUP');
    await daemon.logged('configuration reloaded');
    const { status, stdout } = await retry(scene, '--remap', '--instrument', 'balance');
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^run 1 .* will be re-read .*\nrun 2 .* will be re-read .*\n$/),
    });
    await allFiled(daemon, 2);
    expect(shown(scene)).toEqual([asAfter('w0'), asAfter('w1')]);
    const writes = scene.sandbox.control.writes().length;
    expect((await retry(scene, '1', '--remap')).status).toBe(0);
    await daemon.logged('file re-read: nothing changed, nothing sent');
    expect(await daemon.stop()).toBe(0);
    expect(scene.sandbox.control.writes()).toHaveLength(writes);
    expect(rowsOf(scene)).toMatchObject([{ state: 'done' }, { state: 'done' }]);
  },
);

test.each(DIALECTS)(
  'an experiment that people changed, locked or deleted is held and not overwritten (%s)',
  async (dialect) => {
    const scene = await setUp(dialect);
    await fileBefore(scene, 5, dialect);
    readAs(scene, AFTER);
    expect((await retry(scene, '--remap', '--instrument', 'balance')).status).toBe(0);
    const { control } = scene.sandbox;
    const [first, second, third, fourth] = control.experiments();
    const colleague = control.as('colleague');
    colleague.edit(first?.id ?? 0, { title: 'mine' });
    colleague.editComment(second?.id ?? 0, second?.comments[0]?.id ?? 0, 'mine');
    colleague.deleteComment(third?.id ?? 0, third?.comments[0]?.id ?? 0);
    if (dialect === 'elabftw') colleague.lock(fourth?.id ?? 0);
    else colleague.delete(fourth?.id ?? 0);
    const left = control.experiments().slice(0, dialect === 'elabftw' ? 4 : 3);
    const daemon = startDaemon(scene.site.config);
    await allFiled(daemon, 1);
    for (let run = 1; run <= 5; run++)
      await daemon.logged((line) => line['run'] === run && /^run (filed|parked)$/.test(line.msg));
    expect(await daemon.stop()).toBe(0);
    expect(control.experiments().slice(0, left.length)).toEqual(left);
    const reasons = (rowsOf(scene) as { state: string; reason: string | null }[]).map(
      ({ state, reason }) => `${state}: ${reason?.split('\n')[0] ?? ''}`,
    );
    const gone = dialect === 'elabftw' ? /^held: experiment \d+ is locked/ : /^held: .*not found/i;
    const expected = [
      /^done: $/,
      gone,
      /^held: .*changed comment/,
      /^held: .*changed the title/,
      /^held: .*deleted comment/,
    ];
    expect(reasons).toHaveLength(expected.length);
    expect(reasons).toEqual(expect.arrayContaining(expected.map((why) => expect.stringMatching(why))));
  },
);

test('what eLabFTW cleans up in a body is no edit: audit has no differences, and a remap updates the experiment', async () => {
  const scene = await setUp('elabftw');
  const readWith = (title: string): void => {
    const body = '<p>5 &micro;g, 5 < 6</p><table><tr><td>1<td>2<tr><td>3</table><style>axis</style>';
    const instruments = `  balance: { watch: data/balance, ready: { quiet: 150ms }, experiment: { title: "${title}", body: "${body}", plot: never } }`;
    makeSite(scene.site.folder, { url: scene.sandbox.url, key: scene.sandbox.key, instruments });
  };
  readWith('{{ file.stem }} before');
  dropAll(scene, 1);
  const daemon = startDaemon(scene.site.config);
  await allFiled(daemon, 1);
  const [stored] = scene.sandbox.control.experiments();
  expect(stored?.body).toContain(
    '<p>5 µg, 5 &lt; 6</p><table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>',
  );
  const audit = await labfeed(['audit', '--json', '--config', scene.site.config]);
  const { findings } = JSON.parse(audit.stdout) as { findings: { kind: string }[] };
  expect({ status: audit.status, kinds: findings.map(({ kind }) => kind) }).toEqual({ status: 0, kinds: ['altered'] });
  readWith('{{ file.stem }} after');
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  expect((await retry(scene, '1', '--remap')).status).toBe(0);
  await allFiled(daemon, 2);
  expect(scene.sandbox.control.experiments().map(({ title }) => title)).toEqual(['w0 after']);
  expect(await daemon.stop()).toBe(0);
});

test('a mapping that cannot read the file of a done run leaves it as filed, with the reason', async () => {
  const scene = await setUp();
  await fileBefore(scene, 1);
  readAs(scene, { ...AFTER, column: 'Colour' });
  const daemon = startDaemon(scene.site.config);
  await daemon.logged('ready');
  expect((await retry(scene, '1', '--remap')).status).toBe(0);
  expect(
    await daemon.logged('file re-read: it no longer matches its mapping, experiment left unchanged'),
  ).toMatchObject({
    run: 1,
    reason: expect.stringContaining('Colour'),
  });
  expect(await daemon.stop()).toBe(0);
  expect(shown(scene)).toEqual([asBefore('w0')]);
  expect(rowsOf(scene)).toEqual([{ id: 1, state: 'done', reason: expect.stringContaining('Colour') }]);
});

test('a run whose file is gone or has changed is not remapped: the reason is printed, and the exit status is 1', async () => {
  const scene = await setUp();
  await fileBefore(scene, 2);
  rmSync(join(scene.site.folder, 'data/balance/w0.csv'));
  writeFileSync(join(scene.site.folder, 'data/balance/w1.csv'), 'other bytes');
  const { status, stderr } = await retry(scene, '1', '2', '--remap');
  expect(status).toBe(1);
  // It is not certain which file became which run.
  expect(
    stderr
      .trim()
      .split('\n')
      .map((line) => line.replace(/^run \d /, ''))
      .sort(),
  ).toEqual([
    expect.stringMatching(/^\(w0\.csv\) .* no longer at .*w0\.csv/),
    expect.stringMatching(/^\(w1\.csv\) .*w1\.csv has changed/),
  ]);
  for (const wrong of [
    ['--remap'],
    ['--instrument', 'balance'],
    ['--remap', '--quarantined'],
    ['--remap', '--held'],
    ['--held', '--quarantined'],
    ['1', '--remap', '--instrument', 'balance'],
  ])
    expect((await retry(scene, ...wrong)).status).toBe(2);
  expect(await retry(scene, '--remap', '--instrument', 'balanse')).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/there is no instrument "balanse"[\s\S]*did you mean balance\?/),
  });
});

test.each(DIALECTS)(
  'a daemon that is killed during a remap continues it: one experiment, each comment once (%s)',
  async (dialect) => {
    const scene = await setUp(dialect);
    await fileBefore(scene, 1, dialect);
    readAs(scene, AFTER);
    await retry(scene, '1', '--remap');
    for (const kind of ['described', 'commentRevised', 'commented'] as const) {
      const dying = startCrashing(scene.site.config, 1, { when: 'before', kind });
      await dying.ended;
      expect(dying.child.signalCode).toBe('SIGKILL');
    }
    const daemon = startDaemon(scene.site.config);
    await filed(daemon, 1);
    expect(await daemon.stop()).toBe(0);
    expect(shown(scene)).toEqual([asAfter('w0')]);
    readAs(scene, BEFORE);
    await retry(scene, '1', '--remap');
    const dying = startCrashing(scene.site.config, 1, { when: 'before', kind: 'commentDropped' });
    await dying.ended;
    expect(dying.child.signalCode).toBe('SIGKILL');
    const again = startDaemon(scene.site.config);
    await filed(again, 1);
    expect(await again.stop()).toBe(0);
    expect(shown(scene)).toEqual([asBefore('w0')]);
  },
);
