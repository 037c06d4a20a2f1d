import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { LoadedConfig } from '../../src/config/load.js';
import { findFiles } from '../../src/why/command.js';
import { gather, type Sources } from '../../src/why/gather.js';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody } from '../watch/support.js';

function setUp(recorded: readonly string[] = []) {
  const folder = tempFolder();
  const config = {
    claims: [],
    instruments: [],
    problems: [],
    settings: { journal: '/none' },
  } as unknown as LoadedConfig;
  const reader = {
    filesAt: async () => [],
    files: async (text: string) => recorded.filter((path) => path.includes(text)).map((path) => ({ path })),
  } as unknown as NonNullable<Sources['reader']>;
  const sources: Sources = { config, reader: undefined, running: false, live: undefined, now: 0 };
  return { folder, sources, withJournal: { ...sources, reader } };
}

test('a file in a folder that the user may not enter is explained with that folder', async () => {
  const { folder, sources } = setUp();
  const inside = join(folder, 'private');
  mkdirSync(inside);
  chmodSync(folder, 0o755);
  const path = join(inside, 'x.csv');
  writeFileSync(path, '1');
  chmodSync(inside, 0);
  const { found, file } = await asNobody(async () => ({
    found: await findFiles(path, sources),
    file: (await gather(path, sources)).file,
  }));
  chmodSync(inside, 0o700);
  expect(found.paths).toEqual([path]);
  expect(file).toMatchObject({
    state: 'unreadable',
    reason: expect.stringMatching(/^the user \S+ may not enter its folder .*private$/),
    hint: expect.stringContaining('chmod o+x'),
  });
});

test('a link without a target, or to itself, is reported as broken, not as absent', async () => {
  const { folder, sources } = setUp();
  for (const [name, target] of [
    ['dangling.csv', 'nothing'],
    ['loop.csv', 'loop.csv'],
  ] as const) {
    symlinkSync(target, join(folder, name));
    const { file } = await gather(join(folder, name), sources);
    expect(file).toMatchObject({ state: 'unreadable', reason: expect.stringContaining('without a valid target') });
  }
  expect((await gather(join(folder, 'absent.csv'), sources)).file).toEqual({ state: 'absent' });
});

test('a name whose bytes are not UTF-8 is found as the journal shows it', async () => {
  const { withJournal } = setUp(['/data/lat\\xE9.csv', '/data/late.csv', '/data/other.csv']);
  expect((await findFiles('lat\ufffd.csv', withJournal)).paths).toEqual(['/data/lat\\xE9.csv']);
});

test.each([
  ['nobody, if no machine delivers', { members: [{ name: 'a', leads: false, folders: [] }] }, null],
  ['its name', { members: [{ name: 'a', leads: true, folders: [] }] }, 'a'],
  ['not known before the machines are listed', { members: [] }, undefined],
  [
    'not known without the database',
    { members: [{ name: 'a', leads: true, folders: [] }], trouble: 'away' },
    undefined,
  ],
])('who delivers for a fleet: %s', async (_, fleet, leader) => {
  const { sources } = setUp();
  const live = { fleet: { name: 'b', ...fleet } } as unknown as Sources['live'];
  expect((await gather('/data/x.csv', { ...sources, live })).elsewhere.leader).toBe(leader);
});
