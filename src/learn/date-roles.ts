import { isBlank, isRule, type Line } from '../parse/lines.js';
import { readIso } from '../parse/values/date.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { isUnsetDay } from '../text.js';

/**
 * What a date is the date of, by the words around it: the run, the end of the run, or something else, such as an
 * export, a review or a calibration. `plain`: a date whose name says no more than that. `unknown`: no such name.
 */
export type DateRole = 'run' | 'plain' | 'end' | 'other' | 'unknown';

/** How likely a date is to be that of the run; 0: not at all. */
export const RANK: Readonly<Record<DateRole, number>> = { run: 4, plain: 3, end: 2, unknown: 1, other: 0 };

/** Version and serial numbers can look like dates: `3.12.08`. */
export const NUMBER_NAME = /version|serial|firmware|software|release|number|\bno\b|\bid\b/i;

export const isUnsetText = (text: string): boolean => isUnsetDay(readIso(text) ?? dateCandidates(text)[0]?.iso ?? '');

/**
 * Beginnings of words. Languages: English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Polish, Czech,
 * Russian, and CJK.
 */
const startsOf = (...words: readonly string[]): RegExp =>
  new RegExp(`(?<!\\p{L})(?:${words.join(' ').trim().split(/\s+/).join('|')})`, 'iu');

const anyOf = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join('|'), 'iu');

/** A document about the run: its heading says nothing about a date that is named as the run's. */
const DOCUMENT = anyOf(
  startsOf(
    'report print output export convert generat',
    'bericht druck gedruckt ausdruck ausgabe rapport imprim impres informe emisi emitid',
    'referto stampa relat[óo]rio afdruk afgedrukt utskri',
    'eksport wydruk raport tisk vyti[šs] zpr[áa]va экспорт печат отч[её]т',
  ),
  /印刷|打印|列印|出力|报告|報告|导出|匯出|エクスポート|내보|인쇄|출력|보고/,
);

const SIGNING = anyOf(
  startsOf(
    'review revis revu approv approuv aprob aprov authori[sz] releas witness verif v[ée]rifi check(?:ed|er)',
    'sign(?!al|if) firma assina unterschr unterzeich gepr[üu]ft [üu]berpr[üu]f freig genehm',
    'beoordeel goedkeur goedgekeur ondertek handtek gecontrol granska godk[äa]n underskri kontrollera',
    'sprawdz zatwierdz podpis zkontrol schv[áa]l провер утвер подпис',
  ),
  /承認|審査|署名|批准|审核|審核|复核|覆核|签名|签字|승인|검토|확인|서명/,
);

const OTHER = anyOf(
  DOCUMENT,
  SIGNING,
  startsOf(
    // Instruments and what belongs to them.
    'calib (?:cal|qc)(?!\\p{L}) kalibr [ée]talon taratur ijk justier adjust install instal inbetrieb mainten wartung gewartet manten manuten',
    'manutenz onderhoud underh[åa]ll service clean licen[cs] warrant manufact fabri herstell produc produz tillverk',
    'software firmware version build compil background baseline blank dark reference',
    '(?:host|logger|pc|computer)\\s(?:date|time|clock)',
    // Files, methods and templates.
    'creat creaz crea[dc] cr[éeia]{2} criad cria[çc] erstell erzeug angelegt aangemaakt gemaakt skapa modif chang updat',
    'edit[eio] ge[äa]nder [äa]nd(?:er|ra) alterad wijzig gewijzig saved? saving gespeich speicher guardad salvat salvo gravad',
    'opgeslag sparad enregistr archiv backup import upload download sent transmi gesendet versand publish',
    'method m[ée]thod m[ée]tod metod templat vorlage plantilla modello mod[èe]le sjabloon mall(?!\\p{L})',
    'audit log-?in logon process reprocess evaluat auswert recalc',
    'utworz zapis zmien modyf wersj ulo[žz]en vytvo[řr] zm[ěe]n созда сохран измен обновл верси метод',
    // Samples and people.
    'birth born dob geburt naissance nacim nascit nascim geboort f[öo]delse receiv empfang eingang regist order',
    'prepar probe\\w*nahme entnahme pr[ée]l[èe]v preliev monstername provtag',
    '(?:sample|specimen)s?\\s(?:was\\s)?(?:collect|taken|draw)',
    // Days to come.
    'expir exp\\.?\\s?(?:date|$) due next valid verfall ablauf g[üu]ltig p[ée]remp caduc venc scaden geldig verval',
    'utg[åa]ng giltig deliver purchas ship wa[żz]n urodz narozen platn калибр поверк рожден срок годен',
  ),
  /校正|校准|作成|创建|建立|生成|保存|儲存|更新|修正|修改|变更|變更|期限|有效|有効|到期|製造|生产|安装|設置|メソッド|方法|维护|保守|監査|审计/,
  /생성|작성|교정|보정|저장|수정|변경|유효|만료|제조|설치|방법|점검/,
);

