// npm run screenshots: takes the pictures of entries in docs/images, as the built-in notebook shows them.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { createSandbox } from '../../dist/sandbox/server.js';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const WIDTH = 1060;
const DAY = new Date().toISOString().slice(0, 10);

/** Files as instruments write them. labfeed reads them without a mapping. */
const FILES = {
  balance: ['weighing-0042.csv', balance()],
  spectrometer: ['scan-17.tsv', spectrum()],
  'plate-reader': ['plate-7.csv', plate()],
  hplc: ['run-0311.csv', chromatogram()],
  logger: ['fridge-3.csv', logger()],
};

const TITLES = {
  balance: 'Tablet weights, {{ meta.Batch }}',
  spectrometer: 'UV/Vis of {{ meta.Sample }}',
  'plate-reader': 'Growth after 6 h, plate {{ meta.Plate }}',
  hplc: '{{ meta.Sample }}, {{ meta.Method }}',
  logger: 'Fridge 3, {{ file.modified | date: "%d %B %Y" }}',
};

const folder = mkdtempSync(join(tmpdir(), 'labfeed-'));
const sandbox = createSandbox({ file: ':memory:', port: 0, dialect: 'elabftw' });
const { url, key } = await sandbox.start();
const daemon = startDaemon();
const browser = await chromium.launch({
  executablePath: process.env.LABFEED_CHROMIUM ?? '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});

try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 700 }, colorScheme: 'light' });
  for (const instrument of Object.keys(FILES)) {
    const id = await shownWithPlot(page, instrument);
    await page.goto(`${url}/view/${id}`);
    await page.locator('.content img').waitFor();
    const end = await page.locator('main > ul').boundingBox();
    const clip = { x: 0, y: 50, width: WIDTH, height: end.y + end.height - 40 };
    await page.screenshot({ path: here(`../../docs/images/entry-${instrument}.png`), fullPage: true, clip });
  }
} finally {
  await browser.close();
  daemon.kill();
  await new Promise((resolve) => daemon.once('exit', resolve));
  await sandbox.stop();
  rmSync(folder, { recursive: true, force: true });
}

function startDaemon() {
  writeFileSync(join(folder, 'api-key'), key, { mode: 0o600 });
  const instruments = Object.entries(FILES).map(([name, [file, content]]) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, file), content);
    return `  ${name}: { watch: ${name}, ready: { quiet: 200ms }, experiment: { title: '${TITLES[name]}' } }\n`;
  });
  const config = join(folder, 'labfeed.yaml');
  const head = `notebook: { url: "${url}", key: { file: api-key } }\njournal: journal.db\nstatus: false\n`;
  writeFileSync(config, `${head}instruments:\n${instruments.join('')}`);
  return spawn(process.execPath, [here('../../dist/cli.js'), 'run', '--config', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** Waits for the entry of this instrument, and returns its id. */
async function shownWithPlot(page, instrument) {
  const [file] = FILES[instrument];
  for (let attempt = 0; attempt < 300; attempt++) {
    for (let id = 1; id <= Object.keys(FILES).length; id++) {
      await page.goto(`${url}/view/${id}`);
      const text = await page.locator('main').innerText();
      if (text.includes(file) && (await page.locator('.content img').count()) > 0) return id;
    }
    await page.waitForTimeout(200);
  }
  throw new Error(`there is no entry with a plot for ${instrument}`);
}

/** The same numbers each time. */
function noise(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31 - 0.5;
  };
}

function balance() {
  const random = noise(7);
  const rows = Array.from(
    { length: 12 },
    (_, n) => `T${String(n + 1).padStart(2, '0')},${(250 + 6 * random()).toFixed(2)}`,
  );
  return ['Batch,B-2291', 'Operator,Grace', `Date,${DAY}`, 'Balance,XS204', '', 'Tablet,Weight (mg)', ...rows, ''].join(
    '\r\n',
  );
}

function spectrum() {
  const random = noise(3);
  const peak = (nm, at, width, height) => height * Math.exp(-(((nm - at) / width) ** 2));
  const rows = Array.from({ length: 301 }, (_, n) => {
    const nm = 450 + n;
    const value = 0.02 + peak(nm, 664, 22, 0.74) + peak(nm, 614, 26, 0.34) + 0.004 * random();
    return `${nm.toFixed(1)}\t${value.toFixed(4)}`;
  });
  return [
    'Sample\tMethylene blue',
    'Solvent\twater',
    'Path length\t10 mm',
    `Date\t${DAY}`,
    '',
    'Wavelength (nm)\tAbsorbance (AU)',
    ...rows,
    '',
  ].join('\n');
}

function plate() {
  const random = noise(5);
  const rows = [...'ABCDEFGH'].flatMap((letter, row) =>
    Array.from({ length: 12 }, (_, column) => {
      const value = column === 11 ? 0.045 : 0.08 + (0.9 * (11 - column) * (row + 2)) / 100 + 0.03 * random();
      return `${letter}${column + 1},${value.toFixed(3)}`;
    }),
  );
  return [
    'Plate,P-0007',
    'Protocol,OD600 endpoint',
    'Temperature,37.0 °C',
    `Date,${DAY}`,
    '',
    'Well,Absorbance (OD)',
    ...rows,
    '',
  ].join('\n');
}

function chromatogram() {
  const random = noise(11);
  const peak = (t, at, width, height) => height * Math.exp(-(((t - at) / width) ** 2));
  const rows = Array.from({ length: 6001 }, (_, n) => {
    const t = n / 500;
    const value =
      0.4 +
      peak(t, 1.32, 0.03, 14) +
      peak(t, 4.18, 0.06, 212) +
      peak(t, 4.61, 0.07, 38) +
      peak(t, 7.94, 0.1, 96) +
      0.5 * random();
    return `${t.toFixed(3)},${value.toFixed(3)}`;
  });
  return [
    'Sample,Caffeine standard 50 µg/mL',
    'Method,C18 isocratic',
    'Injection,10 µL',
    `Date,${DAY}`,
    '',
    'Time (min),Signal (mAU)',
    ...rows,
    '',
  ].join('\n');
}

function logger() {
  const random = noise(13);
  const rows = Array.from({ length: 288 }, (_, n) => {
    const clock = `${String(Math.floor(n / 12)).padStart(2, '0')}:${String((n % 12) * 5).padStart(2, '0')}:00`;
    const isOpen = n > 168 && n < 186;
    const celsius =
      4.2 + 0.5 * Math.sin(n / 4) + 0.2 * random() + (isOpen ? 4 * Math.sin(((n - 168) / 18) * Math.PI) : 0);
    return `${DAY} ${clock},${celsius.toFixed(2)},${(48 + 5 * Math.sin(n / 40) + random()).toFixed(1)}`;
  });
  return ['time,temperature (°C),humidity (%)', ...rows, ''].join('\n');
}
