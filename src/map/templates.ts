import { analyzeSync, type Liquid, LiquidError, type Template } from 'liquidjs';
import type { CommentOptions, ExperimentTemplates } from '../config/schema.js';
import type { Engines } from './engines.js';
import { explainRendering, type Part } from './explain.js';
import { explainMistake, TemplateError, type TemplatePath, unknownNames } from './mistakes.js';
import { askForNeededOnly } from './tolerance.js';
import type { View } from './view.js';

/** A template, ready to be filled in with what one file says. */
export type FillIn = (view: View) => string;

export interface Templates {
  readonly title: FillIn | undefined;
  readonly date: FillIn | undefined;
  readonly body: FillIn | undefined;
  readonly tags: readonly FillIn[] | undefined;
  readonly comment: FillIn | undefined;
}

export interface TemplateSources {
  readonly experiment: ExperimentTemplates;
  readonly comments: Pick<CommentOptions, 'text'>;
}

/** The templates of one instrument, and every mistake in them. */
export function compileTemplates(
  { experiment, comments }: TemplateSources,
  { text, date, html }: Engines,
): { templates: Templates; mistakes: readonly TemplateError[] } {
  const mistakes: TemplateError[] = [];
  const compile = (engine: Liquid, part: Part, path: TemplatePath, source: string | undefined) => {
    if (source === undefined) return undefined;
    const parsed = parse(engine, path, source, mistakes);
    return (view: View) => fillIn(engine, parsed, part, view);
  };
  const templates: Templates = {
    title: compile(text, 'title', ['experiment', 'title'], experiment.title),
    date: compile(date, 'date', ['experiment', 'date'], experiment.date),
    body: compile(html, 'body', ['experiment', 'body'], experiment.body),
    tags: experiment.tags?.flatMap(
      (source, i) => compile(text, 'tags', ['experiment', 'tags', i], source) ?? [],
    ),
    comment: compile(text, 'comments', ['comments', 'text'], comments.text),
  };
  return { templates, mistakes };
}

function parse(engine: Liquid, path: TemplatePath, source: string, mistakes: TemplateError[]): Template[] {
  try {
    const parsed = engine.parse(source);
    for (const { message, hint, line, column } of unknownNames(analyzeSync(parsed, { partials: false })))
      mistakes.push(new TemplateError(path, line, column, message, hint));
    askForNeededOnly(parsed);
    return parsed;
  } catch (error) {
    if (!LiquidError.is(error)) throw error;
    mistakes.push(explainMistake(error, path, engine));
    return [];
  }
}

/** People look for a run by these: better none than one under half a title or a wrong day. */
const STRICT: readonly Part[] = ['title', 'date'];

function fillIn(engine: Liquid, parsed: Template[], part: Part, view: View): string {
  try {
    const filled: unknown = engine.renderSync(parsed, view.scope, { strictVariables: STRICT.includes(part) });
    return String(filled);
  } catch (error) {
    throw explainRendering(error, part, view);
  }
}
