import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Value } from '../../src/model.js';
import { createDateReader } from '../../src/parse/values/date.js';
import { isUnit, unitAfterSlash, unitInName } from '../../src/parse/values/unit.js';
import { createValueReader, type NumberMarks } from '../../src/parse/values/value.js';

interface Setting extends Partial<NumberMarks> {
  readonly missing?: string[];
  readonly format?: string[];
}

const value = (text: string, { missing = [], format, ...marks }: Setting = {}): Value =>
  createValueReader({ decimal: undefined, thousands: undefined, ...marks, missing }, { format }).read(text);

describe('a number', () => {
  test.each([
    ['2.100', 2.1],
    ['-0.066', -0.066],
    ['+5', 5],
    ['0', 0],
    ['.5', 0.5],
    ['5.', 5],
    ['-5.00000E-002', -0.05],
    ['1e5', 1e5],
    ['−3.5', -3.5],
  ])('%s', (text, expected) => {
    expect(value(text)).toEqual({ value: expected, text });
  });

  test.each(['007', '00.5', '-012', '1e999', '12345678901234567890', '1.2.3', '0x1F', 'NaN', '1 2', '--5', 'e5'])(
    '%s stays text',
    (text) => {
      expect(value(text)).toEqual({ value: text, text });
    },
  );

  test.each<[string, Setting, number | string]>([
    ['0,0442', { decimal: ',' }, 0.0442],
    ['1.5', { decimal: ',' }, '1.5'],
    ['1.234,5', { decimal: ',', thousands: '.' }, 1234.5],
    ['1.234,5', { thousands: '.' }, 1234.5],
    ['1,234,567.8', { thousands: ',' }, 1234567.8],
    ['12,34', { thousands: ',' }, '12,34'],
    ['1,234', {}, '1,234'],
    ['1 234', { thousands: ' ' }, 1234],
    ['1\u00a0234\u00a0567', { thousands: ' ' }, 1234567],
    ["1'234", { thousands: "'" }, 1234],
  ])('%s under %j', (text, marks, expected) => {
    expect(value(text, marks).value).toBe(expected);
  });

  test('survives a round trip under any marks, with its text as written', () => {
    const marks = fc.constantFrom<Setting>(
      { decimal: '.' },
      { decimal: ',' },
      { decimal: '.', thousands: ',' },
      { decimal: ',', thousands: '.' },
      { decimal: ',', thousands: ' ' },
      { decimal: '.', thousands: "'" },
    );
    const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 });
    fc.assert(
      fc.property(number, fc.integer({ min: 0, max: 6 }), marks, (n, digits, setting) => {
        const fixed = n.toFixed(digits);
        const [whole = '', fraction] = fixed.split('.');
        const grouped = setting.thousands ? whole.replace(/\B(?=(\d{3})+$)/g, setting.thousands) : whole;
        const text = fraction === undefined ? grouped : grouped + (setting.decimal ?? '.') + fraction;
        expect(value(text, setting)).toEqual({ value: Number(fixed), text });
      }),
    );
  });
});

describe('a number with a unit', () => {
  test.each<[string, number, string]>([
    ['12.4 mg', 12.4, 'mg'],
    ['50.00 °C', 50, '°C'],
    ['2.9%', 2.9, '%'],
    ['10 K', 10, 'K'],
    ['400.000   cm', 400, 'cm'],
    ['1500 mAh', 1500, 'mAh'],
    ['12.4mg', 12.4, 'mg'],
    ['+   12.40315 g', 12.40315, 'g'],
    ['-  0.5 mg', -0.5, 'mg'],
    ['0.51230(um)', 0.5123, 'um'],
    ['85.2 [%]', 85.2, '%'],
    ['7.886 g/cc', 7.886, 'g/cc'],
    ['6.58e-05 1/Torr', 6.58e-5, '1/Torr'],
    ['0.251V', 0.251, 'V'],
    ['-1.2e-5A', -1.2e-5, 'A'],
  ])('%s', (text, number, unit) => {
    expect(value(text)).toEqual({ value: number, text, unit });
  });

  test.each([
    '1A',
    '3C',
    '5517.525N',
    '5 apples',
    '12.4 mg extra',
    '8 Default',
    'mg',
    '1 of 3',
    '2nd',
    '5 1/2',
    '1/s',
    '12.5 (A)',
    '12 (x)',
  ])('%s is text', (text) => {
    expect(value(text)).toEqual({ value: text, text });
  });
});

describe('no value', () => {
  test('a missing value is null and keeps its text', () => {
    expect(value(' OVRFLW ', { missing: ['OVRFLW'] })).toEqual({ value: null, text: 'OVRFLW' });
    expect(value('-327.67', { missing: ['-327.67'] })).toEqual({ value: null, text: '-327.67' });
  });

  test.each(['< 20.00', '>3.5', '<=1e3', '≥ 7', '< 5 mg'])('%s is beyond the range: null, with its sign', (text) => {
    expect(value(text)).toEqual({ value: null, text });
  });

  test.each(['<', '<Company name>', '> see below'])('%s is text', (text) => {
    expect(value(text).value).toBe(text);
  });

  test('an empty cell has neither value nor text', () => {
    expect(value('  ')).toEqual({ value: null, text: '' });
  });
});

