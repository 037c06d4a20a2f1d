import { existsSync, ftruncateSync, openSync, readdirSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { allFiled, type Scene, setUp, withOneFiled } from '../daemon/scene.js';
import {
  type DaemonProcess,
  makeSite,
  peakBytes,
  startCrashing,
  startDaemon,
  weighing,
} from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { sha256 } from '../support/runs.js';
import { runSandbox } from '../support/sandbox.js';
import { until } from '../support/until.js';

const uploadsOf = ({ sandbox }: Scene) => sandbox.control.experiments().flatMap(({ uploads }) => uploads);

const spoolOf = ({ site }: Scene): string[] => {
  const folder = `${site.journal}.spool`;
  return existsSync(folder) ? readdirSync(folder) : [];
};

test('the raw file is attached, even if the source vanishes before the notebook can be reached', async () => {
  const scene = await setUp('elabftw');
  const daemon = await withOneFiled(scene);
  await firstAttached(scene, daemon);
  await scene.sandbox.stop();
  scene.site.drop('w1.csv', weighing(1));
  await daemon.logged(({ msg, run }) => msg === 'run queued' && run === 2);
  expect(spoolOf(scene)).toEqual([sha256(weighing(1))]);
  expect(statSync(`${scene.site.journal}.spool`).mode & 0o777).toBe(0o700);
  rmSync(join(scene.site.folder, 'data', 'balance', 'w1.csv'));
  await scene.sandbox.start();
  await until('the second file is attached', () => uploadsOf(scene).length === 2, 60_000);
  expect(uploadsOf(scene)).toMatchObject([
    { real_name: 'w0.csv', hash: sha256(weighing(0)) },
    { real_name: 'w1.csv', hash: sha256(weighing(1)) },
  ]);
  await until('the spool is empty', () => spoolOf(scene).length === 0);
  await daemon.stop();
});

for (const kind of ['uploadIntended', 'uploaded'] as const) {
  for (const when of ['before', 'after'] as const) {
    test(`a daemon killed ${when} it records \`${kind}\` attaches the file once`, async () => {
      const scene = await setUp('elabftw');
      const first = await withOneFiled(scene);
      await firstAttached(scene, first);
      await first.stop();
      scene.site.drop('w1.csv', weighing(1));
      await startCrashing(scene.site.config, 2, { when, kind }).ended;
      rmSync(join(scene.site.folder, 'data', 'balance', 'w1.csv'));
      const daemon = startDaemon(scene.site.config);
      if (kind === 'uploadIntended' && when === 'after') {
        // Whether it was sent is not known, and nothing is proved before the grace period of two minutes.
        await daemon.logged('upload postponed');
        expect(uploadsOf(scene)).toHaveLength(1);
        expect(spoolOf(scene)).toEqual([sha256(weighing(1))]);
      } else {
        await until('the second file is attached', () => uploadsOf(scene).length === 2, 60_000);
        await until('the spool is empty', () => spoolOf(scene).length === 0);
        await daemon.stop();
        expect(uploadsOf(scene)).toHaveLength(2);
      }
    });
  }
}

test('a lost answer is reconciled, and a refused type leaves the run done with a reason', async () => {
  const scene = await setUp('elabftw');
  const { control } = scene.sandbox;
  const daemon = await withOneFiled(scene);
  await firstAttached(scene, daemon);
  const lost = control.plan('cutAfter', { when: ({ method, path }) => method === 'POST' && path.endsWith('/uploads') });
  scene.site.drop('w1.csv', weighing(1));
  await allFiled(daemon, 2);
  await daemon.logged(({ msg, run }) => msg === 'file attached' && run === 2);
  expect(lost.met).toBe(1);
  expect(uploadsOf(scene)).toHaveLength(2);
  scene.site.drop('w2.php', weighing(2));
  await daemon.logged(({ msg, run }) => msg === 'file not attached' && run === 3);
  const show = async () => JSON.parse((await labfeed(['show', '3', '--json', '--config', scene.site.config])).stdout);
  await until('its body says so', async () => (await show()).state === 'done');
  expect(await show()).toMatchObject({ reason: expect.stringContaining('the raw file w2.php is not attached') });
  expect(control.experiments().at(-1)?.body).toContain('<p>The raw file w2.php is not attached: ');
  await daemon.stop();
});

test('where the server only keeps the contract, nothing is attached and nothing is kept', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  scene.site.drop('w1.csv', weighing(1));
  await allFiled(daemon, 2);
  await until('the spool is empty', () => spoolOf(scene).length === 0);
  expect(scene.sandbox.control.requests().filter(({ path }) => path.includes('upload'))).toEqual([]);
  const warnings = daemon.lines.filter(({ level }) => Number(level) > 30).map(({ msg }) => msg);
  expect(warnings).toEqual([expect.stringMatching(/^the journal is new/)]);
  await daemon.stop();
});

