import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { createMapping, type Mapping } from '../../src/mapping/mapping.js';
import { tempFolder } from '../support/temp-folder.js';

const NOW = Date.UTC(2026, 11, 1);

function mapping(instrument: string): Mapping {
  const path = join(tempFolder(), 'labfeed.yaml');
  writeFileSync(path, `instruments:\n  a: ${instrument}\n`);
  const [only] = loadConfig(path).instruments;
  return createMapping(only ?? expect.fail('expected an instrument'));
}

async function dateOf(text: string, { parse, map }: Mapping): Promise<string> {
  const content = Buffer.from(text);
  const file = {
    ...{ path: '/runs/a.csv', location: '/runs/a.csv', sha256: '', content },
    ...{ size: content.length, mtimeNs: BigInt(NOW) * 1_000_000n, inode: 1n },
  };
  return map(await parse(file), file, NOW).draft.date;
}

test('a date is read with the formats of the alternative that read the file', async () => {
  const made = mapping(`
    watch: .
    parse:
      - { when: Gerät, dates: { format: dd/MM/yyyy }, meta: { separator: ':' } }
      - { when: Device, dates: { format: MM/dd/yyyy }, meta: { separator: ':' } }
    experiment: { date: '{{ meta.Day }}' }`);
  expect(await dateOf('Gerät: 1\nDay: 03/04/2026\n', made)).toBe('2026-04-03');
  expect(await dateOf('Device: 1\nDay: 03/04/2026\n', made)).toBe('2026-03-04');
});
