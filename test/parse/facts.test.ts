import { describe, expect, test } from 'vitest';
import { meta, read, refusal, rows } from '../support/reading.js';

describe('`meta`', () => {
  test('splits a line at its first separator and trims both sides', async () => {
    const text = 'Operator : Ada\nStarted:  07:57:53\nno separator here\nPath: C:\\data\n';
    expect(meta(await read(text, { meta: { separator: ':' } }))).toEqual({
      Operator: 'Ada',
      Started: '07:57:53',
      Path: 'C:\\data',
    });
  });

  test('a separator of several characters is literal', async () => {
    const text = 'Humidity = %rh,,,\nCable : a=b,,\n';
    expect(meta(await read(text, { delimiter: ',', meta: { separator: ' = ' } }))).toEqual({
      Humidity: '%rh',
    });
  });

  test('trailing punctuation of names and trailing delimiters are dropped', async () => {
    const text = 'Serial No:,0000-17,,\nActive?,true,\nNote =,"a, b",\n';
    expect(meta(await read(text, { delimiter: ',', meta: { separator: ',' } }))).toEqual({
      'Serial No': '0000-17',
      Active: 'true',
      Note: 'a, b',
    });
  });

  test('`value: each` makes every piece a value: a unit belongs to the number before it, a sign to the one after', async () => {
    const text = 'Gains,1,2\nRange,0,100,nm\nTare,-,1.5,g\nMode,fast,,cold\nLot,\n';
    const record = await read(text, { delimiter: ',', meta: { separator: ',', value: 'each' } });
    expect(meta(record)).toEqual({
      ...{
        Gains: 1,
        'Gains (2)': 2,
        Range: 0,
        'Range (2)': 100,
        Tare: -1.5,
        Mode: 'fast',
        'Mode (2)': 'cold',
        Lot: null,
      },
    });
    expect([record.meta.get('Range (2)')?.unit, record.meta.get('Tare')?.unit]).toEqual(['nm', 'g']);
  });

  test('`value: each` gives the unit after limits to the value before them', async () => {
    const text = 'ALB  3.4  2.5-4.4  G/DL\nALT  142 *  10-118  U/L\n';
    const record = await read(text, { delimiter: 'spaces', meta: { separator: 'spaces', value: 'each' } });
    expect(meta(record)).toMatchObject({ ALB: 3.4, 'ALB (2)': '2.5-4.4', ALT: '142 *', 'ALT (2)': '10-118' });
    expect(record.meta.get('ALB')?.unit).toBe('G/DL');
  });

  test('alternating cells: a pair after a title is one of its own, and a number is no name', async () => {
    const text = 'TitroLine 7000  Serial no.: 1004\nEnd pH  7.0\nResult  Total acidity  4.66 g/l\nSample:  Wine  12\n';
    expect(meta(await read(text, { delimiter: 'spaces', meta: { separator: 'cell' } }))).toEqual({
      ...{ 'Serial no.': 1004, 'End pH': 7, 'Result Total acidity': 4.66, Sample: 'Wine' },
    });
  });

  test('a line that a finder is for is not read by a general one', async () => {
    const text = 'Sample,X1\nConstants,Time,4\nLot,7\n';
    const finders = [{ separator: ',' }, { line: 'Constants', cells: { time: 3 } }];
    expect(meta(await read(text, { delimiter: ',', meta: finders }))).toEqual({ Sample: 'X1', Lot: 7, time: 4 });
  });

  test('a line that a table skips among its rows is not read', async () => {
    const mapping = { delimiter: ',', meta: { separator: ',' }, table: { header: 'x,', skip: 'mean' } };
    expect(meta(await read('Lot,7\nx,y\n1,2\nmean,3\n4,5\n', mapping))).toEqual({ Lot: 7 });
  });

  test('a name without a value has none, wherever the value is', async () => {
    const mapping = { delimiter: ',', meta: { separator: ',', value: 2, unit: 3 } };
    expect(meta(await read('Section,,\nForce,3,mg\n', mapping))).toEqual({ Section: null, Force: 3 });
  });

  test('a value in the form that spreadsheets show as text', async () => {
    expect(meta(await read('Serial: ="1050242"\n', { meta: { separator: ':' } }))).toEqual({ Serial: 1050242 });
  });

  test('a letter in brackets is a unit only behind a quantity', async () => {
    const text = 'Current (A): 2.1\nPlate (A): 12\nchannel 1 (C): 5\nCharge (C): 3\n';
    const { meta: facts } = await read(text, { meta: { separator: ':' } });
    expect([...facts].map(([name, { unit }]) => [name, unit])).toEqual([
      ...[
        ['Current', 'A'],
        ['Plate (A)', undefined],
        ['channel 1 (C)', undefined],
        ['Charge', 'C'],
      ],
    ]);
  });

  test('repeated names are numbered', async () => {
    const text = 'Alarm = 35\nAlarm = 13\nAlarm = 7\n';
    expect(meta(await read(text, { meta: { separator: '=' } }))).toEqual({
      Alarm: 35,
      'Alarm (2)': 13,
      'Alarm (3)': 7,
    });
  });

  test('a known unit in brackets moves from the name to a bare number', async () => {
    const text = 'Viability (%);68.2\nVolume (ul);200.0\nMode (V);auto\nMass (mg);5 g\nSite (north);3\n';
    const record = await read(text, { delimiter: ';', meta: { separator: ';' } });
    expect(Object.fromEntries(record.meta)).toEqual({
      Viability: { value: 68.2, text: '68.2', unit: '%' },
      Volume: { value: 200, text: '200.0', unit: 'ul' },
      'Mode (V)': { value: 'auto', text: 'auto' },
      'Mass (mg)': { value: 5, text: '5 g', unit: 'g' },
      'Site (north)': { value: 3, text: '3' },
    });
  });

  test('`value` and `unit` select pieces; without such a piece, the last one is the value', async () => {
    const text = 'Weight,8.13E-02,[g]\nTemperature,77.0,K\nGas\nName,N2\n';
    const record = await read(text, { delimiter: ',', meta: { separator: ',', value: 2, unit: 3 } });
    expect(record.meta.get('Weight')).toEqual({ value: 0.0813, text: '8.13E-02', unit: 'g' });
    expect(record.meta.get('Temperature')?.unit).toBe('K');
    expect(record.meta.get('Name')).toEqual({ value: 'N2', text: 'N2' });
    const typed = await read('TAG\tEIS\nDATE\tLABEL\t4/23/2018\tx\n', {
      meta: { separator: 'tab', value: 3 },
    });
    expect(meta(typed)).toEqual({ TAG: 'EIS', DATE: '4/23/2018' });
  });

  test('`separator: cell` reads a unit in the last cell, and cells with ` = `', async () => {
    const text = 'Wavelength,,600,nm\nModel: Power Law,k (cP) = 8401,n = 0.741\nMode;,scan\nA,1,V,2\n';
    const record = await read(text, { delimiter: ',', meta: { separator: 'cell' } });
    expect(meta(record)).toEqual({ Wavelength: 600, Model: 'Power Law', k: 8401, n: 0.741, Mode: 'scan', A: 1, V: 2 });
    expect(record.meta.get('Wavelength')?.unit).toBe('nm');
    expect(record.meta.get('k')?.unit).toBe('cP');
  });

  test('`separator: cell` alternates names and values', async () => {
    const text = '# of variables,1,,Sweep points,:,601,lonely\n';
    expect(meta(await read(text, { delimiter: ',', meta: { separator: 'cell' } }))).toEqual({
      '# of variables': 1,
      'Sweep points': 601,
    });
  });

  test('a cell with a name and a value is both', async () => {
    const text = 'Weight: 12 mg,Operator,Ada,Started,10:15,Lot:7,x\n5: 6,next\n';
    const record = await read(text, { delimiter: ',', meta: { separator: 'cell' } });
    expect(meta(record)).toEqual({
      Weight: 12,
      Operator: 'Ada',
      Started: '10:15',
      'Lot:7': 'x',
      '5: 6': 'next',
    });
    expect(record.meta.get('Weight')?.unit).toBe('mg');
  });

  test('`separator: nextLine` reads the value from the next line', async () => {
    const text = '#channels\n32768\n\n#ns/bin\n1.0\n';
    expect(meta(await read(text, { comment: '#', meta: { separator: 'nextLine' } }))).toEqual({
      channels: 32768,
      'ns/bin': 1,
    });
  });

  test('with `every`, `nextLine` reads below marked names, if one line follows', async () => {
    const text = '$ID:\nS 17\n$REMARK:\none\ntwo\n$LIVE_TIME:\n296\n$EMPTY:\n\n[DATA]\n1\n';
    expect(meta(await read(text, { meta: { every: '/^\\$\\w+:$/', separator: 'nextLine' } }))).toEqual({
      ID: 'S 17',
      LIVE_TIME: 296,
    });
  });

  test('`separator: nextRow` reads the values below a row of names', async () => {
    const text = 'Operator,Gain,Note\nAda,4,\n\nMode,Lamp\nscan,D2\n';
    const line = (start: string) => ({ line: start, separator: 'nextRow' });
    expect(meta(await read(text, { meta: [line('Operator'), line('Mode')] }))).toEqual({
      ...{ Operator: 'Ada', Gain: 4, Note: null },
      ...{ Mode: 'scan', Lamp: 'D2' },
    });
  });

  test('`nextRow` reads nothing if there are more values than names, or fewer', async () => {
    const text = 'Gain Mode\n4 fast scan\nLamp: D2\n';
    const finder = { line: 'Gain', separator: 'nextRow', delimiter: 'whitespace' };
    expect(meta(await read(text, { meta: [finder, { separator: ':' }] }))).toEqual({ Lamp: 'D2' });
    expect(meta(await read(text.replace('4 fast scan', '4'), { meta: [finder, { separator: ':' }] }))).toEqual({
      Lamp: 'D2',
    });
  });

  test('`name` says which piece is the name, also behind the value', async () => {
    const text = '12.5 mL ! injection volume\nAda ! operator\n! nothing\n';
    const every = '/\\S\\s*!/';
    expect(meta(await read(text, { meta: { every, separator: '!', name: 2 } }))).toEqual({
      'injection volume': 12.5,
      operator: 'Ada',
    });
    const cells = '4.1\tmm\tslit\n300\tnm\tstart\n';
    const record = await read(cells, { delimiter: 'tab', meta: { separator: 'tab', name: 3, unit: 2 } });
    expect(record.meta.get('slit')).toMatchObject({ value: 4.1, unit: 'mm' });
  });

  test('another cell that describes the fact has its unit', async () => {
    const text =
      'dwell_time,Dwell Time [ms],int,32\nmode,Mode [s],text,fast\nstart,End of scan [s],int,7\nmass,,,5,Mass (%),45.6\n';
    const record = await read(text, { delimiter: ',', meta: { separator: ',', value: 4 } });
    expect(Object.fromEntries(record.meta)).toEqual({
      dwell_time: { value: 32, text: '32', unit: 'ms' },
      mode: { value: 'fast', text: 'fast' },
      start: { value: 7, text: '7' },
      mass: { value: 5, text: '5' },
    });
  });

  test('lines of numbers that are facts by their place are no readings that were left out', async () => {
    const text = 'a b c\n1 2 3\nd e f\n4 5 6\ng h i\n7 8 9\n';
    const meta = [...'adg'].map((line) => ({ line, separator: 'nextRow', delimiter: 'whitespace' }));
    expect((await read(text, { meta })).unread).toEqual([]);
  });

  test.each([
    [{ every: 'x', line: 'y', separator: ':' }, 'line and every cannot be combined'],
    [{ name: 2, separator: 'cell' }, 'name needs a separator that splits the line'],
  ])('%j is refused', (finder, message) => {
    expect(() => read('x: 1\n', { meta: finder })).toThrow(message);
  });

  test('a letter directly after a number is its unit if the name says what was measured', async () => {
    const text = 'Temperature: 220K\nBias voltage: -145V\nModel: 950V\nMemory: 64K\nWell: 3C\nExposure time: 1.5s\n';
    const record = await read(text, { meta: { separator: ':' } });
    expect(meta(record)).toEqual({
      ...{ Temperature: 220, 'Bias voltage': -145, 'Exposure time': 1.5 },
      ...{ Model: '950V', Memory: '64K', Well: '3C' },
    });
    expect(record.meta.get('Bias voltage')?.unit).toBe('V');
  });

  test('a remark in brackets behind a number is no part of it', async () => {
    const text = 'Integration Time (usec): 140000 (USB2E7196)\nAveraged: 5 (auto)\nRange: 5 (10)\nNote: 12 a (b)\n';
    const record = await read(text, { meta: { separator: ':' } });
    expect(meta(record)).toEqual({ 'Integration Time': 140000, Averaged: 5, Range: '5 (10)', Note: '12 a (b)' });
    expect(record.meta.get('Integration Time')).toMatchObject({ unit: 'usec', text: '140000 (USB2E7196)' });
  });

  test('`in: cells` reads each cell as a pair', async () => {
    const text = 'User: USER,Run no.: 3,,\nID1: 472-0016,free text,\n';
    expect(meta(await read(text, { delimiter: ',', meta: { in: 'cells', separator: ':' } }))).toEqual({
      User: 'USER',
      'Run no.': 3,
      ID1: '472-0016',
    });
  });

  test('`in: name` and `in: path` read the file name and path', async () => {
    const record = await read('x,y\n1,2\n', {
      table: {},
      meta: [
        { in: 'name', match: '/^(?<plate>plate \\d+)_(?<mode>\\w+)\\./' },
        { in: 'path', match: '/^(?<folder>[^/]+)/' },
      ],
    });
    expect(meta(record)).toEqual({ plate: 'plate 7', mode: 'scan', folder: 'runs' });
  });

  test('`match` reads the first matching line, a comment without its prefix', async () => {
    const text = '!Date: Friday, May 5\n!Date: later\n# Hz S\n';
    const record = await read(text, { comment: '!', meta: { match: '/^Date: (?<day>\\w+)(?<never>x)?/' } });
    expect(meta(record)).toEqual({ day: 'Friday' });
  });

  test('`cells` selects cells of one line', async () => {
    const text = 'title\nPlate:,P1,1.3,x,Kinetic\n';
    const mapping = { delimiter: ',' };
    expect(
      meta(await read(text, { ...mapping, meta: { line: 'Plate:', cells: { plate: 2, mode: 5, more: 9 } } })),
    ).toEqual({
      plate: 'P1',
      mode: 'Kinetic',
      more: null,
    });
    expect(meta(await read(text, { ...mapping, meta: { line: 2, cells: ['_', 'plate'] } }))).toEqual({
      plate: 'P1',
    });
  });

  test('a number is a value, so among alternating cells it is no name, and neither are the cells after it', async () => {
    const text = 'title\nPlate:,P1,1.3,x,Kinetic,y\n';
    expect(meta(await read(text, { delimiter: ',', meta: { line: -1, separator: 'cell' } }))).toEqual({ Plate: 'P1' });
  });

  test('`except` leaves out names', async () => {
    const text = 'Sample: S1\nUnit: mV\nChannel: 1\nUnit: nm\n';
    const readWithout = async (except: string | string[]) =>
      meta(await read(text, { meta: { separator: ':', except } }));
    expect(await readWithout('Unit')).toEqual({ Sample: 'S1', Channel: 1 });
    expect(await readWithout(['Unit', 'Channel'])).toEqual({ Sample: 'S1' });
  });

  test('`after` and `until` give a range, which may include lines of a table', async () => {
    const text = '\n[Header]\nA=1\n\nB=2\n[Data]\nC=3\n';
    expect(meta(await read(text, { meta: { after: '[Header]', until: 'blank', separator: '=' } }))).toEqual({
      A: 1,
    });
    expect(meta(await read(text, { meta: { until: '[Data]', separator: '=' } }))).toEqual({ A: 1, B: 2 });
    expect(meta(await read(text, { meta: { until: 'blank', separator: '=' } }))).toEqual({ A: 1 });
  });

  test('lines of a table are not facts', async () => {
    const record = await read('Lot,7\n\nx,y\n1,2\n\nEnd,ok\n', {
      delimiter: ',',
      meta: { separator: ',' },
      table: { header: 'x' },
    });
    expect(meta(record)).toEqual({ Lot: 7, End: 'ok' });
    expect(rows(record)).toEqual([{ x: 1, y: 2 }]);
  });

  test('a finder may have its own delimiter', async () => {
    const text = 'Keysight,N52,MY4\n1 2 3\n';
    const record = await read(text, {
      delimiter: 'whitespace',
      meta: { line: 1, delimiter: ',', cells: ['vendor', 'model'] },
    });
    expect(meta(record)).toEqual({ vendor: 'Keysight', model: 'N52' });
  });

  test('two finders that read the same line find one fact', async () => {
    const record = await read('Mode: fast\n', { meta: [{ separator: ':' }, { match: '/(?<Mode>fast)/' }] });
    expect(meta(record)).toEqual({ Mode: 'fast' });
  });

  test.each([
    [{ after: '[Heeder]', separator: '=' }, 'after', '`after: "[Header]"`'],
    [{ line: 'Plates', cells: ['a'] }, 'line', 'Plate'],
  ])('a missing line is refused with the nearest one', async (finder, key, hint) => {
    const error = await refusal('[Header]\nA=1\nPlate: 7\n', { meta: finder });
    expect(error.message).toContain(`no line matches \`${key}`);
    expect(error.hint).toContain(hint);
  });

  test('a pattern that does not match is refused', async () => {
    const error = await refusal('A=1\n', { meta: { match: '/^B=(?<b>.+)/' } });
    expect(error.message).toContain('no line matches');
  });
});

