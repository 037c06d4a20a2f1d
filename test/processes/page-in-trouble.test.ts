import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { inBrowser, openLab, SLOW, useBrowser } from '../status/page/browser.js';
import { manyInstruments } from '../status/page/states.js';
import { serve, TOKEN } from '../status/serving.js';
import { startDaemon, weighing } from '../support/daemon-process.js';

const visit = useBrowser();

inBrowser(
  'a mistake in the configuration is shown with its line, also when a reload was refused for it',
  SLOW,
  async () => {
    const { site, daemon, url } = await openLab(
      '  balance: { watch: data/balance, ready: { quiet: 150ms } }\n  hplc: { watch: data/hplc, delimeter: tab }',
    );
    const { page, troubles } = await visit(url);
    await page
      .getByRole('heading', { level: 1, name: 'hplc is stopped by a mistake in the configuration' })
      .waitFor();
    const mistake = page.locator('.problems li');
    expect(await mistake.locator('code').innerText()).toMatch(/labfeed\.yaml:\d+:\d+$/);
    expect(await mistake.innerText()).toContain('delimeter');
    // The others run.
    site.drop('w1.csv', weighing(1));
    await page.locator('.card', { hasText: 'balance' }).locator('.chip.done').waitFor();

    appendFileSync(site.config, 'alarmz: {}\n');
    daemon.child.kill('SIGHUP');
    await page
      .getByRole('heading', { name: 'A new configuration was refused; the old one goes on' })
      .waitFor();
    await page.locator('.problems li', { hasText: 'alarmz' }).getByText('What to do').waitFor();
    expect(troubles).toEqual([]);
  },
);

inBrowser(
  'while labfeed is away the page says that what it shows is old, and goes on by itself',
  SLOW,
  async () => {
    const { site, daemon, url } = await openLab();
    const { page } = await visit(url);
    site.drop('odd.csv', 'neither a table\nnor, anything; else\n');
    await page.getByRole('heading', { level: 1, name: '1 run needs you' }).waitFor();
    await daemon.kill();
    await page.getByText('No connection to labfeed').waitFor();
    expect(await page.locator('#health').getAttribute('data-stale')).toBe('true');

    writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('127.0.0.1:0', new URL(url).host));
    startDaemon(site.config);
    await page.locator('[data-connection="live"]').waitFor();
    await page.locator('#health[data-stale="false"]').waitFor();
    // Decisions too: those of a page of before the restart would be refused.
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.locator('.outcome.done').waitFor();
  },
);

inBrowser('who is not logged in sees only the form, and after the right token the page', SLOW, async () => {
  const { url } = await serve({}, { token: TOKEN });
  const { page } = await visit(url);
  await page.getByLabel('Token').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByText('That is not the token.').waitFor();
  expect(await page.locator('#health').count()).toBe(0);
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Ready, but no instrument is configured yet' }).waitFor();
});

inBrowser(
  'fifty instruments: what did not change is not touched, and only seen plots are drawn',
  SLOW,
  async () => {
    const { live, overview } = manyInstruments(50);
    let done = 10;
    const { url } = await serve({
      live: () => live,
      overview: async () => ({
        ...overview,
        instruments: overview.instruments.map((one, n) =>
          n === 3 ? { ...one, runs: { ...one.runs, done } } : one,
        ),
      }),
    });
    const { page, troubles } = await visit(url);
    await page.locator('.card').nth(49).waitFor();
    await page.locator('.card canvas').first().waitFor();
    expect(await page.locator('.card canvas').count()).toBeLessThan(50);
    const touched = page.evaluate(
      () =>
        new Promise<string[]>((resolve) => {
          const observer = new MutationObserver((records) => {
            const elements = records.map(({ target }) =>
              target instanceof Element ? target : target.parentElement,
            );
            const cards = elements.flatMap(
              (element) => element?.closest('.card')?.querySelector('h3')?.textContent ?? [],
            );
            if (cards.length > 0) resolve([...new Set(cards)]);
          });
          observer.observe(document.body, {
            subtree: true,
            childList: true,
            characterData: true,
            attributes: true,
          });
        }),
    );
    done = 11;
    expect(await touched).toEqual(['instrument-3']);
    expect(troubles).toEqual([]);
  },
);
