import { decodeEntities, singleLine } from '../text.js';

/** Longer texts are shortened around the first difference. */
const MAX_SHOWN = 60;
const BEFORE = 15;

/** One line for people: what the notebook has of a part, and what labfeed wrote. */
export function describeDifference(part: string, has: string, wrote: string): string {
  const [shown, written] = [singleLine(has).trim(), singleLine(wrote).trim()];
  if (shown === '') return `${part}: empty; labfeed wrote ${quote(written, 0)}`;
  if (shown === written) return `${part}: other markup, such as a picture or a link`;
  const at = firstDifference(shown, written);
  return `${part}: ${quote(shown, at)}; labfeed wrote ${quote(written, at)}`;
}

/** The text of markup as a reader sees it, on one line. */
export const readableText = (html: string): string =>
  decodeEntities(html.replace(/<[/!?a-z][^>]*>/gi, ' '))
    .replace(/\s+/g, ' ')
    .trim();

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

function quote(text: string, at: number): string {
  const from = text.length <= MAX_SHOWN ? 0 : Math.max(0, Math.min(at, text.length) - BEFORE);
  const cut = text.slice(from, from + MAX_SHOWN);
  return `“${from > 0 ? '…' : ''}${singleLine(cut)}${from + MAX_SHOWN < text.length ? '…' : ''}”`;
}
