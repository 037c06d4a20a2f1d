import { describe, expect, test } from 'vitest';
import { roleOf, roleOfPath } from '../../src/learn/date-roles.js';
import type { FileRecord } from '../../src/model.js';
import { measured, read } from '../support/reading.js';

const XY = 'x,y,z\n400,0.043,1\n401,0.044,2\n402,0.045,3\n';
const RUN = '2026-01-05';
const OTHER = '2026-02-01';

/** The day that the draft would have; undefined for the day the file was modified. */
function dayOf({ meta, isUndated }: FileRecord): string | undefined {
  if (isUndated) return undefined;
  const fact = meta.get('date') ?? [...meta].find(([name]) => name.toLowerCase() === 'date')?.[1];
  return typeof fact?.value === 'string' ? fact.value.slice(0, 10) : undefined;
}

describe('the words of a date tell whether it is that of the run, in', () => {
  test.each([
    [
      'English',
      'Acquisition date|Run started|Measured on|injectionTime|TEST_DATE',
      'Export date|Printed|Reviewed|lastModified|System UpLoad Time',
    ],
    [
      'English',
      'Date collected|Analysed|Sampling time|Scan date',
      'Approval date|Signed on|Installation date|Expiry date',
    ],
    [
      'English',
      'Recorded|Experiment date|LoggingStartDate',
      'Logger time|Host time|Method date|System UpLoad Time|Template saved|Report generated|Date created|Next service due|Sample taken on|Sample draw time',
    ],
    [
      'German',
      'Messdatum|Analysedatum|Startzeit|Aufnahme|Prüfdatum',
      'Druckdatum|Kalibrierdatum|Erstellt am|Freigegeben',
    ],
    [
      'French',
      'Date de mesure|Début|Date d’analyse',
      'Date d’impression|Étalonnage|Date de création|Modifié le|Approuvé',
    ],
    [
      'Spanish',
      'Fecha de medición|Inicio|Ensayo',
      'Fecha de impresión|Calibración|Fecha de caducidad|Aprobado|Revisado',
    ],
    ['Italian', 'Data di misura|Inizio|Data analisi', 'Data di stampa|Taratura|Data di scadenza|Approvato|Creato'],
    ['Portuguese', 'Data da medição|Início|Ensaio', 'Data de impressão|Calibração|Validade|Aprovado|Criado em'],
    ['Dutch', 'Meting|Startdatum|Analysedatum', 'Afgedrukt|Kalibratie|Goedgekeurd|Gewijzigd|Vervaldatum'],
    ['Swedish', 'Mätdatum|Starttid|Analysdatum', 'Utskriftsdatum|Kalibrering|Godkänd|Ändrad|Skapad'],
    ['Japanese and Chinese', '測定日時|分析日|开始时间|采集日期', '印刷日|校正日|作成日|打印时间|审核日期|有效期'],
    ['Polish', 'Data pomiaru|Rozpoczęto', 'Data eksportu|Utworzono|Zatwierdzono'],
    ['Russian', 'Дата измерения|Начало анализа', 'Дата экспорта|Создан|Калибровка|Утверждено'],
    ['Korean', '측정 날짜|시작 시간', '내보낸 날짜|교정 날짜|생성 날짜'],
    ['Chinese', '測試日期|檢測時間', '匯出日期|建立日期|列印時間'],
  ])('%s', (_, run, other) => {
    expect(run.split('|').filter((name) => roleOf(name) !== 'run')).toEqual([]);
    expect(other.split('|').filter((name) => roleOf(name) !== 'other')).toEqual([]);
  });

  test('names that say nothing', () => {
    expect(['Date', 'Datum', 'Time', 'Date/Time', 'timestamp', '日付'].map(roleOf)).toEqual(Array(6).fill('plain'));
    expect(['Batch', 'Message', 'Signal', 'Endpoint', 'Ready'].map(roleOf)).toEqual(Array(5).fill('unknown'));
  });

  test('the end of a run', () => {
    expect(['End time', 'Finished', 'Endzeit', '終了'].map(roleOf)).toEqual(Array(4).fill('end'));
  });

  test('paths, whose root is the name of the whole file', () => {
    expect(roleOfPath('/Report/Run/Date')).toBe('run');
    expect(roleOfPath('/Report/Header/Date')).toBe('plain');
    expect(roleOfPath('/Run/Calibration/Date')).toBe('other');
    expect(roleOfPath('/Run/AuditTrail/Entry/@time')).toBe('other');
  });
});

