import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { inBrowser, openLab, SLOW, useBrowser } from '../support/browser.js';
import { weighing } from '../support/daemon-process.js';

const visit = useBrowser();

/** What axe finds, as one line for each rule. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations: found } = await page.evaluate<AxeResults>('axe.run()');
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

inBrowser.each(['light', 'dark'] as const)(
  'axe finds no mistake in the status page and in the built-in notebook (%s)',
  SLOW,
  async (colorScheme) => {
    const { site, url, sandbox } = await openLab();
    site.drop('w1.csv', weighing(1));
    site.drop('odd.csv', 'neither a table\nnor, anything; else\n');
    // The pages allow no scripts but their own.
    const { page } = await visit(url, { colorScheme, bypassCSP: true });
    await page.locator('.card .counts').getByText('1 done').waitFor();
    await page.locator('.card .counts').getByText('1 quarantined').waitFor();
    const pages = [url, `${url}#/runs`, `${url}#/runs/1`, `${url}#/try`, `${sandbox.url}/`];
    for (const address of pages) {
      await page.goto(address);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect([address, await violations(page)]).toEqual([address, []]);
    }
    // What is filed meanwhile appears in the list.
    site.drop('w2.csv', weighing(2));
    await page.getByRole('link', { name: /w2/ }).waitFor();
    await page.getByRole('link', { name: /w1/ }).click();
    await page.getByRole('heading', { level: 1, name: /w1/ }).waitFor();
    expect(await violations(page)).toEqual([]);
  },
);
