import { type ScaleContinuousNumeric, type ScaleTime, scaleLinear, scaleLog, scaleUtc } from 'd3-scale';
import type { PlotAxis } from '../model.js';
import { headingOf } from '../text.js';
import { FONT_SIZE, type Frame, INK, lineAt, SOFT, shorten, textAt, widthOf } from './svg.js';

interface Tick {
  /** In pixels. */
  readonly at: number;
  readonly label: string;
}

export interface Scale {
  /** With its unit, and the power of ten or the day that the labels leave out. */
  readonly title: string;
  toPx(value: number): number;
  /** About that many, or fewer if the labels would touch. */
  ticks(count: number): Tick[];
}

export interface Domain {
  readonly min: number;
  readonly max: number;
}

/** `from` and `to`: where the smallest and the largest value are. */
export function createScale(axis: PlotAxis, { min, max }: Domain, [from, to]: readonly [number, number]): Scale {
  const range: [number, number] = axis.isReversed ? [to, from] : [from, to];
  if (axis.type !== 'number') return timeScale(axis, { min, max }, range);
  if (axis.isLogarithmic) return logScale(axis, scaleLog([min, max], range));
  return numberScale(axis, { min, max }, range);
}

function numberScale(axis: PlotAxis, domain: Domain, range: [number, number]): Scale {
  const exponent = exponentOf(domain);
  const shrink = (value: number): number => dividedByPower(value, exponent);
  const [min, max] = spread(shrink(domain.min), shrink(domain.max));
  const scale = scaleLinear([min, max], range);
  return {
    title: titleOf(axis, exponent === 0 ? '' : `10${superscript(exponent)}`),
    toPx: (value) => scale(shrink(value)),
    ticks: (count) => ticksThatFit(scale, count),
  };
}

/** A constant value is drawn in the middle. */
function spread(min: number, max: number): [number, number] {
  if (min < max) return [min, max];
  const half = Math.abs(min) / 10 || 1;
  return [min - half, max + half];
}

/** Labels stay short: very large and very small numbers are shown as multiples of a power of ten. */
function exponentOf({ min, max }: Domain): number {
  const largest = Math.max(Math.abs(min), Math.abs(max));
  if (largest === 0 || (largest < 100_000 && largest >= 0.01)) return 0;
  return 3 * Math.floor(Math.log10(largest) / 3);
}

/** In two steps: the power itself can be smaller than any number. */
function dividedByPower(value: number, exponent: number): number {
  const half = Math.trunc(exponent / 2);
  return value / 10 ** half / 10 ** (exponent - half);
}

const SUPERSCRIPTS: Readonly<Record<string, string>> = Object.fromEntries(
  [...'-0123456789'].map((digit, index) => [digit, [...'⁻⁰¹²³⁴⁵⁶⁷⁸⁹'][index] ?? '']),
);

const superscript = (exponent: number): string => String(exponent).replace(/./g, (digit) => SUPERSCRIPTS[digit] ?? '');

const titleOf = ({ name, unit }: PlotAxis, extra = ''): string =>
  headingOf({ name, unit: headingOf({ name, unit }) === name ? extra : [extra, unit].filter(Boolean).join(' ') });

function ticksThatFit(scale: ScaleContinuousNumeric<number, number>, count: number): Tick[] {
  for (let wanted = count; ; wanted--) {
    const format = scale.tickFormat(wanted, 'f');
    // `-0` would be written with a sign.
    const ticks = scale.ticks(wanted).map((value) => ({ at: scale(value), label: format(value === 0 ? 0 : value) }));
    if (wanted <= 2 || !doTouch(ticks, scale.range())) return ticks;
  }
}

/** Only labels beside each other can touch. */
function doTouch(ticks: readonly Tick[], [from = 0, to = 0]: readonly number[]): boolean {
  const widest = Math.max(0, ...ticks.map(({ label }) => widthOf(label)));
  return ticks.length * (widest + FONT_SIZE) > Math.abs(to - from) + widest;
}