describe('the date of the run is found beside another', () => {
  test.each([
    ['behind a name in brackets', `[Method] A7\n[Date] ${RUN}\n[Last calibration] ${OTHER}`],
    ['after a word', `PARAM,${OTHER},EXPORTED\nINFO,${RUN},MEASURED\nINFO,7,GAIN\nINFO,Ada,OPERATOR\nSite,North`],
    ['as a number', `Measured: 20260105\nEnd time: ${OTHER} 10:00:00`],
    ['under another name', `Exported: ${OTHER}\nAcquired: ${RUN}`],
    ['without a purpose', `Last calibrated: ${OTHER}\nDate: ${RUN}`],
    ['with a purpose rather than without', `Date: ${OTHER}\nInjected: ${RUN}`],
    ['under a heading in brackets', `[Calibration]\nDate: ${OTHER}\nBy: Ada\n[Measurement]\nDate: ${RUN}\nBy: Bob`],
    ['under a heading of words', `Sample: S1\n\nReport generated\nDate: ${OTHER}\n\nRun information\nDate: ${RUN}`],
    [
      'under a heading with a colon',
      `Sample: S1\nCalibration:\n  Date: ${OTHER}\n  By: Ada\nRun:\n  Date: ${RUN}\n  By: Bob`,
    ],
    ['above a signature', `Date: ${RUN}\nSample: S1\n\nReviewed by: Ada\nDate: ${OTHER}`],
    ['before the start of an end', `Run end: ${OTHER}\nRun start: ${RUN}`],
    ['in a report', `[Report]\nPrinted: ${OTHER}\nMeasured: ${RUN}`],
    ['under a title of the file', `Calibration report\nDate: ${RUN}\nSample: S1`],
  ])('%s', async (_, facts) => {
    expect(dayOf(await read(`${facts}\n\n${XY}`))).toBe(RUN);
  });

  test('in a sentence', async () => {
    expect(dayOf(await read(`Printed on ${OTHER} 10:00:00\nMeasured on ${RUN} 11:00:00\n\n${XY}`))).toBe(RUN);
  });

  test('below the readings if there is none above them', async () => {
    expect(dayOf(await read(`Sample: S1\nBuffer: PBS\n\n${XY}\nDate: ${RUN}\nOperator: Ada\n`))).toBe(RUN);
    const both = `Date: ${RUN}\nBuffer: PBS\n\n${XY}\nDate time: ${OTHER}\nOperator: Ada\n`;
    expect(dayOf(await read(both))).toBe(RUN);
  });

  test('and a print below the readings', async () => {
    expect(dayOf(await read(`Date: ${RUN}\nSample: S1\n\n${XY}\n${OTHER} 10:00:00\n`))).toBe(RUN);
  });

  test('in the columns of the readings', async () => {
    const text = `time,T,exported\n${RUN} 10:00,21.5,${OTHER}\n${RUN} 10:10,21.6,${OTHER}\n`;
    expect(dayOf(await read(text))).toBe(RUN);
  });
});

describe('a date of another purpose does not become that of the run:', () => {
  test.each([
    ['an export', `Export date: ${OTHER}\nSample: S1`],
    ['a review', `Sample: S1\nReviewed: ${OTHER}`],
    ['a heading in brackets', `[Calibration]\nDate: ${OTHER}\nBy: Ada`],
    ['an audit trail', `Sample: S1\nVolume: 3 mL\n\nAudit trail\nDate: ${OTHER}\nUser: Ada`],
    ['a signature', `Sample: S1\n\nApproved by: Ada\nDate: ${OTHER}`],
    ['a signature in the line', `Sample: S1\nApproved by: Ada; Date: ${OTHER}; Role: QA`],
    ['a sentence', `Sample: S1\nThis report was printed on ${OTHER} 10:00:00`],
    ['words behind it', `Sample: S1\n${OTHER} 10:00:00 exported by ada`],
    ['a page', `Sample: S1\nPage 1 of 2   ${OTHER} 10:00:00`],
    ['a reagent', `Sample: S1\nLot: ${OTHER}`],
    ['two days of the same name', `Date: ${OTHER}\nSample: S1\nDate: ${RUN}`],
  ])('%s', async (_, facts) => {
    const record = await read(`${facts}\n\n${XY}`);
    expect(dayOf(record)).toBeUndefined();
  });

  test('a footer', async () => {
    expect(dayOf(await read(`Sample: S1\n\n${XY}\n${OTHER} 10:00:00\n`))).toBeUndefined();
  });

  test('an element of a document', async () => {
    const json = JSON.stringify({ calibration: { date: OTHER }, readings: [{ x: 1, y: 2 }] });
    expect(dayOf(await read(json, undefined, 'runs/a.json'))).toBeUndefined();
  });

  test('and the entry says so', async () => {
    const { assumed } = await read(`Export date: ${OTHER}\nSample: S1\n\n${XY}`);
    expect(assumed).toEqual([
      'no date in the file is known to be that of the run ("Export date: 2026-02-01" may be another), so the date is the day the file was modified',
    ]);
  });
});

