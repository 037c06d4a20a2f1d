import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SHOWN, sanitise } from '../../src/sandbox/sanitise.ts';
import { cpuMs } from '../support/until.js';

test.each([
  ['text with < and > and & and "quotes"', 'text with &lt; and &gt; and &amp; and "quotes"'],
  ['a &lt;b&gt; &eacute;', 'a &lt;b&gt; é'],
  ['<P CLASS="x">a<BR/>b</P>', '<p>a<br>b</p>'],
  [
    '<table><tr><td colspan="2" rowspan=3 onclick="x">1</td></tr></table>',
    '<table><tr><td colspan="2" rowspan="3">1</td></tr></table>',
  ],
  [
    '<a href="https://example.org/?a=1&amp;b=2">x</a>',
    '<a href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer nofollow">x</a>',
  ],
  ['<a href="javascript:alert(1)">x</a>', '<a>x</a>'],
  ['<a href="java&#115;cript:alert(1)">x</a>', '<a>x</a>'],
  ['<a href=" https://example.org">x</a>', '<a href="https://example.org" rel="noopener noreferrer nofollow">x</a>'],
  ['<script>alert("<p>")</script>after', 'after'],
  ['<scr<script></script>ipt>x', 'ipt&gt;x'],
  ['<svg><p>x</p><style>y</style></svg>z', '<p>x</p>z'],
  ['<style>p { color: red }</STYLE >z', 'z'],
  ['a<!-- <p>hidden</p> -->b<!doctype html><?php ?>c', 'abc'],
  ['<p title="a > b">x</p>', '<p>x</p>'],
  ['<b>open <i>inner</b> after', '<b>open <i>inner</i></b> after'],
  ['stray</div></section></main>', 'stray'],
  ['<div><p><div>never closed', '<div><p></p><div>never closed</div></div>'],
  ['<unknown>kept text</unknown><p-x>y</p-x>', 'kept texty'],
  ['x <p class="never ends', 'x <p></p>'],
  ['5 <', '5 &lt;'],
  ['<table><tr><th>a<td>1<tr><td>2</table>', '<table><tr><th>a</th><td>1</td></tr><tr><td>2</td></tr></table>'],
  ['<ul><li>a<ul><li>b</ul><li>c</ul>', '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>'],
])('%s', (source, expected) => {
  expect(sanitise(source, SHOWN)).toBe(expected);
});

const SAFE_TAG =
  /<(?:\/?(?:a|b|blockquote|caption|code|dd|del|div|dl|dt|em|h[1-6]|hr|i|ins|li|ol|p|pre|s|small|span|strong|sub|sup|table|tbody|td|tfoot|th|thead|tr|u|ul)|td(?: (?:col|row)span="\d{1,3}")+|a href="(?:https?:\/\/|mailto:)[^"'<>\s]*" rel="[a-z ]+"|br)>/g;

test('the output has only allowed tags, and they are balanced', () => {
  const piece = fc.oneof(
    fc.constantFrom(...'<|>|"|\'|/|=| |!--|-->|&lt;|<a |href=|"https://e|javascript:'.split('|')),
    fc.constantFrom(...'<p>|</p>|<div>|</div>|<td colspan=2>|<script>|</script>|<svg|<style>|<br>|onerror='.split('|')),
    fc.string({ maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const clean = sanitise(pieces.join(''), SHOWN);
      expect(clean.replace(SAFE_TAG, '')).not.toMatch(/[<>]/);
      for (const name of ['p', 'div', 'td', 'a']) {
        const opened = clean.match(new RegExp(`<${name}[ >]`, 'g'))?.length ?? 0;
        expect(clean.match(new RegExp(`</${name}>`, 'g'))?.length ?? 0).toBe(opened);
      }
    }),
    { numRuns: 2_000 },
  );
});

test.each(['<', '<a ', '<a "', '<!--', '<b>', '</i>', '<svg>', '<script></script>', '<a href=', '<p \'">', ' colspan'])(
  'a long run of %s takes linear time',
  (text) => {
    const began = cpuMs();
    sanitise(`${'<b>'.repeat(1_000)}<td ${text.repeat(400_000 / text.length)}`, SHOWN);
    sanitise(text.repeat(400_000 / text.length), SHOWN);
    expect(cpuMs() - began).toBeLessThan(5_000);
  },
);
