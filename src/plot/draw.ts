import { scaleLinear } from 'd3-scale';
import type { Plot, PlotSeries } from '../model.js';
import { decodeEntities } from '../text.js';
import {
  bottomTitle,
  createScale,
  type Domain,
  drawBottomAxis,
  drawFrame,
  drawLeftAxis,
  leftAxisWidth,
  type Scale,
} from './axes.js';
import {
  FONT_SIZE,
  type Frame,
  HEIGHT,
  INK,
  lineAt,
  notesHeight,
  PALETTE,
  picture,
  px,
  SOFT,
  shorten,
  textAt,
  toPng,
  VIRIDIS,
  WIDTH,
  widthOf,
} from './svg.js';

/**
 * Draws plots as SVG, without a browser. Loaded on demand, in a thread: most runs of the program draw nothing.
 * Of d3, only the scales are used: measured against vega-lite and echarts, that is a twentieth of the size on disk and
 * of the time to load, and our own axes fit our own labels.
 */
export const drawSvg = (plot: Plot, description: string): string => picture(description, plot.notes, drawing(plot));

/** What is written in a picture: a secret must not be published in it. */
export const textsOf = (svg: string): string =>
  decodeEntities(Array.from(svg.matchAll(/<(?:text|title)[^>]*>([^<]*)</g), ([, text]) => text).join('\n'));

export async function drawPlot(plot: Plot, description: string, format: 'svg' | 'png'): Promise<string | Uint8Array> {
  const svg = drawSvg(plot, description);
  if (format === 'svg') return svg;
  return toPng(svg);
}

function drawing(plot: Plot): string[] {
  switch (plot.kind) {
    case 'heatmap':
      return drawHeatmap(plot);
    case 'bar':
      return drawBars(plot);
    case 'line':
    case 'points':
      return drawLines(plot);
  }
}

const RIGHT = WIDTH - 28;
const AXIS_HEIGHT = 52;

function drawLines(plot: Extract<Plot, { kind: 'line' | 'points' }>): string[] {
  const { series, x, y, notes } = plot;
  const colours = coloursFor(series);
  const legend = drawLegend(series, colours);
  const [top, bottom] = [legend.height + 18, HEIGHT - AXIS_HEIGHT - notesHeight(notes)];
  const yScale = createScale(y, withMargin(domainOf(series, 'y')), [bottom, top]);
  const frame: Frame = { left: leftAxisWidth(yScale), right: RIGHT, top, bottom };
  const xScale = createScale(x, domainOf(series, 'x'), [frame.left, frame.right]);
  const draw = plot.kind === 'line' ? lineOf : pointsOf;
  return [
    ...legend.parts,
    ...drawBottomAxis(xScale, frame),
    ...drawLeftAxis(yScale, frame),
    drawFrame(frame),
    ...series.map((one, index) => draw(one, colours[index] ?? PALETTE[0], xScale, yScale, series.length)),
  ];
}

function domainOf(series: readonly PlotSeries[], axis: 'x' | 'y'): Domain {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const one of series)
    for (const value of one[axis]) {
      if (value < min) min = value;
      if (value > max) max = value;
    }
  return { min, max };
}

/** So that no line lies on the edge. */
const withMargin = ({ min, max }: Domain): Domain => {
  const margin = max / 25 - min / 25;
  return { min: min - margin, max: max + margin };
};

/** Up to eight have colours of their own; more have a gradient in their order. */
function coloursFor(series: readonly PlotSeries[]): string[] {
  if (series.length <= PALETTE.length) return [...PALETTE];
  const stops = VIRIDIS.map((_, index) => (index * (series.length - 1)) / (VIRIDIS.length - 1));
  // The yellow end is faint on white.
  const gradient = scaleLinear<string>()
    .domain(stops.map((stop) => stop * 1.12))
    .range(VIRIDIS);
  return series.map((_, index) => gradient(index));
}

type DrawSeries = (series: PlotSeries, colour: string, x: Scale, y: Scale, count: number) => string;

/** Few points are marked, so that it can be seen where something was measured. */
const MAX_MARKED = 60;

/** A gap interrupts the line. A value between two gaps is a dot. */
const lineOf: DrawSeries = (series, colour, x, y, count) => {
  let path = '';
  let isDown = false;
  for (const [index, value] of series.y.entries()) {
    if (Number.isNaN(value)) isDown = false;
    else {
      const point = `${px(x.toPx(series.x[index] ?? 0))},${px(y.toPx(value))}`;
      const isAlone = !isDown && Number.isNaN(series.y[index + 1] ?? Number.NaN);
      path += `${isDown ? 'L' : 'M'}${point}${isAlone ? 'h0.01' : ''}`;
      isDown = true;
    }
  }
  const width = count > PALETTE.length ? 1 : 1.6;
  const line = `<path d="${path}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-linejoin="round" stroke-linecap="round"/>`;
  const isMarked = series.y.length <= MAX_MARKED && count <= PALETTE.length;
  return isMarked ? `${line}\n${pointsOf(series, colour, x, y, count)}` : line;
};

