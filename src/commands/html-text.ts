import { decodeEntities, describeImages } from '../text.js';

const tags = (names: string) => new RegExp(`<(?:${names})(?:"[^"]*"|'[^']*'|[^>"'])*>`, 'gi');

const TABLE = /<table\b[^>]*>([\s\S]*?)<\/table>/gi;
const ROW = tags('tr\\b');
const CELL = tags('t[dh]\\b');
const BLOCK = tags('/?(?:p|div|h[1-6]|ul|ol|pre|blockquote|hr|br)\\b');
const ITEM = tags('li\\b');
const ANY = tags('/?[a-z]|!--');

/** A longer cell overflows its column instead of widening every row. */
const MAX_WIDTH = 40;

/** The body of an experiment as a terminal can show it: paragraphs, list items, and tables with aligned columns. */
export function htmlToText(html: string): string {
  const described = describeImages(html);
  const lines: string[] = [];
  let end = 0;
  for (const { 0: table, 1: content = '', index } of described.matchAll(TABLE)) {
    lines.push(...paragraphs(described.slice(end, index)), ...alignRows(content));
    end = index + table.length;
  }
  return [...lines, ...paragraphs(described.slice(end))].join('\n');
}

function paragraphs(html: string): string[] {
  const lines = html.replace(BLOCK, '\n').replace(ITEM, '\n- ').split('\n');
  return lines.map(textOf).filter((line) => line !== '');
}

const textOf = (html: string): string => decodeEntities(html.replace(ANY, '')).replace(/\s+/g, ' ').trim();

function alignRows(table: string): string[] {
  const rows = table.split(ROW).slice(1);
  const cells = rows.map((row) => row.split(CELL).slice(1).map(textOf));
  const widths: number[] = [];
  for (const row of cells)
    for (const [at, { length }] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, Math.min(length, MAX_WIDTH));
  const lines = cells.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).filter((line) => line !== '');
}
