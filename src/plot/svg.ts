import { fileURLToPath } from 'node:url';
import { LabfeedError } from '../errors.js';
import { escapeHtml, singleLine } from '../text.js';

/** The pieces that all plots are drawn with. Sizes are pixels of the SVG. */

export const WIDTH = 800;
export const HEIGHT = 450;
/** The font of the PNG is part of labfeed; a browser takes the nearest it has. */
const FONT = 'DejaVu Sans';
export const FONT_SIZE = 12;

export const INK = '#222222';
export const SOFT = '#595959';
const GRID = '#e3e3e3';

/** The colours of Okabe and Ito, which colour-blind people can tell apart; without yellow, which is faint on white. */
export const PALETTE = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#56b4e9',
  '#e69f00',
  '#000000',
  '#8c8c8c',
] as const;

/** Viridis: even in lightness, and safe for colour-blind people. From low to high. */
export const VIRIDIS = [
  '#440154',
  '#482878',
  '#3e4a89',
  '#31688e',
  '#26828e',
  '#1f9e89',
  '#35b779',
  '#6ece58',
  '#b5de2b',
  '#fde725',
];

/** Two decimals are enough at twice the resolution, and keep the file small. */
export const px = (value: number): string => String(Math.round(value * 100) / 100);

/** Text from a file: one line, without markup. */
const clean = (text: string): string => escapeHtml(singleLine(text).replace(/[\ufffe\uffff]/g, '\ufffd'));

/** Estimated, because there is no font to ask: DejaVu is wide, so browsers' fonts need less. */
export function widthOf(text: string, size = FONT_SIZE): number {
  let em = 0;
  for (const character of text) {
    if (/[ .,:;'|!ijlI()[\]]/.test(character)) em += 0.38;
    else if (/[MWmw@%]/.test(character)) em += 0.95;
    else em += (character.codePointAt(0) ?? 0) > 0x2e80 ? 1 : 0.64;
  }
  return em * size;
}

/** Cut with a visible `…` if it is wider than this. */
export function shorten(text: string, maxWidth: number, size = FONT_SIZE): string {
  const line = singleLine(text);
  if (line.length < 1000 && widthOf(line, size) <= maxWidth) return line;
  const characters = [...line.slice(0, 1000)];
  while (characters.length > 1 && widthOf(`${characters.join('')}…`, size) > maxWidth) characters.pop();
  return `${characters.join('').trimEnd()}…`;
}

interface TextStyle {
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly size?: number;
  readonly fill?: string;
  /** In degrees, around the position. */
  readonly rotate?: number;
}

export function textAt(x: number, y: number, text: string, style: TextStyle = {}): string {
  const { anchor = 'start', size = FONT_SIZE, fill = INK, rotate } = style;
  const attributes = [
    `x="${px(x)}" y="${px(y)}"`,
    anchor === 'start' ? '' : ` text-anchor="${anchor}"`,
    size === FONT_SIZE ? '' : ` font-size="${size}"`,
    fill === INK ? '' : ` fill="${fill}"`,
    rotate === undefined ? '' : ` transform="rotate(${rotate} ${px(x)} ${px(y)})"`,
  ];
  return `<text ${attributes.join('')}>${clean(text)}</text>`;
}

export const lineAt = (x1: number, y1: number, x2: number, y2: number, stroke = GRID): string =>
  `<path d="M${px(x1)},${px(y1)}L${px(x2)},${px(y2)}" stroke="${stroke}" fill="none"/>`;

/** The area inside the axes. */
export interface Frame {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** What the picture does not show is written below it, so that it stays with the picture. */
export const notesHeight = (notes: readonly string[]): number => Math.min(notes.length, MAX_NOTES) * 14;

const MAX_NOTES = 2;

const drawNotes = (notes: readonly string[]): string[] => {
  const lines =
    notes.length > MAX_NOTES ? [...notes.slice(0, MAX_NOTES - 1), notes.slice(MAX_NOTES - 1).join(' ')] : notes;
  return lines.map((note, index) =>
    textAt(16, HEIGHT - 8 - (lines.length - 1 - index) * 14, shorten(note, WIDTH - 32, 10), { size: 10, fill: SOFT }),
  );
};

export const picture = (description: string, notes: readonly string[], parts: readonly string[]): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="${FONT}, Verdana, sans-serif" font-size="${FONT_SIZE}" fill="${INK}" role="img">`,
    `<title>${clean(description)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    ...parts,
    ...drawNotes(notes),
    '</svg>\n',
  ].join('\n');

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
