import type { Liquid } from 'liquidjs';
import type { Table, Value } from '../model.js';
import { cutTable } from './cut-table.js';
import type { TableRows } from './figures.js';
import { Markup } from './html.js';
import { renderHtmlFacts, renderHtmlTable } from './html-table.js';
import { alignTable, listLine } from './text-table.js';
import { ALL_ROWS, type FactsOrigin, ORIGIN, type RowOrigin, scopeIn, type TableOrigin } from './view.js';
import type { WhereAll } from './wording.js';

const DEFAULT_ROWS = 200;

/** `{{ readings | table }}`, `{{ tables.wells | table: 50 }}`, `{{ meta | table }}`. */
export function addTableFilter(engine: Liquid, kind: 'html' | 'text'): void {
  engine.registerFilter('table', {
    raw: kind === 'html',
    handler(value: unknown, most: unknown) {
      const maxRows = most === undefined ? DEFAULT_ROWS : Math.max(0, Math.floor(Number(most)) || 0);
      const { [ALL_ROWS]: whereAll = 'file' } = scopeIn(this.context.environments);
      return kind === 'html' ? htmlOf(value, maxRows, whereAll) : textOf(value, maxRows, whereAll);
    },
  });
}

function htmlOf(value: unknown, maxRows: number, whereAll: WhereAll): Markup | '' {
  const facts = factsIn(value);
  if (facts) return new Markup(renderHtmlFacts(facts));
  const table = tableIn(value);
  return table ? new Markup(renderHtmlTable(table, { maxRows, whereAll })) : '';
}

function textOf(value: unknown, maxRows: number, whereAll: WhereAll): string {
  const facts = factsIn(value);
  if (facts) return Array.from(facts, ([name, fact]) => listLine(name, fact)).join('\n');
  const table = tableIn(value);
  if (!table) return '';
  const { shown, rest } = cutTable(table, maxRows, whereAll);
  if (!rest) return linesOf(table, shown).join('\n');
  const { note, figures } = rest;
  return [
    ...(shown > 0 ? [...linesOf(table, shown), ''] : []),
    note,
    ...(figures.count > 0 ? linesOf(figures, figures.count) : []),
  ].join('\n');
}

function linesOf({ columns, rows }: TableRows, shown: number): string[] {
  const first = rows.slice(0, shown);
  const { head, line } = alignTable(columns, first);
  return [head, ...first.map(line)];
}

type Origin = RowOrigin | TableOrigin | FactsOrigin;

function factsIn(value: unknown): ReadonlyMap<string, Value> | undefined {
  const origin = originOf(value);
  return origin && 'facts' in origin ? origin.facts : undefined;
}

/** A table, whole or picked over: `readings | where: "Type", "S" | table`. */
function tableIn(value: unknown): TableRows | undefined {
  const whole = originOf(value);
  if (whole && 'of' in whole && !('cells' in whole)) return whole.of;
  const items: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  let of: Table | undefined;
  const rows: (readonly Value[])[] = [];
  for (const item of items) {
    const origin = originOf(item);
    if (!origin || !('cells' in origin))
      throw new Error('the filter "table" takes readings, a table or meta');
    of ??= origin.of;
    if (of !== origin.of) throw new Error('the filter "table" takes the rows of one table, not of several');
    rows.push(origin.cells);
  }
  return of && { columns: of.columns, rows, count: rows.length };
}

function originOf(value: unknown): Origin | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, ORIGIN)) return undefined;
  return (value as { [ORIGIN]?: Origin })[ORIGIN];
}
