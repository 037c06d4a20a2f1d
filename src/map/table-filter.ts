import type { Liquid } from 'liquidjs';
import type { Column, Table, Value } from '../model.js';
import { Markup } from './html.js';
import { renderHtmlFacts, renderHtmlTable } from './html-table.js';
import { alignTable, listLine } from './text-table.js';
import { ALL_ROWS, type FactsOrigin, ORIGIN, type RowOrigin, scopeIn, type TableOrigin } from './view.js';
import { moreRows, type WhereAll } from './wording.js';

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
  return table ? new Markup(renderHtmlTable(table.columns, table.rows, { maxRows, whereAll })) : '';
}

function textOf(value: unknown, maxRows: number, whereAll: WhereAll): string {
  const facts = factsIn(value);
  if (facts) return Array.from(facts, ([name, fact]) => listLine(name, fact)).join('\n');
  const table = tableIn(value);
  if (!table) return '';
  const rows = table.rows.slice(0, maxRows);
  const { head, line } = alignTable(table.columns, rows);
  const left = table.rows.length - rows.length;
  return [head, ...rows.map(line), ...(left > 0 ? [moreRows(left, whereAll)] : [])].join('\n');
}

type Origin = RowOrigin | TableOrigin | FactsOrigin;

function factsIn(value: unknown): ReadonlyMap<string, Value> | undefined {
  const origin = originOf(value);
  return origin && 'facts' in origin ? origin.facts : undefined;
}

/** A table, whole or picked over: `readings | where: "Type", "S" | table`. */
function tableIn(
  value: unknown,
): { columns: readonly Column[]; rows: readonly (readonly Value[])[] } | undefined {
  const items: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  const whole = originOf(value);
  let of: Table | undefined = whole && 'of' in whole ? whole.of : undefined;
  const rows: (readonly Value[])[] = [];
  for (const item of items) {
    const origin = originOf(item);
    if (!origin || !('cells' in origin))
      throw new Error('the filter "table" takes readings, a table or meta');
    of ??= origin.of;
    if (of !== origin.of) throw new Error('the filter "table" takes the rows of one table, not of several');
    rows.push(origin.cells);
  }
  return of && { columns: of.columns, rows };
}

function originOf(value: unknown): Origin | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, ORIGIN)) return undefined;
  return (value as { [ORIGIN]?: Origin })[ORIGIN];
}
