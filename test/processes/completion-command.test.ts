import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CLI } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { tempFolder } from '../support/temp-folder.js';

const CONFIG = 'instruments:\n  balance: { watch: . }\n  pH meter: { watch: . }\n';

test('bash completes commands, options, states and instruments, including names with spaces', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), CONFIG);
  writeFileSync(join(folder, 'labfeed'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`, {
    mode: 0o755,
  });
  const { status, stdout: script } = await labfeed(['completion', 'bash']);
  expect(status).toBe(0);
  const complete = (...words: string[]): string[] => {
    const typed = ['./labfeed', ...words].map((word) => `'${word}'`).join(' ');
    const shell = `${script}\nCOMP_WORDS=(${typed})\nCOMP_CWORD=${words.length}\n_labfeed\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
    const shown = execFileSync('bash', ['--norc', '-c', shell], { cwd: folder, encoding: 'utf8' });
    return shown.split('\n').filter((line) => line !== '');
  };
  expect(complete('re')).toEqual(expect.arrayContaining(['retry', 'refile', 'recover']));
  expect(complete('jobs', '--st')).toEqual(['--state']);
  expect(complete('jobs', '--state', '')).toHaveLength(7);
  expect(complete('jobs', '--state', 'q')).toEqual(['queued', 'quarantined']);
  expect(complete('jobs', '--instrument', '')).toEqual(['balance', 'pH\\ meter']);
  expect(complete('backfill', 'p')).toEqual(['pH\\ meter']);
  expect(complete('try', 'b')).toEqual(['balance']);
  expect(complete('try', 'balance', 'labfeed.')).toEqual(['labfeed.yaml']);
  expect(complete('check', '--config', 'labfeed.')).toEqual(['labfeed.yaml']);
  expect(complete('completion', '')).toEqual(['bash', 'zsh', 'fish']);
  expect(complete('status', '')).toEqual([]);
}, 60_000);

test('zsh and fish know every command and its options; without a configuration there are no instruments', async () => {
  const { stdout: help } = await labfeed(['--help']);
  const commands = [...help.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name);
  expect(commands).toContain('status');
  for (const shell of ['zsh', 'fish']) {
    const { stdout } = await labfeed(['completion', shell]);
    for (const name of commands) expect(stdout).toContain(name);
    expect(stdout).toMatch(/quarantined/);
    expect(stdout).toContain('completion --instruments');
  }
  expect(await labfeed(['completion', '--instruments'])).toEqual({ status: 0, stdout: '', stderr: '' });
  expect((await labfeed(['completion', 'tcsh'])).status).toBe(2);
}, 60_000);
