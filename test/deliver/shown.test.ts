import { expect, test } from 'vitest';
import { showsBody } from '../../src/deliver/revise.js';

const row = (...cells: string[]): string =>
  `<table><tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr></table>`;

test('a number that somebody moved to the next cell, or cut otherwise, is a change', () => {
  expect(showsBody(row('A', '5', ''), row('A', '5', ''))).toBe(true);
  expect(showsBody(row('A', '5', ''), row('A', '', '5'))).toBe(false);
  expect(showsBody(row('12', '3'), row('1', '23'))).toBe(false);
});

test('blanks that a server puts between elements are no change', () => {
  expect(showsBody('<table>\n<tr><td>A</td>\n<td>5</td></tr></table>', row('A', '5'))).toBe(true);
});
