// npm run screenshots: takes the pictures in docs/images from the demo, in a real browser.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';
import { chromium } from 'playwright-core';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'labfeed-'));
const demo = spawn(process.execPath, [here('../../dist/cli.js'), 'demo', '--dir', folder], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const browser = await chromium.launch({
  executablePath: process.env.LABFEED_CHROMIUM ?? '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});

try {
  const url = await pageOf(demo);
  const instruments = join(folder, 'instruments');
  addPast(join(folder, 'journal.db'));
  // A file that cannot be read, so that the page has something to decide.
  const plate = readFileSync(join(instruments, 'plate-reader', 'plate-8.txt'), 'utf8');
  writeFileSync(join(instruments, 'plate-reader', 'plate-9.txt'), plate.replace(/Datum: .*/, 'Datum: soon'));

  const page = await browser.newPage({ viewport: { width: 1200, height: 1150 }, colorScheme: 'light' });
  await page.goto(url);
  await page.getByRole('button', { name: 'Read the file again' }).waitFor();
  await page.locator('.card rect:not([height="0"])').first().waitFor();
  await page.screenshot({ path: here('../../docs/images/page.png') });

  await page.setViewportSize({ width: 1200, height: 900 });
  await page.goto(`${url}#/runs/3`);
  await page.frameLocator('iframe').getByText('Methylene blue').first().waitFor();
  await page.screenshot({ path: here('../../docs/images/run.png') });

  await page.goto(`${url}#/try`);
  await page.locator('#sample-instrument').selectOption('learn');
  await page.setInputFiles('#sample', join(instruments, 'spectrometer', 'scan-17.tsv'));
  await page.frameLocator('iframe:visible').getByText('Methylene blue').first().waitFor();
  await page.screenshot({ path: here('../../docs/images/try.png') });
} finally {
  await browser.close();
  demo.kill();
  demo.once('exit', () => rmSync(folder, { recursive: true, force: true }));
}

/** Resolves with the address of the page once the demo has filed its samples. */
function pageOf(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      const [, found] = /^ {2}page +(\S+)/m.exec(output) ?? [];
      if (found) resolve(found);
    });
    child.once('exit', () => reject(new Error(`the demo ended:\n${output}`)));
  });
}

/** Adds a month of runs for the plots; the demo itself has only today's. */
function addPast(journal) {
  const database = new DatabaseSync(journal);
  const put = database.prepare('INSERT OR IGNORE INTO hours (instrument, hour, runs) VALUES (?, ?, ?)');
  const count = database.prepare("UPDATE tallies SET runs = runs + ? WHERE instrument = ? AND state = 'done'");
  const now = Math.floor(Date.now() / 3_600_000);
  for (const [index, instrument] of ['balance', 'spectrometer', 'plate-reader', 'logger'].entries()) {
    for (let day = 1; day < 30; day++) {
      const isWeekend = [0, 6].includes(new Date((now - 24 * day) * 3_600_000).getDay());
      const runs = isWeekend && index < 3 ? 0 : 2 + ((day * (7 + index)) % 11);
      if (runs > 0) put.run(instrument, now - 24 * day, runs);
      count.run(runs, instrument);
    }
  }
  database.close();
}
