import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { readInstrumentFile, saveInstrument } from '../../src/daemon/instrument-files.js';
import { runGoldenTests } from '../../src/mapping/tests.js';
import { tempFolder } from '../support/temp-folder.js';

const SAMPLE = { name: 'w1.csv', content: Buffer.from('Sample,Weight (g)\nS1,1.5\n'), modifiedMs: Date.now() };

function site(include = 'include: instruments.d/*.yaml\n') {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  for (const name of ['data', 'old']) mkdirSync(join(folder, name));
  const main = '  old: { watch: old, files: "*.csv" }\n';
  writeFileSync(
    config,
    `notebook: { url: "https://eln.example.org", key: { env: KEY } }\n${include}instruments:\n${main}`,
  );
  let reloads = 0;
  const state = { problem: undefined as string | undefined };
  const save = (text: string, replaces?: string, sample = SAMPLE) =>
    saveInstrument({ text, replaces }, sample, {
      config,
      test: (instrument) => runGoldenTests([instrument], { clock: systemClock }),
      reload: async () => {
        reloads += 1;
        return state.problem;
      },
    });
  const files = () => {
    const at = join(folder, 'instruments.d');
    return existsSync(at) ? readdirSync(at, { recursive: true }).map(String).sort() : [];
  };
  return { folder, config, state, save, files, reloads: () => reloads };
}

const mapping = (name: string, more = ''): string => `instruments:\n  ${name}:\n    watch: ../data\n${more}`;

test('an instrument is written as a file of its own and used; the one before is kept', async () => {
  const { folder, config, save, files, reloads } = site();
  const first = mapping('scale');
  expect(await save(first)).toMatchObject({ done: true, text: expect.stringContaining('scale is watched') });
  expect(files()).toEqual(['scale.yaml']);
  const opened = readInstrumentFile('scale', config);
  expect(opened?.text).toBe(first);
  const second = mapping('scale', '    drift: hold\n');
  // Somebody else has saved it in the meantime.
  expect(await save(second)).toMatchObject({ done: false, text: expect.stringContaining('somebody else') });
  expect(await save(second, opened?.hash)).toMatchObject({ done: true });
  expect(files()).toEqual(['scale.yaml', 'scale.yaml.bak']);
  expect(readFileSync(join(folder, 'instruments.d', 'scale.yaml'), 'utf8')).toBe(second);
  expect(readFileSync(join(folder, 'instruments.d', 'scale.yaml.bak'), 'utf8')).toBe(first);
  expect(reloads()).toBe(2);
});

test.each([
  ['a name that leaves the folder', mapping('"../../evil"'), 'not a valid name'],
  ['a hidden name', mapping('.evil'), 'not a valid name'],
  ['a key that does not exist', mapping('scale', '    delimeter: tab\n'), 'delimeter'],
  ['a template that cannot be read', mapping('scale', '    experiment: { title: "{{ meta.x" }\n'), 'title'],
  ['two instruments', `${mapping('scale')}  other:\n    watch: ../data\n`, 'expected one instrument, found 2'],
  ['text that is not YAML', 'instruments: [', 'yaml:1'],
  ['other settings', `${mapping('scale')}notebook: { url: "https://evil.example" }\n`, 'notebook'],
  ['an instrument of the main file', mapping('old'), 'already defined'],
  ['a folder that does not exist', mapping('scale').replace('../data', '/no/such/folder'), 'does not exist'],
  [
    'a test of a file elsewhere',
    mapping('scale', '    tests: [{ file: ../labfeed.yaml, expect: { title: x } }]\n'),
    'is not in',
  ],
  [
    'a test of a file that is itself a mapping',
    mapping('scale', '    tests: [{ file: evil.yaml, expect: { title: x } }]\n'),
    'is not in',
  ],
  [
    'a test of a run that begins above its sample',
    mapping('scale', '    run: { folder: "*" }\n    tests: [{ file: samples/w1.csv, expect: { title: x } }]\n'),
    'several files',
  ],
  ['the files of another instrument', mapping('scale').replace('../data', '../old'), 'old already files'],
  ['a failing test', mapping('scale', '    tests: [{ file: samples/w1.csv, expect: { title: x } }]\n'), 'title'],
])('%s is refused, and nothing is written', async (_, text, reason) => {
  const { save, files, reloads } = site();
  expect(await save(text)).toMatchObject({ done: false, text: expect.stringContaining(reason) });
  expect(files().filter((name) => name !== 'samples')).toEqual([]);
  expect(reloads()).toBe(0);
});

