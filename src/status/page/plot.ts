import type uPlot from 'uplot';
import { h, setText } from './dom.js';
import { DAYS, type Hours, runsByDay } from './runs-by-day.js';
import { count, day, plural } from './words.js';

const HEIGHT = 56;

/** Not a plain import: TypeScript is not to look for it in a folder, and the page need not wait for it. */
const LIBRARY = '/page/uplot/uPlot.esm.js';

export interface Plot {
  readonly element: HTMLElement;
  update(hours: Hours, now: number): void;
}

export interface Plots {
  create(): Plot;
}

type Bars = ReturnType<typeof runsByDay>;

/** Small plots that are drawn once they come into view: fifty of them must not hold up the page. */
export function createPlots(): Plots {
  const library = once(async () => ((await import(LIBRARY)) as { default: typeof uPlot }).default);
  const drawings = new WeakMap<Element, Drawing>();
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target, boundingClientRect } of entries)
      if (isIntersecting) void drawings.get(target)?.draw(Math.floor(boundingClientRect.width));
  });
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries)
      drawings.get(target)?.resize(Math.floor(contentRect.width));
  });
  const drawn = new Set<uPlot>();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const plot of drawn) plot.redraw();
  });

  return {
    create() {
      const canvas = h('div', { className: 'canvas', attrs: { role: 'img' } });
      const caption = h('figcaption', { className: 'soft' });
      const drawing = createDrawing(canvas, caption, library, (plot) => drawn.add(plot));
      drawings.set(canvas, drawing);
      seen.observe(canvas);
      sizes.observe(canvas);
      return { element: h('figure', { className: 'plot' }, canvas, caption), update: drawing.update };
    },
  };
}

type Drawing = ReturnType<typeof createDrawing>;

function createDrawing(
  canvas: HTMLElement,
  caption: HTMLElement,
  library: () => Promise<typeof uPlot>,
  made: (plot: uPlot) => void,
) {
  let bars: Bars = [];
  let plot: uPlot | undefined;
  let signature = '';
  const tell = (index: number | null | undefined) => setText(caption, captionOf(bars, index));

  return {
    async draw(width: number): Promise<void> {
      if (plot || width <= 0) return;
      const Library = await library();
      if (plot) return;
      plot = new Library(optionsOf(Library, width, tell), dataOf(bars), canvas);
      made(plot);
    },
    resize(width: number): void {
      if (plot && width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
    },
    update(hours: Hours, now: number): void {
      const next = JSON.stringify([hours, day(now)]);
      if (next === signature) return;
      signature = next;
      bars = runsByDay(hours, now);
      plot?.setData(dataOf(bars));
      canvas.setAttribute('aria-label', `Runs a day: ${captionOf(bars, undefined)}`);
      tell(undefined);
    },
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const dataOf = (bars: Bars): uPlot.AlignedData => [
  bars.map((_, index) => index),
  bars.map(({ runs }) => runs),
];

function captionOf(bars: Bars, index: number | null | undefined): string {
  const bar = typeof index === 'number' ? bars[index] : undefined;
  if (bar) return `${bar.day}: ${bar.runs === 0 ? 'no run' : plural(bar.runs, 'run')}`;
  const all = bars.reduce((sum, { runs }) => sum + runs, 0);
  return all === 0
    ? 'no runs in 30 days'
    : `${plural(all, 'run')} in 30 days, ${count(bars.at(-1)?.runs ?? 0)} today`;
}

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);

function optionsOf(
  Library: typeof uPlot,
  width: number,
  tell: (index: number | null | undefined) => void,
): uPlot.Options {
  const bars = Library.paths.bars?.({ size: [0.7, 40, 2], radius: 0.15 });
  return {
    width,
    height: HEIGHT,
    padding: [4, 0, 0, 0],
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.5, DAYS - 0.5] },
      y: { range: (_self, _min, max) => [0, Math.max(max, 4)] },
    },
    axes: [{ show: false }, { show: false }],
    series: [
      {},
      {
        fill: () => colour('--accent'),
        stroke: () => colour('--accent'),
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      },
    ],
    hooks: { setCursor: [({ cursor }) => tell(cursor.idx)] },
  };
}
