import iconv from 'iconv-lite';
import { isUnit } from './values/unit.js';

/**
 * The encoding of a text that is neither ASCII nor UTF-8. Western files with a few letters are by far the most common,
 * so windows-1252 is assumed wherever it gives plausible text. Otherwise another encoding must be the only plausible one.
 */

const EAST_ASIAN = ['shift_jis', 'euc-jp', 'gb18030', 'big5', 'euc-kr'];
const LATIN = ['windows-1252', 'windows-1250', 'cp437', 'cp850', 'macintosh', 'windows-1254'];
const OTHERS = ['windows-1251', 'koi8-r', 'cp866', 'windows-1253'];
const ENCODINGS = [...LATIN, ...OTHERS, ...EAST_ASIAN];

/** The encoding; or undefined and those that are possible. `sample`: the parts of the file that are not ASCII. */
export function detectEncoding(sample: Buffer): { encoding?: string; possible: readonly string[] } {
  // Old Macs have neither drives nor CR LF.
  const isWindows = sample.includes('\r\n') || /[A-Z]:\\/.test(sample.toString('latin1'));
  const encodings = ENCODINGS.filter((encoding) => !isWindows || encoding !== 'macintosh');
  if (!/\P{ASCII}/u.test(iconv.decode(sample, 'windows-1252').replace(SIGNS, '')))
    return { encoding: 'windows-1252', possible: [] };
  // Some programs for Windows come from the Mac, and still write its degree sign.
  if (!/\P{ASCII}/u.test(iconv.decode(sample, 'macintosh').replace(/°(?=[CF])/g, '')))
    return { encoding: 'macintosh', possible: [] };
  const readings = encodings.map((encoding) => ({ encoding, text: iconv.decode(sample, encoding) }));
  const possible = readings.filter(({ text }) => !IMPOSSIBLE.test(text));
  const [first, ...others] = possible.filter(({ encoding, text }) => isPlausible(text, encoding));
  if (first?.encoding === 'windows-1252') return { encoding: first.encoding, possible: [] };
  const named = possible.filter(({ encoding, text }) => WORDS[encoding]?.test(text) && isPlausible(text, encoding));
  const [only, ...more] = named.length > 0 ? named : first ? [first, ...others] : [];
  if (only && more.every(({ text }) => text === only.text)) return { encoding: only.encoding, possible: [] };
  const left = [...(only ? [only, ...more] : possible)].map(({ encoding }) => encoding);
  return { possible: left.length > 0 ? left.slice(0, 4) : ['windows-1252'] };
}

/** Signs of units, each alone among ASCII characters: most files that are not ASCII have nothing else. */
const SIGNS = /(?<!\P{ASCII})[°±µ·×](?!\P{ASCII})|m[²³]·?|[Nn]º/gu;

/** What to say of an encoding that was chosen for a file, as a phrase; undefined if it is one of the usual ones. */
export const describeDetected = (encoding = 'utf-8'): string | undefined =>
  ['utf-8', 'windows-1252', 'utf-16le', 'utf-16be'].includes(encoding)
    ? undefined
    : `the encoding seems to be ${encoding}. If characters look wrong, change encoding under parse`;

/** Control characters, characters for private use, and bytes that are no character. */
const IMPOSSIBLE = /[\u0080-\u009f\ufffd]|\p{Co}|\p{Cn}/u;

function isPlausible(text: string, encoding: string): boolean {
  if (EAST_ASIAN.includes(encoding)) return isEastAsian(text, encoding);
  const isForeign = OTHERS.includes(encoding);
  if ((isForeign ? ODD_FOREIGN : ODD).some((odd) => odd.test(text)) || hasStrangeUnit(text)) return false;
  const letters = new Set((text.match(/[^\P{L}\p{ASCII}µºª]/gu) ?? []).map((letter) => letter.toLowerCase()));
  if (isForeign && letters.size === 0) return false;
  const alphabets = ALPHABETS[encoding] ?? WESTERN;
  return alphabets.some((alphabet) => [...letters].every((letter) => alphabet.includes(letter)));
}

