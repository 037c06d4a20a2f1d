import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allFiled } from '../daemon/scene.js';
import { makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { DIALECTS, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

async function setUp(dialect: 'v2' | 'elabftw') {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const makePc = (name: string): Site => {
    mkdirSync(join(folder, name));
    return makeSite(join(folder, name), { url: sandbox.url, key: sandbox.key });
  };
  return { sandbox, one: makePc('one'), two: makePc('two') };
}

/** Starts the daemon of a PC, has it file these runs, and stops it. */
async function fileOn(site: Site, ...numbers: number[]): Promise<void> {
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  for (const n of numbers) site.drop(`w${n}.csv`, weighing(n));
  await allFiled(daemon, numbers.length);
  expect(await daemon.stop()).toBe(0);
  expect(daemon.lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
}

test.each(DIALECTS)(
  'two PCs with an instrument of the same name file into one notebook, and restart, without a halt (%s)',
  async (dialect) => {
    const { sandbox, one, two } = await setUp(dialect);
    await fileOn(one, 0, 1);
    await fileOn(two, 2, 3);
    // Each restart finds entries of the other PC above its own.
    await fileOn(one, 4);
    await fileOn(two, 5);
    await fileOn(one, 6);
    const experiments = sandbox.experiments();
    expect(experiments.map(({ title }) => title).sort()).toEqual([0, 1, 2, 3, 4, 5, 6].map((n) => `w${n} (balance)`));
    for (const { comments } of experiments) expect(comments).toHaveLength(1);
    const ids = experiments.map(({ body }) => /sha256:[0-9a-f]{64} journal:([0-9a-f]{8})<\/p>/.exec(body)?.[1]);
    expect(ids.map((id) => ids.indexOf(id))).toEqual([0, 0, 2, 2, 0, 2, 0]);
  },
);
