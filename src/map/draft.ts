import type { CommentOptions, ExperimentTemplates } from '../config/schema.js';
import type { Draft, FileRecord, Value } from '../model.js';
import { makeBody } from './body.js';
import { makeComments } from './comments.js';
import { chooseDate, type DateOrigin, ISO_DATE, type ReadDate, readIsoOnly } from './date.js';
import { createEngines } from './engines.js';
import type { TemplateError } from './mistakes.js';
import type { SourceFile } from './source.js';
import { cleanTags } from './tags.js';
import { compileTemplates, type TemplateSources } from './templates.js';
import { cleanTitle } from './title.js';
import { ALL_ROWS, createView } from './view.js';

export interface MapperOptions {
  /** The instrument's name. */
  readonly instrument: string;
  readonly experiment: ExperimentTemplates;
  readonly comments: CommentOptions;
  /** How the mapping reads dates that are not ISO; without it there are none. */
  readonly readDate?: ReadDate;
}

export interface Mapped {
  readonly draft: Draft;
  readonly dateFrom: DateOrigin;
}

/** What the notebook is to hold for a file that says this. The same for the same file, but for `now`. */
export type Mapper = (record: FileRecord, file: SourceFile, nowMs: number) => Mapped;

/** Throws a TemplateError where a template cannot be used. */
export function createMapper({
  instrument,
  experiment,
  comments,
  readDate = readIsoOnly,
}: MapperOptions): Mapper {
  const { templates, mistakes } = compileTemplates({ experiment, comments }, createEngines(readDate));
  if (mistakes[0]) throw mistakes[0];
  return (record, file, nowMs) => {
    const view = createView(record, file, instrument, nowMs);
    const title = cleanTitle(templates.title?.(view) ?? `${file.stem || file.name} (${instrument})`, file);
    const { date, dateFrom } = chooseDate({
      template: templates.date?.(view),
      fact: record.meta.get('date') ?? dateByAnyCase(record.meta, readDate),
      file,
      readDate,
    });
    const tags = cleanTags(templates.tags?.map((fillIn) => fillIn(view)) ?? [instrument]);
    const made = makeComments({ record, file, options: comments, text: templates.comment?.(view) });
    view.scope[ALL_ROWS] = made.allRows;
    const body = makeBody({
      template: templates.body?.(view),
      record,
      file,
      instrument,
      allRows: made.allRows,
    });
    return { draft: { title, date, body, tags, comments: made.comments }, dateFrom };
  };
}

/** `Date` and `DATE` are the fact `date` as well, where they hold a date: also one that can be read two ways. */
function dateByAnyCase(meta: FileRecord['meta'], readDate: ReadDate): Value | undefined {
  for (const [name, value] of meta) {
    if (name.toLowerCase() === 'date' && (isIso(value) || readDate(value.text) !== undefined)) return value;
  }
  return undefined;
}

const isIso = ({ value }: Value): boolean => typeof value === 'string' && ISO_DATE.test(value);

/** Every mistake in the templates, for who checks a configuration. */
export const checkTemplates = (sources: TemplateSources): readonly TemplateError[] =>
  compileTemplates(sources, createEngines(readIsoOnly)).mistakes;
