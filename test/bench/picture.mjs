import { writeFileSync } from 'node:fs';
import { median } from './ratios.mjs';

const WIDTH = 640;
const LEFT = 150;
const BAR = 22;
const GAP = 8;
const COLOURS = { 'bare undici': '#9aa5b1', labfeed: '#2f6fb3', 'Python script': '#d98b3a' };

/**
 * Draws the files a second of each client as a share of bare undici's. Shares only: numbers of one machine would be
 * taken for a promise.
 */
export function drawPipeline(measured, path) {
  const rows = [];
  let y = 12;
  for (const delayMs of [...new Set(measured.map((one) => one.delayMs))]) {
    y += 22;
    rows.push(`<text x="0" y="${y - 6}" font-weight="bold">${headingOf(delayMs)}</text>`);
    const clients = measured.filter((one) => one.delayMs === delayMs);
    const bare = clients.find(({ name }) => name === 'bare undici');
    for (const client of clients) {
      const share = median(client.rounds.map(({ perSecond }, round) => perSecond / bare.rounds[round].perSecond));
      const width = Math.round(Math.min(1.1, share) * (WIDTH - LEFT - 60));
      rows.push(
        `<text x="${LEFT - 8}" y="${y + 16}" text-anchor="end">${client.name}</text>`,
        `<rect x="${LEFT}" y="${y}" width="${width}" height="${BAR}" fill="${COLOURS[client.name]}"/>`,
      );
      y += BAR + GAP;
    }
    y += 10;
  }
  const font = 'font-family="system-ui, sans-serif" font-size="13"';
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" ${font}>`,
    '<title>Files filed per second, compared with bare HTTP requests</title>',
    `<rect width="${WIDTH}" height="${y}" fill="#ffffff"/>`,
    ...rows,
    '</svg>',
    '',
  ];
  writeFileSync(path, svg.join('\n'));
}

const headingOf = (delayMs) =>
  delayMs > 0 ? 'A server that takes its time for a request' : 'A server that takes no time';
