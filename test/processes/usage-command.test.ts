import { expect, test } from 'vitest';
import { labfeed } from '../support/labfeed.js';

test('every command has help with an example', async () => {
  const { stdout } = await labfeed(['--help']);
  const commands = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name);
  expect(commands).toEqual(expect.arrayContaining(['demo', 'run', 'retry', 'recover', 'schema']));
  for (const command of commands) {
    const help = await labfeed([command, '--help']);
    expect(help).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(`Examples?:\n  labfeed ${command}`),
    });
  }
});

test.each([
  ['keys', ['list', 'create', 'set', 'delete', 'rotate']],
  ['comments', ['list', 'show', 'edit', 'delete']],
])('every subcommand of %s has help with an example', async (command, actions) => {
  const asked = await labfeed([command, 'help']);
  expect(asked).toMatchObject({ status: 0, stdout: expect.stringContaining('Examples:'), stderr: '' });
  for (const action of actions) {
    const help = await labfeed([command, action, '--help']);
    expect(help).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(`Examples?:\n  labfeed ${command} ${action}`),
    });
  }
});

test('wrong usage is reported on stderr and exits with 2', async () => {
  for (const args of [
    ['rnu'],
    ['run', '--confg', 'x'],
    ['try'],
    ['demo', '--port', 'high'],
    ['retry'],
    ['retry', '1', '--quarantined'],
    ['refile', 'one'],
    ['adopt', '1'],
    ['erase'],
    ['backfill', 'balance', '--since', 'soon'],
    ['recover', '--ids', '9-3'],
    [],
  ]) {
    const { status, stderr } = await labfeed(args);
    expect({ args, status }).toEqual({ args, status: 2 });
    expect(stderr).not.toBe('');
  }
  expect((await labfeed(['rnu'])).stderr).toContain('Did you mean run?');
});
