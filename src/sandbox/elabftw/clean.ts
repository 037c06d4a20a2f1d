import { sanitise } from '../sanitise.js';
import { improper, refusedBySql } from './failure.js';

const MAX_TITLE_GRAPHEMES = 255;
const MAX_TAG_CHARACTERS = 255;
const MAX_BODY_BYTES = 4_120_000;

/** Line breaks become spaces, and what is too long is cut without a word. */
export function cleanTitle(text: string): string {
  const title = text.trim().replace(/\r\n|\n|\r/g, ' ');
  if (title.length <= MAX_TITLE_GRAPHEMES) return title || 'Untitled';
  const graphemes = [...new Intl.Segmenter('en').segment(title)];
  return title.slice(0, graphemes[MAX_TITLE_GRAPHEMES]?.index ?? title.length);
}

/** Some elements keep their content and lose their tags. */
const UNWRAPPED = /<\/?(?:thead|tbody|tfoot|i|small|del|ins)>/g;

/** Takes scripts, comments, pictures and wrappers from a body, and writes its quotes as characters. */
export function cleanBody(text: string): string {
  if (Buffer.byteLength(text) > MAX_BODY_BYTES) throw improper('Content is too big! Cannot save!');
  return sanitise(text)
    .replace(UNWRAPPED, '')
    .replace(/<[^>]*>|&quot;|&#0?39;/g, (part) =>
      part.startsWith('<') ? part : part === '&quot;' ? '"' : "'",
    );
}

export function cleanTag(text: string): string {
  const tag = text.replaceAll('\\', '').replaceAll('|', ' ').trim();
  if (tag === '') throw improper('Input is too short! (minimum: 1)');
  if ([...tag].length > MAX_TAG_CHARACTERS) {
    throw refusedBySql(1406, "Data too long for column 'tag' at row 1");
  }
  return tag;
}

export function checkDate(text: string): string {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  // Some engines roll 30 February over into March.
  if (!day || Number.isNaN(day.getTime()) || !day.toISOString().startsWith(text)) {
    throw refusedBySql(1292, `Incorrect date value: '${text}' for column 'date' at row 1`);
  }
  return text;
}

export function checkJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    throw refusedBySql(
      3140,
      `Invalid JSON text: "Invalid value." at position 0 in value for column 'experiments.metadata'.`,
    );
  }
  return text;
}
