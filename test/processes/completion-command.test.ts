import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CLI } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

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
  expect(complete('keys', 'r')).toEqual(['rotate']);
  expect(complete('keys', '')).toEqual(['list', 'create', 'set', 'delete', 'rotate']);
  expect(complete('keys', 'create', '--read')).toEqual(['--read-only']);
  expect(complete('keys', 'list', '--read')).toEqual([]);
  expect(complete('keys', 'list', '--config', 'labfeed.')).toEqual(['labfeed.yaml']);
  expect(complete('comments', 'show', '')).toEqual([]);
  expect(complete('list')).toEqual([]);
});

/** The shells need not be installed. */
const isInstalled = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

/** Loads the completion of a command when it is first needed. */
const BASH_COMPLETION = '/usr/share/bash-completion/bash_completion';

test.skipIf(!isInstalled('fish'))('fish completes commands, subcommands, their options and instruments', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), CONFIG);
  writeFileSync(join(folder, 'labfeed'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`, { mode: 0o755 });
  const scripts = join(folder, 'fish/vendor_completions.d');
  mkdirSync(scripts, { recursive: true });
  writeFileSync(join(scripts, 'labfeed.fish'), (await labfeed(['completion', 'fish'])).stdout);
  // fish finds it there as it finds the one of the Debian package in /usr/share.
  const env = { ...process.env, HOME: folder, XDG_DATA_DIRS: folder, PATH: `${folder}:${process.env['PATH']}` };
  const complete = (typed: string): string[] => {
    const shown = execFileSync('fish', ['-c', `complete -C '${typed}'`], { cwd: folder, encoding: 'utf8', env });
    return shown.split('\n').flatMap((line) => line.split('\t')[0] || []);
  };
  expect(complete('labfeed re')).toEqual(expect.arrayContaining(['retry', 'refile', 'recover']));
  expect(complete('labfeed keys r')).toEqual(['rotate']);
  expect(complete('labfeed keys ').toSorted()).toEqual(['create', 'delete', 'list', 'rotate', 'set']);
  expect(complete('labfeed keys create --read')).toEqual(['--read-only']);
  expect(complete('labfeed keys list --read')).toEqual([]);
  // `show` is also a command of its own, with other arguments.
  expect(complete('labfeed comments show ')).toEqual([]);
  expect(complete('labfeed jobs --state q').toSorted()).toEqual(['quarantined', 'queued']);
  expect(complete('labfeed backfill p')).toEqual(['pH meter']);
});

test.skipIf(!isInstalled('zsh')).each([
  // `labfeed completion zsh > FOLDER/_labfeed`, as the Debian package has it: completes at the first TAB.
  ['in a folder of fpath', '_labfeed', 'fpath=($PWD $fpath); autoload -U compinit; compinit -u'],
  ['that is sourced', 'labfeed.zsh', 'autoload -U compinit; compinit -u; source ./labfeed.zsh'],
])('zsh completes commands, subcommands and their options with a script %s', async (_how, file, start) => {
  const folder = tempFolder();
  // Shows what it was called with, after completion.
  writeFileSync(join(folder, 'labfeed'), '#!/bin/sh\necho "$@" >> called\n', { mode: 0o755 });
  writeFileSync(join(folder, file), (await labfeed(['completion', 'zsh'])).stdout);
  const shell = openShell(folder, 'zsh -f -i');
  shell.type(`${start}; echo ready > ready\n`);
  await until('zsh is ready', () => shell.lines('ready').length > 0);
  for (const [typed, completed] of [
    ['keys r', 'keys rotate'],
    ['keys create --read', 'keys create --read-only'],
    ['comments ed', 'comments edit'],
    ['backf', 'backfill'],
  ] as const)
    await shell.completes(typed, completed);
});

test.skipIf(!existsSync(BASH_COMPLETION))('bash loads the script of the Debian package at the first TAB', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed'), '#!/bin/sh\necho "$@" >> called\n', { mode: 0o755 });
  const scripts = join(folder, 'bash-completion/completions');
  mkdirSync(scripts, { recursive: true });
  writeFileSync(join(scripts, 'labfeed'), (await labfeed(['completion', 'bash'])).stdout);
  const shell = openShell(folder, 'bash --norc -i', { XDG_DATA_HOME: folder });
  shell.type(`. ${BASH_COMPLETION}; echo ready > ready\n`);
  await until('bash is ready', () => shell.lines('ready').length > 0);
  await shell.completes('keys r', 'keys rotate');
});

/** A shell in a terminal. */
function openShell(folder: string, command: string, more: NodeJS.ProcessEnv = {}) {
  const env = {
    ...process.env,
    HOME: folder,
    PATH: `${folder}:${process.env['PATH']}`,
    TERM: 'dumb',
    HISTFILE: '',
    ...more,
  };
  const args = ['--quiet', '--flush', '--command', command, join(folder, 'terminal.txt')];
  const shell = spawn('script', args, { cwd: folder, env, stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => void shell.kill('SIGKILL'));
  const type = (text: string) => shell.stdin.write(text);
  const lines = (file: string): string[] =>
    existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8').trim().split('\n') : [];
  return {
    type,
    lines,
    /** One TAB completes what is typed after `labfeed`. */
    async completes(typed: string, completed: string): Promise<void> {
      type(`labfeed ${typed}\t`);
      // The completed part is shown after what was typed.
      const rest = completed.slice(typed.length);
      await until(completed, () => (lines('terminal.txt').at(-1) ?? '').trimEnd().endsWith(rest));
      type('\n');
      await until(`${completed} was called`, () => lines('called').at(-1)?.trim() === completed);
    },
  };
}

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
});
