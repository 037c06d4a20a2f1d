import { expect } from 'vitest';
import type { JobsQuery } from '../../src/status/api.js';
import { inBrowser, openLab, SLOW, useBrowser } from '../support/browser.js';
import { weighing } from '../support/daemon-process.js';
import { manyInstruments, someSummary } from '../support/page-states.js';
import { NO_RUNS, serve, someDetail, someInstrument, someJob, someLive, TOKEN } from '../support/status-server.js';

const visit = useBrowser();

inBrowser('somebody finds a run by its file name, and opens the experiment in the notebook', SLOW, async () => {
  const { site, url } = await openLab();
  site.drop('w1.csv', weighing(1));
  site.drop('odd.csv', 'neither a table\nnor, anything; else\n');
  const { page, troubles } = await visit(url);
  await page.locator('.card .counts').getByText('1 done').waitFor();
  await page.locator('.card .counts').getByText('1 quarantined').waitFor();
  const search = page.getByRole('searchbox', { name: 'Search runs' });
  await search.fill('W1.CSV balance');
  await search.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Runs that match “W1.CSV balance”' }).waitFor();
  await page.getByText('1 run', { exact: true }).waitFor();
  const row = page.locator('.rows .row');
  expect(await row.innerText()).toMatch(/done\s+w1 \(balance\)\s+w1\.csv\s+balance\s+Experiment \d+/);
  const [, experiment] = /Experiment (\d+)/.exec(await row.innerText()) ?? [];
  // The filters apply to what was found.
  await page.selectOption('#runs-state', 'quarantined');
  await page.getByText('No quarantined runs').waitFor();
  await search.fill('odd');
  await search.press('Enter');
  await page.getByText('1 quarantined run').waitFor();
  // The reason is in the list.
  expect(await row.locator('.why').innerText()).toMatch(/\w+/);
  await page.getByRole('link', { name: 'Show all runs' }).click();
  await page.selectOption('#runs-state', 'done');
  await page.getByText('1 done run').waitFor();
  const [notebook] = await Promise.all([
    page.context().waitForEvent('page'),
    row.getByRole('link', { name: `Experiment ${experiment}` }).click(),
  ]);
  await notebook.waitForURL(`**/view/${experiment}`);
  await notebook.getByRole('heading', { name: 'w1 (balance)' }).waitFor();
  // The rest of the row opens the run.
  await row.click({ position: { x: 5, y: 5 } });
  await page.getByRole('heading', { level: 1, name: 'w1 (balance)' }).waitFor();
  expect(troubles).toEqual([]);
});

inBrowser('a search that could not look at all runs says so, and goes on from there', SLOW, async () => {
  const asked: JobsQuery[] = [];
  const { url } = await serve({
    search: async (query) => {
      asked.push(query);
      return query.before === undefined ? { jobs: [], searchedTo: 700_001 } : { jobs: [someJob(7)] };
    },
  });
  const { page } = await visit(`${url}#/runs?search=caffeine`);
  await page.getByText('Only runs 700,001 and newer were searched').waitFor();
  await page.getByRole('link', { name: 'Search older runs' }).click();
  await page.locator('.row', { hasText: '7.csv' }).waitFor();
  expect(asked.map(({ search, before }) => [search, before])).toEqual([
    ['caffeine', undefined],
    ['caffeine', 700_001],
  ]);
});

inBrowser('a search also finds files that are no runs of their own, and says what happened to each', SLOW, async () => {
  const path = (name: string) => `/srv/balance/${name}`;
  const file = { instrument: 'balance', verdict: 'taken', isOwn: false } as const;
  const { url } = await serve({
    search: async () => ({
      jobs: [someJob(7, { title: 'Weighing' })],
      searchedTo: 5,
      files: [
        { ...file, path: path('copy.csv'), run: someJob(7, { title: 'Weighing' }) },
        { ...file, path: path('old.csv'), verdict: 'skipped' },
        { ...file, path: path('older.csv'), verdict: 'asked' },
        { ...file, path: path('2.csv'), isOwn: true, run: someJob(2, { title: 'An old run' }) },
      ],
      hasMoreFiles: true,
    }),
  });
  const { page, troubles } = await visit(`${url}#/runs?search=csv`);
  await page.getByText('1 run and 4 other files. Only runs 5 and newer were searched. There may be more').waitFor();
  const rows = await page.locator('.row').allInnerTexts();
  expect(rows[1]).toMatch(/copy\s+copy\.csv\s+Its content is in run 7 \(done\): Weighing\s+balance/);
  expect(rows[2]).toMatch(/skipped\s+old\.csv\s+labfeed skipped it\. To find out why, run labfeed why FILE/);
  expect(rows[3]).toMatch(/backlog\s+older\.csv\s+It was in the folder before the first scan: decide/);
  expect(rows[4]).toMatch(/done\s+An old run\s+2\.csv/);
  expect(troubles).toEqual([]);
});