function logScale(axis: PlotAxis, scale: ScaleContinuousNumeric<number, number>): Scale {
  const [min = 1, max = 10] = scale.domain();
  const [first, last] = [Math.ceil(Math.log10(min) - 1e-9), Math.floor(Math.log10(max) + 1e-9)];
  return {
    title: titleOf(axis),
    toPx: (value) => scale(value),
    ticks(count) {
      const step = Math.max(1, Math.ceil((last - first + 1) / count));
      const exponents = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, n) => first + n * step);
      const isShort = first >= -3 && last <= 4;
      return exponents.map((exponent) => ({ at: scale(10 ** exponent), label: powerLabel(exponent, isShort) }));
    },
  };
}

const powerLabel = (exponent: number, isShort: boolean): string =>
  isShort ? String(Number((10 ** exponent).toPrecision(1))) : `10${superscript(exponent)}`;

const DAY = 86_400_000;

function timeScale(axis: PlotAxis, { min, max }: Domain, range: [number, number]): Scale {
  const [from, to] = min < max ? [min, max] : [min - 1000, max + 1000];
  const scale: ScaleTime<number, number> = scaleUtc([from, to], range);
  const { label, title } = timeLabels(axis, from, to);
  return {
    title,
    toPx: (value) => scale(value),
    ticks(count) {
      for (let wanted = count; ; wanted--) {
        const ticks = scale.ticks(wanted).map((date) => ({ at: scale(date), label: label(date) }));
        const isDistinct = new Set(ticks.map((tick) => tick.label)).size === ticks.length;
        if (wanted <= 1 || (isDistinct && !doTouch(ticks, range))) return ticks;
      }
    },
  };
}

/** The clock as the file has it. What all labels share is in the title. */
function timeLabels(axis: PlotAxis, from: number, to: number) {
  const part = (start: number, end: number) => (date: Date) => date.toISOString().replace('T', ' ').slice(start, end);
  const span = to - from;
  const [day, lastDay] = [from, to].map((ms) => new Date(ms).toISOString().slice(0, 10));
  const isOneDay = axis.type === 'clock' || day === lastDay;
  const title = isOneDay && axis.type === 'date' ? titleOf(axis, day) : titleOf(axis);
  if (isOneDay) return { title, label: span < 100 ? part(17, 23) : span < 600_000 ? part(11, 19) : part(11, 16) };
  if (span < 4 * DAY) return { title: titleOf(axis, day?.slice(0, 4)), label: part(5, 16) };
  if (span < 3 * 365 * DAY) return { title, label: part(0, 10) };
  return { title, label: part(0, 7) };
}

/** Grid lines, labels and title of the axis below the frame. */
export function drawBottomAxis(scale: Scale, { left, right, top, bottom }: Frame): string[] {
  return [
    ...scale
      .ticks(10)
      .flatMap(({ at, label }) => [
        lineAt(at, top, at, bottom),
        lineAt(at, bottom, at, bottom + 5, SOFT),
        textAt(at, bottom + 19, label, { anchor: 'middle' }),
      ]),
    bottomTitle(scale.title, { left, right, bottom: bottom + 40 }),
  ];
}

export const bottomTitle = (title: string, { left, right, bottom }: Omit<Frame, 'top'>): string =>
  textAt((left + right) / 2, bottom, shorten(title, right - left, 13), { anchor: 'middle', size: 13 });

const TITLE_HEIGHT = 13;

/** How much room the axis on the left needs. */
export const leftAxisWidth = (scale: Scale): number =>
  Math.min(160, Math.max(...scale.ticks(6).map(({ label }) => widthOf(label)), 0) + TITLE_HEIGHT + 28);

export function drawLeftAxis(scale: Scale, { left, right, top, bottom }: Frame): string[] {
  const width = leftAxisWidth(scale);
  const middle = (top + bottom) / 2;
  return [
    ...scale
      .ticks(6)
      .flatMap(({ at, label }) => [
        lineAt(left, at, right, at),
        lineAt(left - 5, at, left, at, SOFT),
        textAt(left - 9, at + 4, label, { anchor: 'end' }),
      ]),
    textAt(left - width + TITLE_HEIGHT + 2, middle, shorten(scale.title, bottom - top, 13), {
      ...{ anchor: 'middle', size: 13, rotate: -90 },
    }),
  ];
}

/** The two axis lines, drawn above the grid. */
export const drawFrame = ({ left, right, top, bottom }: Frame): string =>
  `<path d="M${left},${top}V${bottom}H${right}" stroke="${INK}" fill="none"/>`;
