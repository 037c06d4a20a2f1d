import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutBytes, manyLines, oneLine, piecesOf } from '../../src/text.js';

const wellFormed = fc.string({ unit: 'grapheme', size: 'large' });
const most = fc.integer({ min: 8, max: 100 });

describe('text from a file', () => {
  test('is cut into pieces between characters, and nothing is lost', () => {
    fc.assert(
      fc.property(wellFormed, most, (text, maxBytes) => {
        const pieces = [...piecesOf(text, maxBytes)];
        expect(pieces.join('')).toBe(text);
        for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(maxBytes);
      }),
    );
  });

  test('that is cut off ends with a sign of it, and begins as it did', () => {
    fc.assert(
      fc.property(wellFormed, most, (text, maxBytes) => {
        const cut = cutBytes(text, maxBytes);
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxBytes);
        if (cut !== text) expect(text.startsWith(cut.replace(/…$/, ''))).toBe(true);
      }),
    );
    expect(cutBytes('µµµµµ', 8)).toBe('µµ…');
    expect(cutBytes('µµµµ', 8)).toBe('µµµµ');
  });

  test('as one line is as long as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(oneLine(text).length).toBe(text.length);
        expect(oneLine(text)).not.toMatch(/[\p{Cc}\p{Cs}\u2028\u2029]/u);
      }),
    );
  });

  test('as lines keeps its line breaks and tabs', () => {
    expect(manyLines('a\r\nb\rc\n\td\u0007e\ud800')).toBe('a\nb\nc\n\td e\ufffd');
    expect(manyLines('a\r\nb')).toBe('a\nb');
  });
});
