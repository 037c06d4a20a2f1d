import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { explainProblem } from '../../src/errors.js';
import { tempFolder } from '../support/temp-folder.js';

function load(alarms: string, silence = '24h'): LoadedConfig {
  const file = join(tempFolder(), 'labfeed.yaml');
  const notebook = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }';
  const instruments = `instruments:\n  nanodrop: { watch: ., silence: ${silence} }`;
  writeFileSync(file, `${notebook}\nalarms: ${alarms}\n${instruments}\n`);
  return loadConfig(file);
}

const printed = ({ problems, file }: LoadedConfig): string[] =>
  problems.map((problem) => explainProblem(problem).replace(`${dirname(file)}/`, ''));

test('a command is split at spaces outside quotes, and its path is relative to the configuration', () => {
  const command = (text: string) => load(`{ command: ${JSON.stringify(text)} }`).settings.alarms?.command;
  expect(command('/bin/page-me')).toEqual(['/bin/page-me']);
  expect(command(`mail -s "lab alarm" 'it desk'@example.org --x="a b"`)).toEqual([
    'mail',
    '-s',
    'lab alarm',
    'it desk@example.org',
    '--x=a b',
  ]);
  const relative = load('{ command: "./page me.sh" }');
  expect(relative.settings.alarms?.command).toEqual([join(dirname(relative.file), 'page'), 'me.sh']);
});

test.each([
  ['{ command: "/bin/page-me \\"lab" }', /^labfeed\.yaml:2:20: alarms\.command: expected a program/],
  ['{ command: "" }', /^labfeed\.yaml:2:20: alarms\.command: expected a program/],
  ['{ webhook: chat.example.org }', /^labfeed\.yaml:2:20: alarms\.webhook: expected a URL/],
  ['{ webhook: "ftp://chat.example.org" }', /alarms\.webhook: expected a URL/],
  [
    '{ webhook: "https://me:secret@chat.example.org" }',
    /a user name or password in the URL is not allowed\n {2}→ remove it$/,
  ],
  [
    '{ webhook: "https://:secret@chat.example.org" }',
    /a user name or password in the URL is not allowed\n {2}→ remove it$/,
  ],
  ['{ webhok: "https://chat.example.org" }', /unknown key "webhok"[\s\S]*did you mean webhook/],
])('the mistake alarms: %s is reported with its location and stops nothing', (alarms, expected) => {
  const config = load(alarms);
  expect(printed(config)).toEqual([expect.stringMatching(expected)]);
  expect(config.problems.map(({ stops }) => stops)).toEqual(['nothing']);
  expect(printed(config).join()).not.toContain('secret@');
});

test('silence is a duration that counts on all days or on selected days', () => {
  const silence = (written: string) => load('{}', written).instruments[0]?.silence;
  expect(silence('24h')).toEqual({ afterMs: 86_400_000, days: new Set([1, 2, 3, 4, 5, 6, 7]) });
  expect(silence('{ after: 2h }')?.days.size).toBe(7);
  expect(silence('{ after: 2h, days: mon-fri }')).toEqual({
    afterMs: 7_200_000,
    days: new Set([1, 2, 3, 4, 5]),
  });
  expect(silence('{ after: 2h, days: "mon,wed, fri" }')?.days).toEqual(new Set([1, 3, 5]));
  expect(silence('{ after: 2h, days: "sat-mon,wed" }')?.days).toEqual(new Set([6, 7, 1, 3]));
  expect(silence('{ after: 2h, days: sun }')?.days).toEqual(new Set([7]));
});

test.each([
  ['{ after: 24h, days: weekdays }', /^labfeed\.yaml:4:54: silence\.days: expected days such as mon-fri.*"weekdays"$/],
  ['{ after: 24h, days: mon-fri-sun }', /found "mon-fri-sun"$/],
  ['{ after: 24h, days: "mon,,fri" }', /found ""$/],
  ['{ after: 24h, days: Monday }', /found "Monday"$/],
  ['{ after: 24h, days: [mon, fri] }', /silence\.days: expected days such as mon-fri/],
  ['{ days: mon-fri }', /silence\.after is missing/],
  ['{ after: 0s }', /expected a duration greater than zero/],
  ['soon', /silence: expected a duration such as 24h, or \{ after/],
])('the mistake silence: %s is reported with its location and stops the instrument', (silence, expected) => {
  const config = load('{}', silence);
  expect(printed(config)).toEqual([expect.stringMatching(expected)]);
  expect(config.problems[0]?.stops).toEqual({ instrument: 'nanodrop' });
});
