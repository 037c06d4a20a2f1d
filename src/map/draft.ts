import type { CommentOptions, ExperimentTemplates } from '../config/schema.js';
import { FileError } from '../errors.js';
import { provisionalTitle } from '../markers.js';
import type { Draft, FileRecord, Value } from '../model.js';
import { singleLine } from '../text.js';
import { makeBody } from './body.js';
import { makeComments } from './comments.js';
import {
  chooseDate,
  type DateOrigin,
  ISO_DATE,
  type ReadDate,
  readIsoOnly,
  type SourceFile,
} from './date.js';
import type { TemplateError } from './mistakes.js';
import { compileTemplates, createEngines, type TemplateSources } from './templates.js';
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
type Mapper = (record: FileRecord, file: SourceFile, nowMs: number) => Mapped;

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

/** Notebooks cut longer titles, without a word. */
const MAX_GRAPHEMES = 255;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** One line, not empty, cut so that one sees it. */
export function cleanTitle(filledIn: string, file: SourceFile): string {
  const title = cutGraphemes(singleLine(filledIn.replace(/\s*[\r\n]+\s*/g, ' ')).trim());
  if (title === '') {
    throw new FileError('the title is empty', {
      where: { file: file.path },
      hint: 'say what to use then, for example {{ meta.Sample | default: file.stem }}',
    });
  }
  // Experiments that were made and not yet described are known by such titles.
  if (RESERVED.test(title)) {
    throw new FileError(`the title ${JSON.stringify(title)} is one that labfeed keeps for itself`, {
      where: { file: file.path },
      hint: 'add something to the title, for example {{ instrument }}',
    });
  }
  return title;
}

const RESERVED = new RegExp(`^${provisionalTitle('[0-9a-f]{16}')}$`, 'i');

function cutGraphemes(text: string): string {
  // A grapheme has at least one code unit, so what is this short needs no counting.
  if (text.length <= MAX_GRAPHEMES) return text;
  let count = 0;
  let end = 0;
  for (const { index } of segmenter.segment(text)) {
    if (count === MAX_GRAPHEMES - 1) end = index;
    if (count === MAX_GRAPHEMES) return `${text.slice(0, end)}…`;
    count++;
  }
  return text;
}

/** In code points, as databases count. */
const MAX_CHARACTERS = 255;

/** Tags as notebooks take them: one line, no `|`, not too long, none empty, none twice in whatever case. */
export function cleanTags(filledIn: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const text of filledIn) {
    const tag = cutCharacters(singleLine(text).replaceAll('|', ' ').trim());
    const folded = tag.toLowerCase();
    if (tag !== '' && !tags.has(folded)) tags.set(folded, tag);
  }
  return [...tags.values()];
}

function cutCharacters(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  // A character has at most two code units: more need not be looked at.
  const characters = Array.from(text.slice(0, 2 * MAX_CHARACTERS + 2));
  if (characters.length <= MAX_CHARACTERS) return text;
  return `${characters.slice(0, MAX_CHARACTERS - 1).join('')}…`;
}
