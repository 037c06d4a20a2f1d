import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { openJournal } from '../../src/journal/journal.js';
import type { Dialect } from '../../src/model.js';
import {
  type DaemonProcess,
  makeSite,
  type Site,
  startCrashing,
  startDaemon,
  weighing,
} from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { type Control, createTestSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

interface Scene {
  readonly site: Site;
  readonly control: Control;
  readonly daemon: DaemonProcess;
  stopNotebook(): Promise<void>;
}

const DIALECTS: readonly Dialect[] = ['v2', 'elabftw'];

/** So that only what is in body and comments proves anything. */
const NOT_ATTACHED = '  balance: { watch: data/balance, ready: { quiet: 150ms }, attach: never }';

/** A running daemon that has filed this many runs, each with one comment. */
async function withFiled(dialect: Dialect, runs: number, instruments = NOT_ATTACHED): Promise<Scene> {
  const folder = tempFolder();
  const sandbox = createTestSandbox({ file: join(folder, 'notebook.db'), port: 0, dialect });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  const site = makeSite(folder, { url, key, timeout: '20s', instruments });
  for (let n = 1; n <= runs; n++) site.drop(`w${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await until('all filed', () => filings(daemon) === runs, 120_000);
  return { site, control: sandbox.control, daemon, stopNotebook: () => sandbox.stop() };
}

const filings = ({ lines }: DaemonProcess): number => lines.filter(({ msg }) => msg === 'run filed').length;

interface AuditJson {
  readonly runs: { readonly filed: number; readonly proved: number };
  readonly repaired?: readonly { readonly outcome: string; readonly text: string }[];
  readonly findings: readonly { readonly kind: string; readonly path?: string }[];
  readonly safe: readonly { readonly path: string }[];
}

const nameOf = (path: string): string => path.split('/').at(-1) ?? '';

/** The files of each kind of finding, and those that are safe to delete. */
async function audit({ site }: Scene, ...args: string[]) {
  const { status, stdout, stderr } = await labfeed(['audit', '--json', ...args, '--config', site.config]);
  const { findings, safe, ...rest } = JSON.parse(stdout) as AuditJson;
  const kinds: Record<string, string[]> = {};
  for (const { kind, path = '' } of findings) kinds[kind] = [...(kinds[kind] ?? []), nameOf(path)].sort();
  return { ...rest, status, stderr, kinds, safe: safe.map(({ path }) => nameOf(path)).sort() };
}

/** The experiment of a file in the notebook. */
const experimentOf = ({ control }: Scene, stem: string) => {
  const found = control.experiments().find(({ body }) => body.includes(`${stem}.csv`));
  if (!found) throw new Error(`no experiment of ${stem}`);
  return found;
};

const commentOf = (scene: Scene, stem: string) => {
  const [comment] = experimentOf(scene, stem).comments;
  if (!comment) throw new Error(`no comment of ${stem}`);
  return comment;
};

for (const dialect of DIALECTS) {
  test(`${dialect}: deletions and changes are reported, and only files of verified runs are safe`, async () => {
    const scene = await withFiled(dialect, 7);
    const files = [1, 2, 3, 4, 5, 6, 7].map((n) => `w${n}.csv`);
    const before = scene.control.requests().filter(({ method }) => method !== 'GET').length;
    expect(await audit(scene)).toMatchObject({
      status: 0,
      stderr: '',
      kinds: {},
      safe: files,
      runs: { filed: 7, proved: 7 },
    });
    const hand = scene.control.as('colleague');
    hand.delete(experimentOf(scene, 'w1').id);
    hand.deleteComment(experimentOf(scene, 'w2').id, commentOf(scene, 'w2').id);
    hand.edit(experimentOf(scene, 'w3').id, { title: 'λ DNA' });
    hand.editComment(experimentOf(scene, 'w4').id, commentOf(scene, 'w4').id, 'never mind');
    hand.edit(experimentOf(scene, 'w5').id, { body: '<p>rewritten</p>' });
    const { id: read, body } = experimentOf(scene, 'w6');
    // The same characters in the same order, but the number is now in the cell of the name.
    const moved = body.replace(/S6(<\/td>\s*<td[^>]*>)6\.125/, 'S66.125$1');
    expect(moved).not.toBe(body);
    hand.edit(read, { body: moved });
    expect(await audit(scene)).toMatchObject({
      status: 1,
      kinds: {
        [dialect === 'v2' ? 'vanished' : 'deleted']: ['w1.csv'],
        'comment missing': ['w2.csv'],
        edited: ['w3.csv', 'w4.csv', 'w6.csv'],
        'not ours': ['w5.csv'],
      },
      safe: ['w3.csv', 'w7.csv'],
      runs: { filed: 7, proved: 2 },
    });
    expect(scene.control.requests().filter(({ method }) => method !== 'GET')).toHaveLength(before);
    await scene.daemon.stop();
  });

  test(`${dialect}: repair posts exactly the missing comment, once, and then finds nothing to repair`, async () => {
    const scene = await withFiled(dialect, 2);
    const hand = scene.control.as('colleague');
    const { id, comment: text } = commentOf(scene, 'w1');
    hand.deleteComment(experimentOf(scene, 'w1').id, id);
    hand.edit(experimentOf(scene, 'w1').id, { title: 'renamed by hand' });
    scene.control.forgetRequests();
    // Two people at once: the later one may find it already done.
    const asked = await Promise.all([audit(scene, '--repair'), audit(scene, '--repair')]);
    const outcomes = asked.flatMap(({ repaired = [] }) => repaired);
    expect(outcomes.length).toBeGreaterThan(0);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ outcome: 'done', text: expect.stringContaining('w1.csv') });
    await until('filed again', () => filings(scene.daemon) === 3);
    const writes = scene.control.requests().filter(({ method }) => method !== 'GET');
    expect(writes.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `POST /api/v2/experiments/${experimentOf(scene, 'w1').id}/comments`,
    ]);
    expect(experimentOf(scene, 'w1').comments.map(({ comment }) => comment)).toEqual([text]);
    expect(experimentOf(scene, 'w1').title).toBe('renamed by hand');
    expect(await audit(scene, '--repair')).toMatchObject({
      status: 0,
      repaired: [],
      safe: ['w1.csv', 'w2.csv'],
    });
    await scene.daemon.stop();
  });

  test(`${dialect}: a daemon that is killed during a repair posts the comment once`, async () => {
    const scene = await withFiled(dialect, 1);
    await scene.daemon.stop();
    const { id, comment: text } = commentOf(scene, 'w1');
    scene.control.as('colleague').deleteComment(experimentOf(scene, 'w1').id, id);
    const words = await labfeed(['audit', '--repair', '--config', scene.site.config]);
    expect(words.stdout).toMatch(/comment 1 on experiment 1 will be posted again\n/);
    expect(words.stderr).toContain('the daemon is not running');
    expect(commentsOf(scene)).toEqual([]);
    // The comment is posted and answered, but not recorded in the journal yet.
    const dying = startCrashing(scene.site.config, 1, { when: 'before', kind: 'commented' });
    await dying.ended;
    expect(dying.child.signalCode).toBe('SIGKILL');
    const daemon = startDaemon(scene.site.config);
    await daemon.logged('run filed');
    expect(commentsOf(scene)).toEqual([text]);
    expect(await audit(scene)).toMatchObject({ status: 0, safe: ['w1.csv'] });
    await daemon.stop();
  });
}

const commentsOf = (scene: Scene): string[] => experimentOf(scene, 'w1').comments.map(({ comment }) => comment);

test('files that were never taken, have changed or are quarantined are reported as such, and none is safe', async () => {
  const scene = await withFiled('v2', 3);
  const { site } = scene;
  site.drop('prose.csv', '');
  await scene.daemon.logged('run quarantined');
  await scene.daemon.stop();
  const folder = join(site.folder, 'data', 'balance');
  // One byte differs; the size is the same.
  writeFileSync(join(folder, 'w1.csv'), weighing(1).replace('1.125', '1.126'));
  appendFileSync(join(folder, 'w2.csv'), 'S9,9.5\n');
  site.drop('new.csv', weighing(9));
  site.drop('copy of w3.csv', weighing(3));
  site.drop('two\nlines.csv', weighing(3));
  const result = await audit(scene);
  expect(result).toMatchObject({
    status: 1,
    kinds: { changed: ['w1.csv', 'w2.csv'], 'never taken': ['new.csv'], quarantined: ['prose.csv'] },
    safe: ['copy of w3.csv', 'two\nlines.csv', 'w3.csv'],
  });
  const zero = await labfeed(['audit', '--safe', '-0', '--config', site.config]);
  expect(zero.stdout.split('\0').map(nameOf).sort()).toEqual(['', ...result.safe]);
  expect(zero.status).toBe(1);
  // Without -0, a name with a line break would look like two paths.
  const lines = await labfeed(['audit', '--safe', '--config', site.config]);
  expect(lines.stdout.split('\n').sort()).toEqual(['', join(folder, 'copy of w3.csv'), join(folder, 'w3.csv')]);
  expect(lines.stderr).toContain('use -0');
});

test('the files of a run are safe only together: if one is changed, added or missing, none is safe', async () => {
  const several =
    '  balance: { watch: data/balance, run: folder, parse: { main: "w.csv", table: {}, also: { raw.txt: { meta: { separator: ":" } } } }, ready: { quiet: 150ms } }';
  const scene = await withFiled('v2', 0, several);
  const folder = join(scene.site.folder, 'data', 'balance');
  for (const n of [1, 2, 3]) {
    // Complete when it appears.
    const made = join(scene.site.folder, `s${n}.D`);
    mkdirSync(made);
    writeFileSync(join(made, 'w.csv'), weighing(n));
    writeFileSync(join(made, 'raw.txt'), `raw: ${n}`);
    renameSync(made, join(folder, `s${n}.D`));
  }
  await until('all filed', () => filings(scene.daemon) === 3, 120_000);
  await scene.daemon.stop();
  expect(await audit(scene)).toMatchObject({ status: 0, kinds: {}, runs: { filed: 3, proved: 3 } });
  writeFileSync(join(folder, 's1.D', 'raw.txt'), 'raw: x');
  writeFileSync(join(folder, 's2.D', 'late.txt'), 'more');
  const { stdout } = await labfeed(['audit', '--safe', '--config', scene.site.config]);
  expect(stdout.split('\n').sort()).toEqual(['', join(folder, 's3.D', 'raw.txt'), join(folder, 's3.D', 'w.csv')]);
  rmSync(join(folder, 's3.D', 'w.csv'));
  expect(await audit(scene)).toMatchObject({
    status: 1,
    kinds: { changed: ['s1.D', 's2.D'], 'thinned out': ['s3.D'] },
    safe: [],
  });
});

test('the report is plain text; without the notebook, folders and journal are still compared', async () => {
  const scene = await withFiled('v2', 1);
  await scene.daemon.stop();
  const words = await labfeed(['audit', '--config', scene.site.config]);
  expect(words).toMatchObject({ status: 0, stderr: '' });
  expect(words.stdout).toMatch(
    /^1 run filed at \S+, 1 verified\nbalance: 1 file in [\s\S]*safe to delete: 1 file [^\n]*\n {2}\S*w1\.csv\n\nno differences\n$/,
  );
  scene.site.drop('new.csv', weighing(9));
  writeFileSync(join(scene.site.folder, 'api-key'), 'another\n');
  const refused = await audit(scene);
  expect(refused).toMatchObject({ status: 1, kinds: { 'never taken': ['new.csv'] }, safe: [] });
  expect(refused.stderr).toMatch(
    /^labfeed: the audit stopped early: the API key was rejected: .* failed with status 401[\s\S]*→ check that the key/,
  );
  await scene.stopNotebook();
  const away = await audit(scene);
  expect(away).toMatchObject({ status: 1, kinds: { 'never taken': ['new.csv'] }, safe: [] });
  expect(away.stderr).toMatch(/^labfeed: the audit stopped early: cannot connect to /);
});

test('an unknown instrument and conflicting options are wrong usage', async () => {
  const { config, journal } = makeSite(tempFolder(), { url: 'http://127.0.0.1:9', key: 'k' });
  const run = (...args: string[]) => labfeed(['audit', ...args, '--config', config]);
  expect(await run()).toMatchObject({ status: 1, stderr: expect.stringContaining('there is no journal') });
  await (await openJournal(journal, systemClock)).close();
  expect(await run('--instrument', 'balanse')).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/there is no instrument "balanse"\n {2}→ did you mean balance/),
  });
  expect(await run('--safe', '--json')).toMatchObject({ status: 2 });
  expect(await run('--safe', '--repair')).toMatchObject({ status: 2 });
  expect(await run('-0')).toMatchObject({ status: 2 });
});
