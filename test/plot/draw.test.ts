import { inflateSync } from 'node:zlib';
import { SaxesParser } from 'saxes';
import { describe, expect, test } from 'vitest';
import { choosePlot, describePlot, isPlot } from '../../src/map/plot.js';
import type { Table } from '../../src/model.js';
import { drawPlot, drawSvg } from '../../src/plot/draw.js';
import { record, table, v } from '../support/map-samples.js';
import { cpuMs } from '../support/until.js';

function plotOf(given: Table) {
  const plot = choosePlot(record({}, given));
  if (!isPlot(plot)) throw new Error(plot.reason);
  return plot;
}

function svgOf(given: Table): string {
  const plot = plotOf(given);
  return drawSvg(plot, describePlot(plot));
}

/** The texts of a picture, in the order in which they are drawn. Throws if it is not well-formed XML. */
function textsOf(svg: string): string[] {
  const texts: string[] = [];
  const parser = new SaxesParser();
  parser.on('text', (text) => void (text.trim() && texts.push(text)));
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(svg).close();
  return texts;
}

const upTo = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));
const spectrum = table(
  's',
  ['Wavelength (nm)', 'A (AU)'],
  upTo(200, (i) => [v(400 + i), v(Math.sin(i / 20))]),
);
const paths = (svg: string) =>
  [...svg.matchAll(/<path d="(M[^"]*)"[^>]*stroke="#0072b2"/g)].map(([, path = '']) => path);

describe('the SVG', () => {
  test('has titles with units, and ticks', () => {
    expect(textsOf(svgOf(spectrum))).toEqual(expect.arrayContaining(['Wavelength (nm)', 'A (AU)', '400', '0.5']));
  });

  test('names several series in a legend, escaped and on one line', () => {
    const odd = ['<script>1', '"µ" & 2', 'a\nb 3'].map((name) => ({ name, unit: 'V' }));
    const rows = upTo(9, (i) => [v(i), v(i), v(2 * i), v(3 * i)]);
    const svg = svgOf({ name: 't', columns: [{ name: 'time', unit: 's' }, ...odd], rows, count: rows.length });
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['<script>1', '"µ" & 2', 'a b 3', 'value (V)']));
    expect(svg).not.toContain('<script');
  });

  test('has a gap where a value is missing, and a dot for a value between two gaps', () => {
    const rows = [1, 2, null, 3, null, 4, 5].map((y, i) => [v(i), v(y)]);
    const [line = ''] = paths(svgOf(table('t', ['time (s)', 'y (V)'], rows)));
    expect(line.match(/M/g)).toHaveLength(3);
    expect(line.match(/h0/g)).toHaveLength(1);
  });

  test.each([
    ['tiny', 1e-300, '10⁻³⁰⁰'],
    ['small', 1e-7, '10⁻⁹'],
    ['large', 3e8, '10⁹'],
    ['huge', 1e299, '10²⁹⁷'],
  ])('%s numbers are multiples of a power of ten', (_, size, power) => {
    const svg = svgOf(
      table(
        't',
        ['time (s)', 'I (A)'],
        upTo(9, (i) => [v(i), v(i * size)]),
      ),
    );
    expect(textsOf(svg)).toContain(`I (${power} A)`);
    expect(textsOf(svg).filter((text) => text.length > 12 && !text.startsWith('line'))).toEqual([]);
  });

  test('a column named after its unit has a power without the unit', () => {
    const rows = upTo(9, (i) => [v(i), v(i * 3e8)]);
    expect(textsOf(svgOf(table('t', ['time (s)', 'counts (counts)'], rows)))).toContain('counts (10⁹)');
  });

  test('constant and negative values, and dates', () => {
    expect(
      svgOf(
        table(
          't',
          ['time (s)', 'y (V)'],
          upTo(9, (i) => [v(i), v(-3)]),
        ),
      ),
    ).not.toContain('NaN');
    const days = svgOf(
      table(
        't',
        ['Date', 'y (V)'],
        upTo(9, (i) => [v(`2026-03-0${i + 1}`), v(-i)]),
      ),
    );
    expect(textsOf(days)).toContainEqual(expect.stringMatching(/^2026-03-0\d$/));
    const hours = svgOf(
      table(
        't',
        ['Date', 'y (V)'],
        upTo(9, (i) => [v(`2026-03-01T0${i}:00:00`), v(-i)]),
      ),
    );
    expect(textsOf(hours)).toEqual(expect.arrayContaining(['02:00', 'Date (2026-03-01)']));
  });

  test('bars start at zero', () => {
    const svg = svgOf(
      table(
        't',
        ['Sample', 'c (mg/l)'],
        [
          [v('a'), v(90)],
          [v('b'), v(null)],
          [v('c'), v(100)],
        ],
      ),
    );
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['0', '100', 'a', 'b', 'c', 'Sample', 'c (mg/l)']));
    expect(svg.match(/<path d="M[^"]*" fill="#0072b2"/)?.[0].match(/M/g)).toHaveLength(2);
  });

  test('a plate has its letters and numbers, a colour for each value and none for a missing one', () => {
    const rows = upTo(12, (i) => [v(`B${i + 1}`), i === 4 ? v(null, 'OVER') : v(i)]);
    const svg = svgOf(table('t', ['well', 'OD (AU)'], rows));
    expect(textsOf(svg)).toEqual(expect.arrayContaining(['A', 'H', '12', 'OD (AU)', '11.0']));
    expect(svg.match(/fill="#ffffff" stroke="#d0d0d0"/g)).toHaveLength(85);
  });

  test('labels of one axis do not overlap', () => {
    const xs = [...svgOf(spectrum).matchAll(/<text x="([\d.]+)" y="(\d+)" text-anchor="middle">/g)];
    const at = xs.map(([, x]) => Number(x)).sort((a, b) => a - b);
    for (const [i, x] of at.slice(1).entries()) expect(x - (at[i] ?? 0)).toBeGreaterThan(30);
  });

  test('96 curves of 10,000 points are drawn within a second and 1 MB', () => {
    const names = upTo(96, (i) => `${String.fromCharCode(65 + Math.floor(i / 12))}${(i % 12) + 1}`);
    const rows = upTo(10_000, (i) => [v(i / 7), ...names.map((_, n) => v(Math.sin(i / 900 + n)))]);
    const plot = plotOf(table('t', ['time (s)', ...names], rows));
    const start = cpuMs();
    const svg = drawSvg(plot, '');
    expect(svg.length).toBeLessThan(1_000_000);
    expect(cpuMs() - start).toBeLessThan(1000);
    expect(textsOf(svg)).toContain('96 series, coloured in this order');
  });
});