inBrowser.each([
  ['ignored', 'no', 'Draft, not filed'],
  ['quarantined', 'not yet', 'Draft, not filed'],
  ['queued', 'not yet', 'To be sent to the notebook'],
  ['done', 'not yet', 'Sent to the notebook'],
] as const)(
  'the page of a run that is %s does not promise more than labfeed does',
  SLOW,
  async (state, filed, heading) => {
    const { url } = await serve({ job: async (id) => ({ ...someDetail(id, '<p>x</p>'), state }) });
    const { page } = await visit(`${url}#/runs/7`);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    expect(await page.locator('.facts').first().innerText()).toContain(`In the notebook\n${filed}\n`);
  },
);

inBrowser('on eLabFTW, links open the page of the experiment', SLOW, async () => {
  const server = 'https://eln.example.org';
  const job = someJob(7, { title: 'Caffeine', server, experiment: 4711 });
  const { url } = await serve({ jobs: async () => [job] });
  const { page } = await visit(`${url}#/runs`);
  const link = page.getByRole('link', { name: 'Experiment 4711' });
  expect(await link.getAttribute('href')).toBe(`${server}/experiments.php?mode=view&id=4711`);
  expect(await link.getAttribute('target')).toBe('_blank');
});

inBrowser('a file that cannot be read is never called not ready, on its card or in a search', SLOW, async () => {
  const reason = 'permission denied';
  const locked = Array.from({ length: 20 }, (_, n) => ({ path: `/srv/balance/${n + 10}.csv`, since: 1, reason }));
  const { url } = await serve({
    live: () =>
      someLive({
        instruments: [
          someInstrument('balance', {
            waiting: { files: 30, first: locked, unreadable: 30 },
            unreadable: { files: 30, first: locked },
          }),
        ],
      }),
  });
  const { page } = await visit(url);
  const card = page.locator('.card');
  await card.getByText('30 files or folders cannot be read').waitFor();
  expect(await card.innerText()).not.toContain('not ready');
  await page.goto(`${url}#/runs?search=17.csv`);
  const row = page.locator('.row');
  expect(await row.innerText()).toMatch(/unreadable\s+17\.csv\s+Permission denied\.\s+balance/);
  await page.getByText('1 file that cannot be read', { exact: true }).waitFor();
});

inBrowser('while the notebook is away, nothing is called sending', SLOW, async () => {
  const job = someJob(7, { state: 'sending', step: 'created' });
  const { url } = await serve({
    live: () =>
      someLive({
        instruments: [someInstrument('balance')],
        notebook: {
          url: 'https://eln.example.org',
          gate: { kind: 'down', since: 1, probeAt: 1, failure: 'server', reason: 'no answer' },
          requests: [],
        },
      }),
    overview: async () => ({
      instruments: [someSummary('balance', { runs: { ...NO_RUNS, sending: 2 }, last: job })],
      servers: [],
    }),
    jobs: async () => [job],
  });
  const { page } = await visit(url);
  const card = page.locator('.card');
  await card.getByRole('link', { name: '2 waiting for the notebook' }).waitFor();
  expect(await card.innerText()).not.toContain('sending');
  await page.goto(`${url}#/runs`);
  await page.locator('.row .chip', { hasText: 'waiting for the notebook' }).waitFor();
  expect(await page.locator('.rows').innerText()).not.toContain('sending');
});

inBrowser('twenty instruments fit on the screen of a laptop, and cards are one click away', SLOW, async () => {
  const { live, overview } = manyInstruments(20);
  const { url } = await serve({ live: () => live, overview: async () => overview });
  const { page, troubles } = await visit(url, { viewport: { width: 1366, height: 650 } });
  await page.locator('.line').nth(19).waitFor();
  const bottoms = await page
    .locator('.line')
    .evaluateAll((lines) => lines.map((line) => line.getBoundingClientRect().bottom));
  expect(Math.max(...bottoms)).toBeLessThan(650);
  await page.getByRole('link', { name: 'Run of instrument-7' }).waitFor();
  await page.getByRole('button', { name: 'Compact view', pressed: true }).click();
  await page.locator('.card').nth(19).waitFor();
  // The browser remembers it.
  await page.reload();
  await page.locator('.card').nth(19).waitFor();
  await page.getByRole('button', { name: 'Compact view', pressed: false }).click();
  await page.locator('.line').nth(19).waitFor();
  expect(troubles).toEqual([]);
});

inBrowser('who logs in with the read token sees everything, and no button to decide', SLOW, async () => {
  const readToken = 'for-looking-only-0123456789';
  const job = someJob(7, { state: 'quarantined', step: 'pending', failure: 'file', reason: 'no table' });
  const { url } = await serve(
    {
      overview: async () => ({
        instruments: [someSummary('balance', { runs: { ...NO_RUNS, quarantined: 1 }, asked: 60 })],
        servers: [],
      }),
      jobs: async ({ state }) => (state === 'held' ? [] : [job]),
    },
    { token: TOKEN, readToken },
  );
  const { page } = await visit(url);
  const logIn = async (token: string) => {
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await page.locator('#attention-list').getByText('No table').waitFor();
  };
  await logIn(readToken);
  await page.getByText('You can read this page but not decide.').waitFor();
  expect(await page.locator('#attention-list button').count()).toBe(0);
  await page.getByRole('link', { name: 'log in with the token' }).click();
  await logIn(TOKEN);
  await page.getByRole('button', { name: 'Read the file again' }).waitFor();
  expect(await page.getByText('You can read this page but not decide.').count()).toBe(0);
});
