import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { loadConfig, missingInstruments } from '../../src/config/load.js';
import { jsonSchema } from '../../src/config/problems.js';
import { tempFolder } from '../support/temp-folder.js';

const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(jsonSchema());

/** How many mistakes `check` finds. */
function mistakes(yaml: string): number {
  const file = join(tempFolder(), 'labfeed.yaml');
  writeFileSync(file, yaml);
  vi.stubEnv('LABFEED_EXPERIMENTAL', 'source');
  const config = loadConfig(file);
  return config.problems.length + missingInstruments(config).length;
}

const NOTEBOOK = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }\n';
const notebook = (part: string) => `notebook: { url: "https://eln.example.org", key: { env: KEY }, ${part} }\n${ONE}`;
const ONE = 'instruments: { a: { watch: /a } }\n';
const top = (part: string) => `${NOTEBOOK}${ONE}${part}\n`;
const instrument = (part: string) => `${NOTEBOOK}instruments: { a: { watch: /a, ${part} } }\n`;
const mapping = (part: string) => instrument(`parse: { ${part} }`);

/** Typical mistakes: an editor with the schema marks what `check` reports. */
const MISTAKES: Readonly<Record<string, string>> = {
  'no notebook': ONE,
  'no url': `notebook: { key: { env: KEY } }\n${ONE}`,
  'no key': `notebook: { url: "https://eln.example.org" }\n${ONE}`,
  'a misspelt section': top('notebok: {}'),
  'a misspelt key of the notebook': notebook('timout: 5s'),
  'a misspelt key of an instrument': instrument('fiels: "*.csv"'),
  'a URL without a scheme': `notebook: { url: eln.example.org, key: { env: KEY } }\n${ONE}`,
  'a URL of another kind': `notebook: { url: "ftp://eln.example.org", key: { env: KEY } }\n${ONE}`,
  'a password in the URL': `notebook: { url: "https://me:pw@eln.example.org", key: { env: KEY } }\n${ONE}`,
  'the key itself': `notebook: { url: "https://eln.example.org", key: 3-abc }\n${ONE}`,
  'two places for the key': `notebook: { url: "https://eln.example.org", key: { env: KEY, file: k } }\n${ONE}`,
  'no place for the key': `notebook: { url: "https://eln.example.org", key: {} }\n${ONE}`,
  'an unknown dialect': notebook('dialect: elab'),
  'no requests at all': notebook('concurrency: 0'),
  'too many requests': notebook('concurrency: 100'),
  'a concurrency in quotes': notebook('concurrency: "4"'),
  'a rate without a unit': notebook('rate: 10'),
  'a rate of zero': notebook('rate: 0/s'),
  'a timeout without a unit': notebook('timeout: 30'),
  'a timeout of zero': notebook('timeout: 0s'),
  'a unit in words': notebook('timeout: 30 seconds'),
  'an empty name of a field': notebook('commentField: ""'),
  'an address without a port': top('status: 127.0.0.1'),
  'a port without an address': top('status: 7780'),
  'a status page for everybody without a token': top('status: "0.0.0.0:7780"'),
  'a status map for everybody without a token': top('status: { address: "0.0.0.0:7780" }'),
  'a token for readers alone': top('status: { readToken: { file: t } }'),
  'a host name with a port': top('status: { names: ["labfeed.example.org:7780"] }'),
  'an unknown log level': top('log: verbose'),
  'a size without a unit': top('spool: 10'),
  'an unknown unit of time': top('keep: 1 month'),
  'a webhook that is no URL': top('alarms: { webhook: chat.example.org }'),
  'a command that is a list': top('alarms: { command: [page-me] }'),
  'an empty command': top('alarms: { command: " " }'),
  'no instrument': NOTEBOOK,
  'an empty list of instruments': `${NOTEBOOK}instruments: {}\n`,
  'instruments as a list': `${NOTEBOOK}instruments: [{ watch: /a }]\n`,
  'an instrument without a folder': `${NOTEBOOK}instruments: { a: { files: "*.csv" } }\n`,
  'an instrument that is only a folder': `${NOTEBOOK}instruments: { a: /a }\n`,
  'a name with a slash': `${NOTEBOOK}instruments: { a/b: { watch: /a } }\n`,
  'no glob': instrument('files: []'),
  'an empty glob': instrument('files: ""'),
  'a done-file without a name': instrument('ready: { doneFile: done }'),
  'a quiet period without a unit': instrument('ready: { quiet: 5 }'),
  'an unknown poll': instrument('poll: sometimes'),
  'links to anywhere': instrument('links: accept'),
  'a date that is none': instrument('existing: { since: yesterday }'),
  'an unknown run': instrument('run: files'),
  'a run of two kinds': instrument('run: { folder: "*", join: ["{stem}.a", "{stem}.b"] }'),
  'a join of one file': instrument('run: { join: ["{stem}.a"] }'),
  'a join without a stem': instrument('run: { join: ["a.csv", "{stem}.b"] }'),
  'a join that names a file twice': instrument('run: { join: ["{stem}.a", "{stem}.a"] }'),
  'a growing run per hour': instrument('run: { growing: { per: hour } }'),
  'a silence of zero': instrument('silence: 0h'),
  'unknown days': instrument('silence: { after: 24h, days: weekdays }'),
  'an unknown drift': instrument('drift: error'),
  'comments of an unknown kind': instrument('comments: { readings: all }'),
  'no comment at all': instrument('comments: { maxComments: 0 }'),
  'tags that are text': instrument('experiment: { tags: nanodrop }'),
  'an empty title': instrument('experiment: { title: "" }'),
  'a plot without columns': instrument('experiment: { plot: { x: Time } }'),
  'an unknown permission': instrument('experiment: { canread: everyone }'),
  'a test without a file': instrument('tests: [{ expect: { title: a } }]'),
  'an unknown format': mapping('format: csv'),
  'a line number of zero': mapping('table: { header: 0 }'),
  'an unknown type': mapping('table: { columns: { A: { from: a, type: float } } }'),
  'a start without a step': mapping('table: { columns: { A: { start: 0 } } }'),
  'a computed column that is also read': mapping('table: { columns: { A: { from: a, start: 0, step: 1 } } }'),
};