const RUN = anyOf(
  startsOf(
    'acqui acq(?!\\p{L}) measur meas(?!\\p{L}) collect start begin began run scan test(?!o\\s) record an[aá]l[iy] inject',
    'read(?!y) sampl perform execut experiment observ assay logg(?!er)',
    'mess(?!ag) gemess aufn aufgen beginn injekt pr[üu]f versuch durchgef durchf lauf',
    'mesur d[ée]but d[ée]marr essai lancement r[ée]alis medic medid medi[çc] adquis inici comienzo ensa[yi]o prueba inyec',
    'lectura misur acquis inizio avvio prova iniez lettura esegui aquis in[íi]ci inje[çc] leitura',
    'meting gemeten injecti opname m[äa]t(?:ning|dat|tid|start) uppm[äa]t prov(?!id|is) injicer k[öo]rning',
    'pomiar mierzon rozpocz badani m[ěe][řr]en za[čc][áa]t измер начал анализ испыт запуск',
  ),
  /測定|測量|測試|分析|开始|開始|测量|测定|测试|采集|採集|検査|检测|檢測|試験|注入|进样|実験|實驗|实验|运行|取得/,
  /측정|시작|분석|검사|시험|실험|주입/,
);

const END = anyOf(
  startsOf(
    'end(?!po|o) stop finish complet abgeschl fin(?:e|al|i)?(?!\\p{L}) fim t[ée]rmino einde slut',
    'koniec zako[ńn]cz konec ukon[čc] оконч заверш конец',
  ),
  /終了|结束|結束|完成|종료|완료/,
);

/** Names of dates and times. Some columns are named after the format: `yyyy-mm-ddThh:mm`. */
export const DATE_NAME =
  /yyyy|date|datum|dato|fecha|data\b|time|zeit|uhr|heure|hora|\bora\b|tijd|\btid\b|stamp|дата|время|godzin|czas|(?<!\p{L})čas(?!\p{L})|日付|日時|日期|时间|時刻|時間|날짜|일시|일자|시간|시각/iu;

/** What was done at a moment: a number after it is that moment, unlike after `Run` or `Sample`. */
export const DONE = startsOf(
  'acquired measured started begun recorded analy[sz]ed collected performed injected',
  'gemessen messbeginn aufgenommen beginn start(?!\\p{L}) d[ée]but mesur[ée] inicio medido inizio misurato in[íi]cio',
  'gemeten uppm[äa]tt rozpocz измерено начало',
);

/** What the words around a date say about it. */
export function roleOf(written: string): DateRole {
  const plain = written.replaceAll('_', ' ');
  const words = plain.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2');
  // `UpLoad` is one word, `ExportDate` has two.
  if (OTHER.test(words) || OTHER.test(plain)) return 'other';
  if (END.test(words)) return 'end';
  if (RUN.test(words)) return 'run';
  return DATE_NAME.test(words) || !/\p{L}{2}/u.test(words) ? 'plain' : 'unknown';
}

/** The role of a date by its own name and the heading above it, which decides if the name says nothing. */
function roleUnder(name: string, heading: string): DateRole {
  const own = roleOf(name);
  const above = heading === '' ? 'unknown' : roleOf(heading);
  if (own === 'other' || above === 'unknown' || above === 'plain') return own;
  if (above === 'other')
    return own === 'run' && roleOf(heading.replace(WORD_OF_DOCUMENT, '')) !== 'other' ? own : above;
  return own === 'plain' || own === 'unknown' ? above : own;
}

const WORD_OF_DOCUMENT = new RegExp(`(?:${DOCUMENT.source})\\p{L}*`, 'giu');

/** By the last part and those above it. The first is often the root: `/Report/Header/Date` is a file, not a report. */
export function roleOfPath(path: string): DateRole {
  const [first = '', ...others] = path.split('/').filter((part) => part !== '');
  const name = others.pop() ?? first;
  return roleUnder(name, [first === name ? '' : first.replace(WORD_OF_DOCUMENT, ''), ...others].join(' ').trim());
}

