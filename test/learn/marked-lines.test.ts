import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, refusal, rows } from '../support/reading.js';

/** Lines behind a comment mark are read without it. Patterns of a mapping see it. */

const SPECTRUM = (region: string, first: number) =>
  `# Region:         ${region}\n# Acquired:       08/24/23 14:19:47 UTC\n# Analyzer:       Phi 150\n# Analyzer Lens:  LargeArea:1.5kV\n# Analyzer Slit:  4:7x20\n# Pass Energy:    20\n# Comment:        \n\n# Cycle: 0\n#\n# Number of Scans: 1\n\n# Cycle: 0, Curve: 0, Scan: 0\n#\n# Columns:        energy rate\n#\n${[0, 1, 2, 3].map((n) => `${first - n}  15${n}98.679`).join('\n')}\n\n`;
const SPECTRA = `# Created by:      Prodigy, Version 4\n#\n# Export Settings:\n#   Prefix:        #\n#   Energy Axis:   Binding Energy\n#\n${SPECTRUM('Survey', 1350)}${SPECTRUM('Fe2p', 740)}`;

describe('spectra below lines with a comment mark', () => {
  test('end where the description of the next one starts', async () => {
    const { tables } = await read(SPECTRA);
    expect(tables.map(({ count }) => count)).toEqual([4, 4]);
    expect(rows(await read(SPECTRA), 0)[0]).toEqual({ energy: 1350, rate: 15098.679 });
    expect(rows(await read(SPECTRA), 1)[0]).toEqual({ energy: 740, rate: 15098.679 });
  });

  test('have facts whose value has a colon', async () => {
    expect(meta(await read(SPECTRA))).toMatchObject({ Region: 'Survey', 'Analyzer Lens': 'LargeArea:1.5kV' });
    expect((await measured(SPECTRA)).doubts.join()).not.toContain('no line matches');
  });
});

describe('names of columns in a list above the rows', () => {
  const CAST = (names: readonly string[], last = '') =>
    `* Probe 19 data file\n* Serial = 2835\n# nquan = ${names.length}\n${names.map((name, n) => `# name ${n} = ${name}\n`).join('')}# span 0 = 7.6, 11.1\n# span 1 = 2.2, 3.5\n# interval = seconds: 0.5\n*END*\n${[0, 1, 2, 3].map((n) => `    11.05${n}0   3.44535${n}      3.85${n} -9.990e-29${last}\n`).join('')}`;
  const NAMES = ['t0: Temperature [ITS-90, deg C]', 'c0: Conductivity [S/m]', 'p: Pressure [db]', 'flag:  0.000e+00'];

  test('are theirs, with units, and numbers with a single blank between them are two', async () => {
    const record = await read(CAST(NAMES));
    expect(columns(record)).toEqual([
      't0: Temperature (ITS-90) [deg C]',
      'c0: Conductivity [S/m]',
      'p: Pressure [db]',
      'flag',
    ]);
    expect(rows(record)[1]).toMatchObject({ 'p: Pressure': 3.851, flag: -9.99e-29 });
    expect(meta(record)).toMatchObject({ Serial: 2835 });
  });

  test('are read anew from each file', async () => {
    const { mapping } = await measured(CAST(NAMES));
    const others = ['p: Pressure [db]', 't0: Temperature [deg C]', 's: Salinity [PSU]', 'flag: 0'];
    expect(columns(await read(CAST(others), mapping))[0]).toBe('p: Pressure [db]');
    expect((await refusal(CAST(NAMES.slice(1)), mapping)).message).toContain('has 4 cells, but the header has 3');
    expect((await refusal(CAST([]), mapping)).message).toContain('no line matches `header:');
  });

  test.each([
    ['Columns:\n1: Time, s\n2: Depth [m]\n3: Oxygen [umol/kg]\n', ['Time [s]', 'Depth [m]', 'Oxygen [umol/kg]']],
    ['% Station 7\n% Column 1 - Day\n% Column 2 - Depth (m)\n% Column 3 - Flag\n', ['Day', 'Depth [m]', 'Flag']],
    ['# Scan 4\n# Column.1: energy eV\n# Column.2: mu\n# Column.3: i0\n#---\n', ['energy [eV]', 'mu', 'i0']],
  ])('can be written in several ways: %j', async (above, names) => {
    expect(columns(await read(`${above}0.5 1.02 34.91\n1.5 1.55 34.92\n2.5 2.03 34.95\n3.5 2.55 34.99\n`))).toEqual(
      names,
    );
  });

  test.each([
    ['# Sensor 1: SN A17\n# Sensor 2: SN B18\n# Sensor 3: SN C19\n'],
    ['# Column 1: Depth\n# Column 2: Oxygen\n'],
    ['# Column 2: Depth\n# Column 3: Oxygen\n# Column 4: Flag\n'],
  ])('are for as many columns: %j', async (above) => {
    const record = await read(`# Station 7\n${above}0.5 1.02 34.91\n1.5 1.55 34.92\n2.5 2.03 34.95\n3.5 2.55 34.99\n`);
    expect(columns(record)).toEqual(['column 1', 'column 2', 'column 3']);
  });
});
