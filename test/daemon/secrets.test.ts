import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { requireUsable } from '../../src/commands/options.js';
import { loadConfig } from '../../src/config/load.js';
import { createDaemon } from '../../src/daemon/daemon.js';
import { withoutSecrets } from '../../src/daemon/reporting.js';
import { readLoginSecret } from '../../src/status/auth.js';
import { makeSite } from '../support/daemon-process.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';

test("the alarm command inherits neither the notebook's key nor the page's token", () => {
  const file = join(tempFolder(), 'labfeed.yaml');
  const status = 'status: { address: "127.0.0.1:7780", token: { env: PAGE_TOKEN } }';
  writeFileSync(file, `notebook: { url: "https://eln.example.org", key: { env: LAB_KEY } }\n${status}\n`);
  const { notebook, settings } = loadConfig(file);
  if (!notebook) expect.fail('the configuration is right');
  const env = { LAB_KEY: 'k', PAGE_TOKEN: 't', PATH: '/bin' };
  expect(withoutSecrets({ notebook, settings }, env)).toEqual({ PATH: '/bin' });
});

test("the key, the page's token and the secret of its login links are concealed from the log before they are used", async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'page-token'), 'TOKEN-0123456789abcdef\n');
  const { config, journal } = makeSite(folder, {
    url: 'http://127.0.0.1:1',
    key: 'TOPSECRET',
    status: '{ address: "127.0.0.1:0", token: { file: page-token } }',
  });
  const loaded = loadConfig(config);
  requireUsable(loaded);
  const concealed: string[] = [];
  const daemon = createDaemon({
    config: loaded,
    clock: systemClock,
    log: silentLog(),
    conceal: (secret) => void concealed.push(secret),
    isSecretIn: () => false,
  });
  onTestFinished(() => daemon.stop());
  await daemon.start();
  expect(new Set(concealed)).toEqual(new Set(['TOKEN-0123456789abcdef', 'TOPSECRET', readLoginSecret(journal)]));
});

test.each(['https://me:pass@eln.example.org', 'https://:pass@eln.example.org', 'https://key@eln.example.org'])(
  'a notebook URL that contains a secret is refused: %s',
  (url) => {
    const file = join(tempFolder(), 'labfeed.yaml');
    writeFileSync(file, `notebook: { url: "${url}", key: { env: LAB_KEY } }\n`);
    expect(loadConfig(file).problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('a user name or password in the URL is not allowed'),
    ]);
  },
);
