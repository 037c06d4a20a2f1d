import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const INSTRUMENTS = `
  balance: { watch: data/balance, files: "**/*.csv", ready: { quiet: 150ms } }
  shadow: { watch: data/balance, files: "a*", existing: ingest }
  late: { watch: data/late, ready: { doneFile: "{name}.done" } }
  wrong: { watch: data/wrong, prase: { delimiter: tab } }
  old: { watch: data/old, existing: skip }
  slow: { watch: data/slow, ready: { quiet: 10m } }
  several: { watch: data/several, run: folder, ready: { quiet: 150ms } }
`;

interface Answer {
  readonly path: string;
  readonly outcome: string;
  readonly run?: number;
  readonly experiment?: number;
  readonly address?: string;
  readonly answer: { text: string; hint?: string };
  readonly findings: { text: string; hint?: string }[];
}

async function setUp() {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments: INSTRUMENTS });
  const ask = (path: string, ...more: string[]) => labfeed(['why', path, ...more, '--config', site.config]);
  async function answersFor(path: string): Promise<Map<string, Answer>> {
    const { stdout } = await ask(path, '--json');
    const { answers } = JSON.parse(stdout) as { answers: Answer[] };
    return new Map(answers.map((one) => [one.path.slice(join(folder, 'data').length + 1), one]));
  }
  return { folder, sandbox, site, ask, answersFor };
}

const evidence = (answer: Answer | undefined): string =>
  [answer?.answer, ...(answer?.findings ?? [])].map((one) => `${one?.text} → ${one?.hint}`).join('\n');

test('every file is explained with what happened to it and the rule that decided', async () => {
  const { folder, sandbox, site, ask, answersFor } = await setUp();
  site.drop('o.csv', weighing(9), 'old');
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  site.drop('a.csv', weighing(1));
  site.drop('gone.csv', weighing(2));
  mkdirSync(join(folder, 'data/several/run.D'), { recursive: true });
  site.drop('run.D/s.csv', weighing(6), 'several');
  await until('three filed', () => daemon.lines.filter(({ msg }) => msg === 'run filed').length === 3);
  rmSync(join(folder, 'data/balance/gone.csv'));
  site.drop('bad.csv', '');
  await daemon.logged('run quarantined');
  site.drop('copy.csv', weighing(1));
  site.drop('notes.txt', 'x');
  site.drop('RUN.CSV', 'x');
  site.drop('~a.csv', 'x');
  site.drop('l.csv', weighing(3), 'late');
  site.drop('w.csv', weighing(4), 'wrong');
  site.drop('q.csv', weighing(7), 'slow');
  await until('the waiting file is reported', () => readFileSync(`${site.journal}.live`, 'utf8').includes('q.csv'));
  const outcomeOf = async (path: string) => (await answersFor(path)).get(path)?.outcome;
  await until('the copy is known', async () => (await outcomeOf('balance/copy.csv')) === 'duplicate');
  mkdirSync(join(folder, 'elsewhere'));
  writeFileSync(join(folder, 'elsewhere', 'e.csv'), weighing(5));

  const all = await answersFor('/data/');
  const outcomes = Object.fromEntries([...all].map(([path, { outcome }]) => [path, outcome]));
  expect(outcomes).toEqual({
    'balance/a.csv': 'done',
    'balance/gone.csv': 'done',
    'balance/bad.csv': 'quarantined',
    'balance/copy.csv': 'duplicate',
    'balance/notes.txt': 'unmatched',
    'balance/RUN.CSV': 'unmatched',
    'balance/~a.csv': 'unmatched',
    'late/l.csv': 'waiting',
    'slow/q.csv': 'waiting',
    'several/run.D': 'done',
    'several/run.D/s.csv': 'done',
    'old/o.csv': 'skipped',
    'wrong/w.csv': 'stopped',
  });
  const filed = all.get('balance/a.csv');
  expect(filed?.address).toBe(`${sandbox.url}/api/v2/experiments/${filed?.experiment}`);
  expect(evidence(filed)).toContain('also matches "a*" of shadow, but balance comes first');
  expect(evidence(all.get('balance/gone.csv'))).toContain('the file does not exist');
  expect(evidence(all.get('balance/bad.csv'))).toMatch(/quarantined: .*bad\.csv/);
  expect(evidence(all.get('balance/copy.csv'))).toContain(
    `run ${filed?.run}, from ${join(folder, 'data/balance/a.csv')}, has the same content`,
  );
  expect(evidence(all.get('balance/notes.txt'))).toContain('none of its globs matches: "**/*.csv"');
  expect(evidence(all.get('balance/RUN.CSV'))).toContain('"**/*.csv" differs only in upper and lower case');
  expect(evidence(all.get('balance/~a.csv'))).toContain('`ignore` "**/~*" matches it');
  expect(evidence(all.get('late/l.csv'))).toContain('l.csv.done is missing');
  expect(evidence(all.get('slow/q.csv'))).toMatch(/unchanged for \d+ s of 600 s/);
  expect(evidence(all.get('several/run.D/s.csv'))).toMatch(/run of several files: .*\/several\/run\.D/);
  expect(evidence(all.get('old/o.csv'))).toContain('existing: skip');
  expect(evidence(all.get('wrong/w.csv'))).toMatch(/labfeed\.yaml:\d+:\d+: unknown key "prase"/);

  const outside = await ask(join(folder, 'elsewhere', 'e.csv'));
  expect(outside.status).toBe(0);
  expect(outside.stdout).toMatch(/not filed: no instrument matches it[\s\S]*it is in no watched folder/);
  await daemon.stop();

  // By part of its name, through a link, and without a daemon.
  const one = await ask('gone.c');
  expect(one).toMatchObject({ status: 0, stderr: '' });
  expect(one.stdout).toMatch(
    /^\/.*gone\.csv\n {2}filed on .* as experiment \d+: http.*\n[\s\S]*- in the journal since .* as run \d+/,
  );
  symlinkSync(join(folder, 'data', 'balance'), join(folder, 'short'));
  expect((await ask(join(folder, 'short', 'a.csv'))).stdout).toContain('filed on');
  const several = await ask('a.csv');
  expect(several.stdout).toMatch(/^STATE +RUN +FILE +WHY\ndone /);
  expect(several.stdout).toContain('2 files match; ');
});

test('an unknown file gives exit status 1, and without a journal the folders are still searched', async () => {
  const { ask, site, folder } = await setUp();
  const nothing = await ask('no-such-file');
  expect(nothing).toMatchObject({
    status: 1,
    stdout: expect.stringContaining('nothing is known about no-such-file'),
  });
  site.drop('x.csv', weighing(1));
  const waiting = await ask(join(folder, 'data', 'balance', 'x.csv'));
  expect(waiting.status).toBe(0);
  expect(waiting.stdout).toMatch(/not filed yet: labfeed takes it once it is running[\s\S]*labfeed is not running/);
  expect((await ask('')).status).toBe(2);
});
