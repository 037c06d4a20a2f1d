import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { inBrowser, openLab, SLOW, useBrowser } from '../support/browser.js';
import { startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { manyInstruments, someFolder, someMember } from '../support/page-states.js';
import { serve, someLive, TOKEN } from '../support/status-server.js';

const visit = useBrowser();

inBrowser('a configuration error is shown with its line, also when it made a reload fail', SLOW, async () => {
  const { site, daemon, url } = await openLab(
    '  balance: { watch: data/balance, ready: { quiet: 150ms } }\n  hplc: { watch: data/hplc, delimeter: tab }',
  );
  const { page, troubles } = await visit(url);
  await page.getByRole('heading', { level: 1, name: 'hplc is stopped by a configuration error' }).waitFor();
  const mistake = page.locator('.problems li');
  expect(await mistake.locator('code').innerText()).toMatch(/labfeed\.yaml:\d+:\d+$/);
  expect(await mistake.innerText()).toContain('delimeter');
  // Other instruments keep running.
  site.drop('w1.csv', weighing(1));
  await page.locator('.card', { hasText: 'balance' }).locator('.chip.done').waitFor();

  appendFileSync(site.config, 'alarmz: {}\n');
  daemon.child.kill('SIGHUP');
  await page.getByRole('heading', { name: 'New configuration rejected; the previous one stays in effect' }).waitFor();
  await page.locator('.problems li', { hasText: 'alarmz' }).getByText('What to do').waitFor();
  expect(troubles).toEqual([]);
});

inBrowser('the page of any member shows the machines of the fleet, their folders and their alarms', SLOW, async () => {
  const seenAt = Date.now();
  const here = { seenAt, isAway: false, skewMs: 0, waiting: 0, failures: 0, alarms: [], folders: [] };
  const members = [
    someMember('pc1', here),
    someMember('pc2', {
      seenAt: seenAt - 7_200_000,
      alarms: [{ kind: 'folder', instrument: 'balance', text: 'balance: the folder /srv/balance is missing' }],
      folders: [someFolder('balance', { state: 'missing', reason: 'ENOENT', runs: null })],
    }),
    someMember('pc3', { ...here, folders: [someFolder('balance', { lastFileAt: seenAt, asked: 60 })] }),
    someMember('server', { ...here, role: 'deliver', leads: true }),
  ];
  const fleet = { name: 'pc1', delivers: false, trouble: undefined, kept: 0, members };
  const { url } = await serve({ live: () => someLive({ fleet }) });
  const { page, troubles } = await visit(url);
  const rows = page.locator('#machines tbody tr');
  await rows.first().waitFor();
  const texts = await rows.allInnerTexts();
  expect(texts).toHaveLength(4);
  expect(texts[0]).toMatch(/^pc1 \(watches\)\s+pc1\s+last seen just now, clock correct/);
  expect(texts[1]).toContain('away, last seen 2 hours ago, its clock is 90 seconds ahead');
  expect(texts[1]).toContain('as last reported; balance: /srv/balance is missing (ENOENT)');
  expect(texts[1]).toContain('2 operations waiting, 1 operation set aside');
  expect(texts[1]).toContain(
    'its version does not report silence, runs and backlogs; balance: the folder /srv/balance',
  );
  expect(texts[3]).toContain('server (delivers)');
  // An instrument that this machine does not have has a card, with each machine that has it.
  const card = page.locator('.card', { hasText: 'balance' });
  const words = await card.innerText();
  expect(words).toContain('watching on 1 of 2 machines');
  expect(words).toContain('pc2: away, last seen 2 hours ago; it last reported: /srv/balance is missing (ENOENT)');
  expect(words).toContain('pc3: /srv/balance, last file just now, 60 existing files need a decision');
  expect(words).not.toContain('no longer');
  await page.getByText('60 existing files of balance on pc3').waitFor();
  await page.getByText('1 of 4 machines is away: pc2').waitFor();
  expect(troubles).toEqual([]);
});

inBrowser(
  'without a connection the page says that it is outdated, and it recovers without a reload',
  SLOW,
  async () => {
    const { site, daemon, url } = await openLab();
    const { page } = await visit(url);
    site.drop('odd.csv', 'neither a table\nnor, anything; else\n');
    await page.getByRole('heading', { level: 1, name: '1 run needs a decision' }).waitFor();
    await daemon.kill();
    await page.getByText('No connection to labfeed').waitFor();
    expect(await page.locator('#health').getAttribute('data-stale')).toBe('true');

    writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('127.0.0.1:0', new URL(url).host));
    startDaemon(site.config);
    await page.locator('[data-connection="live"]').waitFor();
    await page.locator('#health[data-stale="false"]').waitFor();
    // The restart changed the token, but decisions still work.
    await page.getByRole('button', { name: 'Read the file again' }).click();
    await page.locator('.outcome.done').waitFor();
  },
);

