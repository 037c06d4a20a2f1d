/** Text from files, made fit for where it goes. Files hold control characters and halves of characters. */

const ODD = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
const ODD_IN_LINES = /[^\P{Cc}\n\t]|\p{Cs}/u;
const BREAKS = /[\p{Cc}\u2028\u2029]/gu;
const CONTROL_IN_LINES = /[^\P{Cc}\n\t]/gu;
const HALVES = /\p{Cs}/gu;

/** As one line. Each control character becomes one blank, so that the length stays what it was. */
export function oneLine(text: string): string {
  return ODD.test(text) ? text.replace(BREAKS, ' ').replace(HALVES, '\ufffd') : text;
}

/** Line breaks and tabs stay. */
export function manyLines(text: string): string {
  if (!ODD_IN_LINES.test(text)) return text;
  return text.replace(/\r\n?/g, '\n').replace(CONTROL_IN_LINES, ' ').replace(HALVES, '\ufffd');
}

/** The text cut into pieces of at most so many bytes of UTF-8, four at least, between characters. */
export function* piecesOf(text: string, maxBytes: number): Generator<string> {
  if (Buffer.byteLength(text) <= maxBytes) {
    yield text;
    return;
  }
  const bytes = Buffer.from(text);
  const most = Math.max(4, Math.floor(maxBytes));
  for (let from = 0; from < bytes.length; ) {
    let to = Math.min(from + most, bytes.length);
    while (to > from && isContinuation(bytes[to])) to--;
    yield bytes.toString('utf8', from, to);
    from = to;
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const CUT = '…';
const CUT_BYTES = Buffer.byteLength(CUT);

/** At most so many bytes of UTF-8; what is cut off is seen to be. */
export function cutBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const [start = ''] = piecesOf(text, maxBytes - CUT_BYTES);
  return start + CUT;
}
