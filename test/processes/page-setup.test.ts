import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { inBrowser, openLab, SLOW, useBrowser } from '../support/browser.js';
import { weighing } from '../support/daemon-process.js';

const visit = useBrowser();

inBrowser(
  'somebody sets an instrument up in the browser: sample, mapping, test, save; its files are filed',
  SLOW,
  async () => {
    const { site, sandbox, url } = await openLab(undefined, ({ config, folder }) => {
      const text = readFileSync(config, 'utf8').replace(
        /^status: .*$/m,
        'status: { address: "127.0.0.1:0", edit: true }',
      );
      writeFileSync(config, text);
      appendFileSync(config, 'include: instruments.d/*.yaml\n');
      mkdirSync(join(folder, 'data', 'scale'), { recursive: true });
    });
    const { page, troubles } = await visit(url, { viewport: { width: 1400, height: 1000 } });
    await page.getByRole('link', { name: 'Add an instrument' }).click();
    await page.selectOption('#sample-instrument', 'learn');
    const sample = { name: 'weighing-7.csv', mimeType: 'text/csv', buffer: Buffer.from(weighing(7)) };
    await page.setInputFiles('#sample', sample);
    await page.getByRole('heading', { name: 'Preview of weighing-7.csv' }).waitFor();
    await page.getByRole('button', { name: 'Edit and save…' }).click();

    const text = page.getByLabel('Mapping as YAML');
    const draft = await text.inputValue();
    const folder = join(site.folder, 'data', 'scale');
    const written = draft
      .replace(/^ {2}\S+:$/m, '  scale:')
      .replace(/watch: .*/, `watch: ${folder}\n    ready: { quiet: 150ms }`)
      .replace(/title: .*/, 'title: "Weighed {{ file.stem }}"');
    await text.fill(written);
    // The preview follows.
    await page.getByRole('heading', { name: 'Weighed weighing-7' }).waitFor();

    // A key is completed with the keyboard.
    await text.press('Control+End');
    await text.pressSequentially('    dri');
    await page.getByRole('option', { name: /^drift/ }).waitFor();
    await text.press('Enter');
    await text.pressSequentially('h');
    await page.getByRole('option', { name: /^hold/ }).waitFor();
    await text.press('Tab');
    expect(await text.inputValue()).toMatch(/\n {4}drift: hold$/);
    await text.press('Enter');

    // A mistake is named with its place, and is not saved.
    await text.pressSequentially('    delimeter: tab');
    await page.getByRole('heading', { name: 'The mapping has a mistake' }).waitFor();
    // The preview of what was typed before may still be shown.
    const reason = page.locator('.result .reason', { hasText: 'delimeter' });
    await reason.waitFor();
    expect(await reason.innerText()).toMatch(/^Line \d+, column \d+: /);
    await page.getByRole('button', { name: 'Save scale' }).click();
    await page.getByRole('heading', { name: 'Not saved' }).waitFor();
    await text.fill((await text.inputValue()).replace(/ {4}delimeter: tab$/, ''));
    await page.getByRole('heading', { name: 'Weighed weighing-7' }).waitFor();

    await page.getByRole('button', { name: 'Add a test' }).click();
    await page.getByRole('heading', { name: 'The test of weighing-7.csv passes' }).waitFor();
    await page.getByRole('button', { name: 'Save scale' }).click();
    await page.getByRole('heading', { name: 'Saved', exact: true }).waitFor();
    const saved = join(site.folder, 'instruments.d');
    expect(readFileSync(join(saved, 'scale.yaml'), 'utf8')).toContain('drift: hold');
    expect(readFileSync(join(saved, 'samples', 'scale', 'weighing-7.csv'), 'utf8')).toBe(weighing(7));

    // Used at once.
    site.drop('w8.csv', weighing(8), 'scale');
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.locator('.card', { hasText: 'scale' }).locator('.last .chip.done').waitFor();
    expect(sandbox.experiments().map(({ title }) => title)).toEqual(['Weighed w8']);

    // A test that fails says so, and opening the instrument again shows what was saved.
    await page.getByRole('link', { name: 'Try a file' }).click();
    await text.fill((await text.inputValue()).replace('title: "Weighed weighing-7"', 'title: "Other"'));
    await page.getByRole('heading', { name: 'The test of weighing-7.csv fails' }).waitFor();
    expect(troubles).toEqual([]);
  },
);

inBrowser('without `edit`, mappings can be copied but not saved', SLOW, async () => {
  const { url } = await openLab();
  const { page } = await visit(`${url}#/try`);
  await page.selectOption('#sample-instrument', 'learn');
  await page.setInputFiles('#sample', { name: 'w.csv', mimeType: 'text/csv', buffer: Buffer.from(weighing(7)) });
  await page.getByRole('button', { name: 'Copy mapping' }).waitFor();
  expect(await page.getByRole('button', { name: 'Edit and save…' }).count()).toBe(0);
  await page.getByRole('link', { name: 'Overview' }).click();
  expect(await page.getByRole('link', { name: 'Add an instrument' }).count()).toBe(0);
});
