import type { Refuse } from '../refuse.js';

/** Text that has its own structure. Cut into cells it would give facts, and all of them wrong. */
const FORMATS: readonly [start: RegExp, format: string][] = [
  [/^\s*<(?:\?xml|!DOCTYPE)/i, 'xml'],
  [/^\s*(?:\{\s*["}]|\[\s*[{"])/, 'json'],
  [/^\s*##(?:TITLE|JCAMP-?DX)\s*=/i, 'jcamp'],
  [/^\s*(?:\W?\d?H\|\\\^&|MSH\|\^~\\&)/, 'records'],
];

/** A file in a format that this version does not read is refused by that name, before anything is measured. */
export function refuseForeign(texts: readonly string[], refuse: Refuse): void {
  const start = texts.slice(0, 5).join('\n').slice(0, 500);
  const found = FORMATS.find(([pattern]) => pattern.test(start));
  if (found)
    throw refuse(`the file looks like \`format: ${found[1]}\`, which is not available in this version`);
}