describe('a date', () => {
  test('must match a format completely', () => {
    const format = ['M/d/yyyy h:mm:ss a'];
    expect(value('7/19/2023 3:27:29 PM', { format })).toEqual({
      value: '2023-07-19T15:27:29',
      text: '7/19/2023 3:27:29 PM',
    });
    expect(value('7/19/2023', { format }).value).toBe('7/19/2023');
  });

  test('takes precedence over a number', () => {
    expect(value('20231120', { format: ['yyyyMMdd'] }).value).toBe('2023-11-20');
    expect(value('20231320', { format: ['yyyyMMdd'] }).value).toBe(20231320);
  });

  test('is ISO without a format', () => {
    expect(value('2026-02-28 10:00').value).toBe('2026-02-28T10:00:00');
    expect(value('2026-02-30').value).toBe('2026-02-30');
  });

  test('is not read from epoch or serial numbers unless typed', () => {
    const reader = createDateReader({ format: ['epoch', 'excel'] });
    expect(reader.read('1741720420')).toBeUndefined();
    expect(reader.readAsDate('1741720420')).toBe('2025-03-11T19:13:40Z');
  });
});

test('the text of any cell is kept as written', () => {
  const cell = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789.,-+eE<> %mgµ/:') }));
  fc.assert(
    fc.property(cell, (text) => {
      const read = value(text, { missing: ['N/A'], format: ['iso', 'dd/MM/yyyy HH:mm'] });
      expect(read.text).toBe(text.trim());
      if (typeof read.value === 'number') expect(Number.isFinite(read.value)).toBe(true);
    }),
  );
});