/** The colours of a PNG with 8 bits per channel, as text, with how often they occur. */
function coloursOf(png: Uint8Array) {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const [width, height, channels] = [view.getUint32(16), view.getUint32(20), png[25] === 6 ? 4 : 3];
  const parts: Uint8Array[] = [];
  for (let at = 8; at < png.length; ) {
    const length = view.getUint32(at);
    if (String.fromCharCode(...png.subarray(at + 4, at + 8)) === 'IDAT')
      parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const data = inflateSync(Buffer.concat(parts));
  return { width, height, bytes: data.length, isWhole: data.length === height * (width * channels + 1) };
}

test('a PNG has half again as many pixels, and has the text in its own font', async () => {
  const plot = plotOf(spectrum);
  const png = await drawPlot(plot, '', 'png');
  if (typeof png === 'string') throw new Error('not a PNG');
  expect([...png.subarray(0, 8)]).toEqual([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  expect(coloursOf(png)).toMatchObject({ width: 1200, height: 675, isWhole: true });
  const { toPng } = await import('../../src/plot/svg.js');
  const without = await toPng(drawSvg(plot, '').replaceAll(/<text.*?<\/text>/g, ''));
  const blank = await toPng('<svg xmlns="http://www.w3.org/2000/svg" width="800" height="450"/>');
  // Text and line each add to the compressed size.
  expect(png.length).toBeGreaterThan(without.length * 1.1);
  expect(without.length).toBeGreaterThan(blank.length * 1.5);
});