/** One path for all points of a series: a circle each would be ten times the size. */
const pointsOf: DrawSeries = (series, colour, x, y, count) => {
  let path = '';
  for (const [index, value] of series.y.entries())
    if (!Number.isNaN(value)) path += `M${px(x.toPx(series.x[index] ?? 0))},${px(y.toPx(value))}h0.01`;
  const width = series.y.length * count > 1000 ? 3 : 6;
  return `<path d="${path}" stroke="${colour}" stroke-width="${width}" stroke-linecap="round" fill="none"/>`;
};

interface Legend {
  readonly parts: readonly string[];
  readonly height: number;
}

const ENTRY_WIDTH = 200;
const ROW_HEIGHT = 18;

function drawLegend(series: readonly PlotSeries[], colours: readonly string[]): Legend {
  if (series.length < 2) return { parts: [], height: 0 };
  const isGradient = series.length > PALETTE.length;
  const shown = isGradient ? [0, Math.floor(series.length / 2), series.length - 1] : [...series.keys()];
  const parts: string[] = [];
  let [left, top] = [60, 20];
  for (const index of shown) {
    const name = shorten(series[index]?.name ?? '', ENTRY_WIDTH);
    const width = widthOf(name) + 44;
    if (left + width > RIGHT) [left, top] = [60, top + ROW_HEIGHT];
    parts.push(
      `<rect x="${px(left)}" y="${top - 6}" width="18" height="4" fill="${colours[index]}"/>`,
      textAt(left + 24, top, name),
    );
    left += width;
  }
  if (isGradient) parts.push(textAt(left, top, `${series.length} series, coloured in this order`, { fill: SOFT }));
  return { parts, height: top };
}

function drawBars(plot: Extract<Plot, { kind: 'bar' }>): string[] {
  const { series, categories, x, y, notes } = plot;
  const legend = drawLegend(series, PALETTE);
  const { min, max } = domainOf(series, 'y');
  const longest = Math.max(...categories.map((name) => widthOf(shorten(name, MAX_LABEL))));
  const isTilted = longest + 8 > (RIGHT - 80) / categories.length;
  const labelHeight = isTilted ? longest * 0.71 + 12 : 18;
  const [top, bottom] = [legend.height + 18, HEIGHT - 34 - labelHeight - notesHeight(notes)];
  // Bars that do not start at zero would exaggerate differences.
  const { min: low, max: high } = withMargin({ min: Math.min(0, min), max: Math.max(0, max) });
  const domain = { min: min < 0 ? low : 0, max: max > 0 || min === 0 ? high : 0 };
  const yScale = createScale(y, domain, [bottom, top]);
  const tilt = isTilted ? longest * 0.71 - (RIGHT - 80) / categories.length / 2 : 0;
  const frame: Frame = { left: Math.max(leftAxisWidth(yScale), tilt), right: RIGHT, top, bottom };
  const step = (frame.right - frame.left) / categories.length;
  const zero = yScale.toPx(0);
  return [
    ...legend.parts,
    ...drawLeftAxis(yScale, frame),
    ...series.map((one, index) => barsOf(one, index, series.length, { left: frame.left, step, zero, y: yScale })),
    drawFrame(frame),
    ...(zero < bottom - 1 ? [lineAt(frame.left, zero, frame.right, zero, SOFT)] : []),
    ...categories.map((name, index) => {
      const at = frame.left + (index + 0.5) * step;
      return isTilted
        ? textAt(at + 4, bottom + 14, shorten(name, MAX_LABEL), { anchor: 'end', rotate: -45 })
        : textAt(at, bottom + 17, name, { anchor: 'middle' });
    }),
    bottomTitle(x.name, { ...frame, bottom: bottom + labelHeight + 20 }),
  ];
}

const MAX_LABEL = 150;

interface BarPlace {
  readonly left: number;
  readonly step: number;
  readonly zero: number;
  readonly y: Scale;
}

function barsOf({ y: values }: PlotSeries, index: number, count: number, { left, step, zero, y }: BarPlace): string {
  const width = Math.min(60, (step * 0.8) / count);
  let path = '';
  for (const [category, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    const from = left + (category + 0.5) * step + (index - count / 2) * width;
    path += `M${px(from)},${px(zero)}V${px(y.toPx(value))}h${px(width)}V${px(zero)}Z`;
  }
  return `<path d="${path}" fill="${PALETTE[index % PALETTE.length]}"/>`;
}

type Heatmap = Extract<Plot, { kind: 'heatmap' }>;

const LEFT = 44;
const TOP = 40;
const BAR = { left: 694, width: 16 };

/** A plate as it stands on the bench: A1 in the upper left corner. Wells without a value stay white. */
function drawHeatmap({ rows, columns, values, y, notes }: Heatmap): string[] {
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
