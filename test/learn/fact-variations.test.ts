import iconv from 'iconv-lite';
import { expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import type { Random } from '../support/random.js';
import { chooseWays, shareOfComplete } from '../support/written-files.js';

/**
 * A list of facts around a small table, written in many ways: signs, places, marks of comments, languages, encodings and
 * forms of dates. Whatever the combination, no fact and no date is read wrongly, and nearly all files are read completely.
 */

const WAYS = {
  language: ['en', 'en', 'de', 'fr', 'pl', 'ru', 'ja', 'zh', 'tw', 'ko'],
  delimiter: [',', ';', '\t', 'aligned'],
  form: [
    ...['colon', 'equals', 'tight', 'delimited', 'colonCell', 'brackets', 'dots', 'quotes', 'hash'],
    ...['valueFirst', 'tags', 'above', 'beside', 'wordFirst', 'sections'],
  ],
  place: ['above', 'above', 'below', 'between', 'both'],
  isPadded: [false, false, true],
  comment: ['', '', '# ', '#', '// ', '% ', '* '],
  isGapped: [true, false],
  date: [
    ...['iso', 'offset', 'dayFirst', 'monthFirst', 'open', 'dayProven', 'monthProven', 'dotted', 'digits', 'epoch'],
    ...['month', 'weekday', 'half', 'fraction', 'twoFacts', 'twoColumns', 'steps', 'none'],
  ],
  others: ['', 'exported', 'calibrated', 'created', 'exported created'],
  extra: ['none', 'none', 'inValue', 'cells', 'twoInText', 'empty', 'title'],
  rows: [3, 4, 8],
  columns: [2, 3, 5],
} as const;
type Ways = { [K in keyof typeof WAYS]: (typeof WAYS)[K][number] };
type Language = Ways['language'];

/** Operator, method, sample, serial number, temperature, gain, measured, date, time, exported, calibrated, created. */
const NAMES: Record<Language, string> = {
  en: 'Operator|Method|Sample|Serial number|Temperature|Gain|Measured|Date|Time|Exported|Last calibration|File created',
  de: 'Bediener|Methode|Probe|Seriennummer|Temperatur|Verstärkung|Messbeginn|Datum|Uhrzeit|Exportiert|Kalibrierung|Erstellt',
  fr: 'Opérateur|Méthode|Échantillon|Numéro de série|Température|Gain|Début de mesure|Date|Heure|Exporté|Étalonnage|Créé',
  pl: 'Użytkownik|Metoda|Próbka|Numer seryjny|Temperatura|Wzmocnienie|Data pomiaru|Data|Godzina|Data eksportu|Kalibracja|Utworzono',
  ru: 'Оператор|Метод|Образец|Серийный номер|Температура|Усиление|Дата измерения|Дата|Время|Дата экспорта|Калибровка|Создан',
  ja: '測定者|メソッド|試料名|シリアル番号|温度|ゲイン|測定日時|日付|時刻|出力日時|校正日|作成日時',
  zh: '操作员|方法|样品|序列号|温度|增益|测量日期|日期|时间|导出日期|校准日期|创建日期',
  tw: '操作員|方法|樣品|序號|溫度|增益|測量日期|日期|時間|匯出日期|校正日期|建立日期',
  ko: '측정자|방법|시료|일련번호|온도|이득|측정 날짜|날짜|시간|내보낸 날짜|교정 날짜|생성 날짜',
};
const KEYS = 'operator|method|sample|serial|temperature|gain|measured|date|time|exported|calibrated|created'.split('|');
const VALUES: Record<Language, readonly [operator: string, method: string, sample: string]> = {
  en: ['A. Smith', 'M-17 fast', 'Buffer A'],
  de: ['B. Müller', 'Übersicht', 'Lösung 3'],
  fr: ['C. Lefèvre', 'Balayage 3', 'Eau filtrée'],
  pl: ['A. Łukaszewska', 'Skanowanie 3', 'Roztwór 3'],
  ru: ['А. Смирнова', 'Быстрый 3', 'Раствор 3'],
  ja: ['佐藤 一郎', '標準', '緩衝液'],
  zh: ['王伟', '快速扫描', '缓冲液'],
  tw: ['陳大文', '快速掃描', '緩衝液'],
  ko: ['김민수', '빠른 측정', '완충액'],
};
const ENCODINGS: Record<Language, readonly string[]> = {
  en: ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252'],
  de: ['utf-8', 'windows-1252'],
  fr: ['utf-8', 'windows-1252'],
  pl: ['utf-8', 'windows-1250'],
  ru: ['utf-8', 'windows-1251'],
  ja: ['utf-8', 'shift_jis'],
  zh: ['utf-8', 'gbk'],
  tw: ['utf-8', 'big5'],
  ko: ['utf-8', 'euc-kr'],
};
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const WEEKDAYS = 'Sun Mon Tue Wed Thu Fri Sat'.split(' ');
const COLUMNS = ['Glucose', 'Lactate', 'Conductivity', 'Absorbance', 'Pressure'];
const WIDTH = 22;

interface Fact {
  readonly key: string;
  name: string;
  readonly text: string;
}

const pad = (n: number): string => String(n).padStart(2, '0');

/** The date of the run as written, another one that may prove its order, and the day. */
function writeDate(kind: Ways['date'], { below }: Random) {
  const [year, month] = [2016 + below(9), 1 + below(12)];
  const isEarly = ['open', 'dayProven', 'monthProven'].includes(kind);
  const late = 13 + below(15);
  const day = isEarly ? (month % 12) + 1 : ['dayFirst', 'monthFirst'].includes(kind) ? late : 1 + below(27);
  const iso = `${year}-${pad(month)}-${pad(day)}`;
  const clock = `${pad(8 + below(10))}:${pad(below(60))}:${pad(below(60))}`;
  const [dayFirst, monthFirst] = [`${pad(day)}/${pad(month)}/${year}`, `${pad(month)}/${pad(day)}/${year}`];
  const [hour = 0] = clock.split(':').map(Number);
  const written: Record<Ways['date'], string | undefined> = {
    iso: `${iso} ${clock}`,
    offset: `${iso}T${clock}+02:00`,
    dayFirst: `${dayFirst} ${clock}`,
    monthFirst: `${monthFirst} ${clock}`,
    open: `${dayFirst} ${clock}`,
    dayProven: `${dayFirst} ${clock}`,
    monthProven: `${monthFirst} ${clock}`,
    dotted: `${pad(day)}.${pad(month)}.${year} ${clock}`,
    digits: `${iso} ${clock}`.replace(/\D/g, ''),
    epoch: String(Date.parse(`${iso}T${clock}Z`) / 1000),
    month: `${MONTHS[month - 1]} ${day}, ${year} ${clock}`,
    weekday: `${WEEKDAYS[new Date(iso).getUTCDay()]} ${MONTHS[month - 1]} ${pad(day)} ${clock} ${year}`,
    half: `${iso} ${hour > 12 ? hour - 12 : hour}:30 ${hour >= 12 ? 'p.m.' : 'a.m.'}`,
    fraction: `${iso} ${clock}.125`,
    twoFacts: iso,
    ...{ twoColumns: undefined, steps: undefined, none: undefined },
  };
  const proof =
    kind === 'dayProven'
      ? `${late}/${pad(month)}/${year - 1} 17:05:11`
      : kind === 'monthProven'
        ? `${pad(month)}/${late}/${year - 1} 17:05:11`
        : undefined;
  return { iso: kind === 'none' ? undefined : iso, written: written[kind], proof, clock, year };
}

function writeFacts(ways: Ways, date: ReturnType<typeof writeDate>): Fact[] {
  const names = NAMES[ways.language].split('|');
  const [operator, method, sample] = VALUES[ways.language];
  const fact = (key: string, text: string): Fact => ({ key, name: names[KEYS.indexOf(key)] ?? '', text });
  const facts = [
    ...[fact('operator', operator), fact('method', method), fact('serial', '50-026.184')],
    ...[fact('sample', sample), fact('temperature', '25.5 °C'), fact('gain', '4')],
  ];
  const others = date.proof === undefined ? ways.others.split(' ').filter((each) => each !== '') : ['calibrated'];
  for (const other of others) {
    const otherYear = date.year + (other === 'exported' ? 1 : -1);
    facts.splice(2, 0, fact(other, date.proof ?? `${otherYear}-03-04 17:05:11`));
  }
  if (ways.date === 'twoFacts') facts.push(fact('date', date.written ?? ''), fact('time', date.clock));
  else if (date.written !== undefined) facts.splice(1, 0, fact('measured', date.written));
  return facts;
}

/** Some forms change the names. */
function writeList(facts: readonly Fact[], form: Ways['form'], sign: string): string[] {
  const rename = (change: (name: string) => string) => {
    for (const fact of facts) fact.name = change(fact.name);
  };
  if (['quotes', 'hash', 'tags', 'wordFirst'].includes(form))
    rename((name) => `${name.replaceAll(' ', '_').toUpperCase()}`);
  if (form === 'wordFirst') rename((name) => `${name}_X`);
  const one: Record<string, (fact: Fact) => string[]> = {
    colon: ({ name, text }) => [`${name}: ${text}`],
    equals: ({ name, text }) => [`${name} = ${text}`],
    tight: ({ name, text }) => [`${name}=${text}`],
    delimited: ({ name, text }) => [`${name}${sign}${text.includes(sign) ? `"${text}"` : text}`],
    colonCell: ({ name, text }) => [`${name}:${sign}${text.includes(sign) ? `"${text}"` : text}`],
    brackets: ({ name, text }) => [`[${name}] ${text}`],
    dots: ({ name, text }) => [`${name} ${'.'.repeat(Math.max(3, 24 - name.length))} ${text}`],
    quotes: ({ name, text }) => [`${name} "${text}"`],
    hash: ({ name, text }) => [`${name}# ${text}`],
    valueFirst: ({ name, text }) => [`${text} ! ${name}`],
    tags: ({ name, text }) => [`&${name}:`, text],
    above: ({ name, text }) => [`${name}:`, text],
    wordFirst: ({ name, text }) => [`INFO${sign}${text.includes(sign) ? `"${text}"` : text}${sign}${name}`],
    sections: ({ name, text }) => [`${name} = ${text}`],
  };
  if (form === 'beside') {
    const cells = facts.map(({ name, text }) => `${name}: ${text}`);
    const pairs = cells.filter((_, n) => n % 2 === 0).map((cell, n) => [cell, cells[2 * n + 1] ?? '']);
    return pairs.map(([left = '', right]) => `${left.padEnd(Math.max(40, left.length + 4))}${right}`.trimEnd());
  }
  const lines = facts.flatMap((fact) => one[form]?.(fact) ?? []);
  if (form === 'wordFirst') lines.push(`Site${sign}North`);
  return form === 'sections' ? ['[About]', ...lines.slice(0, 3), '', '[Detector]', ...lines.slice(3)] : lines;
}

const EXTRAS: Record<Ways['extra'], readonly [line: string, ...facts: (readonly [string, string])[]]> = {
  none: [''],
  inValue: ['Stored as: D:\\a\\b.dat  Recipe: r5  Label: 7', ['Stored as', 'D:\\a\\b.dat'], ['Recipe', 'r5']],
  cells: ['Application: X,,,,V2.3'],
  twoInText: ['Filename: x17.dat Procedure: y3', ['Filename', 'x17.dat'], ['Procedure', 'y3']],
  empty: ['Approved by:'],
  title: ['Photometer results'],
};

function write(ways: Ways, random: Random) {
  const date = writeDate(ways.date, random);
  const facts = writeFacts(ways, date);
  const sign = ways.delimiter === 'aligned' ? ';' : ways.delimiter;
  const isDelimited = ways.delimiter !== 'aligned';
  const needsCells = ['delimited', 'colonCell', 'wordFirst'].includes(ways.form);
  const form = needsCells && !isDelimited ? 'colon' : ways.form;
  const line = (cells: readonly string[]) =>
    isDelimited
      ? cells.join(sign)
      : cells.map((cell, n) => (n === 0 ? cell.padEnd(WIDTH) : cell.padStart(WIDTH))).join('');
  const isPadded = ways.isPadded && isDelimited && ['colon', 'equals', 'tight', 'delimited'].includes(form);
  const list = (own: readonly Fact[]) =>
    writeList(own, form, sign).map((text) =>
      text === '' ? text : `${ways.comment}${text}${isPadded ? sign.repeat(ways.columns - 1) : ''}`,
    );
  const [extra, ...known] = EXTRAS[ways.extra];
  const more = extra === '' || (ways.extra === 'cells' && sign !== ',') ? [] : [`${ways.comment}${extra}`];
  const start = Date.parse(`${date.iso ?? '2020-01-01'}T23:30:00Z`);
  const moment = (row: number): string[] => {
    const [day = '', time = ''] = new Date(start + row * 1_200_000).toISOString().slice(0, 19).split('T');
    if (ways.date === 'twoColumns') return [date.iso ?? '', `09:${pad(row)}:00`];
    return ways.date === 'steps' ? [`${day.slice(2).replaceAll('-', '.')} ${time}`] : [];
  };
  const stamps = { twoColumns: ['Date', 'Time'], steps: ['Date/Time'] }[ways.date as string] ?? [];
  const names = [...stamps, 'No', ...COLUMNS.slice(0, ways.columns)];
  const rows = Array.from({ length: ways.date === 'steps' ? Math.max(4, ways.rows) : ways.rows }, (_, row) => [
    ...[...moment(row), String(row + 1)],
    ...COLUMNS.slice(0, ways.columns).map((_name, n) => (n * 7 + random.next() * 5 + 1).toFixed(n % 2 ? 3 : 2)),
  ]);
  const table = [line(names), ...rows.map(line)];
  const gap = ways.isGapped ? [''] : [];
  const first = ['1', '2', '3'].map((peak) => line([peak, `12${peak}.50`, `3${peak}.10`]));
  const half = Math.ceil(facts.length / 2);
  const lines: Record<Ways['place'], () => string[]> = {
    above: () => [...list(facts), ...more, ...gap, ...table],
    below: () => [...table, ...gap, ...list(facts), ...more],
    between: () => [line(['Peak', 'Area', 'Height']), ...first, '', ...list(facts), ...more, ...gap, ...table],
    both: () => [...list(facts.slice(0, half)), ...more, ...gap, ...table, '', ...list(facts.slice(half))],
  };
  const text = `${lines[ways.place]().join('\n')}\n`;
  const encodings = ENCODINGS[ways.language];
  const encoding = encodings[random.below(encodings.length)] ?? 'utf-8';
  const all = [...facts.map(({ name, text: own }) => [name, own] as const), ...known];
  return {
    text,
    bytes: iconv.encode(text, encoding),
    facts: all,
    names,
    rows,
    day: date.iso,
    isOpen: ways.date === 'open',
  };
}

/** The day that the entry would have; undefined for the day the file was modified, or a date that is not settled. */
function dayOf({ meta, isUndated }: FileRecord): string | undefined {
  const fact = meta.get('date') ?? [...meta].find(([name]) => name.toLowerCase() === 'date')?.[1];
  if (isUndated || typeof fact?.value !== 'string') return undefined;
  return /^\d{4}-\d\d-\d\d/.exec(fact.value)?.[0];
}

/** What was read wrongly, and whether all of it was found. */
function compare(record: FileRecord, { facts, names, rows, day, isOpen }: ReturnType<typeof write>) {
  const wrong: string[] = [];
  const known = facts.map(([name, text]) => [name, record.meta.get(name)?.text, text] as const);
  for (const [name, text, expected] of known)
    if (text !== undefined && text !== expected) wrong.push(`${name}: ${text}, not ${expected}`);
  const found = dayOf(record);
  if (found !== undefined && (isOpen || found !== day)) wrong.push(`the date ${found}, not ${day}`);
  const table = record.tables.find(({ columns }) => columns.some(({ name }) => name === names.at(-1)));
  const places = names.map((name) => table?.columns.findIndex((column) => column.name === name) ?? -1);
  for (const [row, cells] of rows.entries())
    for (const [n, expected] of cells.entries()) {
      const cell = table?.rows[row]?.[places[n] ?? -1];
      if (cell && cell.text.trim() !== expected)
        wrong.push(`${names[n]} of row ${row + 1}: ${cell.text}, not ${expected}`);
    }
  const isDated = isOpen || found === day;
  const isWhole = !places.includes(-1) && table?.rows.length === rows.length;
  return { wrong, isComplete: known.every(([, text]) => text !== undefined) && isDated && isWhole };
}

test('facts and dates around a table are not read wrongly in any of many forms, and mostly completely', async () => {
  const share = await shareOfComplete(
    { seed: 7, count: 50 },
    (random) => write(chooseWays(WAYS, random), random),
    compare,
  );
  expect(share).toBeGreaterThan(0.8);
});
