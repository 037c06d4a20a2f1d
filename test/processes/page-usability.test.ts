import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Preview } from '../../src/status/api.js';
import { inBrowser, SLOW, useBrowser } from '../support/browser.js';
import { hostile, someSummary } from '../support/page-states.js';
import { NO_RUNS, serve, someInstrument, someJob, someLive } from '../support/status-server.js';

const visit = useBrowser();

const PHONE = { viewport: { width: 360, height: 740 } };

/** Long words without spaces make pages too wide. */
const crowded = () => hostile(`a-${'very'.repeat(30)}-long-name`);

const serveCrowded = () => {
  const { live, overview, jobs, job } = crowded();
  return serve({
    live: () => live,
    overview: async () => overview,
    jobs: async ({ state }) => (state === 'held' ? [] : jobs),
    job: async () => job,
  });
};

const overflow = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const VIEWS = ['#/', '#/runs', '#/runs/1', '#/try'];

inBrowser('on a phone, and with letters twice as large, no view scrolls sideways', SLOW, async () => {
  const { url } = await serveCrowded();
  const { page, troubles } = await visit(url, PHONE);
  await page.locator('.card').waitFor();
  for (const view of VIEWS) {
    await page.goto(url + view);
    await page.locator('h1:visible').first().waitFor();
    expect([view, await overflow(page)]).toEqual([view, 0]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.evaluate(() => document.documentElement.style.setProperty('font-size', '200%'));
  for (const view of VIEWS) {
    await page.goto(url + view);
    await page.locator('h1:visible').first().waitFor();
    expect([view, await overflow(page)]).toEqual([view, 0]);
  }
  expect(troubles).toEqual([]);
});

/** The contrast ratio of WCAG, from the colours that the browser computed. */
const contrast = (page: Page, selector: string): Promise<number> =>
  page
    .locator(selector)
    .first()
    .evaluate((element) => {
      const channels = (colour: string) => (colour.match(/[\d.]+/g) ?? []).map(Number);
      const light = (colour: string) => {
        const [r = 0, g = 0, b = 0] = channels(colour).map((value) =>
          value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
        );
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      let behind: Element | null = element;
      while (behind && channels(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
      const pair = [
        light(getComputedStyle(element).color),
        light(getComputedStyle(behind ?? document.body).backgroundColor),
      ];
      return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    });

inBrowser('text has enough contrast with its background, in light and dark mode', SLOW, async () => {
  const { url } = await serveCrowded();
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page } = await visit(url, { colorScheme });
    await page.locator('.card').waitFor();
    const behind = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect([colorScheme, Number(/\d+/.exec(behind)?.[0]) > 128]).toEqual([colorScheme, colorScheme === 'light']);
    for (const selector of ['h1', '.soft', '.chip', '.primary', '.reason p', '.alarm', '.condition', '.foot', '.tally'])
      expect([selector, (await contrast(page, selector)) >= 4.5]).toEqual([selector, true]);
  }
});

inBrowser('everything works with the keyboard alone', SLOW, async () => {
  const asked: unknown[] = [];
  const job = someJob(7, { state: 'held', step: 'creating', failure: 'conflict', reason: 'two experiments match' });
  const { url } = await serve({
    live: () => someLive({ instruments: [someInstrument('balance')] }),
    overview: async () => ({
      instruments: [someSummary('balance', { runs: { ...NO_RUNS, held: 1 } })],
      servers: [],
    }),
    jobs: async ({ state }) => (state === 'held' ? [job] : []),
    decide: async (request) => {
      asked.push(request);
      return { done: true, text: 'it has experiment 12 now' };
    },
  });
  const { page } = await visit(url);
  await page.getByRole('button', { name: 'Use an existing experiment' }).waitFor();
  const focused = () =>
    page.evaluate(() => {
      const { activeElement } = document;
      return activeElement instanceof HTMLInputElement ? activeElement.id : (activeElement?.textContent ?? '');
    });
  const tabTo = async (wanted: string) => {
    const passed: string[] = [];
    while (passed.at(-1) !== wanted && passed.length < 40) {
      await page.keyboard.press('Tab');
      passed.push(await focused());
    }
    expect(passed.at(-1)).toBe(wanted);
  };
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Skip to content');
  await tabTo('Use an existing experiment…');
  const outline = await page.locator(':focus').evaluate((element) => getComputedStyle(element).outlineStyle);
  expect(outline).toBe('solid');
  await page.keyboard.press('Enter');
  await page.locator('#dialog-field:focus').waitFor();
  await page.keyboard.type('12');
  await page.keyboard.press('Enter');
  await page.locator('.outcome').getByText('it has experiment 12 now').waitFor();
  expect(asked).toEqual([{ kind: 'adopt', run: 7, experiment: 12 }]);
  await page.locator('.brand').focus();
  await tabTo('Try a file');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Try a file' }).waitFor();
  await tabTo('sample');
});

inBrowser('a filter keeps the focus, a new page of runs moves it, and the skip link keeps the view', SLOW, async () => {
  const { url } = await serve({
    jobs: async ({ before = 1000, limit }) => Array.from({ length: limit }, (_, n) => someJob(before - 1 - n)),
  });
  const { page } = await visit(`${url}#/runs`);
  await page.getByText('The newest 50 runs').waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.tagName);
  await page.locator('#runs-state').focus();
  await page.selectOption('#runs-state', 'done');
  await page.getByText('The newest 50 done runs').waitFor();
  expect(await focused()).toBe('runs-state');

  await page.getByRole('link', { name: 'Older runs' }).click();
  await page.getByText('The newest 50 done runs, older than run 950').waitFor();
  expect(page.url()).toBe(`${url}#/runs?state=done&before=950`);
  await expect.poll(focused, { timeout: 30_000 }).toBe('H1');

  await page.locator('.skip').focus();
  await page.keyboard.press('Enter');
  await expect.poll(focused, { timeout: 30_000 }).toBe('main');
  await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
  await page.getByText('The newest 50 done runs, older than run 950').waitFor();
});

const MADE: Preview = {
  ok: true,
  instrument: 'nanodrop',
  draft: {
    title: 'λ DNA on nanodrop',
    date: '2026-03-04',
    dateFrom: 'from the fact "date"',
    tags: ['dna'],
    body: '<p>The body</p>',
    comments: ['The comment'],
  },
  mapping: 'instruments:\n  nanodrop: {}\n',
  plot: { reason: 'the table has fewer than two rows' },
  omits: ['not read: lines 4–5'],
  tests: [],
  doubts: ['it was learnt from one file'],
  tables: [{ name: 'readings', columns: [{ name: 'A260', unit: 'AU' }], rows: [['1.230']], count: 96 }],
  meta: [{ name: 'Path length', text: '10 mm', unit: 'mm' }],
};

inBrowser('a dropped file shows the experiment it would become, and its mapping can be copied', SLOW, async () => {
  const seen: unknown[] = [];
  const { url } = await serve({
    live: () => someLive({ instruments: [someInstrument('nanodrop')] }),
    preview: async ({ name, content, instrument, learn }) => {
      seen.push({ name, instrument, learn, text: Buffer.from(content).toString() });
      return learn ? { ok: false, reason: 'run-17.tsv:2:1: two dates\n  → say which' } : MADE;
    },
  });
  const { page, troubles } = await visit(`${url}#/try`, {
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  await page.locator('#sample-instrument option', { hasText: 'nanodrop' }).waitFor({ state: 'attached' });
  const files = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['A260\n1.230\n'], 'run-17.tsv'));
    return transfer;
  });
  // Anywhere on the page, in whatever view.
  await page.goto(`${url}#/runs`);
  await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
  await page.locator('h1:visible').dispatchEvent('dragover', { dataTransfer: files });
  await page.getByText('Drop the file to see the experiment it would become').waitFor();
  await page.locator('h1:visible').dispatchEvent('drop', { dataTransfer: files });
  await page.getByRole('heading', { level: 1, name: 'Try a file' }).waitFor();
  expect(await page.getByText('Drop the file to see').count()).toBe(0);
  await page.getByRole('heading', { name: 'Preview of run-17.tsv' }).waitFor();
  await page.frameLocator('iframe.body').getByText('The body').waitFor();
  const result = await page.locator('.result').innerText();
  for (const text of [
    'λ DNA on nanodrop',
    '2026-03-04 (from the fact "date")',
    'dna',
    'The comment',
    'not read: lines 4–5',
    '96 rows, first 1 shown',
    'A260 (AU)',
    '10 mm',
    'learnt from one file',
  ])
    expect(result).toContain(text);
  // Screen readers announce the outcome, not all of the preview.
  const announced = page.locator('.result').locator('[aria-live], [role="status"]');
  expect((await announced.allInnerTexts()).filter(Boolean)).toEqual(['Preview of run-17.tsv']);
  expect(await page.locator('[aria-live] .result').count()).toBe(0);
  await page.getByRole('button', { name: 'Copy mapping' }).click();
  await page.getByText('Copied').waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('instruments:\n  nanodrop: {}\n');

  await page.selectOption('#sample-instrument', 'learn');
  await page.getByRole('heading', { name: 'run-17.tsv would not be filed' }).waitFor();
  expect(await page.locator('.reason').innerText()).toMatch(/Line 2, column 1: two dates\.\s+What to do: say which/);
  expect(seen).toEqual([
    { name: 'run-17.tsv', text: 'A260\n1.230\n' },
    { name: 'run-17.tsv', text: 'A260\n1.230\n', learn: true },
  ]);
  expect(troubles).toEqual([]);
});