test('audit calls a file safe because it is attached, and repairs an attachment that somebody deleted', async () => {
  const { sandbox, site } = await setUp('elabftw');
  // Nothing of the file is read, so only the attachment holds its content.
  const instruments = '  balance: { watch: data/balance, ready: { quiet: 150ms }, parse: { format: none } }';
  const scene = { sandbox, site: makeSite(site.folder, { url: sandbox.url, key: sandbox.key, instruments }) };
  const daemon = await withOneFiled(scene);
  await firstAttached(scene, daemon);
  const path = join(site.folder, 'data', 'balance', 'w0.csv');
  const audit = async (...options: string[]) =>
    (await labfeed(['audit', ...options, '--config', scene.site.config])).stdout;
  expect(await audit('--safe')).toBe(`${path}\n`);
  const address = `${sandbox.url}/api/v2/experiments/1/uploads/1`;
  await fetch(address, { method: 'DELETE', headers: { authorization: sandbox.key } });
  expect(await audit('--safe')).toBe('');
  expect(await audit('--repair')).toMatch(
    /raw files missing from the notebook \(1\)[\s\S]*1 raw file will be attached/,
  );
  await until('the file is attached again', () => uploadsOf(scene).length === 2);
  await until('the audit sees it', async () => (await audit('--safe')) === `${path}\n`);
  await daemon.stop();
});

/** Once the journal knows it, too, and nothing is kept. */
async function firstAttached(scene: Scene, daemon: DaemonProcess): Promise<void> {
  await daemon.logged(({ msg, run }) => msg === 'file attached' && run === 1);
  await until('the spool is empty', () => spoolOf(scene).length === 0);
}

