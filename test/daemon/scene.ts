import { join } from 'node:path';
import { expect } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until, WAIT_MS } from '../support/until.js';

/** What a daemon needs: folders, a configuration and a notebook. */
export interface Scene {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
}

/** `timeout`: of a request. */
export async function setUp(dialect: Dialect = 'v2', timeout?: string): Promise<Scene> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const { url, key } = sandbox;
  return { sandbox, site: makeSite(folder, { url, key, ...(timeout !== undefined && { timeout }) }) };
}

const titlesOf = (runs: number): string[] => Array.from({ length: runs }, (_, n) => `w${n} (balance)`).sort();

export const dropAll = ({ site }: Scene, runs: number): void => {
  for (let n = 0; n < runs; n++) site.drop(`w${n}.csv`, weighing(n));
};

export const allFiled = (daemon: DaemonProcess, runs: number): Promise<void> =>
  until(`${runs} runs filed`, () => daemon.lines.filter(({ msg }) => msg === 'run filed').length === runs, 2 * WAIT_MS);

export function expectEachOnce({ sandbox }: Scene, runs: number): void {
  const experiments = sandbox.experiments();
  expect(experiments.map(({ title }) => title).sort()).toEqual(titlesOf(runs));
  for (const { comments } of experiments) expect(comments).toHaveLength(1);
}

/** The daemon learns about the notebook from the first run, so that faults affect only the second. */
export async function withOneFiled(scene: Scene): Promise<DaemonProcess> {
  scene.site.drop('w0.csv', weighing(0));
  const daemon = startDaemon(scene.site.config);
  await daemon.logged('run filed');
  return daemon;
}
