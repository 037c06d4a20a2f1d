import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadConfig, type UsableConfig } from '../../src/config/load.js';
import { rotateConfigured } from '../../src/keys/command.js';
import { keyName, openKeyFile } from '../../src/keys/rotate.js';
import type { Dialect } from '../../src/model.js';
import { makeSite } from '../support/daemon-process.js';
import { runNode } from '../support/labfeed.js';
import { DIALECTS, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

const CRASHING = fileURLToPath(new URL('../support/crashing-rotation.mjs', import.meta.url));

/** The steps of a complete rotation; it is interrupted after each of them. */
const STEPS = [
  'listed',
  'recorded',
  'created',
  'listed',
  'recorded',
  'listed',
  'new key on disk',
  'new key in place',
  'recorded',
  'deleted',
  'recorded',
];

async function setUp(dialect: Dialect) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const { url, key } = sandbox;
  const site = makeSite(folder, { url, key, timeout: '20s' });
  const file = join(folder, 'api-key');

  async function send(method: string, withKey: string, body?: object) {
    const headers = {
      authorization: withKey,
      accept: 'application/json',
      'content-type': 'application/json',
    };
    return fetch(`${url}/api/v2/apikeys`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }
  async function create(name: string): Promise<string> {
    const { headers } = await send('POST', key, { name, canwrite: 1 });
    return headers.get('location')?.split('/').at(-1) ?? '';
  }
  /** The number of a key that works; undefined for one that does not. */
  async function numberOf(withKey: string): Promise<number | undefined> {
    const { status } = await send('GET', withKey);
    return status === 200 ? sandbox.control.requests().at(-1)?.keyId : undefined;
  }
  const inUse = () => numberOf(readFileSync(file, 'utf8').trim());
  async function named(name: string): Promise<number[]> {
    const records = (await (await send('GET', key)).json()) as { id: number; name: string }[];
    return records.filter((record) => record.name === name).map(({ id }) => id);
  }
  const rotate = () => rotateConfigured(loadConfig(site.config) as UsableConfig, openKeyFile(file));
  return { site, file, create, numberOf, inUse, named, rotate };
}

interface Interrupted {
  readonly signal: string | undefined;
  readonly steps: string[];
}

async function interrupt(config: string, after: number): Promise<Interrupted> {
  const { signal, stdout, stderr } = await runNode([CRASHING, config, String(after)]);
  return { signal, steps: `${stdout}${stderr}`.trim().split('\n') };
}

for (const dialect of DIALECTS) {
  test(`${dialect}: a rotation killed after any step leaves a working key, and the next one cleans up`, async () => {
    const { site, file, create, numberOf, inUse, named, rotate } = await setUp(dialect);
    // Another labfeed on this machine uses a key with the same name, and another machine has its own.
    const neighbour = await numberOf(await create(keyName()));
    await create('labfeed@elsewhere');
    await rotate();
    for (const [index] of STEPS.entries()) {
      const { signal, steps } = await interrupt(site.config, index + 1);
      expect({ signal, steps }).toEqual({ signal: 'SIGKILL', steps: STEPS.slice(0, index + 1) });
      expect(await inUse(), `after ${steps.at(-1)}`).toBeDefined();
      const { key, kept, failed } = await rotate();
      expect({ key, kept, failed }).toEqual({ key: await inUse(), kept: undefined, failed: [] });
      expect(await named(keyName()), `after ${steps.at(-1)}`).toEqual(expect.arrayContaining([neighbour, key]));
      expect(await named(keyName())).toHaveLength(2);
      expect(existsSync(`${file}.new`)).toBe(false);
    }
    expect(await interrupt(site.config, STEPS.length + 1)).toEqual({ signal: undefined, steps: STEPS });
    expect(await named('labfeed@elsewhere')).toHaveLength(1);
    expect(await named('labfeed sandbox')).toHaveLength(1);
  });
}

test('one rotation cleans up after several interrupted ones', async () => {
  const { site, create, numberOf, inUse, named, rotate } = await setUp('v2');
  const neighbour = await numberOf(await create(keyName()));
  await rotate();
  for (const after of [3, 7, 3, 5, 8, 3]) expect((await interrupt(site.config, after)).signal).toBe('SIGKILL');
  expect(await inUse()).toBeDefined();
  const { key } = await rotate();
  expect(await inUse()).toBe(key);
  expect((await named(keyName())).sort()).toEqual([neighbour, key].sort());
});

test('a second rotation of the same key at the same time is refused and changes nothing', async () => {
  const { inUse, named, rotate } = await setUp('v2');
  const [first, second] = await Promise.allSettled([rotate(), rotate()]);
  expect(first.status).toBe('fulfilled');
  expect(second).toMatchObject({ reason: { message: expect.stringContaining('is already running') } });
  expect(await named(keyName())).toEqual([await inUse()]);
});