describe('units', () => {
  test.each(
    'mg ng/uL ng/µL ng/μL °C ºC degC % %rh RH(%) cm-1 cm⁻¹ m²/g W/m2 mol·L⁻¹ 1/s Pa·s rad/s cells/ml cp/µL mmol/g kPa Ω mAh V'
      .split(' ')
      .concat([
        'mS cm⁻¹',
        'umol m-2 s-1',
        'J/(g K)',
        'W/(m·K)',
        '10^6/mL',
        '1e6 cells/mL',
        'V vs Ag/AgCl',
        'Deg C',
        'Degrees C',
        'g/100 mL',
      ])
      .concat('meters/second Volts nSv/h dS/m #/cm3 Jg^-1 cm2/Vs ohm/sq MSa/s Seconds SEC'.split(' '))
      .concat(['MG/DL', 'MMOL/L', '10*9/L', 'x10⁹/L', '10e3/µL', 'mg/L as CaCO3', 'mOsm/kg', 'µIU/mL', 'MΩ cm'])
      .concat(
        'MilliVolts microsiemens/cm kOhms mAmps nanometres PCT PPM KPA Hrs inches N-m umoles/L AMU BPM mass%'.split(
          ' ',
        ),
      )
      .concat(['Deg. C', 'deg_C', 'deg C/min', 'wt %', 'sec.', 'mg per L', 'milliSiemens per centimeter']),
  )('%s is one', (unit) => {
    expect(isUnit(unit)).toBe(true);
  });

  test.each([
    'Test',
    'dPCR reaction',
    'SN 5304',
    'Inj.',
    'x',
    'Name',
    '260',
    '',
    'average',
    'A260/A280',
    '10^6',
    'A1',
    'V1',
    'mg dry',
    'Day',
    'Minute',
    'Program',
    'samples per tray',
    '1000',
  ])('%j is not a unit', (text) => {
    expect(isUnit(text)).toBe(false);
  });

  test.each([
    ['Weight (mg)', 'Weight', 'mg'],
    ['U[V]', 'U', 'V'],
    ['Humidity (RH(%))', 'Humidity', 'RH(%)'],
    ['Weight {mg}', 'Weight', 'mg'],
    ['Temp, °C', 'Temp', '°C'],
    ['C/N (%)', 'C/N', '%'],
    ['Flow rate mL/min', 'Flow rate', 'mL/min'],
    ['PAR umol/m2/s', 'PAR', 'umol/m2/s'],
    ['Temp °C', 'Temp', '°C'],
    ['RH %', 'RH', '%'],
    ['Length µm', 'Length', 'µm'],
    ['Mass /mg', 'Mass', 'mg'],
    ['Temp, °C (S/N: 203, SEN: 4)', 'Temp (S/N: 203, SEN: 4)', '°C'],
    ['DSC/(mW/mg)', 'DSC', 'mW/mg'],
    ['Time(s)', 'Time', 's'],
    ['RT(s)', 'RT', 's'],
    ['Gap (s)', 'Gap', 's'],
    ['MFC1 Measure mln/min', 'MFC1 Measure', 'mln/min'],
    ['Weight mg', 'Weight', 'mg'],
    ['Elapsed Time Seconds', 'Elapsed Time', 'Seconds'],
    ['Time Sec', 'Time', 'Sec'],
    ['Temperature Deg C', 'Temperature', 'Deg C'],
    ['Temperature Degrees Celsius', 'Temperature', 'Degrees Celsius'],
    ['Relative Humidity Pct', 'Relative Humidity', 'Pct'],
    ['temp_C', 'temp', 'C'],
    ['cell_voltage_mV', 'cell_voltage', 'mV'],
    ['Angle degrees', 'Angle', 'degrees'],
    ['Axial force_N', 'Axial force', 'N'],
    ['Loss modulus_MPa', 'Loss modulus', 'MPa'],
    ['Complex viscosity_Pa.s', 'Complex viscosity', 'Pa.s'],
    ['Shear rate_1/s', 'Shear rate', '1/s'],
    ['Oscillation strain_%', 'Oscillation strain', '%'],
    ['conc_mg/L', 'conc', 'mg/L'],
    ['Total (x10^6) cells/mL', 'Total', 'x10^6 cells/mL'],
    ['BEAMKV   -kV', 'BEAMKV', 'kV'],
    ['DWELLTIME-ms', 'DWELLTIME', 'ms'],
    ['GP in 1/s', 'GP', '1/s'],
    ['Tau in Pa', 'Tau', 'Pa'],
    ['t in s', 't', 's'],
    ['U in V', 'U', 'V'],
    ['T in °C', 'T', '°C'],
    ['Force standard in kPa', 'Force standard', 'kPa'],
    ['Time in seconds', 'Time', 'seconds'],
  ])(
    '%s has a unit in brackets, after a comma, after the word in, or at its end if it is no word or fits the name',
    (written, name, unit) => {
      expect(unitInName(written)).toEqual({ name, unit });
    },
  );

  test.each([
    'Events/µL(V)',
    'Conc. (dPCR reaction)',
    '(mg)',
    'Analysis(Inj.)',
    'mg',
    'Sensor, A',
    'Ratio S/N',
    'Temperature T/K',
    'Cells/mL',
    'Change in K',
    'Fe in C',
    'Cells in particles',
    'Filter in place',
    'Distance in',
    'Counts/s',
    'Gain/Volt',
    'pA/mV',
    'Voltage/Current',
    'Run time/day',
    'Temperature coefficient/K',
    'Concentration/high/low',
    'Net mg',
    'Running Hours',
    'Hours',
    'Time Min',
    'Current A',
    'Current_A',
    'ratio_A/C',
    'Temp C',
    'temp_c',
    'Absorbance 450 mAU',
    'Volume per time s',
    'Temp 1 deg C',
    'mL/min',
    'Well (A1)',
    ', mg',
    'Totals without ISTD(s)',
    'Peak(s)',
    'LEVEL-min',
    'SAMPLE-A',
    'Sample-mg',
    'STEP -x',
    'SAMPLE-count',
    'FIRMWARE-rev',
    'DATE-mm',
  ])('%s has no unit', (written) => {
    expect(unitInName(written)).toBeUndefined();
  });

  test.each([
    ['freq/Hz', 'freq', 'Hz'],
    ['Re(Z)/Ohm', 'Re(Z)', 'Ohm'],
    ['rate/mV/s', 'rate', 'mV/s'],
    ['T/°C', 'T', '°C'],
    ['DSC/(mW/mg)', 'DSC', 'mW/mg'],
    ['Flow rate mL/min', 'Flow rate', 'mL/min'],
    ['step time/s', 'step time', 's'],
    ['t/h', 't', 'h'],
    ['T/K', 'T', 'K'],
    ['Ux/V', 'Ux', 'V'],
    ['I/A', 'I', 'A'],
    ['B/T', 'B', 'T'],
    ['Z/Ω', 'Z', 'Ω'],
  ])('%s has a unit after the slash', (written, name, unit) => {
    expect(unitAfterSlash(written, false)).toEqual({ name, unit });
  });

  test.each(['pulses/min', 'Gas flow xyz/min', 'Events/s'])('%s is a number per time, not a time', (written) => {
    expect(unitAfterSlash(written, false)).toBeUndefined();
  });

  test.each(['C/N', 'H/L', 'A/C', 'Na/K', 'Fe/N'])('%s is a ratio, in numeric columns too', (written) => {
    expect(unitAfterSlash(written, true)).toBeUndefined();
  });

  test('an unknown unit after a slash counts only in numeric columns', () => {
    expect(unitAfterSlash('Signal/foo', false)).toBeUndefined();
    expect(unitAfterSlash('Signal/foo', true)).toEqual({ name: 'Signal', unit: 'foo' });
    // A ratio to a reference.
    expect(unitAfterSlash('p/p0', true)).toBeUndefined();
  });
});
