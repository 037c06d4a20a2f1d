import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { sampleFiles } from '../../src/commands/demo.js';
import { labfeed } from '../support/labfeed.js';
import { tempFolder } from '../support/temp-folder.js';

/** The files of a sample instrument in a folder of its name. */
function samples(instrument: string): { folder: string; files: string[] } {
  const folder = join(tempFolder(), instrument);
  mkdirSync(folder);
  const files = sampleFiles(new Date()).filter((file) => file.instrument === instrument);
  for (const { name, content } of files) writeFileSync(join(folder, name), content);
  return { folder, files: files.map(({ name }) => join(folder, name)) };
}

for (const [instrument, title] of [
  ['plate-reader', 'P-0007 (plate-reader)'],
  ['logger', 'fridge-3 (logger)'],
] as const) {
  test(`try --config and include accept the output of learn for a ${instrument}`, async () => {
    const { folder, files } = samples(instrument);
    const { status, stdout, stderr } = await labfeed(['learn', ...files]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(parse(stdout)).toMatchObject({ instruments: { [instrument]: { watch: folder } } });
    const site = tempFolder();
    writeFileSync(join(site, 'learned.yaml'), stdout);
    const trial = await labfeed(['try', '--config', 'learned.yaml', instrument, ...files, '--json'], site);
    expect(trial).toMatchObject({ status: 0, stderr: '' });
    const [first] = JSON.parse(trial.stdout);
    expect(first).toMatchObject({ draft: { title }, record: { tables: [{ rows: { length: 4 } }] } });

    const notebook = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }\n';
    writeFileSync(join(site, 'labfeed.yaml'), `${notebook}include: learned.yaml\n`);
    expect(await labfeed(['check', '--offline'], site)).toMatchObject({
      status: 0,
      stdout: expect.not.stringContaining('no parse'),
    });
  });
}

test('doubts are comments, whatever the files and their names contain', async () => {
  const folder = tempFolder();
  const nasty = join(folder, 'a\n# b: [.csv');
  writeFileSync(nasty, 'Sample: x\nDate: 03/04/2099\n\nWell,A260,A280\nA1,1.5,1.1\nA2,2.5,1.2\n');
  writeFileSync(join(folder, 'other.csv'), 'Dear diary\n');
  const { status, stdout } = await labfeed(['learn', nasty, 'other.csv'], folder);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^# Unsure: this mapping cannot read .*other\.csv: /m);
  expect(stdout).toMatch(
    /^# Unsure: 03\/04\/2099 is ambiguous, so runs .* are quarantined\. Write one of these under parse: dates: \{ format: "dd/m,
  );
  // Not said twice.
  expect(stdout).not.toMatch(/^# Unsure: this sample would be quarantined/m);
  expect(stdout).not.toMatch(/^ +dates:/m);
  expect(Object.keys(parse(stdout))).toEqual(['instruments']);
});

test('--json prints the same instrument and the doubts', async () => {
  const { files } = samples('plate-reader');
  const [file = ''] = files;
  const { stdout } = await labfeed(['learn', file, '--json']);
  expect(JSON.parse(stdout)).toEqual({
    instruments: {
      'plate-reader': {
        watch: expect.any(String),
        files: '*.txt',
        parse: expect.objectContaining({ delimiter: ';', decimal: ',' }),
        unread: 'quarantine',
        experiment: { title: '{{ meta.Platte | default: file.stem }} ({{ instrument }})' },
      },
    },
    doubts: [],
  });
});

test('a missing or unreadable sample is an error with exit status 1', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'empty.txt'), '');
  writeFileSync(join(folder, 'binary.dat'), Buffer.from(Array.from({ length: 512 }, (_, n) => (n * 7) % 256)));
  for (const [file, reason] of [
    ['gone.csv', /gone\.csv: no such file/],
    ['.', /expected a file/],
    ['empty.txt', /empty\.txt: .*empty/],
    ['binary.dat', /binary\.dat: [\s\S]*→ .*format: none/],
  ] as const) {
    const { status, stdout, stderr } = await labfeed(['learn', file], folder);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(reason);
  }
  expect((await labfeed(['learn'], folder)).status).toBe(2);
});
