import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { cleanTags, cleanTitle } from '../../src/map/draft.js';
import { provisionalTitle } from '../../src/markers.js';
import { file, fillIn, map, record, v } from './samples.js';

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
const graphemes = (text: string): number => [...segmenter.segment(text)].length;

describe('the title', () => {
  test("is made of the file's stem and the instrument where no template says otherwise", () => {
    expect(map().draft.title).toBe('run 7 (nanodrop)');
    expect(map({ file: { stem: '', name: '.csv' } }).draft.title).toBe('.csv (nanodrop)');
  });

  test('is plain text: nothing in it is escaped', () => {
    expect(fillIn('{{ meta.Sample }} & "co"')).toBe('Plasmid <A> & "co"');
  });

  test('is one line, whatever the file holds', () => {
    expect(cleanTitle(' a\r\n  b\u0000c\td\u2028e\u0085f ', file)).toBe('a b c d e f');
    expect(fillIn('{{ meta.a }}', { record: record({ a: v('x\ny') }) })).toBe('x y');
    expect(map({ file: { stem: 'a\nb' } }).draft.title).toBe('a b (nanodrop)');
  });

  test('holds no half of a character', () => {
    expect(cleanTitle('a\ud83d', file)).toBe('a\ufffd');
  });

  test('is cut where it is too long, so that one sees it', () => {
    expect(cleanTitle('x'.repeat(255), file)).toBe('x'.repeat(255));
    expect(cleanTitle('x'.repeat(256), file)).toBe(`${'x'.repeat(254)}…`);
  });

  test('is counted and cut as people count letters', () => {
    const family = '👨‍👩‍👧‍👦';
    expect(cleanTitle(family.repeat(255), file)).toBe(family.repeat(255));
    expect(cleanTitle(family.repeat(256), file)).toBe(`${family.repeat(254)}…`);
  });

  test('that is empty quarantines the run', () => {
    expect(() => fillIn('{{ meta.Blank }} ')).toThrow(FileError);
    expect(() => cleanTitle(' \n\t', file)).toThrow('the title is empty');
  });

  test('cannot be one by which unfinished experiments are known', () => {
    expect(() => cleanTitle(provisionalTitle('0123456789abcdef'), file)).toThrow('keeps for itself');
    expect(cleanTitle('labfeed test', file)).toBe('labfeed test');
  });

  test('is never longer than 255 graphemes, nor more than one line', () => {
    const long = fc.string({
      unit: fc.oneof(fc.constantFrom('a', 'é', '👩‍🔬', '\n', ' '), fc.string({ unit: 'binary' })),
      maxLength: 400,
      size: 'max',
    });
    fc.assert(
      fc.property(long, (text) => {
        const title = cleanTitle(`x${text}`, file);
        expect(graphemes(title)).toBeLessThanOrEqual(255);
        expect(title).toMatch(/^[^\p{Cc}\p{Cs}]+$/u);
      }),
    );
  });
});

describe('tags', () => {
  test('are the instrument where no template says otherwise', () => {
    expect(map().draft.tags).toEqual(['nanodrop']);
    expect(map({ experiment: { tags: [] } }).draft.tags).toEqual([]);
  });

  test('are cleaned as notebooks take them', () => {
    expect(cleanTags([' a ', 'b|c', 'd\ne', '', ' ', '|'])).toEqual(['a', 'b c', 'd e']);
  });

  test('are not repeated in another case', () => {
    expect(cleanTags(['DNA', 'dna', 'Ärzte', 'ärzte', 'rna'])).toEqual(['DNA', 'Ärzte', 'rna']);
  });

  test('that are too long are cut, so that one sees it', () => {
    expect(cleanTags(['x'.repeat(255), 'y'.repeat(256)])).toEqual(['x'.repeat(255), `${'y'.repeat(254)}…`]);
    expect(cleanTags(['😀'.repeat(255)])).toEqual(['😀'.repeat(255)]);
    expect(cleanTags(['😀'.repeat(300)])).toEqual([`${'😀'.repeat(254)}…`]);
  });

  test('are filled in from the file, as plain text', () => {
    expect(
      map({ experiment: { tags: ['nanodrop', '{{ meta.Operator }}', '{{ meta.Sample }}'] } }).draft.tags,
    ).toEqual(['nanodrop', 'R. Müller', 'Plasmid <A>']);
  });

  test('are always acceptable', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', size: 'large' })), (texts) => {
        for (const tag of cleanTags(texts)) {
          expect([...tag].length).toBeLessThanOrEqual(255);
          expect(tag).toMatch(/^[^\p{Cc}\p{Cs}|]+$/u);
          expect(tag).toBe(tag.trim());
        }
      }),
    );
  });
});
