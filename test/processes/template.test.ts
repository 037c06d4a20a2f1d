import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

test('where the team requires templates, check and the quarantined run say what to add, and it is filed then', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, 'elabftw', { forcesTemplate: true });
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const bad = await labfeed(['check', '--config', site.config]);
  expect(bad.status).toBe(1);
  expect(bad.stdout).toContain(
    'balance: the team creates experiments from templates only, and `experiment.template` is not set',
  );
  expect(bad.stdout).toContain(
    'add `experiment: { template: "Measurement" }` to the instrument; the templates are "Measurement"',
  );

  site.drop('w0.csv', weighing(0));
  const daemon = startDaemon(site.config);
  await daemon.logged('run parked', 30_000);
  const shown = await labfeed(['show', '1', '--config', site.config]);
  expect(shown.stdout).toContain('has disabled creating Experiments without using a template');
  expect(shown.stdout).toContain('set `experiment: { template: NAME }` for this instrument');
  expect(sandbox.experiments()).toEqual([]);

  const config = readFileSync(site.config, 'utf8');
  writeFileSync(site.config, config.replace('plot: never', 'plot: never, template: Measurement'));
  expect((await labfeed(['check', '--config', site.config])).stdout).not.toContain('templates only');
  daemon.child.kill('SIGHUP');
  await daemon.logged('run filed', 30_000);
  await daemon.stop();
  expect(sandbox.experiments()).toMatchObject([
    { title: 'w0 (balance)', body: expect.stringContaining('labfeed balance w0.csv') },
  ]);
});
