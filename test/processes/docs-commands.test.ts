import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { blocks, PAGES, read } from '../docs/blocks.js';
import { CLI, startDaemon } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const SAMPLE = 'Sample: Lambda DNA\nOperator: Ada\nDate: 2026-04-03\n\nWell\tA260 (AU)\nA1\t1.230\nA2\t1.198\n';

/** A lab as the documentation describes it: an instrument, a sample, and one run that is filed as experiment 1. */
async function setUp() {
  const folder = tempFolder();
  const { url, key } = await runSandbox(join(folder, 'notebook.db'));
  const watched = join(folder, 'nanodrop');
  for (const name of ['samples', 'instruments.d', 'nanodrop', 'bin']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'samples/run-17.tsv'), SAMPLE);
  writeFileSync(join(folder, 'api-key'), key);
  chmodSync(join(folder, 'api-key'), 0o600);
  writeFileSync(
    join(folder, 'labfeed.yaml'),
    `notebook: { url: "${url}", key: { file: api-key } }\njournal: journal.db\nstatus: false\n` +
      `instruments: { nanodrop: { watch: "${watched}", files: "**/*.tsv", ready: { quiet: 100ms } } }\n`,
  );
  writeFileSync(join(folder, 'bin/labfeed'), `#!/bin/sh\nexec ${process.execPath} ${CLI} "$@"\n`, {
    mode: 0o755,
  });
  const daemon = startDaemon(join(folder, 'labfeed.yaml'));
  await daemon.logged('ready');
  writeFileSync(join(watched, 'run-17.tsv'), SAMPLE);
  await until('the run is filed', () => daemon.lines.some(({ msg }) => msg === 'run filed'));

  const shell = (line: string): Promise<{ line: string; status: number; output: string }> =>
    new Promise((resolve) => {
      const env = { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` };
      execFile('sh', ['-c', line], { cwd: folder, env, timeout: 200_000 }, (error, stdout, stderr) =>
        resolve({ line, status: error ? Number(error.code ?? -1) : 0, output: stdout + stderr }),
      );
    });
  return { shell };
}

/** Commands that other tests run: the two of the README, and the daemon, which is already running here. */
const ELSEWHERE = /^(npm ci && npm (test|run demo)|labfeed run)\b/;

test.each(PAGES.filter((page) => blocks(page, 'sh').length > 0))(
  'every command in the sh blocks of %s succeeds',
  async (page) => {
    const lines = blocks(page, 'sh').flatMap((block) => block.trim().split('\n'));
    const runnable = lines.filter((line) => !ELSEWHERE.test(line));
    if (runnable.length === 0) return;
    const { shell } = await setUp();
    for (const line of runnable) expect(await shell(line)).toMatchObject({ line, status: 0 });
  },
);

describe('commands named anywhere', () => {
  /** `labfeed …` in code spans and blocks, up to the end of the command. */
  const mentions = PAGES.flatMap((page) => {
    const spans = [
      ...read(page)
        .replace(/```[\s\S]*?```/g, '')
        .matchAll(/`([^`]+)`/g),
    ].map(([, span = '']) => span);
    const code = [...spans, ...blocks(page, 'sh'), ...blocks(page, 'console')].join('\n');
    return [...code.matchAll(/(?<!-u |exec )\blabfeed ([a-z][^\n|&>#<]*)/g)].map(([, words = '']) => ({
      page,
      words,
    }));
  });

  test('exist, with the options they are shown with', async () => {
    const { stdout } = await labfeed(['--help']);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name ?? '');
    const helps = new Map<string, string>();
    for (const { page, words } of mentions) {
      const [command = '', sub = ''] = words.trim().split(' ');
      expect(commands, `labfeed ${words} in ${page}`).toContain(command);
      const named = ['comments', 'keys'].includes(command) && /^[a-z]+$/.test(sub) ? [command, sub] : [command];
      const name = named.join(' ');
      if (!helps.has(name)) helps.set(name, (await labfeed([...named, '--help'])).stdout);
      for (const [option] of words.matchAll(/(?<= )--?[a-z0-9][a-z-]*/g))
        expect(helps.get(name), `labfeed ${words} in ${page}`).toContain(option);
    }
    expect(helps.size).toBeGreaterThan(15);
  });
});
