import type { Liquid, LiquidError, StaticAnalysis, Token } from 'liquidjs';
import { LabfeedError } from '../errors.js';
import { nearest } from '../text.js';
import { FILE_NAMES, VARIABLES } from './view.js';

/** Where a template stands within its instrument: `['experiment', 'tags', 1]`. */
export type TemplatePath = readonly (string | number)[];

/** A template that cannot be used. Who knows the configuration's file adds where in it the template stands. */
export class TemplateError extends LabfeedError {
  override readonly name = 'TemplateError';
  readonly path: TemplatePath;
  /** Within the template, from 1. */
  readonly line: number;
  readonly column: number;

  constructor(path: TemplatePath, line: number, column: number, message: string, hint?: string) {
    super(message, hint === undefined ? {} : { hint });
    this.path = path;
    this.line = line;
    this.column = column;
  }
}

interface Mistake {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly hint?: string;
}

/** What Liquid could not read, in plain words. */
export function explainMistake(error: LiquidError, path: TemplatePath, engine: Liquid): TemplateError {
  const said = (error.originalError?.message ?? error.message).replace(
    /(, file:.*)?, line:\d+, col:\d+$/,
    '',
  );
  const { message, hint } = inPlainWords(said, engine);
  const { line, column } = placeOf(said, error.token);
  return new TemplateError(path, line, column, message, hint);
}

/** Liquid points at the beginning of the output; a filter that is unknown is looked for in it. */
function placeOf(said: string, { input, begin }: Token): { line: number; column: number } {
  const [, filter] = UNKNOWN_FILTER.exec(said) ?? [];
  const after = filter === undefined ? -1 : input.slice(begin).search(new RegExp(`\\|\\s*${filter}\\b`));
  const at = after < 0 ? begin : input.indexOf(filter ?? '', begin + after);
  const lines = input.slice(0, at).split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

const UNKNOWN_FILTER = /^undefined filter: ([\w-]+)$/;

function inPlainWords(said: string, engine: Liquid): { message: string; hint?: string } {
  const [, filter] = UNKNOWN_FILTER.exec(said) ?? [];
  if (filter !== undefined)
    return { message: `there is no filter "${filter}"`, ...didYouMean(filter, Object.keys(engine.filters)) };
  const [, end] = /^tag "((?:end|els)\w*)" not found$/.exec(said) ?? [];
  if (end !== undefined) return { message: `{% ${end} %} closes or continues nothing` };
  const [, tag] = /^tag "(.*)" not found$/.exec(said) ?? [];
  if (tag !== undefined)
    return { message: `there is no tag "${tag}"`, ...didYouMean(tag, Object.keys(engine.tags)) };
  const [, kind, open] = /^(output|tag|raw) (.*) not closed$/s.exec(said) ?? [];
  // Liquid quotes the end of the template, and not a whole tag.
  if (open !== undefined) return notClosed(kind === 'output', open.startsWith('"') ? JSON.parse(open) : open);
  const [, illegal] = /^illegal tag: (.*)$/s.exec(said) ?? [];
  if (illegal !== undefined)
    return { message: `${illegal} cannot be read`, hint: 'expected {% for row in readings %}' };
  const [, rest] = /^invalid value expression: (.*)$/s.exec(said) ?? [];
  if (rest !== undefined) return { message: `expected a name or a value, found ${rest}` };
  if (said === 'expected "|" before filter') {
    return { message: 'expected "|" or the end, found something else', hint: BRACKETS_HINT };
  }
  return { message: said };
}

function notClosed(isOutput: boolean, open: string): { message: string; hint?: string } {
  if (isOutput) return { message: `${open} is not closed`, hint: 'expected }}' };
  const [, name] = /^\{%-?\s*(\w+).*%\}$/s.exec(open) ?? [];
  return { message: `${open} is not closed`, hint: name ? `expected {% end${name} %}` : 'expected %}' };
}

function didYouMean(name: string, known: Iterable<string>): { hint?: string } {
  const near = nearest(name, known);
  return near === undefined ? {} : { hint: `did you mean ${near}?` };
}

const BRACKETS_HINT = 'a name with blanks or signs in it is written in brackets: meta["Sample ID"]';
const NAMES_HINT = `expected one of ${VARIABLES.join(', ')}; what the file says is in meta, and ${BRACKETS_HINT}`;

/** Of Liquid's own; `continue` as in `offset: continue`. */
const LIQUID_NAMES = ['forloop', 'tablerowloop', 'continue'];

/** Names that no file can fill, since they are none of what templates see. */
export function* unknownNames({ globals, locals }: StaticAnalysis): Generator<Mistake> {
  const known: readonly string[] = [...VARIABLES, ...LIQUID_NAMES, ...Object.keys(locals)];
  for (const { segments, location } of Object.values(globals).flat()) {
    const [root, name] = segments;
    const at = { line: location.row, column: location.col };
    if (typeof root === 'string' && !known.includes(root)) {
      const { hint = NAMES_HINT } = didYouMean(root, VARIABLES);
      yield { ...at, message: `there is nothing called "${root}"`, hint };
    }
    const ofFile: readonly string[] = FILE_NAMES;
    if (root === 'file' && typeof name === 'string' && !ofFile.includes(name)) {
      const { hint = `expected one of ${FILE_NAMES.join(', ')}` } = didYouMean(name, FILE_NAMES);
      yield { ...at, message: `file has no "${name}"`, hint };
    }
  }
}
