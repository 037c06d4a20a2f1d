import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page, type Route } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished, test } from 'vitest';
import { type DaemonProcess, makeSite, type Site, startDaemon } from '../../support/daemon-process.js';
import { type RunningSandbox, runSandbox } from '../../support/sandbox.js';
import { tempFolder } from '../../support/temp-folder.js';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const CHROMIUM = [process.env['LABFEED_CHROMIUM'] ?? '', ...PLACES].find((path) => existsSync(path));
if (CHROMIUM === undefined)
  console.warn(
    'there is no chromium (LABFEED_CHROMIUM, /usr/bin/chromium): the page is not shown to a browser here',
  );

/** A test that needs a real browser; skipped where there is none. */
export const inBrowser = test.skipIf(CHROMIUM === undefined);

/** A browser, a daemon and a notebook take their time on a busy machine. */
export const SLOW = { timeout: 90_000 };

/** What must not happen on a page of ours, whatever it shows. */
export interface Visit {
  readonly page: Page;
  /** Errors on the console, exceptions, dialogs, refusals by the policy, and requests to other places. */
  readonly troubles: string[];
}

/** One browser for all tests of a file. */
export function useBrowser() {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (CHROMIUM === undefined) return;
    // Chromium's own sandbox does not run as root, as which containers run tests.
    const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    browser = await chromium.launch({ executablePath: CHROMIUM, args });
  }, 60_000);
  afterAll(() => browser?.close());

  return async (url: string, options: BrowserContextOptions = {}): Promise<Visit> => {
    if (!browser) throw new Error('there is no browser');
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    await context.route('**/page/*.js', fromBuild);
    const page = await context.newPage();
    const troubles = watch(page, new URL(url).origin);
    await page.goto(url);
    return { page, troubles };
  };
}

const BUILT = fileURLToPath(new URL('../../../dist/status/page/', import.meta.url));

/** A server that runs from the sources has no compiled page beside it; that of a daemon has the same. */
const fromBuild = (route: Route): Promise<void> =>
  route.fulfill({ path: join(BUILT, basename(new URL(route.request().url()).pathname)) });

function watch(page: Page, origin: string): string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      troubles.push(`console: ${message.text()}`);
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

export interface Lab {
  readonly site: Site;
  readonly sandbox: RunningSandbox;
  readonly daemon: DaemonProcess;
  /** Of the status page, ending with a slash. */
  readonly url: string;
}

/** A real daemon with its page, and a notebook. */
export async function openLab(
  instruments?: string,
  before: (site: Site) => void = () => undefined,
): Promise<Lab> {
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
  const { url } = await daemon.logged('the status page is here', 30_000);
  return { site, sandbox, daemon, url: String(url) };
}