test('if the new configuration is rejected, the file is as before, and so is the one that was kept', async () => {
  const { config, save, state, files } = site();
  state.problem = 'another instrument has a mistake';
  expect(await save(mapping('scale'))).toMatchObject({ done: false, text: expect.stringContaining('not saved') });
  expect(files()).toEqual([]);
  state.problem = undefined;
  const first = mapping('scale');
  await save(first);
  const { hash } = readInstrumentFile('scale', config) ?? {};
  state.problem = 'another instrument has a mistake';
  expect(await save(mapping('scale', '    drift: hold\n'), hash)).toMatchObject({ done: false });
  expect(readInstrumentFile('scale', config)?.text).toBe(first);
});

test('what is saved twice does not replace the one that was kept', async () => {
  const { folder, config, save } = site();
  const [first, second] = [mapping('scale'), mapping('scale', '    drift: hold\n')];
  await save(first);
  for (let time = 0; time < 2; time++)
    expect(await save(second, readInstrumentFile('scale', config)?.hash)).toMatchObject({ done: true });
  expect(readFileSync(join(folder, 'instruments.d', 'scale.yaml.bak'), 'utf8')).toBe(first);
});

test('a test that passes is saved together with its sample, also one without a folder of its own', async () => {
  const { save, files } = site();
  const tests = '    tests: [{ file: samples/w1.csv, expect: { title: w1 (scale), readings: 1 } }]\n';
  expect(await save(mapping('scale', tests))).toMatchObject({ done: true });
  expect(files()).toEqual(['samples', 'samples/w1.csv', 'scale.yaml']);
});

test('two instruments have samples of the same name, and the test of each reads its own', async () => {
  const { folder, save, files } = site();
  const tests = (name: string, readings: number) =>
    `    tests: [{ file: samples/${name}/w1.csv, expect: { readings: ${readings} } }]\n`;
  expect(await save(mapping('scale', tests('scale', 1)))).toMatchObject({ done: true });
  mkdirSync(join(folder, 'new'));
  const other = { ...SAMPLE, content: Buffer.from('Sample,Weight (g)\nS1,1.5\nS2,1.6\n') };
  const second = mapping('balance', tests('balance', 2)).replace('../data', '../new');
  expect(await save(second, undefined, other)).toMatchObject({ done: true });
  expect(files()).toContain('samples/scale/w1.csv');
  expect(readFileSync(join(folder, 'instruments.d/samples/balance/w1.csv'))).toEqual(other.content);
  expect(readFileSync(join(folder, 'instruments.d/samples/scale/w1.csv'))).toEqual(SAMPLE.content);
});

test('only files of instruments can be opened', () => {
  const { folder, config } = site();
  mkdirSync(join(folder, 'instruments.d'));
  writeFileSync(join(folder, 'secret.yaml'), 'key');
  for (const name of ['../secret', '..', '', '../labfeed', '/etc/labfeed/config'])
    expect([name, readInstrumentFile(name, config)]).toEqual([name, undefined]);
});

test('without the include, or with other mistakes in the configuration, nothing is written', async () => {
  const alone = site('');
  expect(await alone.save(mapping('scale'))).toMatchObject({
    done: false,
    text: expect.stringContaining('add the line include: instruments.d/*.yaml'),
  });
  const wide = site('include: instruments.d/*\n');
  expect(await wide.save(mapping('scale'))).toMatchObject({ done: false });
  const wrong = site('include: instruments.d/*.yaml\nalarmz: {}\n');
  expect(await wrong.save(mapping('scale'))).toMatchObject({ done: false, text: expect.stringContaining('alarmz') });
  expect([...alone.files(), ...wide.files(), ...wrong.files()]).toEqual([]);
});
