import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { allFiled, type Scene, setUp } from '../daemon/scene.js';
import { makeSite, startCrashing, startDaemon } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { until } from '../support/until.js';

const INSTRUMENTS = '  balance: { watch: data/balance, ready: { quiet: 150ms } }';

const spectrum = (n: number): string =>
  `Sample,S${n}\n\nWavelength (nm),Absorbance (AU)\n${Array.from({ length: 50 }, (_, row) => `${400 + row},0.${100 + ((row * (n + 3)) % 40)}`).join('\n')}\n`;

async function setUpPlots(dialect: 'v2' | 'elabftw' = 'elabftw'): Promise<Scene> {
  const { sandbox, site } = await setUp(dialect);
  return { sandbox, site: makeSite(site.folder, { url: sandbox.url, key: sandbox.key, instruments: INSTRUMENTS }) };
}

const entries = ({ sandbox }: Scene) =>
  sandbox.control.experiments().map(({ body, uploads }) => ({
    files: uploads.map(({ real_name }) => real_name),
    images: [...body.matchAll(/<img src="(app\/download\.php\?[^"]*)"/g)].map(([, source]) =>
      String(source).replaceAll('&amp;', '&'),
    ),
    body,
  }));

const spoolOf = ({ site }: Scene): string[] => {
  const folder = `${site.journal}.spool`;
  return existsSync(folder) ? readdirSync(folder) : [];
};

test('a plot is attached, shown between facts and summary, served by the notebook, and kept nowhere else', async () => {
  const scene = await setUpPlots();
  const { site, sandbox } = scene;
  site.drop('s0.csv', spectrum(0));
  const daemon = startDaemon(site.config);
  await daemon.logged('body updated', 60_000);
  const [entry] = entries(scene);
  expect(entry?.files).toEqual(['s0.csv', 's0-plot.png']);
  expect(entry?.body).toMatch(
    /<th>Sample<\/th><td>S0<\/td>[\s\S]*<img[^>]* width="800"[\s\S]*<h3>readings<\/h3>[\s\S]*median/,
  );
  const picture = await fetch(`${sandbox.url}/${entry?.images[0]}`);
  expect(picture.headers.get('content-type')).toBe('image/png');
  expect(
    Buffer.from(await picture.arrayBuffer())
      .subarray(1, 4)
      .toString(),
  ).toBe('PNG');
  await until('the spool is empty', () => spoolOf(scene).length === 0);
  // A run of which there is nothing to plot says so where people look.
  site.drop('s1.csv', 'Sample,Weight (mg)\nA,1.5\n');
  await allFiled(daemon, 2);
  await daemon.logged(({ msg, file }) => msg === 'file attached' && file === 's1.csv');
  const { stdout } = await labfeed(['show', '2', '--config', site.config]);
  expect(stdout).toContain('No plot: the table has fewer than two rows');
  expect(entries(scene)[1]?.images).toEqual([]);
  const uploads = sandbox.control
    .requests()
    .filter(({ path, method }) => method === 'POST' && path.endsWith('/uploads'));
  expect(uploads).toHaveLength(3);
  await daemon.stop();
});

test.each([
  ['before', 'uploaded 2'],
  ['after', 'uploaded 2'],
  ['before', 'described'],
] as const)('a daemon killed %s it records `%s` attaches and shows the plot once', async (when, kind) => {
  const scene = await setUpPlots();
  scene.site.drop('s0.csv', spectrum(0));
  const first = startDaemon(scene.site.config);
  await first.logged('body updated', 60_000);
  await first.stop();
  scene.site.drop('s1.csv', spectrum(1));
  await startCrashing(scene.site.config, 2, { when, kind }).ended;
  const daemon = startDaemon(scene.site.config);
  await until('the plot is shown', () => entries(scene)[1]?.images.length === 1, 60_000);
  await until('the spool is empty', () => spoolOf(scene).length === 0);
  await daemon.stop();
  for (const { files, images } of entries(scene)) {
    expect(files).toHaveLength(2);
    expect(images).toHaveLength(1);
  }
});

test('where the server only keeps the contract, no plot is made once that is known', async () => {
  const scene = await setUpPlots('v2');
  scene.site.drop('s0.csv', spectrum(0));
  const daemon = startDaemon(scene.site.config);
  await allFiled(daemon, 1);
  scene.site.drop('s1.csv', spectrum(1));
  await allFiled(daemon, 2);
  await until('the spool is empty', () => spoolOf(scene).length === 0);
  expect(entries(scene).map(({ files, images }) => [...files, ...images])).toEqual([[], []]);
  await daemon.stop();
});
