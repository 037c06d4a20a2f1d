import { renameSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { inBrowser, openLab, SLOW, useBrowser } from '../support/browser.js';
import { weighing } from '../support/daemon-process.js';

const visit = useBrowser();

const DATED = `  balance:
    watch: data/balance
    ready: { quiet: 150ms }
    parse: { delimiter: ",", meta: { until: blank, separator: ":" }, table: { after: blank } }
    experiment: { title: "{{ meta.Sample }}", date: "{{ meta.Date }}" }
`;
const dated = 'Sample: Caffeine\nDate: 2026-03-04\n\nNo,Weight (mg)\n1,12.5\n2,12.75\n';

inBrowser('a file dropped into a folder appears without a reload, and ends as done', SLOW, async () => {
  const { site, url } = await openLab();
  const { page, troubles } = await visit(url);
  await page.getByRole('heading', { level: 1, name: 'All good: watching 1 folder, no runs yet' }).waitFor();
  site.drop('w1.csv', weighing(1));
  const card = page.locator('.card', { hasText: 'balance' });
  await card.getByRole('link', { name: 'w1 (balance)' }).waitFor();
  await card.locator('.last .chip.done').waitFor();
  await page.getByRole('heading', { level: 1, name: 'All good: 1 run filed, none waiting' }).waitFor();
  // The plot is drawn and has a text alternative.
  const plot = card.getByRole('img', { name: 'Runs per day: 1 run in 30 days, 1 today' });
  expect(await plot.locator('rect').last().getAttribute('height')).toBe('1');
  expect(troubles).toEqual([]);
});

inBrowser('a quarantined run says why, and reading it again files it once the file is fixed', SLOW, async () => {
  const { site, sandbox, url } = await openLab(DATED);
  const { page, troubles } = await visit(url);
  const file = join(site.folder, 'data', 'balance', 'early.csv');
  const setDay = (day: string, path = file) => {
    const at = new Date(`${day}T12:00:00`);
    utimesSync(path, at, at);
  };
  // With its date when it appears.
  const written = join(site.folder, 'data', 'elsewhere', 'early.csv');
  site.drop('early.csv', dated, 'elsewhere');
  setDay('2026-03-01', written);
  renameSync(written, file);
  await page.getByRole('heading', { level: 1, name: '1 run needs a decision' }).waitFor();
  const item = page.locator('#attention-list > li');
  await item.getByRole('link', { name: 'early.csv' }).waitFor();
  expect(await item.locator('.reason').innerText()).toContain('2026-03-04');

  setDay('2026-03-05');
  await item.getByRole('button', { name: 'Read the file again' }).click();
  await page.locator('.outcome.done').getByText('will be re-read').waitFor();
  await page.getByRole('heading', { level: 1, name: 'All good: 1 run filed, none waiting' }).waitFor();
  expect(await page.locator('#attention').isVisible()).toBe(false);
  expect(sandbox.experiments().map(({ title, date }) => [title, date])).toEqual([['Caffeine', '2026-03-04']]);
  expect(troubles).toEqual([]);
});

inBrowser('a run that somebody does not want filed is set aside, and that can be undone', SLOW, async () => {
  const { site, url } = await openLab(DATED);
  site.drop('undated.csv', dated.replace('2026-03-04', 'soon'));
  const { page } = await visit(url);
  const ignore = page.getByRole('button', { name: 'Do not file it' });
  await ignore.click();
  await page.locator('.outcome.done').getByText('is ignored').waitFor();
  await page.locator('#attention').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.outcome.done').getByText('is quarantined again and needs a decision').waitFor();
  await page.locator('#attention-list').getByRole('link', { name: 'undated.csv' }).waitFor();

  // Later, on the page of the run.
  await ignore.click();
  await page.locator('.card .counts').getByRole('link', { name: '1 ignored' }).click();
  await page.getByRole('link', { name: 'undated.csv' }).click();
  await page.getByRole('button', { name: 'File it after all' }).waitFor();
  await page.getByRole('button', { name: 'Move back to “Needs a decision”' }).click();
  await page.locator('.summary-line .chip.quarantined').waitFor();
  expect(await page.locator('.history').innerText()).toContain('No longer ignored: quarantined again');
});

inBrowser('new columns are accepted with a button that says so', SLOW, async () => {
  const { site, sandbox, url } = await openLab(
    '  balance: { watch: data/balance, ready: { quiet: 150ms }, drift: hold }',
  );
  const { page } = await visit(url);
  site.drop('w1.csv', weighing(1));
  await page.locator('.card .counts').getByText('1 done').waitFor();
  site.drop('w2.csv', 'Sample,Mass (g)\nS2,2.5\n');
  const item = page.locator('#attention-list > li');
  await item.getByRole('button', { name: 'Accept new columns' }).click();
  await page.locator('.card .counts').getByText('2 done').waitFor();
  expect(sandbox.experiments()).toHaveLength(2);
});

inBrowser('a backlog needs one decision, made with a button, and skipping it can be undone', SLOW, async () => {
  const { site, sandbox, url } = await openLab('  scale: { watch: data/scale, ready: { quiet: 150ms } }', (made) => {
    for (let n = 0; n < 51; n++) made.drop(`old${n}.csv`, weighing(n), 'scale');
  });
  const { page } = await visit(url);
  await page.getByRole('heading', { level: 1, name: '1 backlog needs a decision' }).waitFor();
  await page.getByRole('button', { name: 'Skip all' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Skip them' }).click();
  await page.locator('.outcome.done').getByText('51 files of the backlog skipped').waitFor();
  await page.getByRole('heading', { level: 1, name: 'All good: watching 1 folder, no runs yet' }).waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('heading', { level: 1, name: '1 backlog needs a decision' }).waitFor();
  await page.getByText('51 existing files of scale').waitFor();
  const skip = page.getByRole('button', { name: 'Skip all' });
  await skip.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await skip.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Skip them' }).click();
  await page.getByRole('heading', { level: 1, name: 'All good: watching 1 folder, no runs yet' }).waitFor();
  site.drop('new.csv', weighing(99), 'scale');
  await page.getByRole('heading', { level: 1, name: 'All good: 1 run filed, none waiting' }).waitFor();
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['new (scale)']);
});
