import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { inBrowser, openLab, SLOW, useBrowser } from '../support/browser.js';
import { hostile } from '../support/page-states.js';
import { type Serving, serve } from '../support/status-server.js';

const visit = useBrowser();

/** Closes the element or attribute that contains it, then tries several ways to run. */
const ATTACK = `a"'></title></textarea></script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>`;

/** None of it became an element or an attribute. */
async function expectOnlyText(page: Page): Promise<void> {
  expect(await page.locator('body img, body svg:not(.plot > svg), body script').count()).toBe(0);
  expect(await page.locator('[onerror], [onload], a[href^="javascript:" i]').count()).toBe(0);
}

inBrowser('text in the fields of runs, instruments and errors never becomes markup', SLOW, async () => {
  const { live, overview, jobs, job } = hostile(ATTACK);
  const serving = await serve({
    live: () => live,
    overview: async () => overview,
    jobs: async ({ state }) => (state === 'held' ? [] : jobs),
    job: async () => job,
    decide: async () => ({ done: false, text: ATTACK }),
    preview: async () => ({ ok: false, reason: ATTACK, mapping: ATTACK, doubts: [ATTACK] }),
  });
  const { page, troubles } = await visit(serving.url);
  await page.locator('.card').waitFor();
  await page.getByRole('button', { name: 'Read and send it again' }).click();
  await page.locator('.outcome').waitFor();
  await page.getByRole('button', { name: 'File all' }).click();
  await page.getByRole('dialog').waitFor();
  await expectOnlyText(page);
  await page.keyboard.press('Escape');

  await page.goto(`${serving.url}#/runs`);
  await page.locator('.row').first().waitFor();
  await expectOnlyText(page);
  await page.goto(`${serving.url}#/runs/1`);
  await page.locator('.comment pre').getByText('alert(1)').waitFor();
  await expectOnlyText(page);
  await page.goto(`${serving.url}#/try`);
  await page.setInputFiles('#sample', { name: ATTACK, mimeType: 'text/csv', buffer: Buffer.from(ATTACK) });
  await page.getByRole('button', { name: 'Copy mapping' }).waitFor();
  await expectOnlyText(page);
  expect(troubles).toEqual([]);
});

/** A valid file name. */
const NAME = '<img src=x onerror=alert(4)>';

inBrowser('the content and name of a hostile file are filed and shown as text', SLOW, async () => {
  const instruments = [
    '  lab:',
    '    watch: data/lab',
    '    ready: { quiet: 150ms }',
    '    parse: { delimiter: tab, meta: { until: blank, separator: tab }, table: { after: blank, units: nextRow } }',
    '    experiment: { title: "{{ meta.Sample }}", tags: ["{{ meta.Sample }}"] }',
  ].join('\n');
  const content = `Sample\t${ATTACK}\n${NAME}\t${ATTACK}\n\n${NAME}\tB\n${NAME}\tm\n${ATTACK}\t1\n`;
  const { site, url } = await openLab(instruments);
  const { page, troubles } = await visit(url);
  site.drop(`${NAME}.tsv`, content, 'lab');
  site.drop(`${NAME} bad.tsv`, 'nothing of that kind', 'lab');
  await page.locator('.card .counts .done').waitFor();
  await page.locator('#attention-list .reason').waitFor();
  await expectOnlyText(page);

  await page.goto(`${url}#/runs?state=done`);
  await page.locator('.row .name').click();
  const body = page.frameLocator('iframe.body');
  await body.getByText('alert(3)').first().waitFor();
  expect(await body.locator('img, svg, script').count()).toBe(0);
  await expectOnlyText(page);

  await page.goto(`${url}#/try`);
  await page.selectOption('#sample-instrument', '=lab');
  const sample = { name: `${NAME}.tsv`, mimeType: 'text/plain', buffer: Buffer.from(content) };
  await page.setInputFiles('#sample', sample);
  await page.locator('.result pre').getByText('instruments:').waitFor();
  await expectOnlyText(page);
  await page.selectOption('#sample-instrument', 'learn');
  await page.locator('.result pre').getByText('Learned from').waitFor();
  await expectOnlyText(page);
  expect(troubles).toEqual([]);
});

