import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { addCheck } from '../../src/check/check.js';
import { systemClock } from '../../src/clock.js';
import { createMember } from '../../src/fleet/member.js';
import { createLog } from '../../src/log.js';
import { useFleets } from '../support/leading-fleet.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { createTestSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const newFleet = useFleets();

type Fleet = Awaited<ReturnType<typeof newFleet>>;

const URL = 'https://eln.example.org';

type Deps = Parameters<typeof createMember>[0];

async function run(
  { postgres, member: join }: Fleet,
  name: string,
  notebook: string | undefined,
  changes: Partial<Pick<Deps, 'clock' | 'listEveryMs'>> = {},
) {
  const { own, member, spool } = await join(name);
  const lines: { notebooks?: string; hint?: string }[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line));
  const { log } = createLog({ level: 'warn', format: 'json', destination: { write } });
  const around = { rejoin: async () => undefined, rescan: () => undefined, followed: () => undefined };
  const running = createMember({
    ...{ journal: own, postgres, name, spool, clock: systemClock, log, listEveryMs: 0, ...around },
    ...{ member: () => member, notebook: () => notebook, listed: () => [] },
    live: () => ({ version: '1', instruments: [], alarms: [] }) as never,
    ...changes,
  });
  onTestFinished(() => running.stop());
  await until(`${name} knows itself`, () => running.list().members.some((one) => one.name === name));
  return { lines, ...running };
}

/** What a machine logs about addresses of the notebook. `notebook`: its own; undefined if it only watches. */
async function start(fleet: Fleet, name: string, notebook: string | undefined) {
  const { lines } = await run(fleet, name, notebook);
  return lines.filter(({ notebooks }) => notebooks !== undefined);
}

/** What `check` prints on a machine that delivers. */
async function check(database: string, notebook: string, key: string): Promise<string> {
  const folder = tempFolder();
  const file = join(folder, 'labfeed.yaml');
  mkdirSync(join(folder, 'data'));
  writeFileSync(join(folder, 'api-key'), `${key}\n`, { mode: 0o600 });
  writeFileSync(
    file,
    `notebook: { url: "${notebook}", key: { file: api-key }, timeout: 3s }
journal: ${database}
role: deliver
fleet: { name: server, state: state }
status: false
`,
  );
  const lines: string[] = [];
  const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const command = new Command();
  addCheck(command);
  await command.parseAsync(['--config', file], { from: 'user' });
  log.mockRestore();
  const code = process.exitCode;
  process.exitCode = undefined;
  return `${lines.join('\n')}\nexit ${code}`;
}

async function startNotebook() {
  const notebook = createTestSandbox({ file: join(tempFolder(), 'notebook.db'), port: 0 });
  onTestFinished(() => notebook.stop());
  return { ...(await notebook.start()), control: notebook.control };
}

describe.skipIf(noPostgres)('the machines that deliver', () => {
  test('say in their logs which of them has another address of the notebook; those that watch say nothing', async () => {
    const fleet = await newFleet();
    expect(await start(fleet, 'one', URL)).toEqual([]);
    expect(await start(fleet, 'two', URL)).toEqual([]);
    expect(await start(fleet, 'three', `${URL}:8443`)).toMatchObject([
      {
        notebooks: `${URL} (one, two) and ${URL}:8443 (three)`,
        hint: expect.stringContaining('set exactly the same `notebook.url` on all of them'),
      },
    ]);
    expect(await start(fleet, 'pc1', undefined)).toEqual([]);
  });

  test('are known to one that only watches soon after the first of them begins to deliver', async () => {
    const fleet = await newFleet();
    // Its heartbeats follow each other without delay. The list would be a minute old.
    const sleep: typeof systemClock.sleep = (ms, signal) => systemClock.sleep(Math.min(ms, 20), signal);
    const { list } = await run(fleet, 'pc1', undefined, { clock: { ...systemClock, sleep }, listEveryMs: 60_000 });
    const leaders = () => list().members.flatMap(({ name, leads }) => (leads ? name : []));
    expect(leaders()).toEqual([]);
    await run(fleet, 'server', URL);
    const lead = (name: string) =>
      fleet.postgres.run(
        `UPDATE labfeed.fleet SET leader = (SELECT id FROM labfeed.members WHERE name = $1),
           until = clock_timestamp() + interval '1 minute'`,
        [name],
      );
    await lead('server');
    await until('the server delivers', () => leaders().includes('server'));
    // As long as somebody delivers, the list is read rarely.
    await lead('pc1');
    await systemClock.sleep(500);
    expect(leaders()).toEqual(['server']);
  });

  test('are compared by check, which names the address of each', async () => {
    const fleet = await newFleet();
    const { url, key } = await startNotebook();
    expect(await check(fleet.url, url, key)).toMatch(/the database of the fleet answers[\s\S]*exit undefined$/);
    await start(fleet, 'other', URL);
    const different = await check(fleet.url, url, key);
    expect(different).toContain(`different addresses of the notebook: ${url} (server) and ${URL} (other)`);
    expect(different).toMatch(/set exactly the same `notebook.url`[\s\S]*exit 1$/);
    // Before the first start of a machine, the database has no tables.
    await fleet.postgres.run('DROP SCHEMA labfeed CASCADE');
    expect(await check(fleet.url, url, key)).toMatch(/the database of the fleet answers[\s\S]*exit undefined$/);
  });

  test('are told by check whether the notebook gives session keys, and no key is created to find out', async () => {
    const fleet = await newFleet();
    const { url, key, control } = await startNotebook();
    const { member } = await fleet.member('server');
    const postgres = connectTo(fleet.url);
    onTestFinished(() => postgres.close());
    const record = (notebook: string, session: number | null) =>
      postgres.run('UPDATE labfeed.fleet SET sender = $1, notebook = $2, session_key = $3', [
        member,
        notebook,
        session,
      ]);
    expect(await check(fleet.url, url, key)).toMatch(/session keys is known once a machine of the fleet delivers/);
    await record(url, 7);
    expect(await check(fleet.url, url, key)).toMatch(/ok +the notebook gives session keys: server sends with one/);
    await record(url, null);
    const without = await check(fleet.url, url, key);
    expect(without).toMatch(/note +the notebook gives no session keys .* a successor of server waits .* grace period/);
    expect(without).toMatch(/exit undefined$/);
    // Another notebook says nothing about this one.
    await record(URL, 7);
    expect(await check(fleet.url, url, key)).toContain('is known once a machine of the fleet delivers');
    expect(control.requests().filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});
