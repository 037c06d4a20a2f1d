import {
  CaptureTag,
  type Context,
  Drop,
  defaultOperators,
  Liquid,
  type LiquidOptions,
  type Operators,
  toValue,
} from 'liquidjs';
import { ISO_DATE, type ReadDate } from './date.js';
import { addFilters } from './filters.js';
import { escapeHtml, Markup } from './html.js';
import { Written, WrittenFalse } from './written.js';

/** One Liquid for each way in which values are printed. */
export interface Engines {
  /** Titles, tags and comments: as written. */
  readonly text: Liquid;
  /** The date: what the mapping read as a date comes out as ISO. */
  readonly date: Liquid;
  /** The body: escaped. */
  readonly html: Liquid;
}

export function createEngines(readDate: ReadDate): Engines {
  const text = createEngine(printText);
  const date = createEngine(printDate);
  const html = createEngine(printHtml);
  addFilters(text, 'text', readDate);
  addFilters(date, 'text', readDate);
  addFilters(html, 'html', readDate);
  html.registerTag('capture', CaptureMarkup);
  return { text, date, html };
}

/** A template is a page of text: it reads no files. */
const FILE_TAGS = ['include', 'render', 'layout', 'block'];

function createEngine(outputEscape: (value: unknown) => unknown): Liquid {
  const options: LiquidOptions = {
    outputEscape: outputEscape as (value: unknown) => string,
    operators: { ...defaultOperators, ...NOTHING_IS_NOT_LESS },
    strictFilters: true,
    lenientIf: true,
    ownPropertyOnly: true,
    preserveTimezones: true,
    // The same words on every machine.
    locale: 'en-US',
    templates: {},
    // A loop within a loop over a long table must not stop the daemon.
    renderLimit: 3000,
    memoryLimit: 2e7,
  };
  const engine = new Liquid(options);
  for (const tag of FILE_TAGS) delete engine.tags[tag];
  return engine;
}

/** In JavaScript null is less than 3. A reading that is missing is not. */
const NOTHING_IS_NOT_LESS: Operators = Object.fromEntries(
  ['<', '<=', '>', '>='].map((name) => {
    const compare = defaultOperators[name];
    return [
      name,
      (left: unknown, right: unknown, context: Context) =>
        toValue(left) == null || toValue(right) == null ? false : (compare?.(left, right, context) ?? false),
    ];
  }),
);

function printText(value: unknown): unknown {
  if (value instanceof WrittenFalse) return value.text;
  if (Array.isArray(value)) return value.map(printText).map(String).join('');
  if (value instanceof Written || value instanceof Drop) return toValue(value) ?? '';
  // `meta` or a row as a whole.
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value ?? '');
}

const printDate = (value: unknown): unknown =>
  value instanceof Written && typeof value.value === 'string' && ISO_DATE.test(value.value)
    ? value.value
    : printText(value);

const printHtml = (value: unknown): string =>
  value instanceof Markup ? value.html : escapeHtml(String(printText(value)));

/** What was captured is escaped already: printing it must not escape it twice. */
class CaptureMarkup extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    yield* super.render(context);
    const scope = context.bottom();
    const captured: unknown = scope[this.variable];
    scope[this.variable] = new Markup(String(captured));
  }
}
