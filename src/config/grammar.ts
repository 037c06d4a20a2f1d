import { z } from 'zod';

/**
 * The small grammars of the parse vocabulary: how a line, a cut, a place and a date pattern are written.
 * Two ideas go through all of them: text is literal unless it stands in slashes;
 * left is your name, right is where it is in the file.
 */

/** The source of a regular expression, where the text is one: it begins and ends with a slash. */
export const regexSource = (text: string): string | undefined =>
  text.length > 2 && text.startsWith('/') && text.endsWith('/') ? text.slice(1, -1) : undefined;

export interface CellReference {
  /** Undefined: the first sheet, or the file where it is no workbook. */
  readonly sheet: string | undefined;
  /** Both from 1. */
  readonly line: number;
  readonly cell: number;
}

const REFERENCE = /^=(?:'((?:[^']|'')+)'!|([\p{L}\p{N}_.]+)!)?\$?([A-Z]{1,3})\$?([1-9]\d{0,6})$/iu;

/** A cell as spreadsheets name it: `=C3`, `='Sheet 2'!B9`. */
export function cellReference(text: string): CellReference | undefined {
  if (!text.startsWith('=')) return undefined;
  const [, quoted, plain, letters, digits] = REFERENCE.exec(text) ?? [];
  if (letters === undefined) return undefined;
  return { sheet: quoted?.replaceAll("''", "'") ?? plain, line: Number(digits), cell: cellNumber(letters) };
}

/** A column's letters as a number, from 1: `A` is 1, `AA` is 27. */
const cellNumber = (letters: string): number =>
  [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);

/** A rectangle of lines and cells, all from 1 and inclusive; undefined where it is open. */
export interface Area {
  readonly fromLine: number;
  readonly toLine: number | undefined;
  readonly fromCell: number;
  readonly toCell: number | undefined;
}

/** `B5:F`: from B5 to the end of column F. */
export function areaOf(text: string): Area | undefined {
  const [, left, top, right, bottom] = /^([A-Z]{1,3})(\d{0,7}):([A-Z]{0,3})(\d{0,7})$/i.exec(text) ?? [];
  if (left === undefined) return undefined;
  return {
    fromLine: Number(top) || 1,
    toLine: Number(bottom) || undefined,
    fromCell: cellNumber(left),
    toCell: right ? cellNumber(right) : undefined,
  };
}

export const text = (what: string) => z.string({ error: `expected ${what}` }).min(1, `expected ${what}`);

/** A text whose mistakes are told where it is written, rather than at the first file. */
const checkedText = (what: string, mistakeIn: (written: string) => string | undefined) =>
  text(what).superRefine((written, context) => {
    const message = mistakeIn(written);
    if (message) context.addIssue({ code: 'custom', message });
  });

/** One or a list of them; a list once it was read. */
export const listOf = <S extends z.ZodType>(one: S, what: string) =>
  z
    .union([one, z.array(one)], { error: `expected ${what}` })
    .transform((written) => (Array.isArray(written) ? written : [written]) as z.output<S>[]);

export function regexMistake(written: string): string | undefined {
  const source = regexSource(written);
  if (source === undefined) return undefined;
  try {
    new RegExp(source);
    return canExplode(source)
      ? `${written} repeats what is repeated already, and also looks around or back: on some lines it would take for ever`
      : undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*\/: /s, '') : String(error);
    return `${written} is not a regular expression: ${reason}`;
  }
}

/**
 * Whether an expression may try 2ⁿ ways where V8 has no other way than to try them all: `(?=x)(a+)+$`.
 * Without looking around or back there is one, so that any expression will do.
 */