/** The letters of one language: no text mixes them. */
const WESTERN = [
  'äöüßåéèæø', // German, Danish, Norwegian, Swedish, and names
  'àâçéèêëîïôœùûüÿöä', // French
  'áéíñóúüçàèòïãâêôõ', // Spanish, Portuguese, Catalan
  'àèéìòóù', // Italian
  'áéíóúýþæðö', // Icelandic
];
const EASTERN = [
  'ąćęłńóśźżöü', // Polish
  'áčďéěíňóřšťúůýžäöü', // Czech
  'áäčďéíĺľňóôŕšťúýž', // Slovak
  'áéíóöőúüű', // Hungarian
  'čćđšž', // Croatian, Slovene
  'ăâîşţșț', // Romanian
];
const TURKISH = ['çğıiöşüâî'];
const FOREIGN = ['абвгдеёжзийклмнопрстуфхцчшщъыьэюя', 'αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐ'];
const ALPHABETS: Readonly<Record<string, readonly string[]>> = {
  ...{ 'windows-1250': EASTERN, 'windows-1254': TURKISH },
  ...Object.fromEntries(OTHERS.map((encoding) => [encoding, FOREIGN])),
};

/** Patterns that occur only in text that was decoded with the wrong encoding. */
const ODD: readonly RegExp[] = [
  // A sign within a word: `Gr”áe`, `pow³oka`, `PRZEP£YW`. An accent is also written as an apostrophe: `Company´s`.
  /\p{L}(?![’‘·–—°µ−]|(?<=[A-Za-z])´[a-z])[^\p{ASCII}\p{L}\p{M}]+\p{Ll}/u,
  /\p{Lu}[£¥¯]\p{Lu}|[£¥¯]\p{Ll}/u,
  // Polish words: `wiêksza`.
  /(?<!\p{L})(?=\p{L}*[êñœæ])\p{L}*(?:sz|cz|rz)/iu,
  /(?:^|[\s,;\t])[²³¹„”’‡†‚…™](?=\p{L})/u,
  /\p{L}[„‚‡†ˆ¤¿¡](?!\p{L})/u,
  // A capital after a small letter, `MŸller`, or a small letter among capitals, `MêTODO`.
  /\p{Ll}(?![\p{ASCII}ΩΔ])\p{Lu}|\p{Lu}(?![\p{ASCII}µμ])\p{Ll}\p{Lu}/u,
  // More than two such characters in a row are the bytes of another script; a letter before a number is a sign.
  // Not with the flag `i`, with which `k` and `s` count as other characters: they have relatives outside ASCII.
  /(?![äöüßÄÖÜ]{3})\P{ASCII}{3}/u,
  /\p{Lu}(?!\p{ASCII})\p{Lu}\p{Ll}|[¿¡](?!\p{Lu})/u,
  /(?:^|[\s;,(])(?![µÅØ])[^\P{L}\p{ASCII}]\d/u,
  /\p{Ll}–\p{Ll}{1,2}(?!\p{L})/u,
  /[\u2500-\u259f]\p{L}|\p{L}[\u2500-\u259f]/u,
  // A bracket or a number with a strange sign behind it: `[¡C]`.
  /(?:^|[\d([\s;,])[¡¿¤§¶¯][A-Z](?![a-z])/u,
];

/** Words of one script, with capitals only at the beginning or throughout. */
const ODD_FOREIGN: readonly RegExp[] = [
  /[A-Za-z][\p{Script=Cyrillic}\p{Script=Greek}]|[\p{Script=Cyrillic}\p{Script=Greek}][A-Za-z]/u,
  /[\p{Script=Cyrillic}\p{Script=Greek}](?<=\p{Ll})\p{Lu}/u,
  /\p{L}[^\p{ASCII}\p{L}\p{M}]\p{L}|[\u2500-\u259f]/u,
  // The bytes of `年`, `月` and `日` between digits.
  /\d(?!\p{ASCII})\p{L}{2}\d/u,
  // Greek has one sigma within words and another one at their end.
  /ς(?=\p{L})|\p{Ll}σ(?!\p{L})/u,
];

/** `20 øC`, `5 æm`, `cmý`: a unit in which another encoding has °, µ or ². */
function hasStrangeUnit(text: string): boolean {
  for (const [, word = ''] of text.matchAll(
    /(?:^|[\s\d([/,;"=:])([A-Za-z]{0,2}[^\P{L}\p{ASCII}µ°][A-Za-z]{0,3})(?=$|[\s)\]/,;."|])/gu,
  )) {
    const repaired = ['°', 'µ', '²', '³', 'Ω'].map((sign) => word.replace(/\P{ASCII}/u, sign));
    if (/[A-Za-z]/.test(word) && !isUnit(word) && repaired.some(isUnit)) return true;
  }
  return false;
}

/** First bytes of the characters in everyday use. */
const COMMON: Readonly<Record<string, readonly [from: number, to: number]>> = {
  ...{
    shift_jis: [0x81, 0x98],
    'euc-jp': [0xa1, 0xcf],
    gb18030: [0xa1, 0xd7],
    big5: [0xa1, 0xc6],
    'euc-kr': [0xa1, 0xc8],
  },
};

const WIDE = /[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]/u;

/** Katakana of half the width, in Shift JIS: a single one is a Western letter. */
const HALF_WIDE_ALONE = /(?<![\uff61-\uff9f])[\uff61-\uff9f](?![\uff61-\uff9f])/u;

/** Words of several everyday characters. Single ones among letters are Western letters that are decoded wrongly. */
function isEastAsian(text: string, encoding: string): boolean {
  const [from, to] = COMMON[encoding] ?? [0, 255];
  const runs = text.match(/[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+/gu) ?? [];
  const single = runs.filter((run) => run.length === 1).length;
  if (runs.length === 0 || single > runs.length / 2) return false;
  if (/[A-Za-z][\u4e00-\u9fff\uac00-\ud7af][a-z]/u.test(text) || HALF_WIDE_ALONE.test(text)) return false;
  const hasKana = /[\u3041-\u30ff]/u.test(text.replace(/[の・ー]/g, ''));
  if (hasKana && !/jis|jp/.test(encoding)) return false;
  // Where Japanese has no kana, its bytes in EUC are also those of Chinese, which is more common.
  if (!hasKana && encoding === 'euc-jp' && !JAPANESE.test(text)) return false;
  if (encoding === 'euc-kr' ? /[\u4e00-\u9fff]/u.test(text) : /[\uac00-\ud7af]/u.test(text)) return false;
  const isCommon = (character: string) => {
    const bytes = iconv.encode(character, encoding);
    const lead = bytes[0] ?? 0;
    const isTrail = !['gb18030', 'euc-kr'].includes(encoding) || (bytes[1] ?? 0) >= 0xa1;
    return bytes.length === 2 && lead >= from && lead <= to && isTrail;
  };
  // The rest of the text: full-width signs, units and symbols.
  const others = text.match(/\P{ASCII}/gu)?.filter((character) => !WIDE.test(character)) ?? [];
  return (
    runs.every((run) => [...run].every(isCommon)) &&
    others.every((each) => /[\u2010-\u22ff\u3000-\u303f\uff01-\uff9f℃°µμ±×÷²³·φΦαβγδλσωΔΩ]/u.test(each))
  );
}

/** Words that hardly any wrong encoding yields. */
const JAPANESE =
  /温度|測定|試料|時間|日時|日付|結果|濃度|波長|番号|装置|条件|吸光|名称|開始|終了|分析|データ|サンプル|ファイル|メソッド|測定者/;
const WORDS: Readonly<Record<string, RegExp>> = {
  ...{ shift_jis: JAPANESE, 'euc-jp': JAPANESE },
  gb18030: /温度|测量|测定|测试|样品|时间|日期|结果|浓度|波长|编号|仪器|名称|操作|开始|数据|压力|分析|单位|方法|校正/,
  big5: /溫度|測量|樣品|時間|日期|結果|濃度|波長|編號|儀器|名稱|開始|資料|壓力|單位/,
  'euc-kr': /온도|시료|시간|날짜|결과|농도|파장|번호|측정|샘플|이름|시작|장비|압력/,
};
