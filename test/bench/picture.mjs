import { writeFileSync } from 'node:fs';
import { median } from './ratios.mjs';

const WIDTH = 680;
const LEFT = 250;
const FULL = 410;
const BAR = 20;
const ROW = 28;
const MARGIN = 16;

const CLIENTS = {
  'bare undici': { label: 'the same requests alone', colour: '#8b949e' },
  labfeed: { label: 'labfeed', colour: '#2f81c7' },
  'Python script': { label: 'a short Python script', colour: '#d98b3a' },
};

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .head { font-weight: 600 }
  .paper { fill: #ffffff }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #0d1117 } }`;

/**
 * Draws the files a second of each client as a share of those of bare requests. No numbers: those of one machine would
 * be taken for a promise.
 */
export function drawPipeline(measured, path) {
  const parts = [text(MARGIN, MARGIN + 12, 'Files filed per second, measured side by side. Longer is faster.', 'head')];
  let y = MARGIN + 40;
  for (const delayMs of new Set(measured.map((one) => one.delayMs))) {
    parts.push(text(MARGIN, y, headingOf(delayMs), 'head'));
    y += 10;
    const clients = measured.filter((one) => one.delayMs === delayMs);
    for (const { name, share } of sharesOf(clients)) {
      const { label, colour } = CLIENTS[name];
      const width = Math.max(2, Math.round(Math.min(1, share) * FULL));
      parts.push(
        text(LEFT - 10, y + 15, label, 'end'),
        `<rect x="${LEFT}" y="${y}" width="${width}" height="${BAR}" rx="2" fill="${colour}"/>`,
      );
      y += ROW;
    }
    y += 20;
  }
  parts.push(
    text(MARGIN, y, 'Only labfeed records each step on disk, so that a crash loses nothing and files nothing twice.'),
  );
  const height = y + MARGIN;
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    '<title>Files filed per second: labfeed, a Python script and the same requests alone</title>',
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${height}"/>`,
    ...parts,
    '</svg>',
    '',
  ];
  writeFileSync(path, svg.join('\n'));
}

function sharesOf(clients) {
  const bare = clients.find(({ name }) => name === 'bare undici');
  return clients.map(({ name, rounds }) => ({
    name,
    share: median(rounds.map(({ perSecond }, round) => perSecond / bare.rounds[round].perSecond)),
  }));
}

function text(x, y, content, kind = '') {
  const attributes = kind === 'end' ? ' text-anchor="end"' : kind === '' ? '' : ` class="${kind}"`;
  return `<text x="${x}" y="${y}"${attributes}>${content}</text>`;
}

const headingOf = (delayMs) =>
  delayMs > 0 ? `A server that takes ${delayMs} ms for each request` : 'A server that answers at once';
