import { FileError } from '../errors.js';
import { provisionalTitle } from '../markers.js';
import { oneLine } from '../text.js';
import type { SourceFile } from './source.js';

/** Notebooks cut longer titles, without a word. */
const MAX_GRAPHEMES = 255;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** One line, not empty, cut so that one sees it. */
export function cleanTitle(filledIn: string, file: SourceFile): string {
  const title = cutGraphemes(oneLine(filledIn.replace(/\s*[\r\n]+\s*/g, ' ')).trim());
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