export function canExplode(source: string): boolean {
  const plain = source.replace(/\\[^1-9k]/g, '_').replace(/\[[^\]]*\]/g, '_');
  if (!/\(\?<?[=!]|\\[1-9k]/.test(plain)) return false;
  /** For each group that is open: whether something in it is repeated, or one of several. */
  const open: boolean[] = [];
  for (let at = 0; at < plain.length; at++) {
    const sign = plain[at];
    if (sign === '(') open.push(false);
    else if (sign === ')') {
      const isOpenEnded = open.pop() ?? false;
      const isRepeated = /^(?:[*+]|\{\d*,)/.test(plain.slice(at + 1));
      if (isOpenEnded && isRepeated) return true;
      if ((isOpenEnded || isRepeated) && open.length > 0) open[open.length - 1] = true;
    } else if (open.length > 0 && /^(?:[*+|]|\{\d*,)/.test(plain.slice(at))) open[open.length - 1] = true;
  }
  return false;
}

/** A regular expression whose named groups are what is wanted of it. */
export const groups = () =>
  checkedText('a regular expression', (written) => {
    if (/\(\?<[^=!]/.test(regexSource(written) ?? '')) return regexMistake(written);
    return `expected a regular expression in slashes with a named group: '/^ID (?<sample>\\w+)/'`;
  });

const LINE = 'a line: its number, text that it begins with, /regex/, blank or eof; or a list of them';
export const line = () =>
  listOf(
    z.union(
      [
        z.int().refine((number) => number !== 0, 'lines count from 1, or from -1 at the end'),
        checkedText(LINE, regexMistake),
      ],
      { error: `expected ${LINE}` },
    ),
    LINE,
  ).refine((lines) => lines.length > 0, `expected ${LINE}`);

const SPLIT = 'text, tab, spaces, whitespace, /regex/, or { at: [31, 66] }';
export const split = () =>
  z.union(
    [
      checkedText(SPLIT, (written) => {
        const mistake = regexMistake(written);
        const source = regexSource(written);
        if (mistake || source === undefined) return mistake;
        return new RegExp(source).test('')
          ? `${written} also fits where nothing is, and cuts everywhere`
          : undefined;
      }),
      z.strictObject({
        at: z
          .array(z.int().min(1))
          .min(1)
          .refine(
            (places) => places.every((place, n) => place > (places[n - 1] ?? 0)),
            'expected growing numbers',
          )
          .describe('The characters before which further cells begin.'),
      }),
    ],
    { error: `expected ${SPLIT}` },
  );
export type SplitWord = z.output<ReturnType<typeof split>>;

const DATE = 'a pattern such as dd/MM/yyyy HH:mm:ss, or iso, epoch, epochMs, excel';
export const dateFormats = () => listOf(checkedText(DATE, dateMistake), `${DATE}; or a list of them`);

function dateMistake(written: string): string | undefined {
  if (['iso', 'epoch', 'epochMs', 'excel'].includes(written)) return undefined;
  const tokens = written.replace(/'[^']*'/g, '');
  if (/Y{2,}|D{2,}/.test(tokens)) return 'years are written yyyy and days dd, in small letters';
  const parts = [/y/, /[ML]/, /d/].filter((part) => part.test(tokens)).length;
  // What is lacking would be taken from today, and the same file would read differently tomorrow.
  if (parts > 0 && parts < 3) return 'a date needs its year, month and day: yyyy, MM and dd';
  return parts > 0 || /[Hh]/.test(tokens) ? undefined : `expected ${DATE}`;
}

const NAME = 'a name in the file, a cell such as =C3, or a path such as //Serial_number';
export const name = () =>
  checkedText(NAME, (written) =>
    written.startsWith('=') && !cellReference(written) ? `expected ${NAME}` : undefined,
  );
export const fromFact = () => z.strictObject({ from: name() });

const axis = () => z.union([z.number(), name()], { error: 'expected a number, or the fact that says it' });

/** Where something is in the file and what it is: the short forms are read as the long one. */
export const where = <S extends z.ZodType<string | number>>(part: S, what: string) => {
  const parts = z.array(part).min(1, `expected ${what}`);
  const long = z
    .strictObject({
      from: z
        .union([part, parts], { error: `expected ${what}, or a list of them` })
        .optional()
        .describe('Where it is in the file. Without it: under your name for it.'),
      type: z
        .enum(['text', 'number', 'date', 'duration', 'boolean'])
        .optional()
        .describe('What it is; a value that is not is told, not passed on. Without it: by its looks.'),
      unit: z
        .union([text('a unit'), fromFact()], { error: 'expected a unit such as mg, or { from: a fact }' })
        .optional()
        .describe('Its unit, or where the unit is: { from: … }.'),
      format: dateFormats().optional().describe('How its date is written, where not as dates.format says.'),
      start: axis()
        .optional()
        .describe('Of a computed axis: the value in the first row, a number or a fact.'),
      step: axis().optional().describe('Of a computed axis: what each row adds, a number or a fact.'),
    })
    .refine(({ start, step }) => (start === undefined) === (step === undefined), {
      error: 'expected start and step, both',
    })
    .refine(({ start, from }) => start === undefined || from === undefined, {
      error: 'expected from, or start and step',
    });
  return z
    .union([part, parts, long], { error: `expected ${what}, a list of them, or { from: … }` })
    .transform((written): Where => {
      if (typeof written !== 'object') return { from: [written] };
      if (Array.isArray(written)) return { from: written };
      const { from, ...rest } = written;
      return from === undefined ? rest : { ...rest, from: [from].flat() };
    });
};

export type ValueType = 'text' | 'number' | 'date' | 'duration' | 'boolean';

export interface Where {
  /** Names, cells or cell numbers, joined by a blank. */
  readonly from?: readonly (string | number)[];
  readonly type?: ValueType | undefined;
  readonly unit?: string | { readonly from: string } | undefined;
  readonly format?: readonly string[] | undefined;
  /** A computed axis: `start`, `start + step`, … */
  readonly start?: string | number | undefined;
  readonly step?: string | number | undefined;
}
