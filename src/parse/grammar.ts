import { regexSource } from '../config/grammar.js';
import type { ParseOptions } from '../config/vocabulary.js';
import { isBlank, type Line } from './lines.js';

/** Whether a line is the one that is meant. */
export type LineMatcher = (line: Line) => boolean;

/** What a mapping writes for a line: a number, `blank`, `eof`, the text that it begins with, a `/regex/`; any of a list. */
export function compileLine(written: readonly (string | number)[]): LineMatcher {
  const [first, ...others] = written.map(compileForm);
  if (first && others.length === 0) return first;
  return (line) => first?.(line) || others.some((matches) => matches(line));
}

function compileForm(form: string | number): LineMatcher {
  if (typeof form === 'number') {
    return form > 0 ? (line) => line.number === form : (line) => line.fromEnd === -form;
  }
  if (form === 'blank') return isBlank;
  if (form === 'eof') return () => false;
  const source = regexSource(form);
  if (source === undefined) return (line) => begins(line, form);
  const regex = new RegExp(source);
  return (line) => regex.test(line.text);
}

/** Blanks before it do not count, and neither do the quotes of its first cell, which spreadsheets do not show. */
const begins = ({ text, cells }: Line, start: string): boolean =>
  text.startsWith(start) || text.trimStart().startsWith(start) || isQuotedStart(text, cells[0], start);

const isQuotedStart = (text: string, cell: string | undefined, start: string): boolean =>
  /^["']/.test(text) && (cell?.startsWith(start) ?? false);

/** What the named groups of a `/regex/` caught in the line; nothing for the other forms. */
export function compileCaptures(written: readonly (string | number)[]): (line: Line) => Map<string, string> {
  const regexes = sourcesOf(written).map((source) => new RegExp(source));
  return ({ text }) => caught(regexes.map((regex) => regex.exec(text)).find((match) => match !== null));
}

/** The names of all groups that these patterns can catch. */
export const groupNames = (written: readonly (string | number)[]): string[] => [
  ...new Set(
    sourcesOf(written).flatMap((source) =>
      [...source.matchAll(/\(\?<([^=!][^>]*)>/g)].map(([, name]) => name ?? ''),
    ),
  ),
];

const sourcesOf = (written: readonly (string | number)[]): string[] =>
  written
    .map((form) => (typeof form === 'string' ? regexSource(form) : undefined))
    .filter((source) => source !== undefined);

/** The named groups of a match that took part in it. */
export function caught(match: RegExpExecArray | null | undefined): Map<string, string> {
  const groups = Object.entries(match?.groups ?? {});
  return new Map(groups.filter((group): group is [string, string] => group[1] !== undefined));
}

/** How many lines from the end a mapping counts at most: `until: -3`. */
export function depthOf({ meta, tables, when = [] }: Pick<ParseOptions, 'meta' | 'tables' | 'when'>): number {
  const forms = [
    ...Object.values(tables).map(({ after, every, until, header, skip }) => [
      after,
      every,
      until,
      header,
      skip,
    ]),
    ...meta.map(({ after, until, line }) => [after, until, line]),
  ].flat(2);
  const numbers = [...forms, ...when].filter((form) => typeof form === 'number');
  return Math.max(0, ...numbers.map((number) => -number));
}
