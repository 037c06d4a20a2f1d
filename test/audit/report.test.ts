import { expect, test } from 'vitest';
import { type AuditResult, report } from '../../src/audit/report.js';

const RESULT: AuditResult = {
  server: 'https://eln.example.org',
  findings: [
    ...Array.from({ length: 25 }, (_, n) => ({
      kind: 'never taken' as const,
      instrument: 'balance',
      path: `/srv/instruments/balance/a/very/long/way/down/run-${n}.csv`,
      text: 'it is not in the journal',
    })),
    {
      kind: 'comment missing',
      instrument: 'balance',
      run: 3,
      experiment: 17,
      path: '/srv/instruments/balance/\x1b[2Jx.csv',
      text: 'comment 1 (id 9) is missing',
    },
  ],
  repairs: [],
  safe: [],
  filed: 1,
  verified: new Set(),
  proved: new Set(),
  folders: [],
  stoppedBy: undefined,
};

test('rows are cut to the width of a terminal and keep the end of the path', () => {
  const narrow = report(RESULT, undefined, 60).split('\n');
  const rows = narrow.filter((line) => line.includes('it is not in the journal'));
  expect(rows).toHaveLength(20);
  for (const row of rows) expect(row.length).toBeLessThanOrEqual(60);
  expect(rows[0]).toMatch(/^ {2}it is not in the journal: ….*run-0\.csv$/);
  expect(narrow).toContain('  and 5 more, see --json');
  expect(report(RESULT, undefined)).toContain(': /srv/instruments/balance/a/very/long/way/down/run-0.csv\n');
});

test('each kind of finding has a hint, and control characters in file names are not printed', () => {
  const text = report(RESULT, [{ run: 3, outcome: 'done', text: 'posted' }]);
  expect(text).toMatch(/\nmissing comments \(1\)\n {2}→ --repair posts them again, .*on purpose/);
  expect(text).toMatch(/run 3, experiment 17 {2}comment 1 \(id 9\) is missing: /);
  expect(text).not.toContain('\x1b');
  expect(text).toMatch(/\nrepair\n {2}posted\n/);
  expect(text).toMatch(/\n26 differences$/);
});

test('a reason that starts with the path does not repeat it', () => {
  const path = '/srv/instruments/balance/bad.csv';
  const finding = {
    kind: 'quarantined' as const,
    instrument: 'balance',
    run: 4,
    path,
    text: `${path}:3: no value`,
  };
  expect(report({ ...RESULT, findings: [finding] }, undefined)).toContain(`  run 4  line 3: no value: ${path}\n`);
});
