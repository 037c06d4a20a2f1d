import { describe, expect, test } from 'vitest';
import { measured, meta, read, rows } from '../support/reading.js';

/** Lines behind a comment mark are read without it. Patterns of a mapping see it. */

const SPECTRUM = (region: string, first: number) =>
  `# Region:         ${region}\n# Acquired:       08/24/23 14:19:47 UTC\n# Analyzer:       Phi 150\n# Analyzer Lens:  LargeArea:1.5kV\n# Analyzer Slit:  4:7x20\n# Pass Energy:    20\n# Comment:        \n\n# Cycle: 0\n#\n# Number of Scans: 1\n\n# Cycle: 0, Curve: 0, Scan: 0\n#\n# Labels:         energy rate\n#\n${[0, 1, 2, 3].map((n) => `${first - n}  15${n}98.679`).join('\n')}\n\n`;
const SPECTRA = `# Created by:      Prodigy, Version 4\n#\n# Export Settings:\n#   Prefix:        #\n#   Energy Axis:   Binding Energy\n#\n${SPECTRUM('Survey', 1350)}${SPECTRUM('Fe2p', 740)}`;

describe('spectra below lines with a comment mark', () => {
  test('end where the description of the next one starts', async () => {
    const { tables } = await read(SPECTRA);
    expect(tables.map(({ count }) => count)).toEqual([4, 4]);
    expect(rows(await read(SPECTRA), 0)[0]).toEqual({ 'column 1': 1350, 'column 2': 15098.679 });
    expect(rows(await read(SPECTRA), 1)[0]).toEqual({ 'column 1': 740, 'column 2': 15098.679 });
  });

  test('have facts whose value has a colon', async () => {
    expect(meta(await read(SPECTRA))).toMatchObject({ Region: 'Survey', 'Analyzer Lens': 'LargeArea:1.5kV' });
    expect((await measured(SPECTRA)).doubts.join()).not.toContain('no line matches');
  });
});
