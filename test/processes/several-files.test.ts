import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { type DaemonProcess, makeSite, startDaemon } from '../support/daemon-process.js';
import { type RunningSandbox, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const FOLDERS = `
  gc:
    watch: data/gc
    run: { folder: "**/*.D" }
    ready: { quiet: 300ms }
    existing: ingest
    parse:
      main: report.csv
      delimiter: ','
      table: {}
      also: { acq/method.txt: { delimiter: tab, meta: { separator: ':' } } }
    experiment: { title: '{{ file.stem }} by {{ meta.Method }}' }`;

const PAIRS = `
  reader:
    watch: data/reader
    run: { join: ["{stem}.csv", "{stem}.xml"] }
    ready: { quiet: 300ms }
    existing: ingest
    parse:
      delimiter: ','
      table: {}
      also: { "{stem}.xml": { format: xml, facts: { Operator: //operator } } }
    experiment: { title: '{{ file.stem }} by {{ meta.Operator }}' }`;

interface Scene {
  readonly sandbox: RunningSandbox;
  readonly config: string;
  /** Writes files under the watched folders. */
  write(files: Readonly<Record<string, string>>): void;
  /** A complete folder appears at once: writing it could take longer than its quiet period. */
  inject(name: string): void;
  at(path: string): string;
}

async function setUp(instruments: string): Promise<Scene> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const { config } = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments });
  const at = (path: string): string => join(folder, 'data', path);
  for (const name of ['gc', 'reader']) mkdirSync(at(name), { recursive: true });
  function write(files: Readonly<Record<string, string>>): void {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), content);
    }
  }
  return {
    ...{ sandbox, config, at, write },
    inject(name) {
      write(injection(name, '../'));
      mkdirSync(dirname(at(`gc/${name}`)), { recursive: true });
      renameSync(at(`../${name}.D`), at(`gc/${name}.D`));
    },
  };
}

const injection = (name: string, folder: string): Record<string, string> => ({
  [`${folder}${name}.D/report.csv`]: `Peak,Area\n${name},12\n`,
  [`${folder}${name}.D/acq/method.txt`]: 'Method: FAST\n',
  [`${folder}${name}.D/acq/raw.bin`]: `raw ${name}`,
});

const pair = (name: string): Record<string, string> => ({
  [`reader/${name}.csv`]: `Well,OD\nA1,0.${name.length}\n`,
  [`reader/${name}.xml`]: `<run><operator>Ada ${name}</operator></run>`,
});

const titles = ({ sandbox }: Scene): string[] => sandbox.experiments().map(({ title }) => title);

const filed = (daemon: DaemonProcess, runs: number): Promise<void> =>
  until(`${runs} runs filed`, () => daemon.lines.filter(({ msg }) => msg === 'run filed').length >= runs, 90_000);

test('a folder becomes one run when everything in it has settled, and is filed once with all its files', async () => {
  const scene = await setUp(FOLDERS);
  scene.inject('s1');
  const daemon = startDaemon(scene.config);
  await filed(daemon, 1);
  scene.inject('seq/s2');
  await filed(daemon, 2);
  expect(titles(scene)).toEqual(['s1 by FAST', 's2 by FAST']);
  const [first] = scene.sandbox.experiments();
  expect(first?.body).toContain('<td>12</td>');
  expect(first?.body).toMatch(/Source: s1\.D, 3 files, \d+ bytes, modified/);
  expect(first?.body).toMatch(/<li>acq\/raw\.bin, 6 bytes, modified [^<]+, sha256:[0-9a-f]{64}<\/li>/);
  expect(first?.body).toMatch(/<p>labfeed gc s1\.D sha256:[0-9a-f]{64} journal:[0-9a-f]{8}<\/p>$/);
  await daemon.stop();
});

test('a folder is not filed again after a restart, rename, copy or clean-up, but is if its content changes', async () => {
  const scene = await setUp(FOLDERS);
  scene.inject('s1');
  const first = startDaemon(scene.config);
  await filed(first, 1);
  await first.kill();
  cpSync(scene.at('gc/s1.D'), scene.at('gc/copy.D'), { recursive: true });
  renameSync(scene.at('gc/s1.D'), scene.at('gc/renamed.D'));
  writeFileSync(scene.at('gc/stray.csv'), 'Peak,Area\n1,2\n');
  const second = startDaemon(scene.config);
  await second.logged('ready');
  scene.inject('s2');
  await filed(second, 1);
  rmSync(scene.at('gc/renamed.D/acq/raw.bin'));
  scene.write({ 'gc/copy.D/acq/raw.bin': 'measured again' });
  await filed(second, 2);
  await second.stop();
  expect(titles(scene)).toEqual(['s1 by FAST', 's2 by FAST', 'copy by FAST']);
});

test('joined files become one run when all of them exist, in whatever order they arrive', async () => {
  const scene = await setUp(PAIRS);
  const { 'reader/late.csv': csv = '', 'reader/late.xml': xml = '' } = pair('late');
  const broken = '<run><operator>Ada</run>';
  scene.write({ ...pair('a'), ...pair('bb'), 'reader/a.xml': broken, 'reader/late.xml': xml });
  const daemon = startDaemon(scene.config);
  const { reason } = await daemon.logged('run quarantined');
  expect(reason).toContain(`${scene.at('reader/a.xml')}:1`);
  await filed(daemon, 1);
  scene.write(pair('a'));
  await filed(daemon, 2);
  scene.write({ 'reader/late.csv': csv });
  await filed(daemon, 3);
  await daemon.stop();
  expect(titles(scene)).toEqual(['bb by Ada bb', 'a by Ada a', 'late by Ada late']);
});
