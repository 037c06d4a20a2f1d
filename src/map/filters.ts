import { type Liquid, filters as standard } from 'liquidjs';
import type { ReadDate } from './date.js';
import { addDateFilters } from './date-filters.js';
import { escapeHtml, escapeLines, Markup } from './html.js';
import { addTableFilter } from './table-filter.js';
import { identityOf, textIn } from './written.js';

/** The words that templates have beside Liquid's own, and Liquid's own where they would guess or draw lots. */
export function addFilters(engine: Liquid, kind: 'html' | 'text', readDate: ReadDate): void {
  engine.unregisterFilter('sample');
  addDateFilters(engine, readDate);
  addTableFilter(engine, kind);
  engine.registerFilter('uniq', (value: unknown) => distinct(Array.isArray(value) ? value : [value]));
  for (const name of ['group_by', 'group_by_exp']) addGrouping(engine, name);
  if (kind === 'html') addMarkupFilters(engine);
}

function distinct(items: readonly unknown[]): unknown[] {
  const seen = new Map<unknown, unknown>();
  for (const item of items) if (!seen.has(identityOf(item))) seen.set(identityOf(item), item);
  return [...seen.values()];
}

interface Group {
  readonly name: unknown;
  readonly items: unknown[];
}

/** Liquid makes a group of each object: those of equal values are put together again. */
function addGrouping(engine: Liquid, name: string): void {
  const group = standard[name];
  if (typeof group !== 'function') return;
  engine.registerFilter(name, function* (...args: [unknown, ...unknown[]]): Generator<
    unknown,
    Group[],
    Group[]
  > {
    const groups = new Map<unknown, Group>();
    for (const { name, items } of yield group.apply(this, args)) {
      const same = groups.get(identityOf(name));
      if (same) for (const item of items) same.items.push(item);
      else groups.set(identityOf(name), { name, items });
    }
    return [...groups.values()];
  });
}

/** In a body every value is escaped anyway: asking for it must not escape it twice. */
function addMarkupFilters(engine: Liquid): void {
  const add = (name: string, toHtml: (text: string) => string) =>
    engine.registerFilter(name, {
      raw: true,
      handler: (value: unknown) => (value instanceof Markup ? value : new Markup(toHtml(textIn(value)))),
    });
  add('escape', escapeHtml);
  add('xml_escape', escapeHtml);
  add('escape_once', (text) => escapeHtml(text).replace(/&amp;(#?\w+;)/g, '&$1'));
  add('newline_to_br', escapeLines);
}
