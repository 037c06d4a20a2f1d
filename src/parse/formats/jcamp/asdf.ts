import type { WholeFile } from '../whole.js';
import { type LabelledRecord, written } from './record.js';

/** The ordinates of a series, and where it begins. */
export interface Series {
  readonly firstX: number;
  readonly points: readonly { readonly text: string; readonly line: number }[];
}

export interface SeriesOptions {
  /** More points than these are not made: a few signs can ask for any number of them. */
  readonly most: number;
  readonly factor: number;
  readonly decimal: '.' | ',' | undefined;
}

/**
 * One ordinate, or how the next follow from the one before:
 * numbers, squeezed numbers (`A1` is 11), differences (`J1` is 11 more), repetitions (`S`), and `?` for none.
 */
const TOKEN =
  /([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]\d+)?)|([@A-Ia-i])(\d*\.?\d*)|([%J-Rj-r])(\d*\.?\d*)|([S-Zs])(\d*)|(\?)|([\s;]+)/y;

const SQUEEZED = '@ABCDEFGHIabcdefghi';
const DIFFERENCE = '%JKLMNOPQRjklmnopqr';
const REPEATED = ' STUVWXYZs';

type Token =
  | { readonly kind: 'value'; readonly value: number; readonly text: string }
  | { readonly kind: 'difference'; readonly value: number }
  | { readonly kind: 'repeat'; readonly times: number }
  | { readonly kind: 'missing' };

/** Decodes `(X++(Y..Y))`: each line has its abscissa, and then as many ordinates as fit. */
export async function decodeSeries(
  record: LabelledRecord,
  options: SeriesOptions,
  file: WholeFile,
): Promise<Series> {
  const points: { text: string; line: number }[] = [];
  let firstX: number | undefined;
  const decoder = createDecoder(options.factor);
  for (const [n, content] of record.lines.entries()) {
    if (n === 0 || content === '') continue;
    const line = record.number + n;
    const refuse = (message: string, hint?: string) =>
      file.refuse(message, { at: { line }, ...(hint && { hint }) });
    const tokens = tokensIn(content, options.decimal);
    const [x, ...ordinates] = typeof tokens === 'string' ? [] : tokens;
    if (typeof tokens === 'string' || x?.kind !== 'value') {
      throw refuse(
        `this is no line of data: ${JSON.stringify(content.slice(0, 40))}`,
        typeof tokens === 'string' ? tokens : undefined,
      );
    }
    firstX ??= x.value;
    decoder.begin();
    for (const token of ordinates) {
      const room = options.most - points.length;
      const texts = decoder.take(token, room);
      if (texts === undefined)
        throw refuse('a line does not begin with the value at which the one before ended');
      if (texts === 'more') throw refuse(`there are more points than the ${options.most} that there can be`);
      for (const text of texts) points.push({ text, line });
    }
    if (n % 64 === 0 && file.pace.due()) await file.pace.rest();
  }
  return { firstX: firstX ?? 0, points };
}

interface Decoder {
  /** A new line begins. */
  begin(): void;
  /** The points that a token makes; undefined where a check fails, `more` where there is no room. */
  take(token: Token, room: number): readonly string[] | 'more' | undefined;
}

function createDecoder(factor: number): Decoder {
  let last: number | undefined;
  let lastText = '';
  let difference: number | undefined;
  let isCheck = false;

  const scaled = (value: number): string => written(value * factor);

  function takeValue(value: number, text: string): string[] | undefined {
    const isRepeated = isCheck;
    isCheck = false;
    difference = undefined;
    if (isRepeated && !isNearly(value, last ?? 0)) return undefined;
    last = value;
    lastText = factor === 1 && text !== '' ? text : scaled(value);
    return isRepeated ? [] : [lastText];
  }
  function takeDifference(value: number): string[] {
    isCheck = false;
    difference = value;
    last = (last ?? 0) + value;
    lastText = scaled(last);
    return [lastText];
  }

  return {
    begin() {
      // After differences, a line repeats the last value, so that a lost sign is noticed.
      isCheck = difference !== undefined;
    },
    take(token, room) {
      switch (token.kind) {
        case 'missing':
          isCheck = false;
          difference = undefined;
          lastText = '';
          return room < 1 ? 'more' : [''];
        case 'value': {
          const texts = takeValue(token.value, token.text);
          return texts && texts.length > room ? 'more' : texts;
        }
        case 'difference':
          return room < 1 ? 'more' : takeDifference(token.value);
        case 'repeat': {
          const times = token.times - 1;
          if (times > room) return 'more';
          const by = difference;
          return Array.from({ length: Math.max(times, 0) }, () =>
            by === undefined ? lastText : (takeDifference(by)[0] ?? ''),
          );
        }
      }
    },
  };
}

/** Sums of decimal fractions are seldom exact. */
const isNearly = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 1e-9 * Math.max(Math.abs(one), Math.abs(other));

/** The tokens of a line; a text where a comma can mean two things. */
function tokensIn(content: string, decimal: '.' | ',' | undefined): Token[] | string {
  const hasComma = content.includes(',');
  if (hasComma && decimal === undefined) return 'say what the comma is: `decimal: ","` or `decimal: "."`';
  const line = hasComma ? content.replaceAll(',', decimal === ',' ? '.' : ' ') : content;
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < line.length) {
    const match = TOKEN.exec(line);
    if (!match) return 'the file may be damaged';
    const token = tokenOf(match);
    if (token) tokens.push(token);
  }
  return tokens;
}

function tokenOf([
  ,
  number,
  squeezed,
  squeezedDigits,
  sign,
  digits,
  repeated,
  times,
  missing,
]: RegExpExecArray): Token | undefined {
  if (number !== undefined) return { kind: 'value', value: Number(number), text: number.replace(/^\+/, '') };
  if (squeezed !== undefined) {
    const value = signed(SQUEEZED.indexOf(squeezed), squeezedDigits);
    return { kind: 'value', value, text: '' };
  }
  if (sign !== undefined) return { kind: 'difference', value: signed(DIFFERENCE.indexOf(sign), digits) };
  if (repeated !== undefined)
    return { kind: 'repeat', times: Number(`${REPEATED.indexOf(repeated)}${times}`) };
  return missing === undefined ? undefined : { kind: 'missing' };
}

/** The first nine letters are the digits 1 to 9, the next nine the same with a minus. */
function signed(place: number, digits = ''): number {
  return place <= 9 ? Number(`${place}${digits}`) : -Number(`${place - 9}${digits}`);
}
