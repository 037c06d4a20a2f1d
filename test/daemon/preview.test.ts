import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { makePreview, previewSample } from '../../src/daemon/preview.js';
import type { UploadedSample } from '../../src/status/api.js';
import { tempFolder } from '../support/temp-folder.js';

const NOW = Date.UTC(2026, 3, 5);

const INSTRUMENTS = `notebook: { url: "https://eln.example.org", key: { env: KEY } }
instruments:
  nanodrop:
    watch: data/nanodrop
    files: "**/*.tsv"
    parse: { delimiter: tab, meta: { until: blank, separator: ":" }, table: { after: blank } }
    experiment: { title: "{{ meta.Sample }} on {{ instrument }}", tags: [nanodrop] }
  logger: { watch: data/logger, files: "*.log", parse: { table: {}, limits: { rows: 2 } } }
  typo: { watch: data/typo, files: "*.typo", experiment: { title: "{{ meta.Sample" } }
  broken: { watch: data/broken, files: 3 }
`;

function load(): LoadedConfig {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), INSTRUMENTS);
  return loadConfig(join(folder, 'labfeed.yaml'));
}

const preview = (sample: Pick<UploadedSample, 'name' | 'instrument' | 'learn'>, text: string, config = load()) =>
  previewSample({ ...sample, content: Buffer.from(text), modifiedMs: NOW }, { config, nowMs: NOW, make: makePreview });

const RUN = 'Sample: λ <DNA>\nDate: 2026-04-03\n\nWell\tA260 (AU)\nA1\t1.230\nA2\t2.5\n';

describe('a dropped file', () => {
  test('is shown with what the notebook will not have of it', async () => {
    for (const sample of [{ name: 'run-17.tsv' }, { name: 'run-17.tsv', learn: true }])
      expect(await preview(sample, `${RUN}\n\nChecked by Ada and nobody else\n`)).toMatchObject({
        ok: true,
        omits: ['not read: line 9'],
      });
  });

  test('is shown as the first instrument whose globs match its name would file it', async () => {
    expect(await preview({ name: 'run-17.tsv' }, RUN)).toMatchObject({
      ok: true,
      instrument: 'nanodrop',
      draft: {
        title: 'λ <DNA> on nanodrop',
        date: '2026-04-03',
        dateFrom: 'from the fact "date"',
        tags: ['nanodrop'],
        body: expect.stringContaining('labfeed nanodrop run-17.tsv sha256:'),
        comments: [expect.stringMatching(/labfeed \w+\.1$/)],
      },
      omits: [],
      doubts: [],
      tables: [
        {
          name: 'readings',
          columns: [{ name: 'Well' }, { name: 'A260', unit: 'AU' }],
          rows: [
            ['A1', '1.230'],
            ['A2', '2.5'],
          ],
          count: 2,
        },
      ],
      meta: [
        { name: 'Sample', text: 'λ <DNA>' },
        { name: 'Date', text: '2026-04-03' },
      ],
    });
  });

  test('is learned from on request, even if its name matches an instrument', async () => {
    expect(await preview({ name: 'run-17.tsv', learn: true }, RUN)).toMatchObject({
      ok: true,
      instrument: 'run',
      mapping: expect.stringContaining('# Learned from run-17.tsv'),
    });
  });

  test("comes with its instrument's part of the configuration, unchanged", async () => {
    const { mapping } = await preview({ name: 'run-17.tsv' }, RUN);
    expect(parse(mapping ?? '')).toEqual({
      instruments: { nanodrop: parse(INSTRUMENTS).instruments.nanodrop },
    });
  });

  test('is read by the selected instrument, whatever its name', async () => {
    const shown = await preview({ name: 'x.dat', instrument: 'nanodrop' }, RUN);
    expect(shown).toMatchObject({ ok: true, instrument: 'nanodrop' });
  });

  test('that matches no instrument yields a learned mapping to copy', async () => {
    const shown = await preview({ name: 'plate-7.csv' }, 'Well,A260,A280\nA1,1.5,1.1\nA2,2.5,1.2\n');
    expect(shown).toMatchObject({ ok: true, instrument: 'plate', draft: { title: 'plate-7 (plate)' } });
    expect(shown.doubts).toEqual([]);
    expect(shown.mapping).toMatch(/^# Learned from plate-7\.csv\. /);
    const folder = tempFolder();
    writeFileSync(join(folder, 'learned.yaml'), shown.mapping ?? '');
    const { instruments, problems } = loadConfig(join(folder, 'learned.yaml'));
    expect(instruments).toMatchObject([{ name: 'plate', files: ['*.csv'] }]);
    expect(problems.filter(({ stops }) => typeof stops === 'object')).toEqual([]);
  });

  test('that would be quarantined gives the reason with line and column, and its own name', async () => {
    const text = 'Sample: x\nDate: 03/04/2026\n\nWell\tA260\nA1\t1\n';
    const shown = await preview({ name: 'run-17.tsv' }, text);
    expect(shown).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/^run-17\.tsv(:\d+)?.*03\/04\/2026/),
    });
    expect(shown.mapping).toContain('nanodrop');
    const tooMany = await preview({ name: 'a.log' }, 'a,b\n1,2\n3,4\n5,6\n');
    expect(tooMany).toMatchObject({ ok: false, reason: expect.stringContaining('limits: { rows:') });
  });

  test('that is not text gives a readable reason', async () => {
    const shown = await preview({ name: 'photo.jpg' }, '\xff\xd8\xff\xe0\0\x10JFIF\0\0\0\0');
    expect(shown).toMatchObject({ ok: false, reason: expect.stringMatching(/^photo\.jpg: .*not text/) });
  });

  test('for an unknown or misconfigured instrument gives the reason', async () => {
    expect(await preview({ name: 'a.tsv', instrument: 'nanodorp' }, RUN)).toEqual({
      ok: false,
      reason: 'there is no instrument "nanodorp". Did you mean nanodrop?',
    });
    expect(await preview({ name: 'a.tsv', instrument: 'broken' }, RUN)).toMatchObject({
      reason: 'the configuration of instrument "broken" has an error',
    });
    expect(await preview({ name: 'a.typo' }, RUN)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/labfeed\.yaml:9:\d+: experiment\.title/),
    });
  });

  test('with very many rows shows the first fifty and the total', async () => {
    const rows = Array.from({ length: 300 }, (_, n) => `A${n}\t${n}`).join('\n');
    const shown = await preview({ name: 'a.tsv' }, `Sample: x\n\nWell\tA260\n${rows}\n`);
    expect(shown).toMatchObject({ ok: true, tables: [{ rows: { length: 50 }, count: 300 }] });
  });

  test('is not written to disk, neither next to the configuration nor in the folder of its instrument', async () => {
    const config = load();
    const folder = join(config.file, '..');
    mkdirSync(join(folder, 'data', 'nanodrop'), { recursive: true });
    await preview({ name: 'run-17.tsv' }, RUN, config);
    await preview({ name: 'run-17.xyz' }, RUN, config);
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['data', 'data/nanodrop', 'labfeed.yaml']);
  });
});
