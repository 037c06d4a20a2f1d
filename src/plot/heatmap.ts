import { scaleLinear } from 'd3-scale';
import type { Plot } from '../model.js';
import { createScale, type Domain } from './axes.js';
import { FONT_SIZE, HEIGHT, INK, lineAt, notesHeight, px, SOFT, shorten, textAt, VIRIDIS, widthOf } from './svg.js';

type Heatmap = Extract<Plot, { kind: 'heatmap' }>;

const LEFT = 44;
const TOP = 40;
const BAR = { left: 694, width: 16 };

/** A plate as it stands on the bench: A1 in the upper left corner. Wells without a value stay white. */
export function drawHeatmap({ rows, columns, values, y, notes }: Heatmap): string[] {
  const bottom = HEIGHT - 16 - notesHeight(notes);
  const cell = { width: (BAR.left - 30 - LEFT) / columns, height: (bottom - TOP) / rows };
  const numbers = values.filter((value) => !Number.isNaN(value));
  const domain = { min: numbers.reduce((a, b) => Math.min(a, b)), max: numbers.reduce((a, b) => Math.max(a, b)) };
  const scale = createScale(y, domain, [bottom, TOP]);
  const colour = colourBetween(scale.toPx(domain.min), scale.toPx(domain.max));
  const write = writerFor(numbers, domain, cell.width - 6);
  return [
    ...Array.from({ length: columns }, (_, column) =>
      textAt(LEFT + (column + 0.5) * cell.width, TOP - 8, String(column + 1), { anchor: 'middle' }),
    ),
    ...Array.from({ length: rows }, (_, row) =>
      textAt(LEFT - 10, TOP + (row + 0.5) * cell.height + 4, String.fromCharCode(65 + row), { anchor: 'end' }),
    ),
    ...Array.from(values, (value, index) => {
      const [left, top] = [LEFT + (index % columns) * cell.width, TOP + Math.floor(index / columns) * cell.height];
      return drawWell({ left, top, ...cell }, value, colour(scale.toPx(value)), write);
    }),
    ...drawColourBar(domain, scale, bottom),
  ];
}

/** From pixels of the colour bar to its colours. */
function colourBetween(low: number, high: number): (at: number) => string {
  const [from, to] = low === high ? [low + 1, high - 1] : [low, high];
  const stops = VIRIDIS.map((_, index) => from + ((to - from) * index) / (VIRIDIS.length - 1));
  return scaleLinear<string>().domain(stops).range(VIRIDIS).clamp(true);
}

/** Writes the values in the wells, all with the same number of decimals; undefined if they do not fit. */
function writerFor(
  numbers: Float64Array,
  { max, min }: Domain,
  width: number,
): ((value: number) => string) | undefined {
  const exponent = Math.floor(Math.log10(Math.max(Math.abs(min), Math.abs(max)) || 1));
  if (exponent < -3 || exponent > 5) return undefined;
  const decimals = Math.max(0, 2 - exponent);
  const write = (value: number): string => value.toFixed(decimals).replace('-', '−');
  return numbers.every((value) => widthOf(write(value), 10) <= width) ? write : undefined;
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

function drawWell(
  { left, top, width, height }: Box,
  value: number,
  colour: string,
  write: ReturnType<typeof writerFor>,
) {
  const box = `x="${px(left)}" y="${px(top)}" width="${px(width)}" height="${px(height)}"`;
  if (Number.isNaN(value)) return `<rect ${box} fill="#ffffff" stroke="#d0d0d0"/>`;
  const well = `<rect ${box} fill="${colour}" stroke="#ffffff"/>`;
  if (!write) return well;
  const [x, y] = [left + width / 2, top + height / 2 + 3.5];
  return well + textAt(x, y, write(value), { anchor: 'middle', size: 10, fill: inkOn(colour) });
}

/** White or black, whichever can be read on this colour. */
function inkOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? INK : '#ffffff';
}

function drawColourBar(domain: { min: number; max: number }, scale: ReturnType<typeof createScale>, bottom: number) {
  const { left, width } = BAR;
  const [low, high] = [scale.toPx(domain.min), scale.toPx(domain.max)];
  const stops = VIRIDIS.map(
    (colour, index) => `<stop offset="${index / (VIRIDIS.length - 1)}" stop-color="${colour}"/>`,
  );
  const ticks = scale.ticks(6).filter(({ at }) => at <= low + 0.5 && at >= high - 0.5);
  const labels = Math.max(0, ...ticks.map(({ label }) => widthOf(label)));
  const middle = (TOP + bottom) / 2;
  return [
    `<defs><linearGradient id="viridis" x1="0" y1="1" x2="0" y2="0">${stops.join('')}</linearGradient></defs>`,
    `<rect x="${left}" y="${px(high)}" width="${width}" height="${px(Math.max(1, low - high))}" fill="url(#viridis)"/>`,
    ...ticks.flatMap(({ at, label }) => [
      lineAt(left + width, at, left + width + 4, at, SOFT),
      textAt(left + width + 7, at + 4, label),
    ]),
    textAt(left + width + 7 + labels + FONT_SIZE + 6, middle, shorten(scale.title, bottom - TOP, 13), {
      ...{ anchor: 'middle', size: 13, rotate: -90 },
    }),
  ];
}
