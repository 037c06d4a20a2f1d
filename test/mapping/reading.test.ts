import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { createMapping } from '../../src/mapping/mapping.js';
import { readRun } from '../../src/mapping/reading.js';
import { openSample } from '../../src/mapping/sample.js';
import { tempFolder } from '../support/temp-folder.js';

const spectrum = `Sample,S1\n\nWavelength (nm),Absorbance (AU)\n${Array.from({ length: 50 }, (_, n) => `${400 + n},0.${100 + n}`).join('\n')}\n`;

async function read(content: string, experiment = '{}', isPlotted = true) {
  const folder = tempFolder();
  const config = join(folder, 'labfeed.yaml');
  const path = join(folder, 's1.csv');
  writeFileSync(config, `instruments:\n  uv: { watch: ., experiment: ${experiment} }\n`);
  writeFileSync(path, content);
  const [instrument = expect.fail('no instrument')] = loadConfig(config).instruments;
  return readRun(await openSample(path), createMapping(instrument), 1_700_000_000_000, { isPlotted });
}

test('the plot is a PNG after the facts, and the same bytes each time', async () => {
  const first = await read(spectrum);
  expect(first.plot).toMatchObject({ description: 'line plot of Absorbance (AU) against Wavelength (nm)' });
  expect(Buffer.from(first.plot?.png ?? []).toString('latin1', 1, 4)).toBe('PNG');
  expect(first.draft?.body.slice(0, first.plot?.at)).toMatch(
    /^<table>\n<tr><th>Sample<\/th><td>S1<\/td><\/tr>\n<\/table>\n$/,
  );
  expect((await read(spectrum)).plot).toEqual(first.plot);
  expect((await read(spectrum, '{}', false)).plot).toBeUndefined();
});

test('with a body of the mapping, the plot is at its end, before the origin', async () => {
  const { draft, plot } = await read(spectrum, '{ body: "<p>mine</p>" }');
  expect(draft?.body.slice(0, plot?.at)).toBe('<p>mine</p>\n');
});

test('without a plot, there is a reason', async () => {
  expect((await read('Sample,Weight (mg)\nA,1.5\n')).plot).toMatchObject({
    ...{ reason: 'the table has fewer than two rows', isFailed: false },
  });
});

test('a plot that cannot be drawn does not concern the run', async () => {
  vi.doMock('@resvg/resvg-js', () => {
    throw new Error('not installed');
  });
  onTestFinished(() => vi.doUnmock('@resvg/resvg-js'));
  vi.resetModules();
  const { draft, plot } = await read(spectrum);
  expect(draft?.title).toBe('s1 (uv)');
  expect(plot).toMatchObject({ reason: expect.stringContaining('PNG needs the optional package'), isFailed: true });
});
