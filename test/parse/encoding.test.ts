import fc from 'fast-check';
import iconv from 'iconv-lite';
import { describe, expect, test } from 'vitest';
import { detectEncoding } from '../../src/parse/encoding.js';
import { measured, read, refusal, rows } from '../support/reading.js';

const detect = (text: string, encoding: string) => detectEncoding(iconv.encode(text, encoding)).encoding;

describe('windows-1252 is kept for', () => {
  test.each([
    'T (°C)',
    '20 °C',
    '5 µL',
    'ng/µl;cm²',
    'Grö\u00dfe;Prüfer: Müller',
    'Échantillon préparé à 20 °C',
    'Température;Opérateur',
    'Año;Señal;Medición',
    'Målt værdi;Prøve',
    'Prøve nr. 7;Åse Sørensen',
    'Misurazione: qualità',
    // The letters s and k have variants that are not ASCII.
    'Messkanäle:;2',
    'Ação;Medição',
    'Company´s standard software',
    'Smith’s sample – 5 µm ± 0.1',
    '10 m²/g; 3 cm³; 5 Å',
    '“Beer–Lambert”',
    'T°',
    'résumé à 5 °C, 7 µm, ±2',
    'Messkanäle;[°C] Temperatur',
    'Skalenteil ssk;°C',
    'N m²·s',
    'Nº 3',
  ])('%s', (text) => {
    expect(detect(text, 'windows-1252')).toBe('windows-1252');
  });
});

/** Labels of instruments, by encoding. */
const LABELS: Readonly<Record<string, string>> = {
  'windows-1252': 'Größe Prüfer Müller µm °C ±0.1 cm² Prøve',
  'windows-1250': 'Średnia Częstotliwość Ciśnienie Wysokość Początek Żądany Stężenie',
  'windows-1251': 'Температура Образец Давление Время Измерение Оператор',
  'koi8-r': 'Температура Образец Давление Время Измерение Оператор',
  'windows-1253': 'Θερμοκρασία Δείγμα Χρόνος Πίεση',
  cp437: 'Größe Prüfer Müller °C µm ±0.1 cm² Temperatür',
  cp850: 'Größe Prüfer Müller °C µm ±0.1 cm²',
  macintosh: 'Größe Prüfer Müller °C échantillon Señal',
  shift_jis: '試料名 測定日時 温度 濃度 波長 装置番号 データ サンプル 結果',
  'euc-jp': '試料名 測定日時 温度 濃度 波長 装置番号 データ サンプル 結果',
  gb18030: '样品名称 测量时间 温度 浓度 波长 仪器编号 操作员 结果 日期',
  big5: '樣品名稱 測量時間 溫度 濃度 波長 儀器編號 結果 日期',
  'euc-kr': '시료 이름 측정 시간 온도 농도 파장 장비 번호 결과',
};

test.each(Object.entries(LABELS))('%s is recognised by all its labels, or refused', (encoding, labels) => {
  const text = labels.split(' ').join(';');
  const found = detect(text, encoding);
  if (found !== undefined) expect(iconv.decode(iconv.encode(text, encoding), found)).toBe(text);
});

test.each(['shift_jis', 'euc-jp', 'gb18030', 'big5', 'euc-kr', 'cp437', 'windows-1250', 'windows-1251'])(
  '%s is recognised',
  (encoding) => {
    const text = (LABELS[encoding] ?? '').split(' ').join(';');
    expect(iconv.decode(iconv.encode(text, encoding), detect(text, encoding) ?? 'ascii')).toBe(text);
  },
);

test.each([
  ['windows-1251', 'Operator: А. Смирнова|Method: Быстрый 3'],
  ['windows-1250', 'Operator: A. Łukaszewska|Sample: 7 °C|PRZEPŁYW "8.3"'],
  ['windows-1250', 'Operator: J. Wójcik|Comment: większa próbka'],
  ['gb18030', 'Operator: 王伟|Method: 快速扫描'],
  ['big5', 'Operator: 陳大文|Method: 快速掃描'],
  ['shift_jis', 'Operator: 佐藤|ﾌｧｲﾙ名: 7|Sample: 緩衝液'],
  ['shift_jis', '試料名,標準|励起波長,532 nm|アパーチャー,φ4000 um'],
])('%s is recognised by a few values', (encoding, lines) => {
  expect(detect(lines.replaceAll('|', '\n'), encoding)).toBe(encoding);
});

test('random labels and numbers are read as written, or refused', () => {
  const sample = fc.constantFrom(...Object.keys(LABELS)).chain((encoding) =>
    fc.record({
      encoding: fc.constant(encoding),
      words: fc.shuffledSubarray((LABELS[encoding] ?? '').split(' '), { minLength: 3 }),
      cells: fc.array(fc.double({ noNaN: true, min: 0, max: 1e6 }), { maxLength: 5 }),
    }),
  );
  let read = 0;
  fc.assert(
    fc.property(sample, ({ encoding, words, cells }) => {
      const text = `${words.join(';')}\n${cells.join(';')}\n`;
      const found = detect(text, encoding);
      if (found === undefined) return;
      read++;
      expect(iconv.decode(iconv.encode(text, encoding), found)).toBe(text);
    }),
    { numRuns: 300, seed: 3 },
  );
  expect(read).toBeGreaterThan(150);
});

test('an implausible text is refused with the lines to choose from', async () => {
  const error = await refusal(Buffer.from('a;b\nx\x81y;1\nx\x8dz\x90;2\n', 'latin1'));
  expect(error.message).toContain('the encoding of the file is unclear');
  expect(error.hint).toMatch(/`encoding: [\w-]+`/);
});

test('learn writes the encoding that it found, and a doubt', async () => {
  const text = '試料,濃度,n\nあい,1.5,1\nうえ,2.5,2\n';
  const bytes = iconv.encode(text, 'shift_jis');
  expect(rows(await read(bytes))[0]).toEqual({ 試料: 'あい', 濃度: 1.5, n: 1 });
  const { mapping, doubts } = await measured(bytes);
  expect(mapping.encoding).toBe('shift_jis');
  expect(doubts).toContainEqual(expect.stringContaining('the encoding seems to be shift_jis'));
});

test('a reading names the encoding that was detected, unless it is a usual one or the mapping names it', async () => {
  const japanese = iconv.encode('試料,濃度,n\nあい,1.5,1\nうえ,2.5,2\n', 'shift_jis');
  const said = [expect.stringContaining('the encoding seems to be shift_jis')];
  expect((await read(japanese)).assumed).toEqual(said);
  expect((await read(japanese, { table: {} })).assumed).toEqual(said);
  expect((await read(japanese, { encoding: 'shift_jis', table: {} })).assumed).toBeUndefined();
  expect((await read(iconv.encode('t (s),T (°C)\n1,20.5\n2,20.6\n3,20.7\n', 'windows-1252'))).assumed).toBeUndefined();
});

test('none is chosen if several give plausible texts that differ', () => {
  expect(detectEncoding(iconv.encode('температура', 'windows-1251'))).toEqual({
    possible: expect.arrayContaining(['windows-1251', 'koi8-r']),
  });
});

test('signs of units in a row are characters of another encoding', () => {
  expect(detectEncoding(Buffer.from([0xb0, 0xb5, 0xb5, 0xb7])).encoding).not.toBe('windows-1252');
});

test('a degree sign of a Mac is recognised also between line ends of Windows', () => {
  expect(detect('Plate\tTemperature(°C)\t1\r\n', 'macintosh')).toBe('macintosh');
});
