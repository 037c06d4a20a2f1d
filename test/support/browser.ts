import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished, test } from 'vitest';
import { loginLink, readLoginSecret } from '../../src/status/auth.js';
import { type DaemonProcess, makeSite, type Site, startDaemon } from './daemon-process.js';
import { type RunningSandbox, runSandbox } from './sandbox.js';
import { tempFolder } from './temp-folder.js';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const CHROMIUM = [process.env['LABFEED_CHROMIUM'] ?? '', ...PLACES].find((path) => existsSync(path));
if (CHROMIUM === undefined)
  console.warn('skipping browser tests: no Chromium found (LABFEED_CHROMIUM, /usr/bin/chromium)');

/** A test that needs a real browser; skipped without one. */
export const inBrowser = test.skipIf(CHROMIUM === undefined);

/** A browser, a daemon and a notebook are slow on a busy machine. */
export const SLOW = { timeout: 300_000 };

/** A page that is open in the browser. */
export interface Visit {
  readonly page: Page;
  /** Console errors, exceptions, dialogs, policy violations and requests to other sites: none may happen. */
  readonly troubles: string[];
}

/** One browser for all tests of a file. */
export function useBrowser() {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (CHROMIUM === undefined) return;
    // Chromium's own sandbox does not work as root, and containers often run tests as root.
    const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    browser = await chromium.launch({ executablePath: CHROMIUM, args, timeout: 120_000 });
  }, 150_000);
  afterAll(() => browser?.close());

  return async (url: string, options: BrowserContextOptions = {}): Promise<Visit> => {
    if (!browser) throw new Error('there is no browser');
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    const { origin } = new URL(url);
    const troubles = watch(page, origin);
    const journal = journals.get(origin);
    if (journal) await page.goto(loginLink(`${origin}/`, readLoginSecret(journal), Date.now()));
    await page.goto(url);
    return { page, troubles };
  };
}

function watch(page: Page, origin: string): string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') troubles.push(`console: ${message.text()}`);
  });
  page.on('pageerror', ({ message }) => troubles.push(`exception: ${message}`));
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:') && url !== 'about:srcdoc')
      troubles.push(`request: ${url}`);
  });
  return troubles;
}

/** The journals of the daemons, by the origins of their pages: visits are logged in. */
const journals = new Map<string, string>();

export interface Lab {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
  readonly daemon: DaemonProcess;
  /** Of the status page, ending with a slash. */
  readonly url: string;
}

/** A real daemon with its page, and a notebook. */
export async function openLab(instruments?: string, before: (site: Site) => void = () => undefined): Promise<Lab> {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, {
    url: sandbox.url,
    key: sandbox.key,
    status: '127.0.0.1:0',
    ...(instruments !== undefined && { instruments }),
  });
  before(site);
  const daemon = startDaemon(site.config);
  const { url } = await daemon.logged('status page listening');
  journals.set(new URL(String(url)).origin, site.journal);
  return { site, sandbox, daemon, url: String(url) };
}
