import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { explainProblem } from '../../src/errors.js';
import { tempFolder } from '../support/temp-folder.js';

const NOTEBOOK = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }\n';

function load(text: string, parts: Record<string, string> = {}): LoadedConfig {
  const folder = tempFolder();
  for (const [name, part] of Object.entries(parts)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), part);
  }
  writeFileSync(join(folder, 'labfeed.yaml'), text);
  return loadConfig(join(folder, 'labfeed.yaml'));
}

/** Each mistake as people see it, without the folder. */
const told = ({ problems, file }: LoadedConfig): string[] =>
  problems.map((problem) => explainProblem(problem).replaceAll(join(file, '..', '/'), ''));

test('only watch is required of an instrument, and folders are relative to the file', () => {
  const config = load(`${NOTEBOOK}instruments:\n  balance:\n    watch: data\n`);
  expect(told(config)).toEqual([]);
  expect(config.instruments).toMatchObject([
    {
      name: 'balance',
      watch: join(config.file, '..', 'data'),
      files: ['**/*'],
      ready: { quiet: 5000 },
      poll: 'auto',
      changed: 'new',
      duplicates: 'skip',
      comments: { readings: 'table', maxBytes: 61_440, maxComments: 5 },
    },
  ]);
  expect(config.notebook).toMatchObject({
    url: 'https://eln.example.org',
    dialect: 'auto',
    concurrency: 4,
    rate: 10,
    timeout: 30_000,
    commentField: 'comment',
  });
});

test('durations, sizes and rates are read in their units', () => {
  const config = load(`
notebook: { url: "http://localhost:1/eln/api/v2/", key: { env: KEY }, rate: 300/m, timeout: 1.5s }
instruments:
  a: { watch: ., ready: { quiet: 500ms }, poll: 2m, comments: { maxBytes: 10KB } }
`);
  expect(told(config)).toEqual([]);
  expect(config.notebook).toMatchObject({ url: 'http://localhost:1/eln', rate: 5, timeout: 1500 });
  expect(config.instruments[0]).toMatchObject({
    ready: { quiet: 500 },
    poll: 120_000,
    comments: { maxBytes: 10_240 },
  });
});

test('all mistakes are told at once, each with line, column, what was expected and the nearest known key', () => {
  const config = load(`notebook:
  url: eln.example.org
  key: { env: KEY }
  timeout: 30
  concurency: 4
instruments:
  balance:
    wach: data
    ready: { quite: 5s }
    changed: sometimes
    comments: { maxComments: lots }
  scale:
    watch: [a, b]
    experiment: title
lgo: debug
`);
  expect(told(config)).toEqual([
    'labfeed.yaml:15:1: unknown key "lgo"\n  → did you mean log?',
    'labfeed.yaml:2:8: notebook.url: expected an address such as https://eln.example.org',
    'labfeed.yaml:4:12: notebook.timeout: expected a duration such as 500ms, 5s, 2m or 24h',
    'labfeed.yaml:5:3: unknown key "concurency"\n  → did you mean concurrency?',
    'labfeed.yaml:8:5: watch is missing: expected the folder that the instrument writes to',
    'labfeed.yaml:9:14: unknown key "quite"\n  → did you mean quiet?',
    'labfeed.yaml:10:14: changed: anything but "new" and "ignore" is not available in this version',
    'labfeed.yaml:11:30: comments.maxComments: expected a number, found a text',
    'labfeed.yaml:8:5: unknown key "wach"\n  → did you mean watch?',
    'labfeed.yaml:13:12: watch: expected the folder that the instrument writes to',
    'labfeed.yaml:14:17: experiment: expected a map, found a text',
  ]);
});

test('a mistake within a list or a map is told by its whole path', () => {
  const config = load(`${NOTEBOOK}instruments:
  a: { watch: ., experiment: { tags: [x, 7] } }
  b: { watch: ., tests: [{ file: x.csv }] }
  c: 3
`);
  expect(told(config).map((problem) => problem.replace(/^\S+ /, ''))).toEqual([
    'experiment.tags[1]: expected a template',
    'tests[0].expect is missing: expected a map such as { title: …, readings: 12 }',
    'c: expected a map, found a number',
  ]);
});

test('instruments with mistakes are listed, and only what may hide some is told as hiding', () => {
  const config = load(
    `${NOTEBOOK}log: loud\nlgo: debug\ninstruments: { a: { wach: x, duplicates: ingest, comments: { readings: none } }, b: 3 }\n`,
  );
  expect(config.listed).toMatchObject([
    { name: 'a', duplicates: 'ingest', comments: { readings: 'none' } },
    { name: 'b', duplicates: 'skip', comments: { readings: 'table' } },
  ]);
  expect(config.problems.length).toBeGreaterThan(3);
  expect(config.hiding).toEqual([]);
  expect([...config.wrong]).toEqual(['log']);
  for (const hiding of [
    'instrumnets: { a: { watch: x } }',
    'includ: more.yaml',
    'include: gone.yaml',
    'instruments: []',
  ])
    expect(load(`${NOTEBOOK}${hiding}\n`).hiding).toHaveLength(1);
  expect([...load('notebook: [').wrong]).toContain('journal');
});

