import { expect, test } from 'vitest';
import { isSame, replaceText, textOf } from '../../src/commands/comments.js';
import { markIn } from '../../src/markers.js';

const MARK = 'labfeed 0123456789abcdef.2';
const OTHER = 'labfeed fedcba9876543210.1';

test('an edited comment of labfeed keeps its marker line', () => {
  const edited = replaceText(`Well,A260\nA1,2.1\n\n${MARK}`, 'measured again\n');
  expect(edited).toBe(`measured again\n\n${MARK}`);
  expect(markIn(edited)).toEqual({ reference: '0123456789abcdef', n: 2 });
});

test('a text that already has the marker line does not get it twice', () => {
  expect(replaceText(`a\n\n${MARK}`, `b\r\n\r\n${MARK}\r\n`)).toBe(`b\n\n${MARK}`);
});

test("another person's comment gets exactly the new text", () => {
  expect(replaceText('looks odd', 'looks fine\n')).toBe('looks fine');
});

test('a text with the marker line of another comment is refused', () => {
  expect(() => replaceText('a', `b\n${OTHER}`)).toThrow(/marker line of another comment/);
  expect(() => replaceText(`a\n\n${MARK}`, `b\n${OTHER}`)).toThrow(/marker line of another comment/);
});

test('a comment cannot become empty', () => {
  expect(() => replaceText('a', ' \n')).toThrow(/cannot be empty/);
  expect(() => replaceText(`a\n\n${MARK}`, `\n${MARK}\n`)).toThrow(/cannot be empty/);
});

test('the text is read from the configured field, or else from the field of eLabFTW', () => {
  expect(textOf({ id: 1, content: 'a', comment: 'b' }, 'content')).toBe('a');
  expect(textOf({ id: 1, comment: 'b' }, 'content')).toBe('b');
  expect(textOf({ id: 1, note: 'c' }, 'content')).toBeUndefined();
});

test('line endings and surrounding space are ignored in comparisons', () => {
  expect(isSame('a\nb\n', 'a\r\nb')).toBe(true);
  expect(isSame('a\nb', 'a b')).toBe(false);
});
