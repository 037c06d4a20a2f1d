import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mutations } from '../support/mutations.js';
import { meta, readAs, readOrRefuse, refusalAs, rows } from '../support/reading.js';

describe('XML', () => {
  test('elements, attributes, entities and CDATA are values', async () => {
    const text = `<?xml version="1.0"?><!-- a note --><r><a id=" 7 ">x &lt; y &#181;</a><b><![CDATA[<raw> & all]]></b><c/></r>`;
    const record = await readAs('xml', text, { facts: { a: '/r/a', id: '/r/a/@id', b: '//b', c: '//c' } });
    expect(meta(record)).toEqual({ a: 'x < y µ', id: 7, b: '<raw> & all', c: null });
  });

  test('namespaces are ignored', async () => {
    const text = `<x:r xmlns:x="urn:a" xmlns="urn:b"><x:a xsi:kind="k" xmlns:xsi="urn:c">1</x:a><a>2</a></x:r>`;
    const record = await readAs('xml', text, { table: { rows: '/r/a', columns: { v: '.', k: '@kind' } } });
    expect(rows(record)).toEqual([
      { v: 1, k: 'k' },
      { v: 2, k: null },
    ]);
  });

  test('repeated elements are numbered from 0', async () => {
    const text = '<t><r><c>1</c><c>2</c></r><r><c>3</c><c>4</c></r></t>';
    const record = await readAs('xml', text, {
      facts: { f: '/t/r/1/c/0' },
      table: { rows: '//r', columns: { a: 'c/0', b: 'c/1' } },
    });
    expect(meta(record)).toEqual({ f: 3 });
    expect(rows(record)).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]);
    expect(rows(await readAs('xml', text, { table: { rows: '//r' } }))).toEqual([
      { c: 1, 'c (2)': 2 },
      { c: 3, 'c (2)': 4 },
    ]);
  });

  test('the declared encoding is used', async () => {
    const text = '<?xml version="1.0" encoding="windows-1251"?><r>Мед</r>';
    const bytes = Buffer.from(
      [...text].map((sign) => (sign > '\u0400' ? sign.charCodeAt(0) - 0x350 : sign.charCodeAt(0))),
    );
    expect(meta(await readAs('xml', bytes, { facts: { r: '/r' } }))).toEqual({ r: 'Мед' });
  });

  test('a wrong declaration is ignored', async () => {
    const text = '<?xml version="1.0" encoding="utf-16"?><r>µ</r>';
    expect(meta(await readAs('xml', text, { facts: { r: '/r' } }))).toEqual({ r: 'µ' });
    const latin = Buffer.from('<?xml version="1.0" encoding="UTF-8"?><r>\xb5</r>', 'latin1');
    expect(meta(await readAs('xml', latin, { facts: { r: '/r' } }))).toEqual({ r: 'µ' });
  });

  test('a DOCTYPE that declares elements is ignored', async () => {
    const text = '<!DOCTYPE r [<!ELEMENT r (#PCDATA)><!ATTLIST r a CDATA #IMPLIED>]><r>1</r>';
    expect(meta(await readAs('xml', text, { facts: { r: '/r' } }))).toEqual({ r: 1 });
  });

  test('names such as `__proto__` are ordinary names', async () => {
    const text = '<r __proto__="1" constructor="2"><__proto__>3</__proto__></r>';
    const record = await readAs('xml', text, {
      facts: { a: '/r/@__proto__', b: '/r/__proto__', c: '/r/@constructor' },
    });
    expect(meta(record)).toEqual({ a: 1, b: 3, c: 2 });
  });
});

describe('dangerous XML is refused', () => {
  test.each([
    ['expanding entities', '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><r>&b;</r>'],
    ['external entities', '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>'],
    ['entities of a DTD', '<!DOCTYPE r [<!ENTITY % p SYSTEM "http://example.org/x.dtd"> %p;]><r/>'],
  ])('%s', async (_, text) => {
    const error = await refusalAs('xml', text, { facts: { r: '/r' } });
    expect(error.message).toContain('<!ENTITY …>');
    expect(error.hint).toContain('DOCTYPE');
  });

  test('an undeclared entity', async () => {
    const error = await refusalAs('xml', '<!DOCTYPE r SYSTEM "x.dtd"><r>&x;</r>', { facts: { r: '/r' } });
    expect(error.message).toContain('undefined entity');
  });

  test('deep nesting', async () => {
    const error = await refusalAs('xml', '<a>'.repeat(300_000), { facts: { r: '/r' } });
    expect(error.message).toBe('the file is nested deeper than 100 levels');
  });
});

describe('invalid XML is refused with its location', () => {
  test.each([
    ['<a>\n  <b></a>', '2:9', 'unexpected close tag'],
    ['<a>\n<b>1</b>\n', '3:1', 'unclosed tag'],
    ['<a x=1/>', '1:6', 'unquoted attribute'],
    ['<a/><b/>', '1:7', 'only one root'],
  ])('%j at %s', async (text, place, message) => {
    const error = await refusalAs('xml', text, { facts: { a: '//a' } });
    expect(`${error.where?.line}:${error.where?.column}`).toBe(place);
    expect(error.message).toContain('the file is not valid XML');
    expect(error.message).toContain(message);
    expect(error.hint).toContain('format: delimited');
  });
});

test('mutated XML is read or refused', async () => {
  const base = Buffer.from(
    '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE r [<!ELEMENT r ANY>]><r xmlns:a="u"><a:Log id="1"><t>1.5</t><v u="mg">2</v></a:Log><Log id="2"><t>&lt;3</t></Log></r>',
  );
  const mapping = {
    facts: { id: '//Log/@id' },
    tables: { a: { rows: '//Log' }, b: { columns: { t: '//t' } } },
  };
  await fc.assert(
    fc.asyncProperty(mutations(base), async (bytes) => {
      await readOrRefuse(readAs('xml', bytes, mapping));
    }),
    { numRuns: 150 },
  );
});