test('a syntax error is told at its line and column', () => {
  const config = load('notebook:\n  url: "https://eln.example.org\n  key: { env: KEY }\n');
  expect(told(config).join()).toMatch(/^labfeed\.yaml:\d+:\d+: /);
  expect(config.problems.every(({ stops }) => stops === 'daemon')).toBe(true);
});

test('an empty file, a list and a missing file are told plainly', () => {
  expect(told(load(''))[0]).toContain('the file is empty');
  expect(told(load('- a\n'))[0]).toContain('expected a map of settings');
  expect(loadConfig('/nowhere/labfeed.yaml').problems[0]?.message).toBe('there is no such file');
});

test('a key in the YAML is refused without being repeated', () => {
  const config = load('notebook: { url: "https://eln.example.org", key: "3-s3cr3tkey" }\n');
  expect(told(config).join()).toContain('expected where the key is, not the key itself');
  expect(told(config).join()).not.toContain('s3cr3t');
  expect(config.notebook).toBeUndefined();
});

test('exactly one place of the key is asked for', () => {
  expect(
    told(load('notebook: { url: "https://eln.example.org", key: { file: a, env: B } }\n')).join(),
  ).toContain('expected exactly one of file, env and credential');
});

test('a mistake in one instrument stops that one alone', () => {
  const config = load(`${NOTEBOOK}instruments:\n  good: { watch: a }\n  bad: { watch: a, files: 3 }\n`);
  expect(config.instruments.map(({ name }) => name)).toEqual(['good']);
  expect(config.problems).toMatchObject([{ stops: { instrument: 'bad' } }]);
});

test('a mistake in notebook, journal or status stops the daemon; another setting falls back and is told', () => {
  const stops = (text: string) => load(text).problems.map((problem) => problem.stops);
  expect(stops('notebook: { url: 3, key: { env: A } }')).toEqual(['daemon']);
  expect(stops(`${NOTEBOOK}journal: 3`)).toEqual(['daemon']);
  expect(stops(`${NOTEBOOK}status: true`)).toEqual(['daemon']);
  expect(stops(`${NOTEBOOK}log: loud`)).toEqual(['nothing']);
  expect(load(`${NOTEBOOK}log: loud`).settings.log).toBe('info');
});

