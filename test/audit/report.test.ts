import { expect, test } from 'vitest';
import type { Audited } from '../../src/audit/audit.js';
import { report } from '../../src/audit/command.js';

const AUDITED: Audited = {
  server: 'https://eln.example.org',
  findings: [
    ...Array.from({ length: 25 }, (_, n) => ({
      kind: 'never taken' as const,
      instrument: 'balance',
      path: `/srv/instruments/balance/a/very/long/way/down/run-${n}.csv`,
      text: 'the journal does not know it',
    })),
    {
      kind: 'comment missing',
      instrument: 'balance',
      run: 3,
      experiment: 17,
      path: '/srv/instruments/balance/\x1b[2Jx.csv',
      text: 'comment 1, id 9, is gone',
    },
  ],
  repairs: [],
  safe: [],
  runs: { filed: 1, proved: 0 },
  folders: [],
  brokenOff: undefined,
};

test('rows fit the terminal and keep the end of the path; elsewhere nothing is cut', () => {
  const narrow = report(AUDITED, undefined, 60).split('\n');
  const rows = narrow.filter((line) => line.includes('the journal does not know it'));
  expect(rows).toHaveLength(20);
  for (const row of rows) expect(row.length).toBeLessThanOrEqual(60);
  expect(rows[0]).toMatch(/^ {2}the journal does not know it: ….*run-0\.csv$/);
  expect(narrow).toContain('  and 5 more: --json has all');
  expect(report(AUDITED, undefined)).toContain(': /srv/instruments/balance/a/very/long/way/down/run-0.csv\n');
});

test('what can be done stands with each kind, and no name of a file moves the cursor', () => {
  const text = report(AUDITED, { outcomes: [{ run: 3, outcome: 'done', text: 'posted' }], hasDaemon: false });
  expect(text).toMatch(/\ncomments that are gone \(1\)\n {2}→ --repair posts them again; .*on purpose/);
  expect(text).toMatch(/run 3, experiment 17 {2}comment 1, id 9, is gone: /);
  expect(text).not.toContain('\x1b');
  expect(text).toMatch(/repair:\n {2}posted\n {2}no daemon runs: the next `labfeed run` sends it/);
  expect(text).toMatch(/\n26 differences$/);
});

test('a reason that begins with the path does not name it twice', () => {
  const path = '/srv/instruments/balance/bad.csv';
  const finding = {
    kind: 'quarantined' as const,
    instrument: 'balance',
    run: 4,
    path,
    text: `${path}:3: no value`,
  };
  expect(report({ ...AUDITED, findings: [finding] }, undefined)).toContain(
    `  run 4  line 3: no value: ${path}\n`,
  );
});
