import { z } from 'zod';

/**
 * How values are written: text, amounts, and the small grammars of the parse vocabulary (lines, splits, places, date
 * patterns). Text is literal unless it is in slashes. Your name is on the left, its location in the file on the right.
 */

/** Separates what is wrong from what to write, in the messages of schemas. The second part becomes the hint. */
export const ARROW = ' → ';

/** A text that is not empty. */
export const text = (what: string) => z.string({ error: `expected ${what}` }).min(1, `expected ${what}`);

/** Text whose mistakes are reported when the configuration is read, not with the first file. */
const checkedText = (what: string, mistakeIn: (written: string) => string | undefined) =>
  text(what).superRefine((written, context) => {
    const message = mistakeIn(written);
    if (message) context.addIssue({ code: 'custom', message });
  });

/** One value or a list of them, read as a list. */
export const listOf = <S extends z.ZodType>(one: S, what: string, atLeast = 1) =>
  z
    .union([one, z.array(one).min(atLeast, `expected ${what}`)], { error: `expected ${what}` })
    .transform((written) => (Array.isArray(written) ? written : [written]) as z.output<S>[]);

/** The message for a value that should be a map, with an example of one. */
export const mapError =
  (example: string) =>
  ({ code }: { readonly code?: string | undefined }): string | undefined =>
    code === 'invalid_type' ? `expected a map${ARROW}write ${example}` : undefined;

interface AmountKind {
  readonly name: string;
  readonly examples: string;
  readonly separator: string;
  /** Suggested for a number without a unit. */
  readonly usual: string;
  /** The value of one of each unit. */
  readonly units: Readonly<Record<string, number>>;
}

const DURATION: AmountKind = {
  name: 'duration',
  examples: '500ms, 5s, 2m or 24h',
  separator: '',
  usual: 's',
  units: {
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
    d: 86_400_000,
    w: 7 * 86_400_000,
    y: 365 * 86_400_000,
  },
};
const SIZE: AmountKind = {
  name: 'size',
  examples: '64KB or 10MB',
  separator: '',
  usual: 'KB',
  units: { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 },
};
const RATE: AmountKind = {
  name: 'rate',
  examples: '10/s or 300/m',
  separator: '/',
  usual: 's',
  units: { s: 1, m: 1 / 60, h: 1 / 3600 },
};

function amount(kind: AmountKind) {
  const { name, separator, units } = kind;
  const pattern = new RegExp(`^(\\d+(?:\\.\\d+)?)${separator}(${Object.keys(units).join('|')})$`);
  const error = ({ input }: { readonly input?: unknown }): string =>
    `${isScalar(input) ? `${JSON.stringify(input)} is not a ${name}` : `expected a ${name}`}${ARROW}${advice(input, kind)}`;
  return z
    .string({ error })
    .regex(pattern, { error })
    .transform((written) => {
      const [, digits = '', unit = ''] = pattern.exec(written) ?? [];
      return Number(digits) * (units[unit] ?? 1);
    });
}

const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value);

/** For `30`, `30 days`, `60 kb` or `10/min`: the same amount in our notation. */
function advice(written: unknown, { examples, separator, usual, units }: AmountKind): string {
  const [, digits, word = ''] = /^(\d+(?:\.\d+)?)[\s/]*([a-z]*)$/i.exec(isScalar(written) ? String(written) : '') ?? [];
  if (digits === undefined || /^mo/i.test(word)) return `write a number with a unit, such as ${examples}`;
  if (word === '') return `write it with a unit, such as ${digits}${separator}${usual}`;
  const similar = Object.keys(units).filter((unit) => unit[0]?.toLowerCase() === word[0]?.toLowerCase());
  const unit = /^m(s|illi)/i.test(word) ? similar[0] : similar.at(-1);
  return unit ? `write ${digits}${separator}${unit}` : `write a number with a unit, such as ${examples}`;
}

/** In milliseconds. */
export const duration = () => amount(DURATION).transform(Math.round);

/** A timer that is set to more than 2^31 ms fires at once. */
const MAX_WAIT_MS = 24 * 86_400_000;

/** For the JSON Schema of amounts that must not be zero. */
const NOT_ZERO = { allOf: [{ pattern: '[1-9]' }] };

/** Greater than zero, in milliseconds. */
export const positiveDuration = () =>
  duration()
    .refine((ms) => ms > 0, 'expected a duration greater than zero')
    .meta(NOT_ZERO);