/** Counts the bytes of uploads instead of keeping them, slowly; everything else goes to the sandbox. */
async function countingServer(target: string) {
  const received = { bytes: 0, uploads: 0 };
  const server = createServer((incoming, outgoing) => {
    if (incoming.method === 'POST' && incoming.url?.endsWith('/uploads')) {
      incoming.on('data', (chunk: Buffer) => {
        received.bytes += chunk.length;
      });
      incoming.on('end', () => {
        received.uploads += 1;
        outgoing.writeHead(201, { location: `/api/v2/experiments/1/uploads/${received.uploads}` }).end();
      });
      return;
    }
    const { method, headers, url = '' } = incoming;
    const forwarded = request(`${target}${url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('2 GB are attached from the source without filling memory or the spool, and a small file does not wait', async () => {
  const { sandbox, site } = await setUp('elabftw');
  const { received, url } = await countingServer(sandbox.url);
  const instruments =
    '  balance: { watch: data/balance, ready: { quiet: 150ms }, parse: { format: none, limits: { bytes: 3GB } } }';
  const large = makeSite(site.folder, { url, key: sandbox.key, timeout: '20s', settings: 'spool: 1MB\n', instruments });
  const size = 2 ** 31 + 7;
  const file = openSync(join(site.folder, 'large.bin'), 'w');
  writeSync(file, 'head');
  ftruncateSync(file, size);
  const daemon = startDaemon(large.config);
  await daemon.logged('ready');
  // A sparse file, so that it takes no space.
  renameSync(join(site.folder, 'large.bin'), join(site.folder, 'data', 'balance', 'large.bin'));
  await daemon.logged(({ msg, run }) => msg === 'run filed' && run === 1, 60_000);
  large.drop('small.bin', 'small');
  await daemon.logged(({ msg, file }) => msg === 'file attached' && file === 'small.bin', 100_000);
  await daemon.logged(({ msg, file }) => msg === 'file attached' && file === 'large.bin', 300_000);
  expect(received.bytes).toBeGreaterThan(size);
  expect(peakBytes(daemon)).toBeLessThan(400 * 2 ** 20);
  expect(existsSync(`${large.journal}.spool`) ? readdirSync(`${large.journal}.spool`) : []).toEqual([]);
  await daemon.stop();
});

test('a file waits while its notebook is not configured, which status and why say, and is attached when it is back', async () => {
  const scene = await setUp('elabftw');
  const { site, sandbox } = scene;
  const edited = { answer: 400, json: { code: 400, message: 'This entry is being edited by Kim Colleague.' } };
  const refusal = sandbox.control.plan(edited, {
    when: ({ method, path }) => method === 'POST' && path.endsWith('/uploads'),
    times: 1000,
  });
  const first = await withOneFiled(scene);
  await first.logged('upload postponed');
  await first.stop();
  const other = await runSandbox(join(site.folder, 'other.db'), 0, 'elabftw');
  makeSite(site.folder, { url: other.url, key: other.key });
  const second = startDaemon(site.config);
  site.drop('w1.csv', weighing(1));
  await second.logged('file attached');
  const say = async (...args: string[]) => (await labfeed([...args, '--config', site.config])).stdout;
  const reason = `the run was filed at ${sandbox.url}, which is not the configured notebook`;
  const waits = `balance: 1 raw file waits to be attached: ${reason} → set \`notebook.url\` back`;
  await until('status says that a file waits', async () => (await say('status')).includes(waits));
  expect(await say('why', join(site.folder, 'data', 'balance', 'w0.csv'))).toContain(reason);
  await until('only the file that waits is kept', () => spoolOf(scene).length === 1);
  await second.stop();
  expect(spoolOf(scene)).toEqual([sha256(weighing(0))]);
  refusal.lift();
  rmSync(join(site.folder, 'data', 'balance', 'w0.csv'));
  makeSite(site.folder, { url: sandbox.url, key: sandbox.key });
  const third = startDaemon(site.config);
  await until('the file is attached', () => uploadsOf(scene).length === 1, 60_000);
  await until('the spool is empty', () => spoolOf(scene).length === 0);
  await third.stop();
});

test('many readings are one summary, and all of them are comments if the file is too large for the notebook', async () => {
  const scene = await setUp('elabftw');
  const { control } = scene.sandbox;
  const daemon = await withOneFiled(scene);
  const rows = Array.from({ length: 300 }, (_, n) => `S${n},${n}.5`);
  const comments = () =>
    control
      .experiments()
      .at(-1)
      ?.comments.map(({ comment }) => comment) ?? [];
  scene.site.drop('w1.csv', `Sample,Weight (mg)\n${rows.join('\n')}\n`);
  await daemon.logged(({ msg, run }) => msg === 'file attached' && run === 2);
  expect(comments()).toEqual([expect.stringContaining('300 rows, 2 columns; all rows are in the attached file')]);
  control.plan({ answer: 413, html: 'too large' }, { when: ({ path }) => path.endsWith('/uploads') });
  scene.site.drop('w2.csv', `Sample,Weight (mg)\n${rows.join('\n')}\nlast,1.5\n`);
  await until('all readings are there', () => comments().join('\n').includes('last: 1.5 mg'));
  expect(
    comments()
      .join('\n')
      .match(/^S\d+: /gm),
  ).toHaveLength(300);
  const body = () => control.experiments().at(-1)?.body ?? '';
  await until('the body says so', () => body().includes('The raw file w2.csv is not attached'));
  await daemon.stop();
});
