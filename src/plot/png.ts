import { fileURLToPath } from 'node:url';
import { LabfeedError } from '../errors.js';
import { FONT, WIDTH } from './svg.js';

/** Larger than the SVG, so that it is sharp on paper: 40 ms and 60 KB for a spectrum. Twice the size takes 60 and 110. */
const PNG_WIDTH = 1.5 * WIDTH;

/** Part of labfeed: a server may have no fonts at all. It has Latin, Greek and Cyrillic letters and most symbols. */
const FONT_FILE = fileURLToPath(new URL('../../src/plot/DejaVuSans.ttf', import.meta.url));

/** Scripts that the font lacks. Only then are the fonts of the machine searched, which takes longer. */
const OTHER_SCRIPTS = /[\u0900-\u1cff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\u{1f000}-\u{3ffff}]/u;

/** Throws a LabfeedError without the renderer, an optional package: it has no binary for some machines. */
export async function toPng(svg: string): Promise<Uint8Array> {
  const { Resvg } = await import('@resvg/resvg-js').catch((cause: unknown) => {
    const hint = 'use SVG, or install labfeed with its optional packages (`npm install --include=optional`)';
    throw new LabfeedError('PNG needs the optional package @resvg/resvg-js, which is not installed', { hint, cause });
  });
  const renderer = new Resvg(svg, {
    fitTo: { mode: 'width', value: PNG_WIDTH },
    font: {
      ...{ fontFiles: [FONT_FILE], loadSystemFonts: OTHER_SCRIPTS.test(svg) },
      ...{ defaultFontFamily: FONT, sansSerifFamily: FONT },
    },
  });
  return renderer.render().asPng();
}