inBrowser('a body with scripts, forms and images runs nothing and loads nothing', SLOW, async () => {
  const spy = await otherSite();
  const body = `<script>top.document.title='taken'</script><img src="${spy.url}picture" onerror="alert(5)"><form action="/api/decide" method="post"><button>Go</button></form><a href="${spy.url}" target="_top">away</a><meta http-equiv="refresh" content="0;url=${spy.url}">`;
  const { job } = hostile('quiet');
  const asked: unknown[] = [];
  const serving = await serve({
    job: async () => ({ ...job, draft: { title: 't', date: 'd', tags: [], body } }),
    decide: async (request) => {
      asked.push(request);
      return { done: true, text: '' };
    },
    preview: async () => ({
      ok: true,
      instrument: 'i',
      mapping: '',
      plot: {
        svg: '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        description: '<script>alert(1)</script>',
      },
      omits: [],
      tests: [],
      doubts: [],
      tables: [],
      meta: [],
      draft: { title: 't', date: 'd', dateFrom: 'x', tags: [], comments: [], body },
    }),
  });
  const { page, troubles } = await visit(`${serving.url}#/runs/1`);
  const tryIt = async () => {
    const frame = page.frameLocator('iframe.body:visible');
    await frame.getByRole('button', { name: 'Go' }).click();
    await frame.getByRole('link', { name: 'away' }).click();
    await page.waitForTimeout(300);
  };
  await tryIt();
  await page.goto(`${serving.url}#/try`);
  await page.setInputFiles('#sample', { name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from('a') });
  await page.getByRole('heading', { name: 'Preview of a.csv' }).waitFor();
  await tryIt();
  expect(await page.title()).toBe('labfeed');
  expect(page.url()).toBe(`${serving.url}#/try`);
  expect(asked).toEqual([]);
  // The console reports what the browser blocked; nothing ran and nothing was requested.
  expect(spy.asked).toEqual([]);
  expect(troubles.filter((trouble) => /^(dialog|exception)/.test(trouble))).toEqual([]);
});

/** Another site, on another port of this machine, with the paths requested from it. */
async function otherSite(html = ''): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.setHeader('content-type', 'text/html');
    response.end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked };
}

const formFor = ({ url }: Serving): string =>
  `<form method="post" action="${url}api/decide" enctype="text/plain"><input name='{"kind":"retry","run":1,"x":"' value='"}'><button>Win a prize</button></form>`;

inBrowser('another site cannot make decisions, read the state or show the page in a frame', SLOW, async () => {
  const asked: unknown[] = [];
  const decide = async (request: unknown) => {
    asked.push(request);
    return { done: true, text: 'done' };
  };
  const serving = await serve({ decide });
  const other = await otherSite(formFor(serving));
  const { page } = await visit(other.url);
  const results = await page.evaluate(async (url) => {
    const body = JSON.stringify({ kind: 'retry', run: 1 });
    const send = (init: RequestInit) =>
      fetch(`${url}api/decide`, { method: 'POST', body, credentials: 'include', ...init }).then(
        ({ type, status }) => `${type} ${status}`,
        () => 'refused',
      );
    const frame = document.body.appendChild(document.createElement('iframe'));
    frame.src = url;
    await new Promise((resolve) => frame.addEventListener('load', resolve));
    return {
      simple: await send({ mode: 'no-cors', headers: { 'content-type': 'text/plain' } }),
      json: await send({ headers: { 'content-type': 'application/json' } }),
      withHeader: await send({ headers: { 'x-labfeed-token': 'guess' } }),
      read: await fetch(`${url}api/state`).then(
        () => 'read',
        () => 'refused',
      ),
    };
  }, serving.url);
  expect(results).toEqual({ simple: 'refused', json: 'refused', withHeader: 'refused', read: 'refused' });
  const frame = page.frames().find((candidate) => candidate.parentFrame() !== null);
  expect(await frame?.locator('#health').count()).toBe(0);
  await page.getByRole('button', { name: 'Win a prize' }).click();
  await page.waitForURL(`${serving.url}api/decide`);
  expect(await page.locator('body').innerText()).toContain('another site');
  expect(asked).toEqual([]);
});