describe('a date that is written as several numbers may be that of the run, and learn says so', () => {
  const rows = (start: string) => [9, 10, 11, 12].map((hour) => `${start},${hour},5,2${hour}.5`).join('\n');

  test.each([
    [
      'in cells with signs between them',
      `"JA", 2025, "/", 10, "/", 23, 10, ":", 50\nSample,S1\n\n${XY}`,
      '2025, "/", 10, "/", 23',
    ],
    ['in a line of numbers', `Sample: S1\n  2000     9    20  2003     4    10\nMode: scan\n\n${XY}`, '2000 9 20'],
    ['in columns without names', `${rows('601,23,4,18')}\n`, '23 4 18'],
    ['in columns without names, with the century', `${rows('601,2023,4,18')}\n`, '2023 4 18'],
  ])('%s', async (_, text, written) => {
    const { undated } = await measured(text);
    expect(undated?.text).toBe(written);
  });

  test.each([
    ['numbers that are no day', `Sample: S1\n  2000     13    20\nMode: scan\n\n${XY}`],
    ['columns that are no moments', '1,23,4,18,12,5\n2,23,4,18,11,5\n3,23,4,18,10,5\n4,23,4,18,9,5\n'],
  ])('but not %s', async (_, text) => {
    expect((await measured(text)).undated).toBeUndefined();
  });
});

test('the name of a file can have blanks in its date', async () => {
  expect(dayOf(await read(`Sample: S1\n\n${XY}`, undefined, 'runs/2026 01 05 16H 09M Peaks.csv'))).toBe(RUN);
});

describe('records of analysers', () => {
  const astm = (...times: string[]): string =>
    [
      'H|\\^&|||Analyser^1|||||LIS||P|1|20260201102030',
      'O|1|S1||^^^GLU',
      `R|1|^^^GLU|5.41|mmol/L||N||F|||${times.join('|')}`,
      `R|2|^^^NA|141|mmol/L||N||F|||${times.join('|')}`,
      'L|1|N',
    ].join('\r');

  test('have the date at which the test began, or else ended', async () => {
    expect(dayOf(await read(astm('20260105090000', '20260106090000')))).toBe(RUN);
    expect(dayOf(await read(astm('', '20260105090000')))).toBe(RUN);
    const hl7 = `MSH|^~\\&|LIS|Lab|EHR||20260201102030||ORU^R01|42|P|2.5\rOBX|1|NM|WBC||5.1|10^9/L|||||||||||||20260105090000`;
    expect(dayOf(await read(hl7))).toBe(RUN);
  });

  test.each(['20260201102030', '2026-02-01 10:20:30'])('have no date if only the message has one: %s', async (sent) => {
    expect(dayOf(await read(astm('', '').replace('20260201102030', sent)))).toBeUndefined();
    expect(
      dayOf(await read(`MSH|^~\\&|LIS|Lab|EHR||${sent}||ORU^R01|42|P|2.5\rOBX|1|NM|WBC||5.1|10^9/L`)),
    ).toBeUndefined();
  });
});

test('among columns, the end of a row is its date if the other date is that of the sample', async () => {
  const rows = [17, 18, 19].map((day) => `S${day},2019-06-16,2019-06-${day},0.5,300`).join('\n');
  const { firstRow } = await measured(`Sample,Sample draw time,Date finished,Dilution,Volume\n${rows}\n`);
  expect(firstRow?.column).toBe('Date finished');
});

test('half of a 64-bit time is no date', async () => {
  const text = (low: string) => `Sample: a\nStart Time Low: ${low}\nStart Time High: 30574100\n\n${XY}`;
  expect(dayOf(await read(text('1728412288')))).toBeUndefined();
  expect(dayOf(await read(text('1728412288').replaceAll(/ Low| High.*/g, '')))).toBe('2024-10-08');
});
