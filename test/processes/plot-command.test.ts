import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { labfeed } from '../support/labfeed.js';
import { tempFolder } from '../support/temp-folder.js';

const SPECTRUM = `Wavelength (nm),Absorbance (AU)\n${Array.from({ length: 50 }, (_, i) => `${400 + i},${i % 7}`).join('\n')}\n`;

function site(plot = 'auto'): string {
  const folder = tempFolder();
  writeFileSync(join(folder, 'a.csv'), SPECTRUM);
  writeFileSync(join(folder, 'one.csv'), 'Wavelength (nm),Absorbance (AU)\n400,1\n');
  writeFileSync(
    join(folder, 'labfeed.yaml'),
    `notebook: { url: "https://eln.example.org", key: { env: KEY } }
instruments:
  uv:
    watch: .
    parse: { delimiter: ",", table: {} }
    experiment:
      plot: ${plot}
    tests:
      - { file: a.csv, expect: { readings: 50 } }
`,
  );
  return folder;
}

test('try --plot writes SVG or PNG, says what it plots, and overwrites nothing', async () => {
  const folder = site();
  const svg = await labfeed(['try', 'uv', 'a.csv', '--plot', 'a.svg'], folder);
  expect(svg).toMatchObject({ status: 0, stderr: '' });
  expect(svg.stdout).toContain('plot        line plot of Absorbance (AU) against Wavelength (nm)\n');
  expect(readFileSync(join(folder, 'a.svg'), 'utf8')).toContain('>Wavelength (nm)</text>');
  expect((await labfeed(['try', 'uv', 'a.csv', '--plot', 'a.png'], folder)).status).toBe(0);
  expect(readFileSync(join(folder, 'a.png')).subarray(1, 4).toString()).toBe('PNG');
  const again = await labfeed(['try', 'uv', 'a.csv', '--plot', 'a.svg'], folder);
  expect(again).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('a.svg already exists and was not overwritten'),
  });
  expect(await labfeed(['try', 'uv', 'a.csv', '--plot', 'a.jpg'], folder)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('ends in .svg or .png'),
  });
});

test('try shows the body as text, and its source with --html', async () => {
  const folder = site();
  const text = await labfeed(['try', 'uv', 'a.csv'], folder);
  expect(text.stdout).toMatch(/^ {2}Absorbance +AU +50 +0 +3 +6$/m);
  expect(text.stdout).not.toContain('<td>');
  const source = await labfeed(['try', 'uv', 'a.csv', '--html'], folder);
  expect(source.stdout).toContain('<tr><td>Absorbance</td><td>AU</td><td>50</td>');
});

test('without a plot, try says why and writes no file', async () => {
  const folder = site();
  const { status, stdout } = await labfeed(['try', 'uv', 'one.csv', '--plot', 'one.svg'], folder);
  expect(status).toBe(0);
  expect(stdout).toContain('plot        none: the table has fewer than two rows\n');
  expect(existsSync(join(folder, 'one.svg'))).toBe(false);
  const json = async (file: string) => JSON.parse((await labfeed(['try', 'uv', file, '--json'], folder)).stdout).plot;
  expect(await json('one.csv')).toEqual({ kind: 'none', reason: 'the table has fewer than two rows' });
  expect(await json('a.csv')).toEqual({ kind: 'line', x: 'Wavelength', y: ['Absorbance'], unit: 'AU', notes: [] });
});

test('check names a column of the plot that the samples lack, at its line', async () => {
  const folder = site('{ x: Wavelenght, y: Absorbance }');
  const { status, stdout } = await labfeed(['check', '--offline'], folder);
  expect(status).toBe(1);
  expect(stdout).toMatch(
    /labfeed\.yaml:7:18: a\.csv, experiment\.plot\.x: the file has no column "Wavelenght" \(did you mean "Wavelength"\?\)/,
  );
  const wrong = await labfeed(['check', '--offline'], site('{ x: Wavelength, y: Absorbance, kind: pie }'));
  expect(wrong).toMatchObject({ status: 78, stderr: expect.stringMatching(/labfeed\.yaml:7:\d+: /) });
});