test('parts are included in the order of their names, with folders relative to each part', () => {
  const config = load(`${NOTEBOOK}include: instruments.d/*.yaml\ninstruments: { first: { watch: x } }\n`, {
    'instruments.d/b.yaml': 'instruments: { third: { watch: z } }',
    'instruments.d/a.yaml': 'instruments: { second: { watch: y } }',
    'instruments.d/notes.txt': 'not yaml: [',
  });
  expect(told(config)).toEqual([]);
  expect(config.instruments.map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  expect(config.instruments[1]?.watch).toBe(join(config.file, '..', 'instruments.d', 'y'));
});

test('a part that is wrong takes only its own instruments down', () => {
  const config = load(
    `${NOTEBOOK}include: [a.yaml, b.yaml, gone.yaml]\ninstruments: { first: { watch: x } }\n`,
    {
      'a.yaml': 'instruments: { first: { watch: y }, second: { watch: y } }\nlog: debug\n',
      'b.yaml': 'instruments: {',
    },
  );
  expect(config.instruments.map(({ name }) => name)).toEqual(['first', 'second']);
  expect(config.problems.some(({ stops }) => stops === 'daemon')).toBe(false);
  expect(told(config).join('\n')).toMatch(/there is already an instrument "first"/);
  expect(told(config).join('\n')).toMatch(/a\.yaml:2:1: unknown key "log"/);
  expect(told(config).join('\n')).toMatch(/b\.yaml:1:\d+/);
  expect(told(config).join('\n')).toMatch(/labfeed\.yaml:2:10: include: there is no file .*gone\.yaml/);
});

test('what would file differently and is not available is refused; what has no effect is warned of', () => {
  const config = load(`${NOTEBOOK}instruments:
  a: { watch: ., source: delete }
  b: { watch: ., run: growing }
  c: { watch: ., attach: auto, drift: off }
`);
  expect(config.problems.map(({ stops }) => stops)).toEqual([{ instrument: 'a' }, { instrument: 'b' }]);
  expect(config.warnings.map(({ message }) => message)).toEqual([
    'attach has no effect in this version: the raw file is not attached',
  ]);
});

test('a run is a file, a folder, folders by a glob, or files of one stem', () => {
  const run = (written: string) => {
    const { instruments, problems } = load(`${NOTEBOOK}instruments:\n  a: { watch: ., ${written} }\n`);
    return problems[0]?.message ?? instruments[0]?.run;
  };
  expect(run('poll: auto')).toBe('file');
  expect(run('run: folder')).toEqual({ folder: '*' });
  expect(run('run: { folder: "**/*.D" }')).toEqual({ folder: '**/*.D' });
  expect(run('run: { join: ["{stem}.csv", "raw/{stem}.bin"] }')).toEqual({
    join: ['{stem}.csv', 'raw/{stem}.bin'],
  });
  expect(run('run: growing')).toMatch(/not available in this version/);
  expect(run('run: flie')).toMatch(/expected file, folder, /);
  expect(run('run: { join: ["{stem}.csv"] }')).toMatch(/at least two files/);
  expect(run('run: { join: ["a.csv", "{stem}.csv"] }')).toMatch(/one \{stem\} in it/);
  expect(run('run: { join: ["../{stem}.csv", "{stem}.csv"] }')).toMatch(/beside/);
  expect(run('run: { join: ["{stem}.a", "{stem}.b"], folder: x }')).toMatch(/expected folder or join/);
});

test('main and also are for runs of several files', () => {
  const problems = (run: string) =>
    load(`${NOTEBOOK}instruments:\n  a: { watch: ., run: ${run}, parse: { main: "*.csv" } }\n`).problems;
  expect(problems('folder')).toEqual([]);
  expect(problems('file')).toMatchObject([
    { message: expect.stringMatching(/main and also are for runs of several/) },
  ]);
});

test('an instrument whose run is wrong keeps its files from others all the same', () => {
  const { claims } = load(`${NOTEBOOK}instruments:\n  a: { watch: ., run: growing }\n`);
  expect(claims).toMatchObject([{ name: 'a', run: 'file' }]);
});

test('a change of parse, experiment or comments changes the fingerprint of the mapping, and nothing else does', () => {
  const mapping = (rest: string) =>
    load(`${NOTEBOOK}instruments:\n  a: { watch: ., ${rest} }\n`).instruments[0]?.mapping;
  expect(mapping('poll: never')).toBe(mapping('poll: auto'));
  expect(mapping('experiment: { title: x }')).not.toBe(mapping('experiment: { title: y }'));
});

test('names that could not be told apart elsewhere are refused', () => {
  const config = load(
    `${NOTEBOOK}instruments:\n  "a/b": { watch: . }\n  "Gerät 2 (neu)": { watch: . }\n  "Gerät 2": { watch: . }\n`,
  );
  expect(config.instruments.map(({ name }) => name)).toEqual(['Gerät 2']);
});

test('a wait that no timer can keep, or that is none, is a mistake', () => {
  const config = load(
    'notebook: { url: "https://eln.example.org", key: { env: KEY }, timeout: 60d }\n' +
      'instruments: { a: { watch: ., parse: { limits: { seconds: 60d } } } }\n',
  );
  expect(told(config)).toEqual([
    'labfeed.yaml:1:73: notebook.timeout: expected at most 24d',
    'labfeed.yaml:2:59: parse.limits.seconds: expected at most 24d',
  ]);
  expect(
    told(load('notebook: { url: "https://eln.example.org", key: { env: KEY }, timeout: 0s }\n')),
  ).toEqual(['labfeed.yaml:1:73: notebook.timeout: expected more than nothing']);
});

test('a key of the main file in a part is sent back to it, and others are told what a part may have', () => {
  const parts = { 'more.yaml': 'notebook: {}\nbalance: { watch: . }\n' };
  expect(told(load(`${NOTEBOOK}include: more.yaml\n`, parts))).toEqual([
    'more.yaml:1:1: unknown key "notebook"\n  → it belongs into the configuration that includes this file',
    'more.yaml:2:1: unknown key "balance"\n  → known keys here: instruments',
  ]);
});

test('a key that stands twice is named, and what to do about it and about tabs', () => {
  expect(told(load(`${NOTEBOOK}log: info\nlog: warn\n`))).toEqual([
    'labfeed.yaml:3:1: the key log stands in this map already\n  → keep one of the two',
  ]);
  expect(told(load('notebook:\n\turl: https://eln.example.org\n'))[0]).toBe(
    'labfeed.yaml:2:1: a tab cannot indent a line\n  → indent it with blanks',
  );
});

test('a configuration that is not UTF-8 is refused where it ceases to be', () => {
  const file = join(tempFolder(), 'labfeed.yaml');
  writeFileSync(file, Buffer.from(`${NOTEBOOK}instruments: { a: { watch: Ger\u00e4te } }\n`, 'latin1'));
  expect(told(loadConfig(file))).toEqual([
    'labfeed.yaml:2:31: this is not UTF-8\n  → save the file as UTF-8',
  ]);
  writeFileSync(file, Buffer.from(`\ufeff${NOTEBOOK}`, 'utf16le'));
  expect(told(loadConfig(file))).toEqual(['labfeed.yaml:1:1: this is not UTF-8\n  → save the file as UTF-8']);
});

test('a folder in the place of a part is told, with the glob that was meant', () => {
  expect(told(load(`${NOTEBOOK}include: more\n`, { 'more/a.yaml': '' }))).toEqual([
    'more: this is a folder\n  → name a file in it; include also takes a glob such as more/*.yaml',
  ]);
});
