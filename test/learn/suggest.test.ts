import { expect, test } from 'vitest';
import { commonFolder, suggestFiles, suggestName, suggestTitle } from '../../src/learn/learn.js';
import { record, v } from '../map/samples.js';

test('an instrument is called after its folder, or after the sample where any folder is called so', () => {
  expect(suggestName('/srv/nanodrop', ['/srv/nanodrop/run-17.tsv'])).toBe('nanodrop');
  expect(suggestName('/home/ada/samples', ['/home/ada/samples/Plate Reader 2026-04-01.txt'])).toBe(
    'Plate Reader',
  );
  expect(suggestName('/', ['/fridge_3.csv'])).toBe('fridge');
  expect(suggestName('/srv/Gerät (neu)/', ['/srv/x.csv'])).toBe('Gerät -neu');
  expect(suggestName('/data', ['/data/0001.csv'])).toBe('data');
  expect(suggestName('/', ['/0001.csv'])).toBe('instrument');
});

test('the folder is the one that holds all samples', () => {
  expect(commonFolder(['/srv/a/1.csv', '/srv/a/2.csv'])).toBe('/srv/a');
  expect(commonFolder(['/srv/a/1.csv', '/srv/a/b/2.csv', '/srv/ab/3.csv'])).toBe('/srv');
});

test('the globs fit the endings of the samples, in folders below where they are there', () => {
  expect(suggestFiles('/d', ['/d/1.csv', '/d/2.csv'])).toBe('*.csv');
  expect(suggestFiles('/d', ['/d/a/1.csv', '/d/2.csv'])).toBe('**/*.csv');
  expect(suggestFiles('/d', ['/d/1.csv', '/d/2.TXT'])).toEqual(['*.TXT', '*.csv']);
  expect(suggestFiles('/d', ['/d/README'])).toBe('*');
  expect(suggestFiles('/d', ['/d/1.d(x)'])).toBe('*.d\\(x\\)');
});

test('the title is made of the fact that names the sample in all files, else of the name of the file', () => {
  const named = (facts: Record<string, string>) =>
    record(Object.fromEntries(Object.entries(facts).map(([name, text]) => [name, v(text)])));
  const title = (...files: Record<string, string>[]) => suggestTitle(files.map(named));
  expect(title({ 'Run date': 'x', 'Sample volume': '2', 'Sample ID': 'S1', Name: 'n' })).toBe(
    '{{ meta["Sample ID"] }} ({{ instrument }})',
  );
  expect(title({ Sample: 'S1', Name: 'a' }, { Sample: '', Name: 'b' })).toBe(
    '{{ meta.Name }} ({{ instrument }})',
  );
  expect(title({ Sample: 'S1' }, { Name: 'b' })).toBe('{{ file.stem }} ({{ instrument }})');
  expect(title({ 'Sample "x" }}': 'S1' })).toBe('{{ file.stem }} ({{ instrument }})');
});