/** Where dates are in a file of lines. `title`: of all lines, such as the name of a sheet. `end`: of the last table. */
export function openDatePlaces(lines: readonly Line[], end: number, title = '') {
  const headings = headingsOf(lines, title);
  // A name alone in the line above a date that is alone in its line.
  const labelAbove = (n: number): string =>
    /^\P{L}{0,4}\p{L}\D{0,60}$/u.exec(lines[n - 1]?.text.trim() ?? '')?.[0] ?? '';
  // The cell above one that is a date can be its name: `Lot,Expires` above `C05,2025-11-28`.
  const nameAbove = (n: number, date: string): string => {
    const { cells = [] } = lines[n] ?? {};
    const above = lines[n - 1];
    return above?.cells.length === cells.length ? (above.cells[cells.lastIndexOf(date)] ?? '') : '';
  };
  const roleAt = (n: number, before: string, date: string, after: string): DateRole => {
    const { text = '' } = lines[n] ?? {};
    const words = [before, after, text.trim() === date ? labelAbove(n) : ''].find((each) => /\p{L}/u.test(each)) ?? '';
    // A line below the readings that is only a date, or has the number of a page, is that of a print.
    if (end > 0 && n >= end && !/\p{L}{2}/u.test(words)) return 'other';
    if (/(?<!\p{L})(?:page|seite|p[áa]gin[ae]|pagina|sida) \d/iu.test(text)) return 'other';
    // In a line of several facts, the last words before the date count first.
    const near = words.split(/ {2,}|[,;|\t]/).findLast((part) => /\p{L}/u.test(part)) ?? '';
    const own = words === before && roleOf(near) === 'run' ? near : words;
    const role = roleUnder(own, headings[n] ?? '');
    if (!DATE_NAME.test(own) && role !== 'run' && roleOf(nameAbove(n, date)) === 'other') return 'other';
    // `PARAM,2026-02-01,EXPORTED`
    const [, behind = ''] = /^[,;\t|]([^,;\t|]+)[,;\t|]*$/.exec(text.slice(text.indexOf(date) + date.length)) ?? [];
    if (roleOf(behind) === 'other' && role !== 'run' && role !== 'end') return 'other';
    return role === 'plain' && isSigned(lines, n, text.slice(0, text.indexOf(date))) ? 'other' : role;
  };
  return {
    /** Of a fact in a line. */
    roleAt: (n: number, name: string, date: string): DateRole => roleAt(n, name, date, ''),
    /** Of a date without a name, by the words in its line. `number`: of the line. */
    roleBeside(number: number, date: string): DateRole {
      const n = lines.findIndex((line) => line.number === number);
      const text = lines[n]?.text ?? '';
      const at = text.indexOf(date);
      return at < 0 ? 'plain' : roleAt(n, text.slice(0, at), date, text.slice(at + date.length));
    },
    /** The number of the line that has nothing but this text. */
    lineOf: (text: string): number | undefined => lines.find((line) => line.text.trim() === text)?.number,
    /** The lines that give a value to a name. */
    linesWith: (name: string, text: string): number[] =>
      lines.flatMap((line, n) => {
        const at = line.text.indexOf(name);
        return at >= 0 && line.text.includes(text, at) ? [n] : [];
      }),
    isBelow: (n: number): boolean => end > 0 && n >= end,
  };
}

export type DatePlaces = ReturnType<typeof openDatePlaces>;

const BY = /(?<!\p{L})(?:by|von|durch|par|por|da|di|door|av)(?!\p{L})|者|人/iu;

/** `Reviewed by: Ada` before the date, in its line or in the line above. */
function isSigned(lines: readonly Line[], n: number, before: string): boolean {
  const above = lines[n - 1];
  const isNear = above !== undefined && !isBlank(above) && !/\d{1,4}[-/.]\d{1,2}[-/.]\d/.test(above.text);
  return [before, isNear ? above.text : ''].some((text) => SIGNING.test(text) || (BY.test(text) && OTHER.test(text)));
}

/**
 * The heading above each line. One in brackets or between rules counts up to the next one; a line of words counts up to
 * the blank line below what follows it.
 */
function headingsOf(lines: readonly Line[], title: string): string[] {
  let [marked, plain] = [title, ''];
  // The first line is the title of the whole file.
  let isFirst = true;
  let [isAfterGap, hasContent] = [false, false];
  return lines.map((line, n) => {
    if (isBlank(line) || isRule(line)) {
      if (hasContent) plain = '';
      isAfterGap = true;
      return marked;
    }
    const found = headingIn(line, lines[n + 1]);
    if (found?.isMarked) [marked, plain, hasContent] = [found.text, '', false];
    else if (found && !isFirst && (isAfterGap || found.isName)) [plain, hasContent] = [found.text, false];
    else hasContent = true;
    [isFirst, isAfterGap] = [false, false];
    return `${marked} ${plain}`.trim();
  });
}

interface Heading {
  readonly text: string;
  readonly isMarked: boolean;
  /** A name without a value, above lines that are indented. */
  readonly isName: boolean;
}

/** Including the characters around it: `===== Results =====`. */
const MAX_HEADING = 200;

function headingIn({ text, cells }: Line, next: Line | undefined): Heading | undefined {
  const filled = cells.filter((cell) => cell.trim() !== '');
  const written = (filled.length === 1 ? filled[0] : text)?.trim() ?? '';
  if (written.length > MAX_HEADING) return undefined;
  const bare = written.replace(/^[\s#*=\-_~[<({]+|[\s*=\-_~\]>)}:]+$/g, '').replace(/^\d+(?:\.\d+)*[.)]? /, '');
  if (bare.length > 60 || !/\p{L}{3}/u.test(bare) || /[:=;\t|]|\d{3}/.test(bare)) return undefined;
  const isMarked = /^[[<][^\]>]*[\]>]?$|^[*=\-_~#]{2}.*[*=\-_~#]{2}$|^#+ ?\p{L}[^:=]*$/u.test(written);
  const indent = (line: string) => line.length - line.trimStart().length;
  const isName = /:$/.test(written) && next !== undefined && indent(next.text) > indent(text);
  if (!isMarked && !isName && /[:=]$/.test(written)) return undefined;
  return filled.length > 1 && !isMarked ? undefined : { text: bare, isMarked, isName };
}
