import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { loadConfig, type UsableConfig } from '../../src/config/load.js';
import { openKeyFile } from '../../src/keys/key-file.js';
import { keyName, rotateKey } from '../../src/keys/rotate.js';
import type { Dialect } from '../../src/model.js';
import { DIALECTS } from '../../src/sandbox/server.js';
import { makeSite } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

const CRASHING = fileURLToPath(new URL('../support/crashing-rotation.mjs', import.meta.url));

/** What a whole rotation consists of: it is broken off after each of them. */
const STEPS = [
  'listed',
  'remembered',
  'made',
  'listed',
  'remembered',
  'listed',
  'new key on disk',
  'new key in its place',
  'remembered',
  'deleted',
  'remembered',
];

async function setUp(dialect: Dialect) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const { url, key } = sandbox;
  const site = makeSite(folder, { url, key, timeout: '20s' });
  const file = join(folder, 'api-key');

  async function ask(method: string, withKey: string, body?: object) {
    const headers = {
      authorization: withKey,
      accept: 'application/json',
      'content-type': 'application/json',
    };
    return fetch(`${url}/api/v2/apikeys`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }
  async function make(name: string): Promise<string> {
    const { headers } = await ask('POST', key, { name, canwrite: 1 });
    return headers.get('location')?.split('/').at(-1) ?? '';
  }
  /** The number of a key that works; undefined for one that does not. */
  async function numberOf(withKey: string): Promise<number | undefined> {
    const { status } = await ask('GET', withKey);
    return status === 200 ? sandbox.control.requests().at(-1)?.keyId : undefined;
  }
  const inUse = () => numberOf(readFileSync(file, 'utf8').trim());
  async function named(name: string): Promise<number[]> {
    const records = (await (await ask('GET', key)).json()) as { id: number; name: string }[];
    return records.filter((record) => record.name === name).map(({ id }) => id);
  }
  const rotate = () =>
    rotateKey(loadConfig(site.config) as UsableConfig, openKeyFile(file), {
      clock: systemClock,
      signal: new AbortController().signal,
    });
  return { site, file, make, numberOf, inUse, named, rotate };
}

interface Broken {
  readonly signal: string | undefined;
  readonly steps: string[];
}

const breakOff = (config: string, after: number): Promise<Broken> =>
  new Promise((resolve) => {
    execFile(process.execPath, [CRASHING, config, String(after)], (error, stdout, stderr) => {
      resolve({ signal: error?.signal ?? undefined, steps: `${stdout}${stderr}`.trim().split('\n') });
    });
  });

for (const dialect of DIALECTS) {
  test(`${dialect}: killed between any two steps, a rotation leaves a key that works, and the next one leaves nothing of it`, async () => {
    const { site, file, make, numberOf, inUse, named, rotate } = await setUp(dialect);
    // Another labfeed on this machine uses a key of the same name, and one is made for another machine.
    const neighbour = await numberOf(await make(keyName()));
    await make('labfeed@elsewhere');
    await rotate();
    for (const [index] of STEPS.entries()) {
      const { signal, steps } = await breakOff(site.config, index + 1);
      expect({ signal, steps }).toEqual({ signal: 'SIGKILL', steps: STEPS.slice(0, index + 1) });
      expect(await inUse(), `after ${steps.at(-1)}`).toBeDefined();
      const { key, kept, failed } = await rotate();
      expect({ key, kept, failed }).toEqual({ key: await inUse(), kept: undefined, failed: [] });
      expect(await named(keyName()), `after ${steps.at(-1)}`).toEqual(
        expect.arrayContaining([neighbour, key]),
      );
      expect(await named(keyName())).toHaveLength(2);
      expect(existsSync(`${file}.new`)).toBe(false);
    }
    expect(await breakOff(site.config, STEPS.length + 1)).toEqual({ signal: undefined, steps: STEPS });
    expect(await named('labfeed@elsewhere')).toHaveLength(1);
    expect(await named('labfeed sandbox')).toHaveLength(1);
  }, 120_000);
}

test('broken off several times in a row, and repaired by one rotation', async () => {
  const { site, make, numberOf, inUse, named, rotate } = await setUp('v2');
  const neighbour = await numberOf(await make(keyName()));
  await rotate();
  for (const after of [3, 7, 3, 5, 8, 3]) expect((await breakOff(site.config, after)).signal).toBe('SIGKILL');
  expect(await inUse()).toBeDefined();
  const { key } = await rotate();
  expect(await inUse()).toBe(key);
  expect((await named(keyName())).sort()).toEqual([neighbour, key].sort());
}, 60_000);

test('two rotations of one key at once: the second is told to wait, and has changed nothing', async () => {
  const { inUse, named, rotate } = await setUp('v2');
  const [first, second] = await Promise.allSettled([rotate(), rotate()]);
  expect(first.status).toBe('fulfilled');
  expect(second).toMatchObject({ reason: { message: expect.stringContaining('is under way') } });
  expect(await named(keyName())).toEqual([await inUse()]);
});
