import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CopyWriter, type Incoming, Spool } from '../src/spool.js';
import { sha256 } from './support/runs.js';
import { tempFolder } from './support/temp-folder.js';

const MAX = 1000;
const never = async () => false;

function setUp() {
  const folder = join(tempFolder(), 'journal.db.spool');
  const spool = new Spool(folder);
  async function copy(content: string): Promise<Incoming> {
    const place = await spool.admit(content.length, MAX);
    if (!place) throw new Error('no room');
    const writer = new CopyWriter(place.path);
    await writer.write(Buffer.from(content));
    await writer.close();
    expect(writer.isComplete).toBe(true);
    return place;
  }
  const names = () => (existsSync(folder) ? readdirSync(folder).sort() : []);
  return { folder, spool, copy, names };
}

test('a copy gets the name of its content, and only its owner may read it', async () => {
  const { folder, spool, copy, names } = setUp();
  const mask = process.umask(0);
  try {
    expect(await spool.keep(await copy('a'), sha256('a'))).toBe(true);
    expect(await spool.keep(await copy(''), sha256(''))).toBe(true);
  } finally {
    process.umask(mask);
  }
  expect(names()).toEqual([sha256('a'), sha256('')].sort());
  expect(readFileSync(join(folder, sha256('a')), 'utf8')).toBe('a');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, sha256('a'))).mode & 0o777).toBe(0o600);
  const handle = await spool.open(sha256('a'));
  expect((await handle?.readFile())?.toString()).toBe('a');
  await handle?.close();
  expect(await spool.open(sha256('b'))).toBeUndefined();
});

test('at the start, half-written copies and those that no run needs are removed', async () => {
  const { folder, spool, copy, names } = setUp();
  await spool.keep(await copy('needed'), sha256('needed'));
  await spool.keep(await copy('orphan'), sha256('orphan'));
  // A crash between writing and renaming.
  await copy('half');
  writeFileSync(join(folder, 'notes.txt'), 'not ours');
  const next = new Spool(folder);
  await next.clean(new Set([sha256('needed')]));
  expect(names()).toEqual([sha256('needed'), 'notes.txt'].sort());
  // The next process gives out the same names again.
  expect(await next.admit(MAX - 'needed'.length, MAX)).toBeDefined();
  expect(await next.admit(1, MAX)).toBeUndefined();
});

test('what does not fit is not admitted, until others are removed', async () => {
  const { spool, copy } = setUp();
  const content = 'x'.repeat(600);
  await spool.keep(await copy(content), sha256(content));
  await spool.handedOver(sha256(content), async () => true);
  expect(await spool.admit(600, MAX)).toBeUndefined();
  await spool.remove(sha256(content), never);
  const place = await spool.admit(600, MAX);
  expect(place).toBeDefined();
  if (place) await spool.discard(place);
  expect(await spool.admit(MAX, MAX)).toBeDefined();
});

test('a copy that cannot get its name gives back its room once', async () => {
  const { folder, spool, copy } = setUp();
  const content = 'x'.repeat(600);
  await spool.keep(await copy(content), sha256(content));
  mkdirSync(join(folder, sha256('a')));
  expect(await spool.keep(await copy('a'), sha256('a'))).toBe(false);
  expect(await spool.admit(MAX - 599, MAX)).toBeUndefined();
  expect(await spool.admit(MAX - 600, MAX)).toBeDefined();
});

test('two runs share a copy, which stays until neither needs it', async () => {
  const { spool, copy, names } = setUp();
  const key = sha256('a');
  await spool.keep(await copy('a'), key);
  await spool.handedOver(key, async () => true);
  // The first run is attached while the second is between its copy and the journal.
  await spool.keep(await copy('a'), key);
  await spool.remove(key, never);
  expect(names()).toEqual([key]);
  await spool.handedOver(key, async () => true);
  await spool.remove(key, async () => true);
  expect(names()).toEqual([key]);
  await spool.remove(key, never);
  expect(names()).toEqual([]);
  expect(await spool.admit(MAX, MAX)).toBeDefined();
});

test('copies of runs that were erased are swept up, but not those of runs on their way', async () => {
  const { spool, copy, names } = setUp();
  for (const content of ['erased', 'arriving', 'needed']) await spool.keep(await copy(content), sha256(content));
  for (const content of ['erased', 'needed']) await spool.handedOver(sha256(content), async () => true);
  await spool.sweep(async () => new Set([sha256('needed')]));
  expect(names()).toEqual([sha256('arriving'), sha256('needed')].sort());
});

test('a folder that cannot be written to is not an error', async () => {
  const parent = tempFolder();
  writeFileSync(join(parent, 'journal.db.spool'), 'a file');
  const spool = new Spool(join(parent, 'journal.db.spool'));
  await spool.clean(new Set());
  expect(await spool.admit(1, MAX)).toBeUndefined();
  const writer = new CopyWriter(join(parent, 'missing', 'x'));
  await writer.write(Buffer.from('a'));
  await writer.close();
  expect(writer.isComplete).toBe(false);
  mkdirSync(join(parent, 'other'));
  chmodSync(join(parent, 'other'), 0o700);
  expect(
    await new Spool(join(parent, 'other')).keep({ path: join(parent, 'other', 'gone'), size: 1 }, sha256('a')),
  ).toBe(false);
});

test('a file that was not copied for lack of room is reported until there is room again', async () => {
  const { spool, copy } = setUp();
  expect(await spool.shortage()).toBeUndefined();
  // It would not fit into an empty spool either.
  expect(await spool.admit(MAX + 1, MAX)).toBeUndefined();
  expect(await spool.shortage()).toBeUndefined();
  const content = 'x'.repeat(600);
  await spool.keep(await copy(content), sha256(content));
  expect(spool.bytes).toBe(600);
  expect(await spool.admit(600, MAX)).toBeUndefined();
  expect(await spool.shortage()).toBe('limit');
  await spool.handedOver(sha256(content), never);
  expect(await spool.shortage()).toBeUndefined();
  expect(await spool.admit(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)).toBeUndefined();
  expect(await spool.shortage()).toBe('disk');
});