inBrowser('while delivery is halted, the page says so and what to do, until recover has run', SLOW, async () => {
  const { site, sandbox, daemon, url } = await openLab();
  const { page, troubles } = await visit(url);
  site.drop('w1.csv', weighing(1));
  await page.getByRole('heading', { level: 1, name: 'All good: 1 run filed, none waiting' }).waitFor();
  // The notebook is replaced by an empty one, in which a colleague works.
  sandbox.control.as('owner').delete(1);
  sandbox.control.skipIds(-1);
  sandbox.control.as('colleague').create({ title: 'their work' });
  expect(await daemon.stop()).toBe(0);
  writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('127.0.0.1:0', new URL(url).host));
  const halted = startDaemon(site.config);
  site.drop('w2.csv', weighing(2));
  await page
    .getByRole('heading', { level: 1, name: /^Sending is halted until you run labfeed recover: .*restored/ })
    .waitFor();
  await page.getByText('Nothing is sent to the notebook.').waitFor();
  await page.getByText('New files are still read and queued. Run labfeed recover.').waitFor();
  expect(await page.locator('#health').getAttribute('data-tone')).toBe('error');

  expect(await halted.stop()).toBe(0);
  expect(await labfeed(['recover', '--config', site.config])).toMatchObject({ status: 0 });
  startDaemon(site.config);
  // The lost run needs a decision, the new one does not.
  await page.getByRole('heading', { level: 1, name: '1 run needs a decision' }).waitFor();
  await page.locator('.chip.done').waitFor();
  expect(troubles.filter((trouble) => !trouble.includes('ERR_CONNECTION_REFUSED'))).toEqual([]);
});

inBrowser('without a login only the form is shown, and with the right token the page', SLOW, async () => {
  const { url } = await serve({}, { token: TOKEN });
  const { page } = await visit(url);
  await page.getByLabel('Token').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByText('Wrong token.').waitFor();
  expect(await page.locator('#health').count()).toBe(0);
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'No instruments configured yet' }).waitFor();
});

inBrowser('of fifty instruments only the changed one is updated', SLOW, async () => {
  const { live, overview } = manyInstruments(50);
  let done = 10;
  let added = 0;
  const { url } = await serve({
    live: () => live,
    overview: async () => {
      done += added;
      const instruments = overview.instruments.map((one, n) =>
        n === 3 ? { ...one, runs: { ...one.runs, done } } : one,
      );
      return { ...overview, instruments };
    },
  });
  const { page, troubles } = await visit(url);
  await page.getByRole('button', { name: 'Compact view' }).click();
  await page.locator('.card').nth(49).waitFor();
  const touched = page.evaluate(
    () =>
      new Promise<string[]>((resolve) => {
        const observer = new MutationObserver((records) => {
          const elements = records.map(({ target }) => (target instanceof Element ? target : target.parentElement));
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
  // With every state from now on, because the page may begin to observe late.
  added = 1;
  expect(await touched).toEqual(['instrument-3']);
  expect(troubles).toEqual([]);
});
