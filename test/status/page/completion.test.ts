import { expect, test } from 'vitest';
import { jsonSchema } from '../../../src/config/problems.js';
import { complete, type Schema } from '../../../src/status/page/completion.js';

const SCHEMA = jsonSchema() as Schema;

/** What can be written at the bar. */
function at(text: string): string[] {
  const cursor = text.indexOf('|');
  const { from, suggestions } = complete(SCHEMA, text.replace('|', ''), cursor);
  return suggestions.map((one) => text.slice(from, cursor) && one.text.trim()).filter(Boolean);
}

const INSTRUMENT = 'instruments:\n  balance:\n    watch: /data\n';

test('keys of an instrument, of its parts and of its lists are completed, with what they mean', () => {
  expect(at(`${INSTRUMENT}    dri|`)).toEqual(['drift:']);
  expect(at(`${INSTRUMENT}    parse:\n      del|`)).toEqual(['delimiter:']);
  expect(at(`${INSTRUMENT}    parse:\n      table: {}\n    exp|`)).toEqual(['experiment:']);
  expect(at(`${INSTRUMENT}    tests:\n      - fi|`)).toEqual(['file:']);
  expect(at(`${INSTRUMENT}    tests:\n      - file: a\n        exp|`)).toEqual(['expect:']);
  expect(at(`${INSTRUMENT}    tests:\n    - fi|`)).toEqual(['file:']);
  expect(at('instr|')).toEqual(['instruments:']);
  const { suggestions } = complete(SCHEMA, `${INSTRUMENT}    silen`, INSTRUMENT.length + 9);
  expect(suggestions[0]?.meaning).not.toBe('');
});

test('values are completed where only some are valid', () => {
  expect(at(`${INSTRUMENT}    drift: h|`)).toEqual(['hold']);
  expect(at(`${INSTRUMENT}    changed: r|`)).toEqual(['revise']);
});

test('nothing is suggested for finished words, unknown keys, comments and text', () => {
  for (const text of ['    drift: hold|', '    nothing:\n      a|', '    # dri|', '    files: "*.c|'])
    expect([text, at(INSTRUMENT + text)]).toEqual([text, []]);
});
