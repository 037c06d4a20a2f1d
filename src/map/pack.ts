import { cutBytes, piecesOf } from '../text.js';
import { countOf } from './wording.js';

/** Lines that belong together under a heading, which is repeated wherever they are continued. */
export interface Section {
  /** What stands above the lines from `first` to `last`, counted from 1. */
  heading(first: number, last: number): string;
  readonly count: number;
  line(index: number): string;
}

export interface Room {
  readonly maxBytes: number;
  readonly maxParts: number;
}

/** `12 rows`, or `rows 1–500 of 2,000` where these are not all. */
export function rangeOf(first: number, last: number, count: number): string {
  if (first === 1 && last === count) return count === 1 ? '1 row' : `${countOf(count)} rows`;
  return `rows ${countOf(first)}–${countOf(last)} of ${countOf(count)}`;
}

/**
 * Texts that hold every line of every section exactly once, as few as it goes, cut between lines only.
 * Nothing where more of them would be needed than are allowed.
 */
export function packSections(
  sections: readonly Section[],
  { maxBytes, maxParts }: Room,
): string[] | undefined {
  const parts: string[] = [];
  let current = '';
  let used = 0;
  const finish = (): void => {
    if (current !== '') parts.push(current);
    current = '';
    used = 0;
  };
  for (const section of sections) {
    for (let from = 0; from < section.count; ) {
      const gap = current === '' ? '' : '\n\n';
      const block = takeLines(section, from, maxBytes - used - gap.length, current === '');
      if (block) {
        current += gap + block.text;
        used += gap.length + block.bytes;
        from = block.next;
      }
      if (from < section.count) finish();
      if (parts.length + (current === '' ? 0 : 1) > maxParts) return undefined;
    }
  }
  finish();
  return parts.length > maxParts ? undefined : parts;
}

/** The heading and as many lines as fit; nothing where not even one does, unless there will never be more room. */
function takeLines(
  section: Section,
  from: number,
  maxBytes: number,
  isAllRoom: boolean,
): { text: string; bytes: number; next: number } | undefined {
  // The longest that the heading can be, since its numbers are known only afterwards.
  const headingBytes = Buffer.byteLength(section.heading(section.count, section.count));
  let bytes = headingBytes;
  const lines: string[] = [];
  let next = from;
  for (; next < section.count; next++) {
    const line = section.line(next);
    const size = Buffer.byteLength(line) + 1;
    if (bytes + size > maxBytes) break;
    lines.push(line);
    bytes += size;
  }
  if (next === from) {
    if (!isAllRoom) return undefined;
    lines.push(cutBytes(section.line(next++), maxBytes - bytes - 1));
  }
  const text = `${section.heading(from + 1, next)}\n${lines.join('\n')}`;
  return { text, bytes: Buffer.byteLength(text), next };
}

/** A text cut between its lines, and within a line only where that alone is too long. */
export function packText(text: string, { maxBytes, maxParts }: Room): string[] | undefined {
  const parts: string[] = [];
  let lines: string[] = [];
  let bytes = 0;
  const finish = (): void => {
    const part = lines
      .join('\n')
      .replace(/^\s*\n/, '')
      .trimEnd();
    if (part !== '') parts.push(part);
    lines = [];
    bytes = 0;
  };
  for (const line of text.split('\n')) {
    for (const piece of piecesOf(line, maxBytes)) {
      const size = Buffer.byteLength(piece) + 1;
      if (bytes + size - 1 > maxBytes) finish();
      lines.push(piece);
      bytes += size;
    }
    if (parts.length > maxParts) return undefined;
  }
  finish();
  return parts.length > maxParts ? undefined : parts;
}