/** What JSON Schema cannot express: programs, comparisons of values, other files, and rules across sections. */
const INEXPRESSIBLE: Readonly<Record<string, string>> = {
  'an invalid regular expression': mapping('table: { header: "/(/" }'),
  'positions that decrease': mapping('delimiter: { at: [30, 10] }'),
  'a comment of one byte': instrument('comments: { maxBytes: 1B }'),
  'an authority that does not exist': notebook('ca: gone.pem'),
  'a growing run of a workbook': instrument('run: growing, parse: { format: xlsx }'),
};

test.each(Object.entries(MISTAKES))('check and the JSON Schema reject %s', (_, yaml) => {
  expect(mistakes(yaml)).toBeGreaterThan(0);
  expect(validate(parse(yaml))).toBe(false);
});

test.each(Object.entries(INEXPRESSIBLE))('only check rejects %s', (_, yaml) => {
  expect(mistakes(yaml)).toBeGreaterThan(0);
  expect(validate(parse(yaml))).toBe(true);
});

test.each([
  instrument('files: "*.csv"'),
  `${NOTEBOOK}include: "instruments.d/*.yaml"\ninstruments: { "Größe 2.1": { watch: /a } }\n`,
  `notebook: { url: "http://[::1]:7781/eln/", key: { file: k } }\n${ONE}`,
  `notebook: { url: "https://eln.example.org/~lab?x=a@b", key: { credential: k } }\n${ONE}`,
  notebook('rate: 0.5/m, timeout: 0.1s, concurrency: 64'),
  ...['false', '"[::1]:0"', 'LocalHost:7780', '"[0:0::1]:1"', '127.0.0.9:80'].map((status) => top(`status: ${status}`)),
  top('status: { address: "0.0.0.0:7780", token: { file: t }, names: [labfeed.example.org, 10.0.0.1] }'),
  top('status: { names: [labfeed] }'),
  top(`alarms: { command: "page-me --to 'lab it'", webhook: "https://chat.example.org/hook" }`),
  instrument('ready: { doneFile: "{stem}.ok" }, run: { join: ["{stem}.csv", "sub/{stem}.xml"] }'),
  ...['mon-fri', 'mon,wed,fri', 'sat-mon, wed'].map((days) => instrument(`silence: { after: 24h, days: "${days}" }`)),
  instrument('existing: { since: 2026-01-01 }, run: { growing: { per: day, every: 10m } }'),
  mapping('table: { header: -1, columns: { A: { start: 0, step: 1 }, B: { from: b } } }'),
])('check and the JSON Schema accept %s', (yaml) => {
  expect(mistakes(yaml)).toBe(0);
  expect(validate(parse(yaml)), JSON.stringify(validate.errors)).toBe(true);
});
