import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import { commentsOf, record, sentBytes, table, v } from './samples.js';

describe('whatever the file holds', () => {
  const text = fc.string({ unit: 'binary', maxLength: 300 });
  const tables = fc.array(
    fc
      .record({ name: text, headings: fc.array(text, { minLength: 1, maxLength: 4 }), count: fc.nat(60) })
      .chain(({ name, headings, count }) =>
        fc
          .array(fc.array(text, { minLength: headings.length, maxLength: headings.length }), {
            minLength: count,
            maxLength: count,
          })
          .map((cells) => ({ name, headings, cells })),
      ),
    { maxLength: 3 },
  );

  test('no comment is empty or longer than allowed, nor are there more than allowed', () => {
    fc.assert(
      fc.property(
        tables,
        fc.dictionary(text, text),
        fc.constantFrom('table', 'each', 'summary', 'none'),
        fc.integer({ min: 1024, max: 4096 }),
        fc.integer({ min: 1, max: 20 }),
        text,
        (made, facts, readings, maxBytes, maxComments, name) => {
          const given: FileRecord = {
            meta: new Map(Object.entries(facts).map(([key, value]) => [key, v(value)])),
            tables: made.map(({ name, headings, cells }) =>
              table(
                name,
                headings,
                cells.map((row) => row.map((cell) => v(cell))),
              ),
            ),
          };
          const comments = commentsOf({
            record: given,
            file: { name, stem: 'x' },
            comments: { readings, maxBytes, maxComments },
          });
          expect(comments.length).toBeLessThanOrEqual(maxComments);
          expect(comments.every((comment) => comment.trim() !== '')).toBe(true);
          expect(Math.max(0, ...sentBytes(comments))).toBeLessThanOrEqual(maxBytes);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('every row is in the comments exactly once, in order', () => {
    const fill = fc.string({ unit: 'grapheme', maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(fc.array(fill, { minLength: 1, maxLength: 200 }), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1024, max: 4096 }),
        (made, maxBytes) => {
          const given = made.map((texts, t) =>
            table(
              `table ${t}`,
              ['id', 'fill'],
              texts.map((cell, i) => [v(`<${t}:${i}>`), v(cell.replace(/[<>:]/g, ''))]),
            ),
          );
          const comments = commentsOf({
            record: record({}, ...given),
            comments: { maxBytes, maxComments: 100 },
          });
          const found = comments.join('\n').match(/<\d+:\d+>/g);
          expect(found).toEqual(made.flatMap((texts, t) => texts.map((_, i) => `<${t}:${i}>`)));
        },
      ),
      { numRuns: 60 },
    );
  });
});