describe('`facts`', () => {
  const text = 'Sample ID:,007\nDate,13/04/2026\nTime,10:15:00\nWeight (mg),12.5\nT,1:30:00\n';
  const mapping = { delimiter: ',', meta: { separator: ',' }, dates: { format: 'dd/MM/yyyy HH:mm:ss' } };

  test('are selected by name or cell, or joined from several', async () => {
    const record = await read(text, {
      ...mapping,
      facts: {
        sample: 'Sample ID',
        again: 'Sample ID:',
        cell: '=B1',
        date: ['Date', 'Time'],
        weight: 'Weight (mg)',
      },
    });
    expect(Object.fromEntries([...record.meta].slice(5))).toEqual({
      sample: { value: '007', text: '007' },
      again: { value: '007', text: '007' },
      cell: { value: '007', text: '007' },
      date: { value: '2026-04-13T10:15:00', text: '13/04/2026 10:15:00' },
      weight: { value: 12.5, text: '12.5', unit: 'mg' },
    });
  });

  test('can have a type, a unit or a format', async () => {
    const record = await read(text, {
      ...mapping,
      facts: {
        weight: { from: 'Weight', type: 'text' },
        mass: { from: 'Weight', unit: 'g' },
        day: { from: 'Date', format: 'dd/MM/yyyy' },
        length: { from: 'T', type: 'duration' },
        unitFromFile: { from: 'Weight', unit: { from: '=A2' } },
      },
    });
    expect(Object.fromEntries([...record.meta].slice(5))).toEqual({
      weight: { value: '12.5', text: '12.5' },
      mass: { value: 12.5, text: '12.5', unit: 'g' },
      day: { value: '2026-04-13', text: '13/04/2026' },
      length: { value: 5400, text: '1:30:00', unit: 's' },
      unitFromFile: { value: 12.5, text: '12.5', unit: 'Date' },
    });
  });

  test('a typed number keeps the unit in its name', async () => {
    const record = await read('Weight (mg): 12.40\n', {
      meta: { separator: ':' },
      facts: { weight: { from: 'Weight', type: 'number' } },
    });
    expect(record.meta.get('weight')).toEqual({ value: 12.4, text: '12.40', unit: 'mg' });
  });

  test('a missing fact is refused with the nearest name', async () => {
    const error = await refusal(text, { ...mapping, facts: { sample: 'Sample Id.' } });
    expect(error.message).toBe('there is no fact "Sample Id."');
    expect(error.hint).toBe('did you mean "Sample ID"?');
    expect((await refusal(text, { ...mapping, facts: { x: '=Z9' } })).message).toContain('no cell =Z9');
  });

  test('can give the time zone', async () => {
    const zoned = (zone: string) =>
      read(`Zone,${zone}\nDate,13/04/2026 10:15:00\n`, {
        ...mapping,
        dates: { ...mapping.dates, zone: { from: 'Zone' } },
      });
    expect(meta(await zoned('Europe/Berlin'))['Date']).toBe('2026-04-13T10:15:00+02:00');
    await expect(zoned('the moon')).rejects.toThrow('not a time zone');
  });

  test('a time zone below the table, or under your own name, applies to all dates', async () => {
    const text = 'Date,13/04/2026 10:15:00\n\nwhen,n\n13/01/2026 10:15:00,1\n\nTime zone,Europe/Berlin\n';
    for (const from of ['Time zone', 'zone', '=B6']) {
      const record = await read(text, {
        ...mapping,
        dates: { ...mapping.dates, zone: { from } },
        facts: { zone: 'Time zone' },
        table: { header: 'when' },
      });
      expect(meta(record)['Date']).toBe('2026-04-13T10:15:00+02:00');
      expect(rows(record)).toEqual([{ when: '2026-01-13T10:15:00+01:00', n: 1 }]);
    }
    await expect(read(text, { ...mapping, dates: { ...mapping.dates, zone: { from: 'Timezone' } } })).rejects.toThrow(
      'there is no fact "Timezone"',
    );
  });

  test.each([
    ['PDT', '-07:00'],
    ['CEST', '+02:00'],
    ['UTC', 'Z'],
    ['GMT+1', '+01:00'],
    ['UTC-03:30', '-03:30'],
    ['+0200', '+02:00'],
  ])('a time zone written as %s gives the offset', async (zone, offset) => {
    const record = await read(`Zone,${zone}\nDate,13/04/2026 10:15:00\n`, {
      ...mapping,
      dates: { ...mapping.dates, zone: { from: 'Zone' } },
    });
    expect(meta(record)['Date']).toBe(`2026-04-13T10:15:00${offset}`);
  });

  test('date formats are tried in order, in facts and cells', async () => {
    const record = await read('A,03/04/2026\nB,2026/04/13\n\nday\n03/14/2026\n', {
      delimiter: ',',
      dates: { format: ['dd/MM/yyyy', 'MM/dd/yyyy', 'yyyy/MM/dd'] },
      meta: { separator: ',' },
      table: { header: 'day' },
    });
    expect(meta(record)).toEqual({ A: '2026-04-03', B: '2026-04-13' });
    expect(rows(record)).toEqual([{ day: '2026-03-14' }]);
  });

  test.each([
    ['number', '12,5', 'decimal: ","'],
    ['number', 'n/a', 'missing: ["n/a"]'],
    ['date', '03/04/2026', 'dates: { format: dd/MM/yyyy }` or `dates: { format: MM/dd/yyyy }'],
    ['date', 'soon', 'dates: { format:'],
    ['duration', '12:30', 'missing'],
    ['boolean', 'perhaps', 'missing'],
  ] as const)('a fact that is not a %s is refused: %s', async (type, written, hint) => {
    const error = await refusal(`A: x\nB: ${written}\n`, {
      meta: { separator: ':' },
      facts: { b: { from: 'B', type } },
    });
    expect(error.where?.line).toBe(2);
    expect(error.hint).toContain(hint);
  });

  test('an ambiguous date or number that is not used as one stays as written', async () => {
    const record = await read('Date: 03/04/2026\nCode: 1,234\n', { meta: { separator: ':' } });
    expect(meta(record)).toEqual({ Date: '03/04/2026', Code: '1,234' });
  });

  test.each([
    ['yes', true],
    ['OFF', false],
    ['1', true],
  ])('%s is a boolean if typed', async (written, expected) => {
    const record = await read(`B: ${written}\n`, {
      meta: { separator: ':' },
      facts: { b: { from: 'B', type: 'boolean' } },
    });
    expect(record.meta.get('b')).toEqual({ value: expected, text: written });
  });

  test.each([
    ['31:06:22', 111_982],
    ['2.01:00:00', 176_400],
    ['15:54.8', 954.8],
    ['5 min', 5],
  ])('%s is a duration', async (written, expected) => {
    const record = await read(`B= ${written}\n`, {
      meta: { separator: '=' },
      facts: { b: { from: 'B', type: 'duration' } },
    });
    expect(record.meta.get('b')?.value).toBe(expected);
  });
});

test('a time or a date is no name of a fact', async () => {
  const text = 'Date/Time,7/8/2008,14:09:24,,Progressive\nMode,scan\n2026-01-05: started\n';
  const record = await read(text, { delimiter: ',', meta: [{ separator: 'cell' }, { separator: ': ' }] });
  expect(meta(record)).toEqual({ 'Date/Time': '7/8/2008', Mode: 'scan' });
});

test('the letter behind a latitude or longitude is no unit', async () => {
  const record = await read('Lat: 40.05 N\nLongitude: 105.58 W\nLoad: 12 N\n', { meta: { separator: ':' } });
  expect(record.meta.get('Lat')).toEqual({ value: '40.05 N', text: '40.05 N' });
  expect(record.meta.get('Longitude')).toEqual({ value: '105.58 W', text: '105.58 W' });
  expect(record.meta.get('Load')).toMatchObject({ value: 12, unit: 'N' });
});
