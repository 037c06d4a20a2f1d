import iconv from 'iconv-lite';
import { SaxesParser } from 'saxes';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { Refuse } from '../refuse.js';
import { createGrower, type Grower, type Position } from '../trees/node.js';
import { createNodeTree } from '../trees/node-tree.js';
import type { Tree } from '../trees/tree.js';
import { refuseLarge, type WholeFile, wholeDecoded } from './whole.js';

/** Reads XML. Namespaces do not count; nothing is expanded but the five entities that every XML has. */
export async function readXml(file: WholeFile, options: ParseOptions): Promise<Tree> {
  refuseLarge(file, options);
  const grower = createGrower(options.limits.maxNesting, file.refuse);
  const parser = createParser(grower, file.refuse);
  const encoding = options.encoding === 'auto' ? declaredEncoding(file.bytes) : options.encoding;
  for await (const piece of wholeDecoded(file, encoding)) {
    parser.write(piece);
    if (file.pace.due()) await file.pace.rest();
  }
  parser.close();
  return createNodeTree(grower.root, grower.size);
}

function createParser(grower: Grower, refuse: Refuse): SaxesParser {
  const parser = new SaxesParser({ xmlns: false, position: true });
  const position = (): Position => ({ line: parser.line, column: Math.max(parser.column, 1) });
  let attributes: { readonly name: string; readonly value: string }[] = [];
  parser.on('error', (error) => {
    throw refuse(`this is not XML: ${plainly(error.message)}`, {
      at: position(),
      hint: 'the file may be cut short; if it is not XML, say what it is: `format: delimited`',
    });
  });
  parser.on('doctype', (doctype) => {
    if (!/<!ENTITY/i.test(doctype)) return;
    throw refuse('the file declares entities of its own (<!ENTITY …>), which are not expanded', {
      at: position(),
      hint: 'export it without a DOCTYPE',
    });
  });
  parser.on('attribute', (attribute) => attributes.push(attribute));
  parser.on('opentag', ({ name }) => {
    const at = position();
    grower.open(localName(name), false, at);
    for (const attribute of attributes) {
      if (!/^xmlns(?::|$)/.test(attribute.name)) {
        grower.leaf(`@${localName(attribute.name)}`, attribute.value.trim(), at);
      }
    }
    attributes = [];
  });
  const write = (text: string) => {
    if (grower.here !== grower.root) grower.here.text = (grower.here.text ?? '') + text;
  };
  parser.on('text', write);
  parser.on('cdata', write);
  parser.on('closetag', () => {
    const { here } = grower;
    const text = here.text?.trim() ?? '';
    // Blanks between elements are how the file is laid out, not what it says.
    const isBranch = here.children.some(({ name }) => !name.startsWith('@'));
    here.text = text === '' && isBranch ? undefined : text;
    grower.close();
  });
  return parser;
}

/** Prefixes are the file's own abbreviations, and differ between files that say the same. */
const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** Without the place, which the parser puts before its sentence, and which is told by itself. */
const plainly = (message: string): string =>
  message.replace(/^(?:undefined:|\d+:)*\s*/, '').replace(/\.$/, '');

/** What the first line says, unless a byte order mark or the bytes themselves say otherwise. */
function declaredEncoding(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 200)).toString(
    'latin1',
  );
  const [, encoding = 'utf-8'] = /^<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(start) ?? [];
  // Where the declaration can be read byte by byte, it is not in UTF-16; and UTF-8 is found out anyway.
  const isPlain = !/^(?:utf|ucs)/i.test(encoding) && iconv.encodingExists(encoding);
  return isPlain ? encoding : 'auto';
}
