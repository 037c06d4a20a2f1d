import { expect } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { allFiled, dropAll, type Scene } from '../daemon/scene.js';
import { type DaemonProcess, makeSite, startDaemon } from '../support/daemon-process.js';
import { type Ended, labfeed } from '../support/labfeed.js';
import { until } from '../support/until.js';

/** The mapping for the balance: a title, and one comment for all readings or one for each. */
export interface Reading {
  readonly title: string;
  readonly readings: 'table' | 'each';
  readonly tags?: string;
  /** A column that every file must have. */
  readonly column?: string;
}

export const BEFORE: Reading = { title: '{{ file.stem }} weighed', readings: 'table' };
export const AFTER: Reading = {
  title: '{{ file.stem }} redone',
  readings: 'each',
  tags: '[balance, redone]',
};

export function readAs({ site, sandbox }: Scene, { title, readings, tags = '[balance]', column }: Reading): void {
  const parse =
    column === undefined
      ? ''
      : `parse: { table: { header: first, columns: { "${column}": { from: "${column}" } } } }, `;
  const experiment = `experiment: { title: "${title}", tags: ${tags}, plot: never }, comments: { readings: ${readings} }`;
  const instruments = `  balance: { watch: data/balance, ready: { quiet: 150ms }, ${parse}${experiment} }`;
  makeSite(site.folder, { url: sandbox.url, key: sandbox.key, instruments });
}

/** This many runs, filed with the old mapping. */
export async function fileBefore(scene: Scene, runs: number, dialect: Dialect = 'v2'): Promise<void> {
  readAs(scene, BEFORE);
  dropAll(scene, runs);
  const daemon = startDaemon(scene.site.config);
  await allFiled(daemon, runs);
  // After the run is filed, where the notebook takes files. An upload that a stop interrupts takes minutes to settle.
  const areAttached = () => daemon.lines.filter(({ msg }) => msg === 'file attached').length === runs;
  if (dialect === 'elabftw') await until('the raw files are attached', areAttached, 60_000);
  expect(await daemon.stop()).toBe(0);
}

export const retry = ({ site }: Scene, ...args: string[]): Promise<Ended> =>
  labfeed(['retry', ...args, '--config', site.config]);

export const filed = (daemon: DaemonProcess, run: number, withinMs = 120_000) =>
  daemon.logged(({ msg, ...line }) => msg === 'run filed' && line['run'] === run, withinMs);

/** What the notebook holds, by the names of the files. */
export function shown({ sandbox }: Scene) {
  const experiments = sandbox.control.experiments().map(({ title, tags, comments, state }) => ({
    title,
    tags,
    state,
    comments: comments.map(({ comment }) => comment.split('\n')[0]?.replace(/,? from .*/, '')),
  }));
  return experiments.sort((a, b) => (a.title < b.title ? -1 : 1));
}

/** The expected run with that stem. */
export const asBefore = (stem: string) => ({
  title: `${stem} weighed`,
  tags: ['balance'],
  state: 'normal',
  comments: ['readings: 2 rows'],
});

export const asAfter = (stem: string) => ({
  title: `${stem} redone`,
  tags: ['balance', 'redone'],
  state: 'normal',
  comments: ['readings: row 1 of 2', 'readings: row 2 of 2'],
});