/** A duration that a timer can wait for, in milliseconds. */
export const wait = () => positiveDuration().refine((ms) => ms <= MAX_WAIT_MS, 'expected at most 24d');

/** In bytes. */
export const size = () => amount(SIZE).transform(Math.round);

/** In requests per second. */
export const rate = () =>
  amount(RATE)
    .refine((perSecond) => perSecond > 0, 'expected a rate greater than zero')
    .meta(NOT_ZERO);

/** The source of a regular expression, if the text begins and ends with a slash. */
export const regexSource = (written: string): string | undefined =>
  written.length > 2 && written.startsWith('/') && written.endsWith('/') ? written.slice(1, -1) : undefined;

export function regexMistake(written: string): string | undefined {
  const source = regexSource(written);
  if (source === undefined) return undefined;
  try {
    new RegExp(source);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*\/: /s, '') : String(error);
    return `${written} is not a valid regular expression: ${reason}`;
  }
  return canExplode(source)
    ? `${written} can take exponential time${ARROW}do not repeat a group that contains * or + together with a lookaround or a backreference`
    : undefined;
}

/**
 * Whether matching can take 2ⁿ steps: `(?=x)(a+)+$`. V8 has a linear engine, but not for lookarounds and
 * backreferences, so any expression without these is safe.
 */
function canExplode(source: string): boolean {
  const plain = source.replace(/\\[^1-9k]/g, '_').replace(/\[[^\]]*\]/g, '_');
  if (!/\(\?<?[=!]|\\[1-9k]/.test(plain)) return false;
  /** For each open group: whether it contains a repetition or alternatives. */
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

/** A regular expression with named groups. */
export const groups = () =>
  checkedText('a regular expression', (written) => {
    if (/\(\?<[^=!]/.test(regexSource(written) ?? '')) return regexMistake(written);
    return `expected a regular expression with a named group${ARROW}write it in slashes: '/^ID (?<sample>\\w+)/'`;
  });

export interface CellReference {
  /** Undefined: the first sheet, or a file that is not a workbook. */
  readonly sheet: string | undefined;
  /** Both from 1. */
  readonly line: number;
  readonly cell: number;
}

const REFERENCE = /^=(?:'((?:[^']|'')+)'!|([\p{L}\p{N}_.]+)!)?\$?([A-Z]{1,3})\$?([1-9]\d{0,6})$/iu;

/** A cell in spreadsheet notation: `=C3`, `='Sheet 2'!B9`. */
export function cellReference(written: string): CellReference | undefined {
  if (!written.startsWith('=')) return undefined;
  const [, quoted, plain, letters, digits] = REFERENCE.exec(written) ?? [];
  if (letters === undefined) return undefined;
  return { sheet: quoted?.replaceAll("''", "'") ?? plain, line: Number(digits), cell: cellNumber(letters) };
}

/** A column's letters as a number, from 1: `A` is 1, `AA` is 27. */
const cellNumber = (letters: string): number =>
  [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);

/** A rectangle of lines and cells, all from 1 and inclusive. Undefined: open-ended. */
export interface Area {
  readonly fromLine: number;
  readonly toLine: number | undefined;
  readonly fromCell: number;
  readonly toCell: number | undefined;
}

/** `B5:F`: from B5 to the end of column F. */
export function areaOf(written: string): Area | undefined {
  const [, left, top, right, bottom] = /^([A-Z]{1,3})(\d{0,7}):([A-Z]{0,3})(\d{0,7})$/i.exec(written) ?? [];
  if (left === undefined) return undefined;
  return {
    fromLine: Number(top) || 1,
    toLine: Number(bottom) || undefined,
    fromCell: cellNumber(left),
    toCell: right ? cellNumber(right) : undefined,
  };
}

const LINE = 'a line: its number, the text it starts with, /regex/, blank or eof; or a list of these';
export const line = () =>
  listOf(
    z.union(
      [
        z
          .int()
          .refine((number) => number !== 0, 'lines are numbered from 1, or backwards from -1 for the last line')
          .meta({ not: { const: 0 } }),
        checkedText(LINE, regexMistake),
      ],
      { error: `expected ${LINE}` },
    ),
    LINE,
  ).refine((lines) => lines.length > 0, `expected ${LINE}`);

