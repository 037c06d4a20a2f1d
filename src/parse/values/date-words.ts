/** Words in dates: months, weekdays and halves of the day, in the languages in which instruments write them. */

const ENGLISH_MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const ENGLISH_DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** From January: English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, each also as abbreviated. */
const MONTHS = numbered([
  'january jan januar januari janvier janv enero ene gennaio gen janeiro',
  'february feb februar februari février fevrier févr fevr fév fev febrero febbraio fevereiro',
  'march mar märz maerz mrz mär mars marzo março marco maart mrt',
  'april apr avril avr abril abr aprile',
  'may mai mayo maggio mag maio mei maj',
  'june jun juni juin junio giugno giu junho',
  'july jul juli juillet juil julio luglio lug julho',
  'august aug août aout aoû agosto ago augustus augusti',
  'september sept sep septembre septiembre setiembre settembre set setembro',
  'october oct oktober okt octobre octubre ottobre ott outubro out',
  'november nov novembre noviembre novembro',
  'december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro',
]);

/** From Sunday, in the same languages. Without `mar` and others that are also months. */
const WEEKDAYS = numbered([
  'sunday sun sonntag so dimanche dim domingo domenica dom zondag zo söndag sön 日曜日 星期日',
  'monday mon montag mo lundi lunes lunedì lun segunda-feira maandag måndag mån 月曜日 星期一',
  'tuesday tues tue dienstag di mardi martes martedì terça-feira dinsdag tisdag tis 火曜日 星期二',
  'wednesday wed mittwoch mi mercredi miércoles mié mercoledì mer quarta-feira woensdag wo onsdag ons 水曜日 星期三',
  'thursday thurs thu donnerstag do jeudi jeu jueves jue giovedì gio quinta-feira donderdag torsdag tors 木曜日 星期四',
  'friday fri freitag fr vendredi viernes vie venerdì ven sexta-feira vrijdag vr fredag fre 金曜日 星期五',
  'saturday satur sat samstag sa samedi sam sábado sáb sabato sab zaterdag za lördag lör 土曜日 星期六',
]);

function numbered(names: readonly string[]): ReadonlyMap<string, number> {
  return new Map(names.flatMap((each, n) => each.split(' ').map((name) => [name, n] as const)));
}

const folded = (word: string): string => word.normalize('NFC').toLowerCase().replace(/\.$/, '');

/** From 1. */
export function monthOf(word: string): number | undefined {
  const month = MONTHS.get(folded(word));
  return month === undefined ? undefined : month + 1;
}

export const isLongMonth = (word: string): boolean =>
  ENGLISH_MONTHS.some((name) => name.toLowerCase() === folded(word));

/** A weekday at the beginning, before a digit or a month: its number from Sunday, and what it is written with. */
export function leadingWeekday(text: string): { day: number; word: string; gap: string } | undefined {
  const [, word = '', gap = ''] = /^([\p{L}-]{2,13}\.?)(,? )(?=\d|\p{L}{3,10}\.? \d)/u.exec(text) ?? [];
  const day = WEEKDAYS.get(folded(word));
  return day === undefined ? undefined : { day, word, gap };
}

/** `2022- 3-30` as `2022-3-30`: digits that are padded with blanks. */
export const withoutPadding = (text: string): string =>
  text.includes(' ') ? text.replace(/(?<=\d[/.:-]) +(?=\d(?!\d))/g, '') : text;

/** `p.m.`, `P. M.` as `PM`; also `午後` and `下午`, which stand before the time. */
export function withPlainHalf(text: string): string {
  const plain = text.replace(
    /(\d ?)([ap])\.? ?m\.?(?!\p{L})/giu,
    (_, before: string, half: string) => `${before}${half}M`,
  );
  return plain.replace(
    /(午前|上午|午後|下午) ?(\d{1,2}:\d[\d:.,]*)/,
    (_, half: string, clock: string) => `${clock} ${half === '午前' || half === '上午' ? 'AM' : 'PM'}`,
  );
}

/** The words of a date in English, as luxon reads them: long for `MMMM` and `EEEE` in the format, else short. */
export function withEnglishWords(text: string, format: string): string {
  const weekday = format.includes('E') ? leadingWeekday(text) : undefined;
  const day = ENGLISH_DAYS[weekday?.day ?? -1];
  const rest = weekday && day ? text.slice(weekday.word.length) : text;
  const start = day === undefined ? '' : format.includes('EEEE') ? day : day.slice(0, 3);
  if (!format.includes('MMM')) return start + rest;
  // The dot of an abbreviation: `4 janv. 2024`.
  const words = format.includes('MMM.')
    ? /(?<!\p{L})\p{L}{3,10}(?!\p{L})/gu
    : /(?<!\p{L})\p{L}{3,10}(?!\p{L})(?:\.(?= |$))?/gu;
  return (
    start +
    rest.replace(words, (word) => {
      const english = ENGLISH_MONTHS[(monthOf(word) ?? 0) - 1];
      return english === undefined ? word : format.includes('MMMM') ? english : english.slice(0, 3);
    })
  );
}
