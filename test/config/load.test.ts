import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { possibleOverlaps } from '../../src/check/folders.js';
import { defaultJournal, type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { jsonSchema } from '../../src/config/problems.js';
import { explainProblem } from '../../src/errors.js';
import { tempFolder } from '../support/temp-folder.js';
import { HAS_OPENSSL, makeAuthority } from '../support/tls.js';
import { cpuMs } from '../support/until.js';

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

/** Each mistake as it is printed, without the folder. */
const printed = ({ problems, file }: LoadedConfig): string[] =>
  problems.map((problem) => explainProblem(problem).replaceAll(join(file, '..', '/'), ''));

test('only watch is required of an instrument, and folders are relative to the file', () => {
  const config = load(`${NOTEBOOK}instruments:\n  balance:\n    watch: data\n`);
  expect(printed(config)).toEqual([]);
  expect(config.instruments).toMatchObject([
    {
      name: 'balance',
      watch: join(config.file, '..', 'data'),
      files: ['**/*'],
      ready: { quiet: 5000 },
      poll: 'auto',
      changed: 'new',
      duplicates: 'skip',
      comments: { readings: 'auto', maxBytes: 61_440, maxComments: 5 },
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

test('durations, sizes and rates are read with their units', () => {
  const config = load(`
notebook: { url: "http://localhost:1/eln/api/v2/", key: { env: KEY }, rate: 300/m, timeout: 1.5s }
instruments:
  a: { watch: ., ready: { quiet: 500ms }, poll: 2m, comments: { maxBytes: 10KB } }
`);
  expect(printed(config)).toEqual([]);
  expect(config.notebook).toMatchObject({ url: 'http://localhost:1/eln', rate: 5, timeout: 1500 });
  expect(config.instruments[0]).toMatchObject({
    ready: { quiet: 500 },
    poll: 120_000,
    comments: { maxBytes: 10_240 },
  });
});

test('all mistakes are reported at once, each with its location and what to write', () => {
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
  expect(printed(config)).toEqual([
    'labfeed.yaml:15:1: unknown key "lgo"\n  → did you mean log?',
    'labfeed.yaml:2:8: notebook.url: expected a URL\n  → write it with https://, such as https://eln.example.org',
    'labfeed.yaml:4:12: notebook.timeout: 30 is not a duration\n  → write it with a unit, such as 30s',
    'labfeed.yaml:5:3: unknown key "concurency"\n  → did you mean concurrency?',
    'labfeed.yaml:9:14: unknown key "quite"\n  → did you mean quiet?',
    'labfeed.yaml:10:14: changed: unknown value "sometimes"\n  → use new, revise or ignore',
    'labfeed.yaml:11:30: comments.maxComments: expected a number, found text',
    'labfeed.yaml:8:5: unknown key "wach"\n  → did you mean watch?',
    'labfeed.yaml:13:12: watch: expected a folder\n  → write the folder that the instrument writes to, such as watch: /srv/instruments/balance',
    'labfeed.yaml:14:17: experiment: expected a map\n  → write experiment: { title: "…", tags: [ … ] }',
  ]);
});

test('a misspelt key is not also reported as missing', () => {
  const notebook = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }\n';
  expect(printed(load(`${notebook}instruments:\n  a: { wacth: . }\n`))).toEqual([
    'labfeed.yaml:3:8: unknown key "wacth"\n  → did you mean watch?',
  ]);
  expect(printed(load(`${notebook}instruments:\n  a: { wacth: ., watch: 7 }\n`)).join()).toContain(
    'watch: expected a folder',
  );
});

test('a mistake in a list or a map is reported with its full path', () => {
  const config = load(`${NOTEBOOK}instruments:
  a: { watch: ., experiment: { tags: [x, 7] } }
  b: { watch: ., tests: [{ file: x.csv }] }
  c: 3
`);
  expect(printed(config).map((problem) => problem.replace(/^\S+ /, ''))).toEqual([
    'experiment.tags[1]: expected a template',
    'tests[0].expect is missing\n  → write, for example, expect: { title: …, readings: 12 }',
    'c: expected a map\n  → write the instrument as { watch: FOLDER }',
  ]);
});

test('instruments with mistakes are listed, and problems that may hide instruments are marked', () => {
  const config = load(
    `${NOTEBOOK}log: loud\nlgo: debug\ninstruments: { a: { wach: x, duplicates: ingest, comments: { readings: none } }, b: 3 }\n`,
  );
  expect(config.listed).toMatchObject([
    { name: 'a', duplicates: 'ingest', comments: { readings: 'none' } },
    { name: 'b', duplicates: 'skip', comments: { readings: 'auto' } },
  ]);
  expect(config.problems.length).toBeGreaterThan(3);
  expect(config.incompleteBecause).toEqual([]);
  expect([...config.invalidSettings]).toEqual(['log']);
  for (const hiding of [
    'instrumnets: { a: { watch: x } }',
    'includ: more.yaml',
    'include: gone.yaml',
    'instruments: []',
  ])
    expect(load(`${NOTEBOOK}${hiding}\n`).incompleteBecause).toHaveLength(1);
  expect([...load('notebook: [').invalidSettings]).toContain('journal');
});

test('a syntax error is reported at its line and column', () => {
  const config = load('notebook:\n  url: "https://eln.example.org\n  key: { env: KEY }\n');
  expect(printed(config).join()).toMatch(/^labfeed\.yaml:\d+:\d+: /);
  expect(config.problems.every(({ stops }) => stops === 'daemon')).toBe(true);
});

test('an empty file, a list and a missing file are reported as such', () => {
  expect(printed(load(''))[0]).toContain('the file is empty');
  expect(printed(load('- a\n'))[0]).toContain('expected keys and values');
  expect(loadConfig('/nowhere/labfeed.yaml').problems[0]?.message).toBe('the file does not exist');
});

test.skipIf(!HAS_OPENSSL)(
  'the file of a private authority must have a certificate, or the daemon does not start',
  () => {
    const authority = makeAuthority();
    const withCa = (ca: string) =>
      load(`notebook:\n  url: https://eln.example.org\n  key: { env: KEY }\n  ca: ${ca}\n`, { 'empty.pem': '' });
    expect(withCa(authority.file)).toMatchObject({ problems: [], notebook: { ca: authority.file } });
    expect(printed(withCa('gone.pem'))).toEqual([
      'labfeed.yaml:4:7: notebook.ca: cannot read gone.pem (ENOENT)\n  → name a file that labfeed can read',
    ]);
    expect(printed(withCa('empty.pem'))[0]).toContain('notebook.ca: empty.pem has no certificate');
    expect(withCa('.').problems).toMatchObject([{ stops: 'daemon' }]);
  },
);

test('an API key in the YAML is refused and not printed', () => {
  const config = load('notebook: { url: "https://eln.example.org", key: "3-s3cr3tkey" }\n');
  expect(printed(config).join()).toContain('the API key itself must not be in the configuration');
  expect(printed(config).join()).not.toContain('s3cr3t');
  expect(config.notebook).toBeUndefined();
});

test('the API key must be in exactly one place', () => {
  expect(printed(load('notebook: { url: "https://eln.example.org", key: { file: a, env: B } }\n')).join()).toContain(
    'expected exactly one of file, env and credential',
  );
});

test('a mistake in an instrument stops only that instrument', () => {
  const config = load(`${NOTEBOOK}instruments:\n  good: { watch: a }\n  bad: { watch: a, files: 3 }\n`);
  expect(config.instruments.map(({ name }) => name)).toEqual(['good']);
  expect(config.problems).toMatchObject([{ stops: { instrument: 'bad' } }]);
});

test('a mistake in notebook, journal or status stops the daemon; other settings fall back to their default', () => {
  const stops = (text: string) => load(text).problems.map((problem) => problem.stops);
  expect(stops('notebook: { url: 3, key: { env: A } }')).toEqual(['daemon']);
  expect(stops(`${NOTEBOOK}journal: 3`)).toEqual(['daemon']);
  expect(stops(`${NOTEBOOK}status: true`)).toEqual(['daemon']);
  expect(stops(`${NOTEBOOK}log: loud`)).toEqual(['nothing']);
  expect(load(`${NOTEBOOK}log: loud`).settings.log).toBe('info');
});

test('included files are read in the order of their names, and paths are relative to each file', () => {
  const config = load(`${NOTEBOOK}include: instruments.d/*.yaml\ninstruments: { first: { watch: x } }\n`, {
    'instruments.d/b.yaml': 'instruments: { third: { watch: z } }',
    'instruments.d/a.yaml': 'instruments: { second: { watch: y } }',
    'instruments.d/notes.txt': 'not yaml: [',
  });
  expect(printed(config)).toEqual([]);
  expect(config.instruments.map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  expect(config.instruments[1]?.watch).toBe(join(config.file, '..', 'instruments.d', 'y'));
});

test('include follows a glob through folders, and names one that cannot be listed', () => {
  const parts = {
    'a.yaml': 'instruments: { a: { watch: x } }',
    'sub/b.yaml': 'instruments: { b: { watch: x } }',
    'sub/sub/c.yaml': 'instruments: { c: { watch: x } }',
  };
  const names = (glob: string) => load(`${NOTEBOOK}include: "${glob}"\n`, parts).listed.map(({ name }) => name);
  expect(names('*/*.yaml')).toEqual(['b']);
  expect(names('{sub,sub/sub}/*.yaml')).toEqual(['b', 'c']);
  expect(names('**/[abc].yaml')).toEqual(['a', 'b', 'c']);
  expect(names('gone/*.yaml')).toEqual([]);
  const config = load(`${NOTEBOOK}include: "a.yaml/*.yaml"\n`, parts);
  expect(printed(config)).toEqual([
    expect.stringMatching(
      /^labfeed\.yaml:2:10: include: the user \S+ cannot read the folder a\.yaml \(ENOTDIR\)\n {2}→ correct the glob/,
    ),
  ]);
  expect(config.problems).toMatchObject([{ stops: 'daemon' }]);
});

test('a mistake in an included file stops only its own instruments', () => {
  const config = load(`${NOTEBOOK}include: [a.yaml, b.yaml, gone.yaml]\ninstruments: { first: { watch: x } }\n`, {
    'a.yaml': 'instruments: { first: { watch: y }, second: { watch: y } }\nlog: debug\n',
    'b.yaml': 'instruments: {',
  });
  expect(config.instruments.map(({ name }) => name)).toEqual(['first', 'second']);
  expect(config.problems.some(({ stops }) => stops === 'daemon')).toBe(false);
  expect(printed(config).join('\n')).toMatch(/the instrument "first" is already defined at /);
  expect(printed(config).join('\n')).toMatch(/a\.yaml:2:1: unknown key "log"/);
  expect(printed(config).join('\n')).toMatch(/b\.yaml:1:\d+/);
  expect(printed(config).join('\n')).toMatch(/labfeed\.yaml:2:10: include: the file .*gone\.yaml does not exist/);
});

test('files are kept, deleted or moved to a folder that no instrument watches', () => {
  const load1 = (written: string) =>
    load(`${NOTEBOOK}instruments:\n  a: { watch: data/a, source: ${written} }\n  b: { watch: data/b }\n`);
  expect(load1('delete').instruments[0]?.source).toBe('delete');
  const { file, instruments } = load1('{ move: filed }');
  expect(instruments[0]?.source).toEqual({ move: join(dirname(file), 'filed') });
  for (const folder of ['data/a', 'data/a/done', 'data/b/x']) {
    const { problems } = load1(`{ move: ${folder} }`);
    expect(problems).toMatchObject([
      {
        ...{ where: { line: expect.any(Number) }, message: expect.stringContaining('is watched') },
        ...{ hint: expect.stringContaining('outside all watched folders'), stops: { instrument: 'a' } },
      },
    ]);
  }
  expect(load1('{ move: data/abc }').problems).toEqual([]);
  // The done-file of a file that was moved may still be there when the next one is written.
  expect(load1('delete, ready: { doneFile: "{name}.ok" }').instruments[0]?.ready).toEqual({
    quiet: 5000,
    doneFile: '{name}.ok',
  });
  expect(load1('keep, ready: { doneFile: "{name}.ok" }').instruments[0]?.ready).toEqual({ doneFile: '{name}.ok' });
  expect(load1('moev').problems[0]?.message).toMatch(/expected keep, delete or \{ move: FOLDER \}/);
  expect(
    load1('{ mvoe: x }')
      .problems.map(({ message }) => message)
      .join(),
  ).toContain('mvoe');
});

test('a run is a file, a folder, folders that match a glob, files with the same stem, or a growing file', () => {
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
  expect(run('run: growing')).toEqual({ growing: { per: 'file', everyMs: 600_000 } });
  expect(run('run: { growing: { per: day, every: 1m } }')).toEqual({ growing: { per: 'day', everyMs: 60_000 } });
  expect(run('run: { growing: { per: week } }')).toMatch(/expected file or day/);
  expect(run('run: { growing: { every: 10ms } }')).toMatch(/expected a duration from 1s to 24h/);
  expect(run('run: growing, parse: { format: json }')).toMatch(/only files of lines can be followed/);
  for (const key of ['fill: [T]', 'every: /^Run/', 'grid: true', 'count: 3', 'columns: { x: { start: 0, step: 1 } }'])
    expect(run(`run: growing, parse: { table: { ${key} } }`)).toMatch(/need the whole file/);
  expect(run('run: growing, source: delete')).toMatch(/a file that keeps growing is neither moved nor deleted/);
  expect(run('run: growing, ready: { doneFile: "{name}.done" }')).toMatch(/a growing file has no done-file/);
  expect(run('run: flie')).toMatch(/expected file, folder, /);
  expect(run('run: { join: ["{stem}.csv"] }')).toMatch(/at least two file names/);
  expect(run('run: { join: ["a.csv", "{stem}.csv"] }')).toMatch(/one \{stem\} in it/);
  expect(run('run: { join: ["../{stem}.csv", "{stem}.csv"] }')).toMatch(/same folder/);
  expect(run('run: { join: ["{stem}.a", "{stem}.b"], folder: x }')).toMatch(
    /expected either folder or join or growing/,
  );
});

test('the keys main and also are only for runs of several files', () => {
  const problems = (run: string) =>
    load(`${NOTEBOOK}instruments:\n  a: { watch: ., run: ${run}, parse: { main: "*.csv" } }\n`).problems;
  expect(problems('folder')).toEqual([]);
  expect(problems('file')).toMatchObject([
    { message: expect.stringMatching(/main and also are only for runs of several/) },
  ]);
});

test('an instrument with an invalid run setting still claims its files', () => {
  const { claims } = load(`${NOTEBOOK}instruments:\n  a: { watch: ., run: shrinking }\n`);
  expect(claims).toMatchObject([{ name: 'a', run: 'file' }]);
});

test('the hash of a mapping depends on parse, experiment and comments only', () => {
  const mapping = (rest: string) =>
    load(`${NOTEBOOK}instruments:\n  a: { watch: ., ${rest} }\n`).instruments[0]?.mapping;
  expect(mapping('poll: never')).toBe(mapping('poll: auto'));
  expect(mapping('experiment: { title: x }')).not.toBe(mapping('experiment: { title: y }'));
});

test('names with special characters are refused', () => {
  const config = load(
    `${NOTEBOOK}instruments:\n  "a/b": { watch: . }\n  "Gerät 2 (neu)": { watch: . }\n  "Gerät 2": { watch: . }\n`,
  );
  expect(config.instruments.map(({ name }) => name)).toEqual(['Gerät 2']);
});

test('a timeout that is zero, or longer than a timer can wait, is refused', () => {
  const config = load(
    'notebook: { url: "https://eln.example.org", key: { env: KEY }, timeout: 60d }\n' +
      'instruments: { a: { watch: ., parse: { limits: { seconds: 60d } } } }\n',
  );
  expect(printed(config)).toEqual([
    'labfeed.yaml:1:73: notebook.timeout: expected at most 24d',
    'labfeed.yaml:2:59: parse.limits.seconds: expected at most 24d',
  ]);
  expect(printed(load('notebook: { url: "https://eln.example.org", key: { env: KEY }, timeout: 0s }\n'))).toEqual([
    'labfeed.yaml:1:73: notebook.timeout: expected a duration greater than zero',
  ]);
});

test('a key of the main file is refused in an included file, with a hint', () => {
  const parts = { 'more.yaml': 'notebook: {}\nbalance: { watch: . }\n' };
  expect(printed(load(`${NOTEBOOK}include: more.yaml\n`, parts))).toEqual([
    'more.yaml:1:1: unknown key "notebook"\n  → move it to the main configuration file',
    'more.yaml:2:1: unknown key "balance"\n  → known keys: instruments',
  ]);
});

test('duplicate keys and tabs are reported with a hint', () => {
  expect(printed(load(`${NOTEBOOK}log: info\nlog: warn\n`))).toEqual([
    'labfeed.yaml:3:1: the key log appears twice\n  → remove one of them',
  ]);
  expect(printed(load('notebook:\n\turl: https://eln.example.org\n  key: { env: KEY }\n'))).toEqual([
    'labfeed.yaml:2:1: a tab cannot be used for indentation\n  → indent with spaces',
  ]);
});

test('a configuration that is not UTF-8 is refused at its first invalid byte', () => {
  const file = join(tempFolder(), 'labfeed.yaml');
  writeFileSync(file, Buffer.from(`${NOTEBOOK}instruments: { a: { watch: Ger\u00e4te } }\n`, 'latin1'));
  expect(printed(loadConfig(file))).toEqual(['labfeed.yaml:2:31: the file is not UTF-8\n  → save it as UTF-8']);
  writeFileSync(file, Buffer.from(`\ufeff${NOTEBOOK}`, 'utf16le'));
  expect(printed(loadConfig(file))).toEqual(['labfeed.yaml:1:1: the file is not UTF-8\n  → save it as UTF-8']);
});

test('including a folder is refused with the glob that was probably meant', () => {
  expect(printed(load(`${NOTEBOOK}include: more\n`, { 'more/a.yaml': '' }))).toEqual([
    'more: this is a folder, not a file\n  → specify a file, or include more/*.yaml',
  ]);
});

test.each([
  ['files: *.csv', '12: a value that starts with * must be quoted\n  → write "*.csv"'],
  ['files: **/*.csv', '12: a value that starts with * must be quoted\n  → write "**/*.csv"'],
  ['files: [a.txt, *.csv]', '20: a value that starts with * must be quoted\n  → write "*.csv"'],
  ['watch: @lab', '12: a value that starts with @ must be quoted\n  → write "@lab"'],
  ['title: {{ meta.Sample }} on x', '13: a template must be quoted\n  → write "{{ meta.Sample }} on x"'],
  ['title: pH: {{ meta.pH }}', '12: a value that contains ": " must be quoted\n  → write "pH: {{ meta.pH }}"'],
  ['watch:/srv/data', '5: a space is missing after the colon\n  → write watch: …'],
  ['watch: "/srv/data', '12: this quote is not closed\n  → add the closing quote'],
  ['watch: "C:\\data"', "15: \\d is not valid in double quotes\n  → use single quotes: 'C:\\data'"],
])('the YAML mistake %s is explained', (line, expected) => {
  expect(printed(load(`${NOTEBOOK}instruments:\n  a:\n    poll: auto\n    ${line}\n`))).toEqual([
    `labfeed.yaml:5:${expected}`,
  ]);
});

test.each([
  'key: @s3cr3t',
  'key: *s3cr3t',
  'key:s3cr3t',
  'key: s3cr3t: x',
  'key: "s3cr3t',
  'key: { file: *s3cr3t }',
  'key:\n    @s3cr3t',
])('the message about %j does not contain the value', (key) => {
  const printedAll = printed(load(`notebook:\n  url: https://eln.example.org\n  ${key}\n`)).join();
  expect(printedAll).toMatch(/^labfeed\.yaml:[34]:\d+: /);
  expect(printedAll).not.toContain('s3cr3t');
});

test('an alias that has an anchor is resolved', () => {
  const config = load(`${NOTEBOOK}instruments:\n  a: { watch: &x data }\n  b: { watch: *x }\n`);
  expect(printed(config)).toEqual([]);
  expect(config.instruments[1]?.watch).toBe(config.instruments[0]?.watch);
});

test.each([
  ['timeout: 30', '30 is not a duration\n  → write it with a unit, such as 30s'],
  ['timeout: 5 min', '"5 min" is not a duration\n  → write 5m'],
  ['timeout: 200 msec', '"200 msec" is not a duration\n  → write 200ms'],
  ['timeout: 2 months', '"2 months" is not a duration\n  → write a number with a unit, such as 500ms, 5s, 2m or 24h'],
  ['timeout: [1]', 'expected a duration\n  → write a number with a unit, such as 500ms, 5s, 2m or 24h'],
  ['rate: 10/min', '"10/min" is not a rate\n  → write 10/m'],
  ['rate: 10', '10 is not a rate\n  → write it with a unit, such as 10/s'],
  ['concurrency: "4"', 'expected a number, found text\n  → remove the quotes'],
  ['dialect: elab', 'unknown value "elab"\n  → did you mean elabftw?'],
])('notebook: %s is refused with what to write', (written, expected) => {
  const [found] = printed(load(`notebook: { url: "https://eln.example.org", key: { env: KEY }, ${written} }\n`));
  expect(found?.replace(/^\S+ notebook\.\w+: /, '')).toBe(expected);
});

test('every key has a description for editors and for the reference', () => {
  const without: string[] = [];
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    // Conditions repeat keys that are described elsewhere.
    const {
      properties = {},
      if: _if,
      then: _then,
      ...rest
    } = schema as Readonly<Record<string, unknown>> & {
      readonly properties?: Record<string, { description?: string }>;
    };
    for (const [key, value] of Object.entries(properties)) {
      if (!value.description?.endsWith('.')) without.push(`${path}.${key}`);
      visit(value, `${path}.${key}`);
    }
    for (const part of Object.values(rest)) visit(part, path);
  };
  visit(jsonSchema(), '');
  expect(without).toEqual([]);
});

test.each([
  [
    'too many aliases',
    `    watch: &w data\n    files: [${'*w, '.repeat(1500)}]`,
    '4:13: the aliases (*name) of this file stand',
  ],
  ['aliases of aliases', bomb(), ': the aliases (*name) of this file stand'],
  ['an alias of itself', '    watch: &w [*w]', '3:16: *w is part of what it stands for'],
  ['too many levels', `    watch: ${'['.repeat(100_000)}`, ': the file has too many levels of nesting'],
])('an included file with %s stops its own instruments only', (_what, lines, problem) => {
  const main = `${NOTEBOOK}include: part.yaml\ninstruments:\n  balance: { watch: data }\n`;
  const config = load(main, { 'part.yaml': `instruments:\n  other:\n${lines}\n` });
  expect(printed(config)).toEqual([expect.stringContaining(problem)]);
  expect(printed(config)[0]).toMatch(/^part.yaml/);
  expect(config.problems).toMatchObject([{ stops: 'nothing' }]);
  expect(config.instruments).toMatchObject([{ name: 'balance' }]);
});

/** Twenty levels of ten aliases each. */
function bomb(): string {
  const levels = Array.from({ length: 20 }, (_, n) => `    k${n + 1}: &k${n + 1} [${`*k${n}, `.repeat(10)}]`);
  return ['    k0: &k0 x', ...levels].join('\n');
}

test('the time to read a configuration grows with its length, not with its square', () => {
  const instruments = Array.from({ length: 4000 }, (_, n) => `  i${n}: { watch: data/${n}, attach: auto }\n`);
  const lines = `${NOTEBOOK}instruments:\n${instruments.join('')}`;
  const start = cpuMs();
  const config = load(lines);
  expect(config.instruments).toHaveLength(4000);
  expect(possibleOverlaps(config.claims)).toEqual({ overlaps: [], isComplete: true });
  // About 0.7 s on a quiet machine.
  expect(cpuMs() - start).toBeLessThan(8000);
});

test('the default journal depends on the configuration file alone, not on the user or the environment', () => {
  const folder = realpathSync(tempFolder());
  writeFileSync(join(folder, 'labfeed.yaml'), '');
  symlinkSync(join(folder, 'labfeed.yaml'), join(folder, 'link.yaml'));
  const journal = join(folder, 'labfeed.journal', 'journal.db');
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('STATE_DIRECTORY', '/var/lib/elsewhere');
  vi.stubEnv('XDG_STATE_HOME', '/home/elsewhere');
  expect(defaultJournal(join(folder, 'labfeed.yaml'))).toBe(journal);
  expect(defaultJournal(join(folder, 'link.yaml'))).toBe(journal);
  expect(defaultJournal('/etc/labfeed/config.yaml')).toBe('/var/lib/labfeed/journal.db');
  expect(defaultJournal('/etc/labfeed/second.yaml')).toBe('/var/lib/labfeed/second/journal.db');
});