const SPLIT = 'text, tab, spaces, whitespace, /regex/ or { at: [31, 66] }';
export const split = () =>
  z.union(
    [
      checkedText(SPLIT, (written) => {
        const mistake = regexMistake(written);
        const source = regexSource(written);
        if (mistake || source === undefined) return mistake;
        return new RegExp(source).test('')
          ? `${written} also matches empty text and would split everywhere`
          : undefined;
      }),
      z.strictObject({
        at: z
          .array(z.int().min(1))
          .min(1)
          .refine((places) => places.every((place, n) => place > (places[n - 1] ?? 0)), 'expected increasing numbers')
          .describe('The character positions, counted from 1, at which the second and later cells start.'),
      }),
    ],
    { error: `expected ${SPLIT}` },
  );
export type SplitWord = z.output<ReturnType<typeof split>>;

const DATE = 'a pattern such as dd/MM/yyyy HH:mm:ss, or iso, epoch, epochMs or excel';
export const dateFormats = () => listOf(checkedText(DATE, dateMistake), `${DATE}; or a list of these`);

function dateMistake(written: string): string | undefined {
  if (['iso', 'epoch', 'epochMs', 'excel'].includes(written)) return undefined;
  const tokens = written.replace(/'[^']*'/g, '');
  if (/Y{2,}|D{2,}/.test(tokens)) return `years and days are lower case${ARROW}write yyyy and dd`;
  const parts = [/y/, /[ML]/, /d/].filter((part) => part.test(tokens)).length;
  // Missing parts would be taken from today, and the same file would be read differently tomorrow.
  if (parts > 0 && parts < 3) return `a date needs a year, month and day${ARROW}write yyyy, MM and dd`;
  return parts > 0 || /[Hh]/.test(tokens) ? undefined : `expected ${DATE}`;
}

const NAME = 'a name in the file, a cell such as =C3, or a path such as //Serial_number';
export const name = () =>
  checkedText(NAME, (written) => (written.startsWith('=') && !cellReference(written) ? `expected ${NAME}` : undefined));
export const fromFact = () => z.strictObject({ from: name().describe('The fact, or where it is in the file.') });

const axis = () => z.union([z.number(), name()], { error: 'expected a number, or the name of a fact' });

const valueKeys = {
  type: z
    .enum(['text', 'number', 'date', 'duration', 'boolean'])
    .optional()
    .describe('The type. A value of another type quarantines the run. Default: detected from the value.'),
  unit: z
    .union([text('a unit'), fromFact()], { error: 'expected a unit such as mg, or { from: the fact with the unit }' })
    .optional()
    .describe('The unit, or where it is: { from: … }.'),
  format: dateFormats().optional().describe('The date format. Default: dates.format.'),
  start: axis().optional().describe('For a computed axis: the value in the first row, as a number or a fact.'),
  step: axis().optional().describe('For a computed axis: the difference between rows, as a number or a fact.'),
};

/** `from`: names, cells or cell numbers. Several values are joined with spaces. */
export type Where = Readonly<z.output<z.ZodObject<typeof valueKeys>> & { from?: readonly (string | number)[] }>;

export type ValueType = NonNullable<Where['type']>;

/** Where a fact or column is in the file, and what it is. Short forms are read as the long one. */
export const where = <S extends z.ZodType<string | number>>(part: S, what: string) => {
  const parts = z.array(part).min(1, `expected ${what}`);
  const long = z
    .strictObject({
      from: z
        .union([part, parts], { error: `expected ${what}, or a list of these` })
        .optional()
        .describe(
          'Where the value is in the file. Default: under the name given here. The values of a list are joined with spaces.',
        ),
      ...valueKeys,
    })
    .refine(({ start, step }) => (start === undefined) === (step === undefined), {
      error: 'start and step must be given together',
    })
    .refine(({ start, from }) => start === undefined || from === undefined, {
      error: 'from cannot be combined with start and step',
    })
    .meta({ dependentRequired: { start: ['step'], step: ['start'] }, not: { required: ['from', 'start'] } });
  return z
    .union([part, parts, long], { error: `expected ${what}, a list of these, or { from: … }` })
    .transform((written): Where => {
      if (typeof written !== 'object') return { from: [written] };
      if (Array.isArray(written)) return { from: written };
      const { from, ...rest } = written;
      return from === undefined ? rest : { ...rest, from: [from].flat() };
    });
};
